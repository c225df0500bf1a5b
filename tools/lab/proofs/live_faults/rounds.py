"""Goes through the faults, some at once, each on another camera of one running graph."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

from camgraph.pipeline.errors import CamgraphError
from camgraph.tools.lab.proofs.live_faults.cameras import FPS, Patient
from camgraph.tools.lab.proofs.live_faults.cases import Case
from camgraph.tools.lab.proofs.live_faults.observed_run import ObservedRun
from camgraph.tools.lab.proofs.live_faults.trial import STEADY_S, WELL, Result, Trial
from camgraph.tools.measuring.load import Load, load_of
from camgraph.tools.measuring.processor_time import between

MOST_TRIES = 3
MUCH_OTHER = 0.5
"""Part of the cores. If other processes take more, everything is late, whatever the cameras do."""
_LOOK_S = 0.02


def wait_until(run: ObservedRun, condition: Callable[[], bool], within_s: float, what: str) -> None:
    """Look at the run until ``condition`` holds. Raises CamgraphError if that takes longer than ``within_s``."""
    late = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > late:
            raise CamgraphError(f"{what}: not within {within_s:g} s: {run.record.looks}")
        run.look()
        time.sleep(_LOOK_S)


def all_well(run: ObservedRun, patients: Sequence[Patient]) -> bool:
    """Whether frames of all these cameras have come for `STEADY_S`."""
    now_s = time.monotonic()
    return all(
        run.record.look(patient.name).state == "live"
        and run.record.frames_since(patient.name, now_s - STEADY_S) >= WELL * FPS * STEADY_S
        for patient in patients
    )


def go_through(
    run: ObservedRun, cases: Sequence[Case], patients: Sequence[Patient], at_once: int, report: Callable[[Result], None]
) -> list[Result]:
    """Try each case once. The cameras take turns: each takes the first case left that suits its kind.

    A case that is late while other processes take much of the machine is tried again, `MOST_TRIES` times at most.
    """
    with ThreadPoolExecutor(at_once) as executor:
        round_ = _Round(run, list(cases), list(patients), at_once, executor)
        while round_.goes_on:
            run.look()
            for result in round_.turn(time.monotonic()):
                report(result)
            time.sleep(_LOOK_S)
    return round_.results


def may_try_again(result: Result, case: Case, load: Load, times: int) -> bool:
    """Whether to try a case again: it was late and nothing else, while other processes had the machine.

    ``times``: how often it was tried again. Pure.
    """
    return not (result.problems or case.at_start) and load.other > MUCH_OTHER * load.cores and times < MOST_TRIES - 1


class _Round:
    """See `go_through`."""

    def __init__(
        self, run: ObservedRun, cases: list[Case], patients: list[Patient], at_once: int, executor: Executor
    ) -> None:
        self.results: list[Result] = []
        self._run = run
        self._cases = tuple(cases)
        self._left = cases
        self._rested = patients
        self._at_once = at_once
        self._executor = executor
        self._trials: list[Trial] = []
        self._again: Counter[str] = Counter()

    @property
    def goes_on(self) -> bool:
        return bool(self._trials or self._left)

    def turn(self, now_s: float) -> list[Result]:
        """Advance all trials that run, and return the results of those that are over."""
        for trial in self._trials:
            trial.turn(now_s)
        over = [trial for trial in self._trials if trial.phase == "over"]
        for trial in over:
            self._trials.remove(trial)
            if trial.result.late:
                self._take_late(trial.result)
            if trial.case.then:
                self._begin(trial.case.then, trial.patient, now_s)
            else:
                self._rested.append(trial.patient)
        for patient in list(self._rested):
            self._next_for(patient, now_s)
        self.results += [trial.result for trial in over]
        return [trial.result for trial in over]

    def _take_late(self, result: Result) -> None:
        """Try a late case again if the machine was too busy to judge it; else its lateness is a problem."""
        tried = next(case for case in self._cases if result.case in (case.name, case.then and case.then.name))
        load = load_of(*between(self._run.record.work, result.from_s, result.until_s))
        if may_try_again(result, tried, load, self._again[tried.name]):
            self._again[tried.name] += 1
            self._left.append(tried)
            result.excused = result.late
        else:
            result.problems += result.late

    def _next_for(self, patient: Patient, now_s: float) -> None:
        case = self._case_for(patient)
        if case and len(self._trials) < self._at_once:
            self._rested.remove(patient)
            self._left.remove(case)
            self._begin(case, patient, now_s)

    def _case_for(self, patient: Patient) -> Case | None:
        """Of the cases that suit this camera, the one that suits the fewest others."""
        fitting = [case for case in self._left if patient.kind in case.kinds]
        return min(fitting, key=lambda case: len(case.kinds), default=None)

    def _begin(self, case: Case, patient: Patient, now_s: float) -> None:
        self._trials.append(Trial(case, patient, self._run.record, self._executor, now_s))
