r"""People under a camera that looks down, as a level one would see them: upright, and as tall as they are.

All verticals of the world meet in one point of the picture, the nadir, right below its middle:

    +-----------+
    |  \  |  /  |      people at the sides lean outwards, and those near the nadir look short
    |   \ | /   |
    +----\|/----+
          x            the nadir, `1 / convergence` pixels below the middle

Lengths are those of what is upright: what is level counts as shorter, as all that is upright at its place is.

The camera must not be rolled, and straight lines must be straight in its picture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

_SHOULDERS, _HIPS, _ANKLES = slice(5, 7), slice(11, 13), slice(15, 17)
_STEEPEST = np.radians(60.0)
"""Nobody is straightened by more: right below the camera, up is every way."""
_LEAST, _MOST = 0.5, 1.4
"""Nor squeezed by more: right below the camera, nothing of somebody's height is left in the picture."""
_UPRIGHT_DEG, _LYING_DEG = 30.0, 60.0
_PRIOR = 2.0
"""So much of a level camera is believed beforehand: some twenty samples at the sides of the picture outweigh it."""
_MOST_SAMPLES = 5000.0
"""Later samples replace the earliest: a camera may be turned."""
_OUTLIER = math.sin(math.radians(25.0))
"""Who leans by more against the present estimate is no walker."""


class Turn(NamedTuple):
    """How a person is made upright: turned around the feet, and then squeezed from both sides."""

    x: float
    y: float
    cosine: float
    sine: float
    squeeze: float

    def back(self, x: float, y: float) -> tuple[float, float]:
        """Where a place of the upright person is in the picture."""
        across, down = (x - self.x) / self.squeeze, y - self.y
        return self.x + across * self.cosine - down * self.sine, self.y + across * self.sine + down * self.cosine


@dataclass(frozen=True, slots=True)
class Lens:
    """A camera that looks down by `tilt`, in radians; `focal`: its focal length in pixels."""

    tilt: float
    focal: float

    @classmethod
    def of(cls, tilt_deg: float, fov_deg: float, width: int) -> Lens:
        """`fov_deg`: its angle of view across the `width` of the picture."""
        return cls(math.radians(tilt_deg), _focal(fov_deg, width))

    @property
    def convergence(self) -> float:
        """Of verticals, in 1 / pixel."""
        return math.tan(self.tilt) / self.focal

    def ups(self, at: F64, size: tuple[int, int]) -> F64:
        """By how much up is turned clockwise at places (N, 2), in radians (N,)."""
        x, y = ((at - np.array(size) / 2) * self.convergence).T
        angles: F64 = np.clip(np.arctan2(x, 1 - y), -_STEEPEST, _STEEPEST)
        return angles

    def shortening(self, at: F64, size: tuple[int, int]) -> F64:
        """How long something upright is at places (N, 2), against something as long that is level and across (N,)."""
        x, y = ((at - np.array(size) / 2) / self.focal).T
        sine, cosine = math.sin(self.tilt), math.cos(self.tilt)
        upright: F64 = np.hypot(x * sine, cosine - y * sine)
        # Level, and at right angles to the line of sight: the cross product of that and of straight down.
        right, down, ahead = y * sine - cosine, -x * sine, x * cosine
        across: F64 = np.hypot(right - x * ahead, down - y * ahead) / np.sqrt(right**2 + down**2 + ahead**2)
        shortening: F64 = upright / across
        return shortening

    def turns(self, boxes: F64, joints: F64, size: tuple[int, int]) -> F64:
        """How the people in boxes (N, 4), with joints (N, 17, 2), are made upright: a row of `Turn` each (N, 5)."""
        middles = (boxes[:, :2] + boxes[:, 2:]) / 2
        angles = self.ups(middles, size)
        turns = np.stack([middles[:, 0], boxes[:, 3], np.cos(angles), np.sin(angles), np.ones(len(boxes))], 1)
        turns[:, 4] = np.clip(self.shortening(middles, size), _LEAST, _MOST) ** _uprightness(
            straightened(joints, turns)
        )
        return turns


def straightened(places: F64, turns: F64) -> F64:
    """The joints (N, K, 2) of people, each of whom is made upright."""
    feet, (cosine, sine, squeeze) = turns[:, None, :2], turns[:, 2:].T[:, :, None]
    across, down = (places - feet).transpose(2, 0, 1)
    return np.stack([(across * cosine + down * sine) * squeeze, down * cosine - across * sine], 2) + feet


def _uprightness(joints: F64) -> F64:
    """1 for torsos (N,) that are upright, 0 for those that are not, or not known: of these, nothing is shortened."""
    x, y = (joints[:, _SHOULDERS].mean(1) - joints[:, _HIPS].mean(1)).T
    leans = np.degrees(np.arctan2(np.abs(x), -y))
    uprightness: F64 = np.nan_to_num(np.clip((_LYING_DEG - leans) / (_LYING_DEG - _UPRIGHT_DEG), 0, 1))
    return uprightness


def _focal(fov_deg: float, width: int) -> float:
    return width / 2 / math.tan(math.radians(fov_deg) / 2)


_USUAL_FOV, _USUAL_ASPECT = 80.0, 16 / 9
_USUAL_FOCAL = _focal(_USUAL_FOV, 1) * _USUAL_ASPECT
_FOCALS = _USUAL_FOCAL * np.exp(np.linspace(-0.9, 0.9, 25))
"""In heights of the picture: at 16:9, angles of view from 37 to 128 degrees."""
_HOW_USUAL = 0.35
"""How far the logarithm of a focal length may well be from that of the usual one."""
_PLACES = 12
_ALIKE = 0.12
"""How different the torsos of people are, as they are seen, in torsos."""
_OF_ONE = 50.0
"""So many samples are of the same person in about the same place: they count as one."""
_STEP, _EVERY = 0.1, 10
"""The focal length approaches the fit of this moment by this share, at each so many calls: nobody must seem to jump."""


@dataclass(slots=True)
class _SizesByPlace:
    """How long torsos are in rows of the picture from its upper edge to its lower one. Lengths in its heights."""

    focal: float = _USUAL_FOCAL
    _counts: F64 = field(default_factory=lambda: np.zeros(_PLACES))
    _sums: F64 = field(default_factory=lambda: np.zeros(_PLACES))
    _calls: int = 0

    def look(self, rows: F64, torsos: F64) -> None:
        """`rows`: how far the torsos are below the middle of the picture."""
        inside = np.isfinite(torsos) & (np.abs(rows) < 0.5)
        at = ((rows[inside] + 0.5) * _PLACES).astype(np.int64)
        kept = min(1.0, _MOST_SAMPLES / (self._counts.sum() + 1))
        self._counts = self._counts * kept + np.bincount(at, minlength=_PLACES)
        self._sums = self._sums * kept + np.bincount(at, torsos[inside], minlength=_PLACES)

    def fit(self, convergence: float) -> None:
        """Approach the focal length with which torsos are as long as they were seen."""
        self._calls += 1
        if self._calls % _EVERY or not self._counts.any():
            return
        best = min(_FOCALS, key=lambda focal: self._misfit(convergence, focal))
        self.focal += (float(best) - self.focal) * _STEP

    def _misfit(self, convergence: float, focal: float) -> float:
        seen = self._counts > 0
        weights = self._counts[seen] / _OF_ONE
        torsos = self._sums[seen] / self._counts[seen]
        model = _upright_lengths(convergence, focal)[seen]
        scale = (weights * model * torsos).sum() / (weights * model**2).sum()
        wrong = (torsos - scale * model) / (_ALIKE * torsos)
        return float((weights * wrong**2).sum() + (math.log(focal / _USUAL_FOCAL) / _HOW_USUAL) ** 2)


def _upright_lengths(convergence: float, focal: float) -> F64:
    """How long something upright is in each row of the picture, in any unit."""
    rows = ((np.arange(_PLACES) + 0.5) / _PLACES - 0.5) / focal
    tilt = math.atan(convergence * focal)
    nearness = math.sin(tilt) + rows * math.cos(tilt)
    return np.maximum(nearness * (math.cos(tilt) - rows * math.sin(tilt)), 1e-6)


@dataclass(slots=True)
class LensEstimate:
    """Learns a lens from people who walk: on average they are upright, and as tall in one place as in another."""

    _product: float = 0.0
    _square: float = 0.0
    _samples: float = 0.0
    _sizes: _SizesByPlace = field(default_factory=_SizesByPlace)

    def lens(self, size: tuple[int, int]) -> Lens | None:
        """None until people have walked at the sides of the picture."""
        convergence = max(0.0, self._now) / size[1]
        if not convergence:
            return None
        focal = self._sizes.focal * size[1]
        return Lens(math.atan(convergence * focal), focal)

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
        middles = (top + places[:, _HIPS].mean(1)) / 2
        torsos = np.hypot(*(top - places[:, _HIPS].mean(1)).T)
        self._sizes.look(((middles[:, 1] - size[1] / 2) / size[1])[known][fits], torsos[known][fits] / size[1])
        self._sizes.fit(max(0.0, self._now))
