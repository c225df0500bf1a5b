"""Looks after the processes of a run: one that hangs, one that waits too long for the outside, a graph that stalls.

`pipeline.supervision.hangs` and `pipeline.supervision.stall_detector` judge; what follows is done here: a process is
killed, or the run is failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pipeline.errors import EXIT_ENVIRONMENT, EXIT_GAVE_UP
from pipeline.plan import HOLD_LIMIT_S, RunPlan
from pipeline.stage import Logger
from pipeline.supervision.fleet import Fleet
from pipeline.supervision.hangs import Limits, Wakefulness
from pipeline.supervision.process import Process
from pipeline.supervision.stall_detector import StallDetector, Stuck

_LOOK_S = 0.5
_PATIENCE = 3
"""So many times `hang_s` nothing may move."""


class Watchdog:
    """For one run. `fail(status, problem)` ends it; `finite`: its cameras end by themselves."""

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

    def absorb_sleep(self, now: float) -> float:
        """To be called all the time: where this process was stopped since the last call, that is nobody's silence.

        Returns for how many seconds it was, mostly 0.
        """
        slept_s = self._wakefulness.slept_s(now)
        for process in self._fleet.processes if slept_s else ():
            process.sleep(slept_s)
        return slept_s

    def check_process(self, process: Process, plan: RunPlan, now: float) -> None:
        """Kill a process that hangs."""
        why = process.hung(now, Limits(plan.hang_s, plan.open_s))
        if why and not process.life.attempt.killed_for and self._wakefulness.trusts(now):
            self._log.error("process_hangs", unit=process.plan.name, why=why, hang_s=plan.hang_s)
            process.kill(why)

    def check_run(self, plan: RunPlan, now: float, *, running: bool) -> None:
        """Get a run going in which nothing moves; end one of files that waits too long, or is stuck again."""
        self._look_for_blocked(now)
        if now >= self._next_look:
            self._next_look = now + _LOOK_S
            self._look_for_stall(plan, now, running=running)

    def _look_for_blocked(self, now: float) -> None:
        """A finite run does not wait for ever for a disk or a receiver."""
        blocked = [p for p in self._fleet.processes if p.blocked_since and now - p.blocked_since > HOLD_LIMIT_S]
        if self._finite and blocked:
            self._fail(EXIT_ENVIRONMENT, f"given up after {HOLD_LIMIT_S:g} s of waiting: {blocked[0].heartbeat.held}")

    def _look_for_stall(self, plan: RunPlan, now: float, *, running: bool) -> None:
        trusted = running and self._wakefulness.trusts(now)
        sights = [process.sight(trusted=trusted, finite=self._finite) for process in self._fleet.processes]
        stuck = self._stall_detector.look(sights, now)
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
