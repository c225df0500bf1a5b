"""Zones and lines against slow references."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from camgraph.stages.rules.language.geometry import Line, beyond_border, in_pixels, polygon_problem, zone_of

points = st.tuples(st.integers(0, 40), st.integers(0, 40))


@settings(max_examples=200)
@given(st.lists(points, min_size=3, max_size=7, unique=True), points)
def test_inside_as_opencv_says(corners: list[tuple[int, int]], point: tuple[int, int]) -> None:
    assume(polygon_problem(corners) is None)
    side = cv2.pointPolygonTest(np.array(corners, np.float32), (float(point[0]), float(point[1])), False)
    assume(side != 0)  # on an edge
    assert zone_of(corners)(*point) is (side > 0)


def test_neighbours_share_no_place_and_miss_none() -> None:
    left, right = zone_of([(0, 0), (5, 0), (5, 9), (0, 9)]), zone_of([(5, 0), (9, 0), (9, 9), (5, 9)])
    assert all(left(x, y) + right(x, y) == 1 for x in range(9) for y in range(9))
    assert not left(math.nan, 3)
    assert not left(3, math.nan)


def test_sides_of_a_line() -> None:
    eastward = Line((0, 10), (20, 10))
    assert eastward.distance(3, 14) == 4  # below it in the picture: on the right hand
    assert eastward.distance(3, 7) == -3


@settings(max_examples=300)
@given(points, points, points, points)
def test_meets_as_parameters_say(
    one: tuple[int, int], other: tuple[int, int], a: tuple[int, int], b: tuple[int, int]
) -> None:
    """Solve one + s (other - one) = a + t (b - a); for a way that changes sides, the line is met where 0 <= t <= 1."""
    line = Line(a, b)
    assume(a != b)
    assume(line.distance(*one) * line.distance(*other) < 0)
    way, along = np.subtract(other, one), np.subtract(b, a)
    _, t = np.linalg.solve(np.column_stack((way, -along)), np.subtract(a, one))
    assume(min(abs(t), abs(t - 1)) > 1e-9)
    assert line.met_by(one, other) is bool(0 <= t <= 1)


def test_a_zone_to_the_border_has_those_whom_the_border_cuts() -> None:
    drawn = [(200, 300), (640, 300), (640, 480), (200, 480)]
    zone = zone_of(beyond_border(drawn, (640, 480)))
    assert zone(400, 480)
    assert zone(640, 480)
    assert not zone(400, 299)
    assert not zone(199, 480)
    above = zone_of(beyond_border([(200, 300), (600, 300), (600, 470), (200, 470)], (640, 480)))
    assert not above(400, 480)


def test_fractions_and_pixels() -> None:
    assert in_pixels([(0.5, 0.5), (1, 1)], (640, 480)) == [(320, 240), (640, 480)]
    assert in_pixels([(0, 0), (100, 0.5)], (640, 480)) == [(0, 0), (100, 0.5)]


@pytest.mark.parametrize(
    ("corners", "words"),
    [
        ([(0, 0), (1, 1), (2, 2)], "on one line"),
        ([(0, 0), (9, 9), (9, 0), (0, 9)], "the sides after corner 1 and corner 3 cross"),
    ],
)
def test_polygons_that_are_none(corners: list[tuple[int, int]], words: str) -> None:
    assert words in str(polygon_problem(corners))
