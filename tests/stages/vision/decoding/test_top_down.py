"""One person in each picture: where both axes, or a heat map, are highest; compared with plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.decoding.detections import Detections
from camgraph.stages.vision.decoding.formats import Asked, detections_of
from camgraph.stages.vision.decoding.promised import WrongShape

SIZE = (96, 128)
CELLS = (24, 32)
F32 = np.float32


def found(name: str, *outputs: np.ndarray[Any, Any], min_score: float = 0.0) -> Detections:
    return detections_of(name, list(outputs), SIZE, Asked(keypoints=len(outputs[0]), min_score=min_score))


@given(st.integers(1, 5), st.integers(0, 99))
def test_simcc_is_where_both_axes_are_highest(points: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(0.3, 0.4, (points, 2 * side)).astype(F32) for side in SIZE)
    expected = []
    for along_x, along_y in zip(x.tolist(), y.tolist(), strict=True):
        sure = min(max(along_x), max(along_y))
        expected.append([along_x.index(max(along_x)) / 2, along_y.index(max(along_y)) / 2, min(max(sure, 0), 1)])
    [person] = found("simcc", x, y).keypoints
    np.testing.assert_allclose(person, expected, rtol=1e-6)


def test_the_person_is_as_sure_as_the_points_and_spans_them() -> None:
    x, y = np.zeros((2, 192), F32), np.zeros((2, 256), F32)
    x[0, 20] = y[0, 41] = y[1, 90] = 1
    x[1, 101] = 0.5
    person = found("simcc", x, y, min_score=0.75)
    assert person.keypoints.tolist() == [[[10, 20.5, 1], [50.5, 45, 0.5]]]
    assert (person.boxes_xyxy.tolist(), person.scores.tolist()) == ([[10, 20.5, 50.5, 45]], [0.75])
    assert found("simcc", x, y, min_score=0.76).keypoints.shape == (0, 2, 3)


def gaussian(x: float, y: float, sigma: float = 2.0, height: float = 0.9) -> np.ndarray[Any, Any]:
    rows, columns = np.mgrid[: CELLS[1], : CELLS[0]]
    return np.asarray(height * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * sigma**2)), F32)


def in_pixels(x: float, y: float) -> list[float]:
    return [x * (SIZE[0] - 1) / (CELLS[0] - 1), y * (SIZE[1] - 1) / (CELLS[1] - 1)]


@given(st.floats(7, 16), st.floats(7, 24), st.sampled_from([1.5, 2.0, 3.0]))
def test_a_gaussian_is_found_between_the_cells(x: float, y: float, sigma: float) -> None:
    [[point]] = found("heatmaps", gaussian(x, y, sigma)[None]).keypoints
    np.testing.assert_allclose(point[:2], in_pixels(x, y), atol=0.1)
    assert 0.75 < point[2] <= 0.9


def slowly(heatmap: np.ndarray[Any, Any]) -> list[float]:
    """A keypoint in cells, and the highest value, by plain loops."""
    height, width = heatmap.shape
    row, column = divmod(int(heatmap.argmax()), width)
    taps = [math.exp(-(step**2) / 8) for step in range(-5, 6)]

    def value(y: int, x: int) -> float:
        total = 0.0
        for down, one in zip(range(-5, 6), taps, strict=True):
            for right, other in zip(range(-5, 6), taps, strict=True):
                if 0 <= y + down < height and 0 <= x + right < width:
                    total += one * other * float(heatmap[y + down, x + right])
        return math.log(max(total / sum(taps) ** 2, 1e-10))

    near = {(y, x): value(row + y, column + x) for y in (-1, 0, 1) for x in (-1, 0, 1)}
    gradient = [(near[0, 1] - near[0, -1]) / 2, (near[1, 0] - near[-1, 0]) / 2]
    mixed = (near[1, 1] - near[1, -1] - near[-1, 1] + near[-1, -1]) / 4
    curves = [[near[0, 1] - 2 * near[0, 0] + near[0, -1], mixed], [mixed, near[1, 0] - 2 * near[0, 0] + near[-1, 0]]]
    step = [0.0, 0.0]
    if np.linalg.det(curves) > 0 and curves[0][0] < 0:
        step = [-value for value in np.linalg.solve(curves, gradient)]
    if max(map(abs, step)) > 1:
        step = [0.0, 0.0]
    return [column + step[0], row + step[1], float(heatmap[row, column])]


@given(st.integers(0, 40))
def test_heat_maps_are_what_plain_loops_find(seed: int) -> None:
    """With noise, and at the edges."""
    rng = np.random.default_rng(seed)
    places = [(0.0, 0.0), (23.0, 31.0), (float(rng.uniform(0, 23)), float(rng.uniform(0, 31)))]
    maps = np.stack([gaussian(*place) + rng.normal(0, 0.02, CELLS[::-1]) for place in places]).astype(F32)
    [person] = found("heatmaps", maps).keypoints
    expected = [slowly(one) for one in maps]
    np.testing.assert_allclose(person[:, :2], [in_pixels(x, y) for x, y, _ in expected], rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(person[:, 2], [sure for _, _, sure in expected], rtol=1e-6)


def test_flat_maps_move_nothing() -> None:
    [[point]] = found("heatmaps", np.full((1, *CELLS[::-1]), 0.25, F32)).keypoints
    assert point.tolist() == [0, 0, 0.25]
    lonely = np.zeros((1, 1, 1), F32)
    assert found("heatmaps", lonely).keypoints.tolist() == [[[0, 0, 0]]]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_maps_of_no_numbers_are_nobody_or_lie_somewhere(wrong: float) -> None:
    maps = np.stack([gaussian(10, 10), gaussian(12, 12)])
    maps[1, 3, 4] = wrong
    person = found("heatmaps", maps, min_score=0.1)
    x, y = np.full((2, 192), 0.5, F32), np.full((2, 256), 0.5, F32)
    x[1, 7] = wrong
    other = found("simcc", x, y, min_score=0.1)
    for one in (person, other):
        assert len(one.scores) == (0 if np.isnan(wrong) else 1)
        assert np.isfinite(one.keypoints).all()


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("simcc", [(17, 192), (16, 256)]),
        ("simcc", [(17, 0), (17, 256)]),
        ("simcc", [(17, 192)]),
        ("heatmaps", [(17, 0, 24)]),
        ("heatmaps", [(17, 32)]),
    ],
)
def test_maps_of_other_shapes_are_refused(name: str, shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(WrongShape, match=r"expected .* got"):
        detections_of(name, [np.zeros(shape, F32) for shape in shapes], SIZE, Asked())
