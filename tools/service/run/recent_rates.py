"""The last hour of a run in samples: how many frames came, how many were dropped, and how old they were at the end.

Every `EVERY_S` one sample, for each camera and for all together, in rings of `KEPT` samples: 12 kB for each camera. A
run that does not answer leaves a gap, as does a service that did not run.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import isnan, nan
from typing import Any

from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.monitoring.run_status import RunStatus

EVERY_S = 5.0
KEPT = 720
"""An hour."""
_VALUES = 4
"""Frames a second, drops, and the ages of a half and of nineteen of twenty frames, in ms."""


class RecentRates(TypedDict):
    """All lists have a value for each time of `at`, in seconds since 1970, the oldest first; null if it is not known.

    `drops`: since the sample before. `age_ms_p50` and `age_ms_p95`: half of the frames, and nineteen of twenty, were at
    most so old at the end of their way. They are read from a histogram, and so as exact as its buckets are narrow.
    """

    every_s: float
    at: list[float]
    fps: list[float | None]
    drops: list[float | None]
    age_ms_p50: list[float | None]
    age_ms_p95: list[float | None]


class RateRing:
    """See the module. `note` and `recent` may be called from several threads."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._taken = 0
        self._at = array("d", [nan]) * kept
        self._rings: dict[str | None, array[float]] = {}
        """Camera -> its values, those of one sample after the other; None: of all cameras together."""
        self._last_seen: dict[str | None, int] = {}
        self._before: Mapping[str, Any] = {}
        """The cameras of the sample before, and their ages, as (drops, counts of the histogram)."""

    def note(self, status: RunStatus | None, now_s: float) -> None:
        """Take a sample. None if the run did not answer."""
        now = _counts_of(status) if status else {}
        with self._lock:
            place = self._taken % self._kept
            self._taken += 1
            self._at[place] = now_s
            for ring in self._rings.values():
                ring[place * _VALUES : (place + 1) * _VALUES] = array("f", [nan] * _VALUES)
            if status:
                for camera, values in self._samples(status, now):
                    self._put(camera, place, values)
            self._before = now
            for camera in [one for one, seen in self._last_seen.items() if self._taken - seen >= self._kept]:
                del self._rings[camera], self._last_seen[camera]

    def _samples(self, status: RunStatus, now: Mapping[str, Any]) -> list[tuple[str | None, list[float]]]:
        bounds = status.durations.bounds_s
        found: list[tuple[str | None, list[float]]] = []
        all_drops, all_ages, all_fps = nan, [0] * (len(bounds) + 1), 0.0
        for camera, (drops, counts) in now.items():
            fps = status.cameras[camera].fps
            all_fps += fps
            dropped, ages = nan, [0] * len(all_ages)
            if camera in self._before:
                drops_before, counts_before = self._before[camera]
                dropped = max(0, drops - drops_before)
                all_drops = dropped + (0 if isnan(all_drops) else all_drops)
                if len(counts) == len(counts_before) == len(ages):
                    ages = [max(0, new - old) for new, old in zip(counts, counts_before, strict=True)]
                    all_ages = [sum(pair) for pair in zip(all_ages, ages, strict=True)]
            found.append((camera, [fps, dropped, *_two_ages_ms(bounds, ages)]))
        return [*found, (None, [all_fps, all_drops, *_two_ages_ms(bounds, all_ages)])]

    def _put(self, camera: str | None, place: int, values: Sequence[float]) -> None:
        ring = self._rings.get(camera)
        if ring is None:
            ring = self._rings[camera] = array("f", [nan]) * (self._kept * _VALUES)
        ring[place * _VALUES : (place + 1) * _VALUES] = array("f", values)
        self._last_seen[camera] = self._taken

    def recent(self, camera: str | None = None) -> RecentRates:
        """All samples of a camera, or of all together. Raises LookupError for a camera of which there are none."""
        with self._lock:
            if camera is not None and camera not in self._rings:
                raise LookupError(camera)
            ring = self._rings.get(camera, array("f", [nan]) * (self._kept * _VALUES))
            places = [n % self._kept for n in range(max(0, self._taken - self._kept), self._taken)]
            at = [round(self._at[place], 1) for place in places]
            fps, drops, half, most = (
                [_known(ring[place * _VALUES + value]) for place in places] for value in range(_VALUES)
            )
        return {"every_s": EVERY_S, "at": at, "fps": fps, "drops": drops, "age_ms_p50": half, "age_ms_p95": most}


def _counts_of(status: RunStatus) -> dict[str, tuple[int, Sequence[int]]]:
    """Camera -> its drops so far, and the counts of the histogram of its ages."""
    ages = status.durations.cameras
    return {name: (one.drops, ages[name].counts if name in ages else ()) for name, one in status.cameras.items()}


def _known(value: float) -> float | None:
    return None if isnan(value) else round(value, 2)


def _two_ages_ms(bounds_s: Sequence[float], counts: Sequence[int]) -> tuple[float, float]:
    return 1000 * quantile_s(bounds_s, counts, 0.5), 1000 * quantile_s(bounds_s, counts, 0.95)


def quantile_s(bounds_s: Sequence[float], counts: Sequence[int], share: float) -> float:
    """The value below which this share of a histogram lies, as if each bucket were filled evenly; NaN if it is empty.

    `counts`: of the buckets up to each bound, and of the one above them all, of which its lower bound is taken.
    """
    rank = share * sum(counts)
    if not rank:
        return nan
    edges, below = [0.0, *bounds_s, bounds_s[-1]], 0
    for (low, high), count in zip(pairwise(edges), counts, strict=True):
        if count and below + count >= rank:
            return min(high, low + (high - low) * (rank - below) / count)
        below += count
    return edges[-1]


class RateSampler:
    """Takes the samples, in a thread of its own, until it is stopped."""

    def __init__(self, status: Callable[[], RunStatus], ring: RateRing) -> None:
        self._status, self._ring = status, ring
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="rates", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, within_s: float = 5.0) -> None:
        """A run that does not answer is not waited for."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(within_s)

    def _sample(self) -> None:
        due_s = time.monotonic()
        while not self._stop.wait(max(0.0, due_s - time.monotonic())):
            try:
                status: RunStatus | None = self._status()
            except CamgraphError:  # no answer, or none of this version: then the hour has a hole
                status = None
            self._ring.note(status, time.time())
            due_s = max(due_s + EVERY_S, time.monotonic())
