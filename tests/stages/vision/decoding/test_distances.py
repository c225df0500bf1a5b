"""Boxes as distances from cells, compared with plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.decoding.distances import cells_of_strides
from camgraph.stages.vision.decoding.formats import Asked, detections_of
from camgraph.stages.vision.decoding.promised import WrongShape

F32 = np.float32
Face = tuple[list[float], float, list[list[float]]]


def cells(size: tuple[int, int], strides: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """x, y, stride of each."""
    return [
        (x, y, stride)
        for stride in strides
        for y in range(math.ceil(size[1] / stride))
        for x in range(math.ceil(size[0] / stride))
    ]


def test_cells_that_lie_partly_outside_count() -> None:
    assert cells_of_strides(416, 416, (8, 16, 32, 64)) == 52**2 + 26**2 + 13**2 + 7**2 == 3598
    assert len(cells((416, 416), (8, 16, 32, 64))) == 3598


@pytest.mark.parametrize(
    ("name", "strides", "middle"),
    [("nanodet", (8, 16, 32), 0.5), ("nanodet", (8, 16, 32, 64), 0.0), ("picodet", (8, 16, 32, 64), 0.5)],
)
@given(st.sampled_from([(64, 32), (96, 64), (416, 32)]), st.integers(1, 4), st.integers(0, 40))
def test_nanodet_and_picodet_measure_from_cells(
    name: str, strides: tuple[int, ...], middle: float, size: tuple[int, int], classes: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    places = cells(size, strides)
    rows = rng.normal(0, 2, (len(places), classes + 32)).astype(F32)
    rows[:, :classes] = rng.uniform(0, 0.29, (len(places), classes))
    # No two overlap by more than all of them: none is suppressed.
    chosen = rng.permutation(len(places))[:5]
    rows[chosen, rng.integers(0, classes, 5)] = np.linspace(0.9, 0.5, 5)
    outputs = [rows]
    if name == "picodet":
        ends = np.cumsum([cells_of_strides(*size, (stride,)) for stride in strides])[:-1]
        outputs = [part for columns in (rows[:, :classes], rows[:, classes:]) for part in np.split(columns, ends)]
    found = detections_of(name, outputs, size, Asked(classes=classes, keypoints=0, iou=1.0))
    expected = []
    for row in chosen:
        x, y, stride = places[row]
        sides = []
        for side in range(4):
            powers = [math.exp(value) for value in rows[row, classes + 8 * side :][:8].tolist()]
            sides.append(sum(number * power for number, power in enumerate(powers)) / sum(powers))
        left, top, right, bottom = sides
        box = [x + middle - left, y + middle - top, x + middle + right, y + middle + bottom]
        expected.append([value * stride for value in box])
    np.testing.assert_allclose(found.boxes_xyxy, expected, rtol=1e-4, atol=1e-3)
    assert found.classes.tolist() == [int(rows[row, :classes].argmax()) for row in chosen]


def faces(size: tuple[int, int], seed: int) -> list[Any]:
    """Nine outputs of random faces, few of which score enough."""
    rng = np.random.default_rng(seed)
    anchors = [2 * len(cells(size, (stride,))) for stride in (8, 16, 32)]
    scores = [(rng.uniform(0, 1, (rows, 1)) ** 4).astype(F32) for rows in anchors]
    rest = [rng.uniform(-1, 3, (rows, side)).astype(F32) for side in (4, 10) for rows in anchors]
    return [*scores, *rest]


@given(st.sampled_from([(64, 32), (96, 64)]), st.integers(0, 40))
def test_faces_are_what_plain_loops_find(size: tuple[int, int], seed: int) -> None:
    outputs = faces(size, seed)
    found = detections_of("scrfd", outputs, size, Asked(keypoints=5, iou=1.0))
    expected: list[Face] = []
    for level, stride in enumerate((8, 16, 32)):
        scores, boxes, points = outputs[level], outputs[3 + level], outputs[6 + level]
        for anchor in range(len(scores)):
            if scores[anchor, 0] >= F32(0.3):
                x, y, _ = cells(size, (stride,))[anchor // 2]
                left, top, right, bottom = boxes[anchor].tolist()
                box = [(x - left) * stride, (y - top) * stride, (x + right) * stride, (y + bottom) * stride]
                each = points[anchor].tolist()
                moved = [[(x + each[2 * n]) * stride, (y + each[2 * n + 1]) * stride, 1.0] for n in range(5)]
                expected.append((box, float(scores[anchor, 0]), moved))
    expected.sort(key=lambda face: -face[1])
    assert found.scores.tolist() == [score for _, score, _ in expected]
    np.testing.assert_allclose(
        found.boxes_xyxy, np.reshape([box for box, _, _ in expected], (-1, 4)), rtol=1e-5, atol=1e-4
    )
    np.testing.assert_allclose(
        found.keypoints, np.reshape([points for _, _, points in expected], (-1, 5, 3)), rtol=1e-5, atol=1e-4
    )


def test_faces_that_overlap_are_one() -> None:
    """Both anchors of a cell say the same."""
    outputs = [np.zeros_like(output) for output in faces((64, 32), 0)]
    outputs[1][4:6, 0] = 0.6, 0.7
    outputs[4][4:6] = 1
    found = detections_of("scrfd", outputs, (64, 32), Asked(keypoints=5))
    assert found.boxes_xyxy.tolist() == [[16, -16, 48, 16]]
    assert found.keypoints.tolist() == [[[32, 0, 1]] * 5]
    outputs[1][:] = np.nan
    assert detections_of("scrfd", outputs, (64, 32), Asked(keypoints=5)).keypoints.shape == (0, 5, 3)


def test_strides_in_another_order_are_refused() -> None:
    outputs = faces((64, 32), 0)
    with pytest.raises(WrongShape, match=r"expected .* got"):
        detections_of("scrfd", outputs[::-1], (64, 32), Asked(keypoints=5))
    with pytest.raises(WrongShape, match="expected 9 outputs, got 6"):
        detections_of("scrfd", outputs[:6], (64, 32), Asked(keypoints=5))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_nanodet_without_numbers_is_no_warning(wrong: float) -> None:
    rows = np.zeros((42, 33), F32)
    rows[0], rows[1, 0], rows[2, 1:] = wrong, 0.5, wrong
    rows[2, 0] = 0.5
    found = detections_of("nanodet", [rows], (64, 32), Asked(keypoints=0))
    assert len(found.scores) == (3 if wrong == np.inf else 2)


@pytest.mark.parametrize("shape", [(41, 33), (42, 34), (42,), (0, 33)])
def test_rows_of_other_cells_are_refused(shape: Any) -> None:
    with pytest.raises(WrongShape, match=r"expected .* got"):
        detections_of("nanodet", [np.zeros(shape, F32)], (64, 32), Asked(keypoints=0))
