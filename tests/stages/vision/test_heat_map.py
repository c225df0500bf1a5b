"""The grid of where people spend their time, against a slow reference, and its picture."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.heat_map import add_time, heat_picture, kept_share

PLACES = st.lists(st.tuples(st.floats(-50, 500), st.floats(-50, 400)), max_size=12)


@given(PLACES, st.integers(2, 9), st.integers(2, 9))
def test_each_person_adds_to_one_cell(places: list[tuple[float, float]], rows: int, columns: int) -> None:
    grid, slow = np.zeros((rows, columns)), np.zeros((rows, columns))
    add_time(grid, np.array(places, np.float64).reshape(-1, 2), (400, 300), 0.5)
    for x, y in places:
        column = min(max(int(np.floor(x * columns / 400)), 0), columns - 1)
        row = min(max(int(np.floor(y * rows / 300)), 0), rows - 1)
        slow[row, column] += 0.5
    np.testing.assert_array_equal(grid, slow)


def test_time_fades_by_half() -> None:
    assert (kept_share(10.0, 10.0), kept_share(0.0, 5.0)) == (0.5, 1.0)


def test_the_picture_is_red_for_most_time_and_clear_for_none() -> None:
    grid = np.zeros((3, 4))
    below = np.full((90, 120, 3), 40, np.uint8)
    np.testing.assert_array_equal(heat_picture(grid, below), below)
    grid[1, 2] = 9.0
    drawn = heat_picture(grid, below)
    blue, _, red = drawn[45, 75].tolist()
    assert red > 100 > blue
    np.testing.assert_array_equal(drawn[5, 5], below[5, 5])
