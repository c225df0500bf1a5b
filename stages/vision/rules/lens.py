r"""Which way is up at a place in the picture of a camera that looks down.

All verticals of the world meet in one point of the picture, the nadir, right below its middle:

    +-----------+
    |  \  |  /  |      people at the sides lean outwards
    |   \ | /   |
    +----\|/----+
          x            the nadir, `1 / convergence` pixels below the middle

`convergence` is 0 for a camera that looks level. The camera must not be rolled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

_SHOULDERS, _HIPS, _ANKLES = slice(5, 7), slice(11, 13), slice(15, 17)
_STEEPEST = np.radians(60.0)
"""Nobody is straightened by more: right below the camera, up is every way."""
_PRIOR = 2.0
"""So much of a level camera is believed beforehand: some twenty samples at the sides of the picture outweigh it."""
_MOST_SAMPLES = 5000.0
"""Later samples replace the earliest: a camera may be turned."""
_OUTLIER = math.sin(math.radians(25.0))
"""Who leans by more against the present estimate is no walker."""


def convergence(tilt_deg: float, fov_deg: float, width: int) -> float:
    """In 1 / pixel, for a camera that looks down by `tilt_deg` and has this angle of view across its `width`."""
    return math.tan(math.radians(tilt_deg)) * 2 * math.tan(math.radians(fov_deg / 2)) / width


def ups(at: F64, size: tuple[int, int], convergence: float) -> F64:
    """By how much up is turned clockwise at places (N, 2), in radians (N,)."""
    from_middle = at - np.array(size) / 2
    angles = np.arctan2(from_middle[:, 0] * convergence, 1 - from_middle[:, 1] * convergence)
    return np.clip(angles, -_STEEPEST, _STEEPEST)


def straightened(places: F64, boxes: F64, size: tuple[int, int], convergence: float) -> F64:
    """The joints (N, K, 2) turned around the feet of each box (N, 4), so that up is up in the picture."""
    feet = np.stack([(boxes[:, 0] + boxes[:, 2]) / 2, boxes[:, 3]], 1)
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2
    angles = ups(middles, size, convergence)
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
    x, y = (places - feet[:, None]).transpose(2, 0, 1)
    return np.stack([x * cosine + y * sine, y * cosine - x * sine], 2) + feet[:, None]


@dataclass(slots=True)
class LensEstimate:
    """Learns the convergence from people who walk: on average, they are upright."""

    _product: float = 0.0
    _square: float = 0.0
    _samples: float = 0.0

    def convergence(self, size: tuple[int, int]) -> float:
        """In 1 / pixel; 0 until people have walked at the sides of the picture."""
        return max(0.0, self._now) / size[1]

    @property
    def _now(self) -> float:
        return self._product / (self._square + _PRIOR)

    def look(self, places: F64, size: tuple[int, int]) -> None:
        """Take note of the joints (N, 17, 2) of people who walk; those with unknown joints tell nothing."""
        top = places[:, _SHOULDERS].mean(1)
        bottom = places[:, _ANKLES].mean(1)
        along = bottom - top
        length = np.hypot(along[:, 0], along[:, 1])
        known = np.isfinite(length) & (length > 0)
        across, down = (along[known] / length[known, None]).T
        # In heights of the picture, from its middle: the line through both ends goes through the nadir (0, 1 / c) if
        # c * (v * across - u * down) = across.
        u, v = ((bottom[known] - np.array(size) / 2) / size[1]).T
        lever = v * across - u * down
        fits = np.abs(across - self._now * lever) < _OUTLIER
        kept = min(1.0, _MOST_SAMPLES / (self._samples + 1))
        self._product = self._product * kept + float((lever[fits] * across[fits]).sum())
        self._square = self._square * kept + float((lever[fits] ** 2).sum())
        self._samples = self._samples * kept + int(fits.sum())
