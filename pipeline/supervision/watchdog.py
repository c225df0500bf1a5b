"""Acts on processes that hang, that are blocked too long on the outside, and on a graph that stalls.

`pipeline.supervision.hangs` and `pipeline.supervision.stall_detector` judge; this module then kills a process, or ends
the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EXIT_GAVE_UP
from camgraph.pipeline.messages import Event
from camgraph.pipeline.monitoring.outcome import blocked_too_long
from camgraph.pipeline.plan import BLOCKED_LIMIT_S, ProcessPlan, RunPlan
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.supervision.fleet import Fleet
from camgraph.pipeline.supervision.hangs import Limits, Wakefulness
from camgraph.pipeline.supervision.process import Process
from camgraph.pipeline.supervision.stall_detector import StallDetector, Stuck

_LOOK_S = 0.5
_PATIENCE = 3
"""How many times `hang_s` the run may stand still."""


class Watchdog:
    """The watchdog of one run. `fail(status, problem)` ends it; `finite`: its cameras end by themselves."""

    def __init__(
        self, plan: RunPlan, fleet: Fleet, *, finite: bool, fail: Callable[[int, str], None], log: Logger
    ) -> None:
        self._fleet = fleet
        self._finite = finite
        self._fail = fail
        self._log = log
        self._wakefulness = Wakefulness(time.monotonic(), plan.hang_s)
        self._stall_detector = StallDetector(_PATIENCE * plan.hang_s, finite=finite, now=time.monotonic())
        self._next_look = 0.0
        self._frames_ended_at = math.inf

    def absorb_sleep(self, now: float) -> float:
        """Return how many seconds this process was stopped since the last call, mostly 0; call it often.

        That time does not count as silence of the other processes.
        """
        slept_s = self._wakefulness.slept_s(now)
        for process in self._fleet.processes if slept_s else ():
            process.sleep(slept_s)
        return slept_s

    def check_process(self, process: Process, plan: RunPlan, now: float) -> None:
        """Kill a process that hangs."""
        why = process.hung(now, Limits(plan.hang_s, plan.open_s))
        if why and not process.life.attempt.killed_for and self._wakefulness.trusts(now):
            self._log.error("process_hangs", process=process.plan.name, why=why, hang_s=plan.hang_s)
            process.kill(why)

    def check_run(self, plan: RunPlan, now: float, *, running: bool) -> None:
        """Restart processes of a run that stands still; end a run of files that is blocked too long, or stuck again."""
        self._look_for_blocked(now)
        if now >= self._next_look:
            self._next_look = now + _LOOK_S
            self._look_for_stall(plan, now, running=running)

    def _look_for_blocked(self, now: float) -> None:
        """End a finite run that is blocked for too long on a disk or a receiver.

        A sink of events has that time once nothing else is left to do: until then its events wait in the outbox.
        """
        if not self._finite:
            return
        if not all(process.all_ended for process in self._fleet.processes if _handles_frames(process.plan)):
            self._frames_ended_at = math.inf
        elif math.isinf(self._frames_ended_at):
            self._frames_ended_at = now
        for process in self._fleet.processes:
            since = process.reported.blocked_since
            if since and now - max(since, self._waits_from(process.plan)) > BLOCKED_LIMIT_S:
                why = process.heartbeat.blocked_on
                self._fail(EXIT_ENVIRONMENT, blocked_too_long(BLOCKED_LIMIT_S, why))
                return

    def _waits_from(self, plan: ProcessPlan) -> float:
        return self._frames_ended_at if plan.delivers_events else 0.0

    def _look_for_stall(self, plan: RunPlan, now: float, *, running: bool) -> None:
        trusted = running and self._wakefulness.trusts(now)
        progress = [process.progress(trusted=trusted, finite=self._finite) for process in self._fleet.processes]
        stuck = self._stall_detector.judge(progress, now)
        if stuck:
            self._log.error("nothing_moves", for_s=_PATIENCE * plan.hang_s, in_flight=stuck.in_flight)
            self._get_going(stuck)

    def _get_going(self, stuck: Stuck) -> None:
        if stuck.over:
            self._fail(EXIT_GAVE_UP, stuck.problem)
            return
        for process in self._fleet.processes:
            if process.plan.name in stuck.culprits:
                process.kill("nothing moves")


def _handles_frames(plan: ProcessPlan) -> bool:
    return bool(plan.sources) or any(edge.type != Event.TYPE for edge in plan.incoming)
