"""Goes through the faults, some at once, each on another camera of one running graph."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

from pipeline.errors import CamgraphError
from tools.live_faults.cases import Case
from tools.live_faults.patients import FPS, Patient
from tools.live_faults.trial import Result, Trial
from tools.live_faults.whole_run import WholeRun

_LOOK_S = 0.02
_STEADY_S = 2.0


def wait_until(run: WholeRun, condition: Callable[[], bool], within_s: float, what: str) -> None:
    """Look at the run until it is so. Raises CamgraphError where that takes longer."""
    late = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > late:
            raise CamgraphError(f"{what}: not within {within_s:g} s: {run.record.looks}")
        run.look()
        time.sleep(_LOOK_S)


def all_well(run: WholeRun, patients: Sequence[Patient]) -> bool:
    """Whether frames of all of them come as they should, and that for a while."""
    now_s = time.monotonic()
    return all(
        run.record.look(patient.name).state == "live"
        and run.record.frames_since(patient.name, now_s - _STEADY_S) >= 0.8 * FPS * _STEADY_S
        for patient in patients
    )


def go_through(
    run: WholeRun, cases: Sequence[Case], patients: Sequence[Patient], at_once: int, told: Callable[[Result], None]
) -> list[Result]:
    """Each case once. Patients take turns; one whose turn comes takes the first case that is for its kind."""
    with ThreadPoolExecutor(at_once) as executor:
        round_ = _Round(run, list(cases), list(patients), at_once, executor)
        while round_.goes_on:
            run.look()
            for result in round_.turn(time.monotonic()):
                told(result)
            time.sleep(_LOOK_S)
    return round_.results


class _Round:
    """See `go_through`."""

    def __init__(
        self, run: WholeRun, cases: list[Case], patients: list[Patient], at_once: int, executor: Executor
    ) -> None:
        self.results: list[Result] = []
        self._run = run
        self._left = cases
        self._rested = patients
        self._at_once = at_once
        self._executor = executor
        self._trials: list[Trial] = []

    @property
    def goes_on(self) -> bool:
        return bool(self._trials or self._left)

    def turn(self, now_s: float) -> list[Result]:
        """The results that have come."""
        for trial in self._trials:
            trial.turn(now_s)
        over = [trial for trial in self._trials if trial.phase == "over"]
        for trial in over:
            self._trials.remove(trial)
            if trial.case.then:
                self._begin(trial.case.then, trial.patient, now_s)
            else:
                self._rested.append(trial.patient)
        for patient in list(self._rested):
            self._next_for(patient, now_s)
        new = [trial.result for trial in over]
        self.results += new
        return new

    def _next_for(self, patient: Patient, now_s: float) -> None:
        case = self._case_for(patient)
        if case and len(self._trials) < self._at_once:
            self._rested.remove(patient)
            self._left.remove(case)
            self._begin(case, patient, now_s)

    def _case_for(self, patient: Patient) -> Case | None:
        """The one that the fewest can have, of those that are for it."""
        fitting = [case for case in self._left if patient.kind in case.kinds]
        return min(fitting, key=lambda case: len(case.kinds), default=None)

    def _begin(self, case: Case, patient: Patient, now_s: float) -> None:
        self._trials.append(Trial(case, patient, self._run.record, self._executor, now_s))
