"""When a process counts as hung: arithmetic on what it last said, and when.

Slow is not hung. What a process waits for a core does not count, and a batch may take ten times as long as the slowest
of this process so far, or the first one as long as opening took, which tries the model. But whatever the machine does,
nothing may take more than ten times `hang_s`, or, until it is open, `open_s`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.monitoring.reports import Heartbeat

FROZEN_S = 2.0
_SLOWER = 10
"""So many times as long as the slowest batch so far another one may take."""
_AT_MOST = 10
"""So many times `hang_s` or `open_s`, whatever speaks for a process."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of CLOCK_MONOTONIC: `since` is when a process was started, `heard_at` when it last reported anything, and
    `heartbeat_at` when its last heartbeat came. `opens_until`: up to when opening may take, as its stages say; 0 if
    they do not. `opened_in`: how long opening took; `slowest`: the longest that one of its batches has taken, 0 before
    the first. `starved`: for how long it has waited for a core since it has been suspected of hanging.
    """

    now: float
    since: float
    heard_at: float
    heartbeat_at: float
    opens_until: float = 0.0
    opened_in: float = 0.0
    slowest: float = 0.0
    starved: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How long things may take: a batch or a source's next frame, and opening stages or a source's first frame."""

    hang_s: float
    open_s: float


def hung(starting: bool, heartbeat: Heartbeat, times: Times, limits: Limits) -> str:
    """Why a process counts as hung, or an empty string.

    `starting`: it has not opened its stages yet. The last `heartbeat` describes the moment in which it came: how long a
    batch takes is known only up to there.
    """
    if starting:
        open_s = min(_AT_MOST * limits.open_s, limits.open_s + times.starved)
        late = times.now > max(times.since + open_s, times.opens_until)
        return f"not ready after {times.now - times.since:.0f} s (open_s)" if late else ""
    silence_s = _allowed_s(limits.hang_s, times, limits)
    if times.now - times.heard_at > silence_s:
        return f"no sign of life for {silence_s:.3g} s (hang_s)"
    working_since = heartbeat.working_since_ns / 1e9
    batch_s = _allowed_s(max(limits.hang_s, _SLOWER * times.slowest or times.opened_in), times, limits)
    if working_since and times.heartbeat_at - working_since > batch_s:
        return f"one batch takes longer than {batch_s:.3g} s: if it may, raise `hang_s` in the graph file"
    return _source_hung(heartbeat, times.heartbeat_at, limits, silence_s)


def _allowed_s(usual_s: float, times: Times, limits: Limits) -> float:
    return min(_AT_MOST * limits.hang_s, usual_s + times.starved)


def _source_hung(heartbeat: Heartbeat, heartbeat_at: float, limits: Limits, silence_s: float) -> str:
    silent_since = heartbeat.source_silent_since_ns / 1e9
    if not silent_since:
        return ""
    if heartbeat.source_opening:
        late = heartbeat_at - silent_since > limits.open_s
        return f"a source has not brought its first frame after {limits.open_s:g} s (open_s)" if late else ""
    if heartbeat_at - silent_since > silence_s:
        return f"a source gives no sign of life for {silence_s:.3g} s: if it may, raise `hang_s` in the graph file"
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
