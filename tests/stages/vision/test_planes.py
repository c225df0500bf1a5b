"""The planes of a picture: in one array, and apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.planes import join, joined_shape, split


def test_planes_are_views_in_their_order() -> None:
    pixels = np.arange(6 * 4, dtype=np.uint8).reshape(6, 4)
    luma, u, v = planes = split(pixels)
    assert (luma.shape, u.shape, v.shape) == ((4, 4), (2, 2), (2, 2))
    assert u.tolist() == [[16, 17], [18, 19]]
    assert v.tolist() == [[20, 21], [22, 23]]
    assert all(np.shares_memory(plane, pixels) for plane in planes)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 5))
def test_planes_whose_rows_lie_apart_are_joined(half_width: int, half_height: int, apart: int) -> None:
    sides = [(2 * half_height, 2 * half_width), (half_height, half_width), (half_height, half_width)]
    random = np.random.default_rng(0)
    planes = [random.integers(0, 256, (rows, columns + apart), np.uint8)[:, :columns] for rows, columns in sides]
    whole = join(planes)
    assert whole.shape == joined_shape(planes) == (3 * half_height, 2 * half_width)
    for plane, found in zip(planes, split(whole), strict=True):
        np.testing.assert_array_equal(found, plane)
    out = np.zeros_like(whole)
    assert join(planes, out) is out
    np.testing.assert_array_equal(out, whole)
