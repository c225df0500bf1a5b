"""How boxes move: a Kalman filter of constant velocity for each of cx, cy, w and h of every track at once.

The four values of a box are measured apart and move apart, so that each has its own filter of two states (place and
velocity), and a whole camera is a handful of array operations. Between two frames of any distance dt the velocity is
pushed by white noise of spectral density q (units^2 / s^3), which is exact for every frame rate:

    place    += velocity * dt               P = [[pp, pv],    Q = q * [[dt^3 / 3, dt^2 / 2],
    velocity                                     [pv, vv]]             [dt^2 / 2, dt      ]]

All noise grows with the height of the person: near people move by more pixels than far ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

# In box heights. Tuned on TUD-Stadtmitte at 25, 12.5, 5 and 3 frames a second, where half and twice as much do as well.
MEASURED_STD = np.array([0.04, 0.04, 0.09, 0.09])
PUSH_STD = np.array([0.3, 0.3, 0.06, 0.06])
FIRST_VELOCITY_STD = np.array([1.0, 1.0, 0.2, 0.2])
MIN_SIZE = 1.0


@dataclass(frozen=True, slots=True)
class Motion:
    """The filters of N tracks. `place` and `velocity` are (N, 4): cx, cy, w, h in pixels and pixels per second.

    `pp`, `pv`, `vv` (N, 4) are the entries of their covariances.
    """

    place: F64
    velocity: F64
    pp: F64
    pv: F64
    vv: F64

    def __len__(self) -> int:
        return len(self.place)

    @classmethod
    def begun(cls, boxes_xyxy: F64) -> Self:
        """Filters that have seen one box each, (N, 4)."""
        place = to_center(boxes_xyxy)
        height = _heights(place)
        pp = (MEASURED_STD * height) ** 2
        return cls(place, np.zeros_like(place), pp, np.zeros_like(place), (FIRST_VELOCITY_STD * height) ** 2)

    def predicted(self, dt_s: float, seen: NDArray[np.bool_]) -> Self:
        """The filters `dt_s` seconds later. Of those that were not `seen` (N,) last, the size stays as it is."""
        velocity = self.velocity.copy()
        velocity[~seen, 2:] = 0.0
        place = self.place + velocity * dt_s
        place[:, 2:] = np.maximum(place[:, 2:], MIN_SIZE)
        q = (PUSH_STD * _heights(place)) ** 2
        pp = self.pp + dt_s * (2 * self.pv + dt_s * self.vv) + q * (dt_s**3 / 3)
        pv = self.pv + dt_s * self.vv + q * (dt_s**2 / 2)
        return type(self)(place, velocity, pp, pv, self.vv + q * dt_s)

    def corrected(self, rows: NDArray[np.int64], boxes_xyxy: F64) -> Self:
        """The filters after `rows` (M,) were measured as `boxes_xyxy` (M, 4)."""
        result = type(self)(self.place.copy(), self.velocity.copy(), self.pp.copy(), self.pv.copy(), self.vv.copy())
        measured = to_center(boxes_xyxy)
        place, pp, pv = self.place[rows], self.pp[rows], self.pv[rows]
        spread = pp + (MEASURED_STD * _heights(measured)) ** 2
        gain, velocity_gain = pp / spread, pv / spread
        surprise = measured - place
        result.place[rows] = place + gain * surprise
        result.velocity[rows] += velocity_gain * surprise
        result.vv[rows] -= velocity_gain * pv
        result.pv[rows] = pv * (1 - gain)
        result.pp[rows] = pp * (1 - gain)
        return result

    def taken(self, rows: NDArray[np.int64]) -> Self:
        """Only these tracks, in this order."""
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))

    def joined(self, other: Self) -> Self:
        """These tracks, then those."""
        return type(self)(
            *(np.concatenate((getattr(self, field.name), getattr(other, field.name))) for field in fields(self))
        )

    @property
    def boxes_xyxy(self) -> F64:
        """Where the filters believe the boxes to be, (N, 4)."""
        half = np.maximum(self.place[:, 2:], MIN_SIZE) / 2
        return np.concatenate((self.place[:, :2] - half, self.place[:, :2] + half), axis=1)

    @property
    def doubt(self) -> F64:
        """The standard deviation of the boxes' places along x and y, (N, 2) in pixels."""
        return np.sqrt(self.pp[:, :2])


def to_center(boxes_xyxy: F64) -> F64:
    """(N, 4) x1, y1, x2, y2 -> cx, cy, w, h; sizes below a pixel count as one."""
    size = np.maximum(boxes_xyxy[:, 2:] - boxes_xyxy[:, :2], MIN_SIZE)
    return np.concatenate(((boxes_xyxy[:, :2] + boxes_xyxy[:, 2:]) / 2, size), axis=1)


def _heights(place: F64) -> F64:
    """(N, 4) -> (N, 1)."""
    return place[:, 3:4]
