from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.orientation import UPRIGHT, orientation_of_matrix

STRAIGHT = ((1, 0, 0, 1), (-1, 0, 0, 1), (1, 0, 0, -1), (-1, 0, 0, -1))
SIDEWAYS = ((0, 1, 1, 0), (0, -1, 1, 0), (0, 1, -1, 0), (0, -1, -1, 0))
VALUES = (*STRAIGHT, *SIDEWAYS)


def matrix_of(a: float, b: float, c: float, d: float) -> np.ndarray:
    scaled = [a * 65536, b * 65536, 0, c * 65536, d * 65536, 0, 0, 0, 1 << 30]
    return np.array(scaled, np.float64).astype(np.int32)


@given(st.sampled_from(VALUES), st.integers(1, 5), st.integers(1, 5))
def test_pixels_go_where_the_matrix_says(values: tuple[int, int, int, int], width: int, height: int) -> None:
    a, b, c, d = values
    stored = np.arange(width * height, dtype=np.uint8).reshape(height, width)
    orientation = orientation_of_matrix(matrix_of(a, b, c, d))
    shown = orientation.upright(stored)
    assert shown.shape[::-1] == orientation.upright_size(width, height)
    # The whole picture is shifted so that it begins at 0, 0.
    left, top = min(0, a * (width - 1)) + min(0, c * (height - 1)), min(0, b * (width - 1)) + min(0, d * (height - 1))
    for y in range(height):
        for x in range(width):
            assert shown[b * x + d * y - top, a * x + c * y - left] == stored[y, x]


@given(st.sampled_from(VALUES), st.floats(-40, 40), st.floats(0.1, 3))
def test_the_nearest_quarter_turn_is_taken(values: tuple[int, int, int, int], degrees: float, scale: float) -> None:
    turn = np.radians(degrees)
    sine, cosine = np.sin(turn), np.cos(turn)
    (a, b), (c, d) = np.array(values, np.float64).reshape(2, 2) @ ([cosine, sine], [-sine, cosine]) * scale
    assert orientation_of_matrix(matrix_of(a, b, c, d)) == orientation_of_matrix(matrix_of(*values))


def test_a_matrix_of_nothing_changes_nothing() -> None:
    assert orientation_of_matrix(np.zeros(9, np.int32)) == UPRIGHT
