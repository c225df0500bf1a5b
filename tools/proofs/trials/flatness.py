"""Whether a series is flat: a slope that outliers do not move, against a bound. Pure.

The slope is the median of the slopes between all pairs of points (Theil and Sen): a few samples during a fault or a
restart do not tilt it, at any point of the run. Long series are thinned to medians first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
_MOST_POINTS = 240
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Bound:
    """How much a series may rise over the whole judged time: a part of its median, or `least`, whichever is more."""

    part: float
    least: float

    def of(self, median: float) -> float:
        return max(self.part * abs(median), self.least)


@dataclass(frozen=True, slots=True)
class Flatness:
    """`rise`: the fitted slope times the judged time, in the unit of the series."""

    median: float
    lowest: float
    highest: float
    per_hour: float
    rise: float
    bound: float

    @property
    def flat(self) -> bool:
        """It does not grow; memory that shrinks has not leaked."""
        return self.rise <= self.bound


def judge(times_s: Sequence[float], values: Sequence[float], bound: Bound, *, warm_up_s: float) -> Flatness:
    """Judge the points after the first `warm_up_s`. Raises ValueError if there are fewer than three."""
    t, v = np.asarray(times_s, np.float64), np.asarray(values, np.float64)
    kept = t >= (times_s[0] if len(times_s) else 0.0) + warm_up_s
    t, v = t[kept], v[kept]
    if len(t) < 3:
        raise ValueError(f"flatness: expected three points or more after {warm_up_s:g} s of warm-up, got {len(t)}")
    slope, median = _slope(*_thinned(t, v)), float(np.median(v))
    rise = slope * float(t[-1] - t[0])
    return Flatness(median, float(v.min()), float(v.max()), slope * HOUR_S, rise, bound.of(median))


def _thinned(t: F64, v: F64) -> tuple[F64, F64]:
    if len(t) <= _MOST_POINTS:
        return t, v
    parts = np.array_split(np.arange(len(t)), _MOST_POINTS)
    return np.array([np.median(t[part]) for part in parts]), np.array([np.median(v[part]) for part in parts])


def _slope(t: F64, v: F64) -> float:
    first, second = np.triu_indices(len(t), 1)
    return float(np.median((v[second] - v[first]) / (t[second] - t[first])))
