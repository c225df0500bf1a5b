"""Decides when a process counts as hung, from its last report and the time of it.

Slow is not hung. Time in which a process waits for a core does not count. A batch may take ten times as long as the
slowest one of this process so far, and the first batch as long as opening took. But nothing may take more than ten
times `hang_s` (or `open_s` until the process is open), whatever the machine does.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from camgraph.pipeline.monitoring.reports import Heartbeat

FROZEN_S = 2.0
_SLOWER = 10
"""How many times as long as the slowest batch so far a batch may take."""
_AT_MOST = 10
"""How many times `hang_s` or `open_s` a process may take in any case."""
_STARVATION_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of CLOCK_MONOTONIC.

    `since`: the start of the process. `reported_at`: its last report; `heartbeat_at`: its last heartbeat.
    `opens_until`: the end of the time that its stages ask for to open, 0 if they do not. `opened_in`: the duration of
    its opening; `slowest`: of its longest batch, 0 before the first. `starved`: how long it has waited for a core since
    it was suspected of hanging.
    """

    now: float
    since: float
    reported_at: float
    heartbeat_at: float
    opens_until: float = 0.0
    opened_in: float = 0.0
    slowest: float = 0.0
    starved: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of `hang_s` (a batch, or a source's next frame) and `open_s` (opening, or a source's first frame)."""

    hang_s: float
    open_s: float


def hung(starting: bool, heartbeat: Heartbeat, times: Times, limits: Limits) -> str:
    """Return why a process counts as hung, or an empty string.

    `starting`: it has not opened its stages yet. The last `heartbeat` describes the moment at which it was sent, so the
    duration of a batch is known only up to that moment.
    """
    if starting:
        open_s = min(_AT_MOST * limits.open_s, limits.open_s + times.starved)
        late = times.now > max(times.since + open_s, times.opens_until)
        return f"not ready after {times.now - times.since:.0f} s (open_s)" if late else ""
    silence_s = _allowed_s(limits.hang_s, times, limits)
    if times.now - times.reported_at > silence_s:
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
    """Notices that the supervisor itself was stopped for a while, so that silence is not held against the others."""

    def __init__(self, now: float, hang_s: float) -> None:
        self._last = now
        self._hang_s = hang_s
        self._trusts_from = 0.0

    def slept_s(self, now: float) -> float:
        """Return how long this process was stopped since the last call, mostly 0. Call it often."""
        slept, self._last = now - self._last, now
        if slept <= FROZEN_S:
            return 0.0
        self._trusts_from = now + self._hang_s
        return slept

    def trusts(self, now: float) -> bool:
        """False for a while after a stop: the other processes may have been stopped too, and must report first."""
        return now >= self._trusts_from


class Starvation:
    """The waiting time of one process since the first `measure`: `seconds` in which a thread waited for a core.

    The kernel counts that for each thread that is ready to run. On a busy machine a process may look hung although it
    only waits for a core. A process that really hangs waits for something else, or has a core and loops: neither is
    counted here.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._before: dict[str, int] = {}
        self._next_measurement = 0.0

    def measure(self, pid: int, now: float) -> None:
        """Measure; call it often. If the system does not report these times, nothing is counted."""
        if now < self._next_measurement:
            return
        self._next_measurement = now + _STARVATION_EVERY_S
        waited = _waited_ns(pid)
        grown = [ns - self._before[thread] for thread, ns in waited.items() if thread in self._before]
        self.seconds += max(grown, default=0) / 1e9
        self._before = waited

    def forget(self) -> None:
        """Stop measuring."""
        self.seconds, self._before, self._next_measurement = 0.0, {}, 0.0


def _waited_ns(pid: int) -> dict[str, int]:
    """Return, by thread, the time that it has waited on a run queue since its start."""
    waited: dict[str, int] = {}
    with suppress(OSError, ValueError, IndexError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # the thread has just ended
                waited[thread.name] = int((thread / "schedstat").read_text().split()[1])
    return waited
