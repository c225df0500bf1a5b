"""A test picture that shows its number, which can be read after coding, sending and decoding.

Sixteen blocks across the top hold the number in binary, white for one, the highest bit first; the blocks below them
hold the opposite, so that a damaged picture is recognised. The rest is patches that change with each picture, so that
none can be guessed from the one before, and each is several packets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]

BITS = 16
_ROWS = 8
_DARK, _BRIGHT = 16, 235
_GRAIN = 16
"""Pixels of one patch, in both directions."""


def picture(number: int, width: int, height: int) -> U8:
    """Picture ``number`` (modulo 2**16) as grey values, (height, width)."""
    made = _patches(number, width, height)
    block_height = height // _ROWS
    ones = np.repeat(_bits(number), _columns(width))
    made[:block_height, : ones.size] = np.where(ones, _BRIGHT, _DARK)
    made[block_height : 2 * block_height, : ones.size] = np.where(ones, _DARK, _BRIGHT)
    return made


def number_of(grey: NDArray[Any]) -> int | None:
    """The number that a picture of grey values, (height, width), holds; None if its two rows do not agree."""
    height, width = grey.shape
    rows = (np.arange(2) * 2 + 1) * (height // _ROWS) // 2
    columns = (np.arange(BITS) * 2 + 1) * (width // BITS) // 2
    upper, lower = grey[np.ix_(rows, columns)].astype(np.int32)
    if np.abs(upper - lower).min() < (_BRIGHT - _DARK) * 3 // 4:
        return None
    bits = upper > lower
    return int(bits @ (1 << np.arange(BITS)[::-1]))


def _patches(number: int, width: int, height: int) -> U8:
    source = np.random.default_rng(number)
    grains = source.integers(80, 160, (height // _GRAIN + 1, width // _GRAIN + 1), np.uint8)
    return grains.repeat(_GRAIN, axis=0).repeat(_GRAIN, axis=1)[:height, :width]


def _bits(number: int) -> NDArray[np.bool_]:
    return (number >> np.arange(BITS)[::-1] & 1).astype(bool)


def _columns(width: int) -> int:
    return width // BITS
