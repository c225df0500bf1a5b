"""The three planes of a picture in YUV 4:2:0, and the one array in which I420 has them.

I420, W x H, both even          (H * 3 / 2, W) uint8
+-----------------+
| Y    W x H      |
+--------+--------+             the planes lie one after the other in memory, so each is a reshape of a slice
| U W/2 x H/2     |
| V W/2 x H/2     |
+-----------------+
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
Planes = Sequence[U8]
"""Y (H, W), U and V (H / 2, W / 2). They may lie anywhere, and their rows apart."""


def split(i420: U8) -> Planes:
    """The planes of a contiguous (H * 3 / 2, W) array, as views."""
    width, height = i420.shape[1], i420.shape[0] * 2 // 3
    flat, luma, chroma = i420.reshape(-1), width * height, width * height // 4
    half = (height // 2, width // 2)
    return (
        flat[:luma].reshape(height, width),
        flat[luma : luma + chroma].reshape(half),
        flat[luma + chroma :].reshape(half),
    )


def joined_shape(planes: Planes) -> tuple[int, int]:
    """The shape of the array that holds all of them."""
    height, width = planes[0].shape
    return height * 3 // 2, width


def join(planes: Planes, out: U8 | None = None) -> U8:
    """All planes in one array, (H * 3 / 2, W): copied into ``out``, or a new one."""
    whole = np.empty(joined_shape(planes), np.uint8) if out is None else out
    for place, plane in zip(split(whole), planes, strict=True):
        place[...] = plane
    return whole
