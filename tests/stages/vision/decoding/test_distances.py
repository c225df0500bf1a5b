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


@pytest.mark.parametrize(("strides", "middle"), [((8, 16, 32), 0.5), ((8, 16, 32, 64), 0.0)])
@given(st.sampled_from([(64, 32), (96, 64), (416, 32)]), st.integers(1, 4), st.integers(0, 40))
def test_nanodet_measures_from_cells(
    strides: tuple[int, ...], middle: float, size: tuple[int, int], classes: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    places = cells(size, strides)
    rows = rng.normal(0, 2, (len(places), classes + 32)).astype(F32)
    rows[:, :classes] = rng.uniform(0, 0.29, (len(places), classes))
    # No two overlap by more than all of them: none is suppressed.
    chosen = rng.permutation(len(places))[:5]
    rows[chosen, rng.integers(0, classes, 5)] = np.linspace(0.9, 0.5, 5)
    found = detections_of("nanodet", [rows], size, Asked(classes=classes, keypoints=0, iou=1.0))
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
