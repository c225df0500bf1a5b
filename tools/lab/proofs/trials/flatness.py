"""Whether a series is flat: a slope that outliers do not move, against a bound. Pure.

The slope is the median of the slopes between all pairs of points (Theil and Sen): a few samples during a fault or a
restart do not tilt it, at any point of the run. Long series are thinned to medians first.

Its interval (95 %) says how far that can be trusted. Memory grows in steps, and a sample is much like the one before:
formulas for independent samples would promise far too much. So the interval is found by a block bootstrap: the
residuals of a fitted line are cut into blocks of a tenth of the time, the blocks are put together in random order many
times, and a line is fitted each time. That line is fitted by least squares, because the median of slopes would not
notice a single large step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
_MOST_POINTS = 240
_MOST_SHUFFLED = 100
_SHUFFLES = 2000
_PIECES = 10
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
    """`rise`: the fitted slope times the judged time, in the unit of the series. `least_per_hour`, `most_per_hour`: the
    interval of the slope."""

    median: float
    lowest: float
    highest: float
    per_hour: float
    rise: float
    bound: float
    least_per_hour: float
    most_per_hour: float

    @property
    def flat(self) -> bool:
        """It does not grow; memory that shrinks has not leaked."""
        return self.rise <= self.bound

    @property
    def finest_per_hour(self) -> float:
        """A slope below this, in either direction, cannot be told from none by this run."""
        return (self.most_per_hour - self.least_per_hour) / 2


def judge(times_s: Sequence[float], values: Sequence[float], bound: Bound, *, warm_up_s: float) -> Flatness:
    """Judge the points after the first `warm_up_s`. Raises ValueError if there are fewer than three."""
    t, v = np.asarray(times_s, np.float64), np.asarray(values, np.float64)
    kept = t >= (times_s[0] if len(times_s) else 0.0) + warm_up_s
    t, v = t[kept], v[kept]
    if len(t) < 3:
        raise ValueError(f"flatness: expected three points or more after {warm_up_s:g} s of warm-up, got {len(t)}")
    slope, median = _slope(*_thinned(t, v, _MOST_POINTS)), float(np.median(v))
    rise = slope * float(t[-1] - t[0])
    least, most = _interval(*_thinned(t, v, _MOST_SHUFFLED))
    least, most = min(least, slope), max(most, slope)
    extent = float(v.min()), float(v.max())
    return Flatness(median, *extent, slope * HOUR_S, rise, bound.of(median), least * HOUR_S, most * HOUR_S)


def _interval(t: F64, v: F64) -> tuple[float, float]:
    about = t - t.mean()
    weights = about / (about @ about)
    slope = float(weights @ v)
    left = v - slope * t
    chance, size = np.random.default_rng(0), max(1, round(len(t) / _PIECES))
    starts = chance.integers(0, len(t) - size + 1, (_SHUFFLES, -(-len(t) // size)))
    pieces = (starts[:, :, None] + np.arange(size)).reshape(_SHUFFLES, -1)[:, : len(t)]
    least, most = np.quantile(slope + left[pieces] @ weights, (0.025, 0.975))
    return float(least), float(most)


def _thinned(t: F64, v: F64, most: int) -> tuple[F64, F64]:
    if len(t) <= most:
        return t, v
    parts = np.array_split(np.arange(len(t)), most)
    return np.array([np.median(t[part]) for part in parts]), np.array([np.median(v[part]) for part in parts])


def _slope(t: F64, v: F64) -> float:
    first, second = np.triu_indices(len(t), 1)
    return float(np.median((v[second] - v[first]) / (t[second] - t[first])))
