"""Where people spend their time: a grid over the frame, and its picture. Arrays in, arrays out."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Picture = NDArray[np.uint8]
_LEAST, _MOST = 0.35, 0.85
"""How much of a cell's colour covers the picture below it: with the least time, and with the most."""


def add_time(grid_s: F64, feet: F64, frame_size: tuple[int, int], seconds: float) -> None:
    """Add `seconds` to the cell of each person. `feet` (N, 2): x, y in pixels of a frame of (width, height).

    Feet beyond the border count in the cell at the border. `grid_s`: (rows, columns) seconds.
    """
    rows, columns = grid_s.shape
    width, height = frame_size
    x = np.clip(feet[:, 0] * columns / width, 0, columns - 1).astype(np.int64)
    y = np.clip(feet[:, 1] * rows / height, 0, rows - 1).astype(np.int64)
    np.add.at(grid_s, (y, x), seconds)


def kept_share(seconds: float, half_life_s: float) -> float:
    """The share of the time in a grid that is left after so many seconds."""
    return float(0.5 ** (seconds / half_life_s))


def heat_picture(grid_s: F64, below: Picture) -> Picture:
    """A picture (H, W, 3) BGR with the grid over it: blue for little time, red for the most.

    Cells without time are clear. The colour goes by the square root of the time, so that ways show beside places where
    people stay.
    """
    most = float(grid_s.max())
    if most <= 0:
        return below.copy()
    height, width = below.shape[:2]
    share = cv2.resize(np.sqrt(grid_s / most), (width, height), interpolation=cv2.INTER_LINEAR)
    colours = cv2.applyColorMap((share * 255).astype(np.uint8), cv2.COLORMAP_JET)
    cover = np.where(share > 0.02, _LEAST + (_MOST - _LEAST) * share, 0.0)[:, :, None]
    return np.asarray(below * (1 - cover) + colours * cover, np.uint8)
