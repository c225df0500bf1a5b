"""When a process counts as hung: arithmetic on what it last said, and when."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.reports import Beat

FROZEN_S = 2.0


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of CLOCK_MONOTONIC: `since` is when a process was started, `heard_at` when it was heard of last, and
    `beat_at` when its last beat came."""

    now: float
    since: float
    heard_at: float
    beat_at: float


@dataclass(frozen=True, slots=True)
class Limits:
    """How long things may take: a batch or a source's next frame, and opening stages or a source's first frame."""

    hang_s: float
    open_s: float


def hung(starting: bool, beat: Beat, times: Times, limits: Limits) -> str:
    """Why a process counts as hung, or an empty string.

    `starting`: it has not opened its stages yet. What the last `beat` says held when it came: how long a batch takes is
    known only up to there.
    """
    if starting:
        return f"not ready after {limits.open_s:g} s (open_s)" if times.now - times.since > limits.open_s else ""
    if times.now - times.heard_at > limits.hang_s:
        return f"no sign of life for {limits.hang_s:g} s (hang_s)"
    working_since = beat.working_since_ns / 1e9
    if working_since and times.beat_at - working_since > limits.hang_s:
        return f"one batch takes longer than {limits.hang_s:g} s: if it may, raise `hang_s` in the graph file"
    return _source_hung(beat, times.beat_at, limits)


def _source_hung(beat: Beat, beat_at: float, limits: Limits) -> str:
    silent_since = beat.source_silent_since_ns / 1e9
    if not silent_since:
        return ""
    if beat.source_opening:
        late = beat_at - silent_since > limits.open_s
        return f"a source has not brought its first frame after {limits.open_s:g} s (open_s)" if late else ""
    if beat_at - silent_since > limits.hang_s:
        return f"a source gives no sign of life for {limits.hang_s:g} s: if it may, raise `hang_s` in the graph file"
    return ""


class Wakefulness:
    """Notices that the supervisor itself was stopped for a while: then nobody else is to blame for silence."""

    def __init__(self, now: float, hang_s: float) -> None:
        self._last = now
        self._hang_s = hang_s
        self._trusts_from = 0.0

    def slept_s(self, now: float) -> float:
        """To be called all the time: how long this process was stopped since the last call, mostly 0."""
        slept, self._last = now - self._last, now
        if slept <= FROZEN_S:
            return 0.0
        self._trusts_from = now + self._hang_s
        return slept

    def trusts(self, now: float) -> bool:
        """False for a while after a stop: the others were perhaps stopped as well, and have to report first."""
        return now >= self._trusts_from
