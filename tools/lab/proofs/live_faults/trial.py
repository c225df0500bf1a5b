"""One fault on one camera, from the moment it is well until it is well again. Time is an argument.

    waiting --well--> struck --all told, shown, held long enough--> healed --back, and told--> settling --> over
                        |  not told in time                           |  not back in time
                        +-----------------> healed                    +-----------------> over

What acts on the camera runs in a thread of its own, so that nothing that others wait for is late.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Literal

from camgraph.pipeline.stage import AWAY
from camgraph.tools.lab.proofs.live_faults.cameras import FPS, Patient
from camgraph.tools.lab.proofs.live_faults.cases import DETECTED_S, Case
from camgraph.tools.lab.proofs.live_faults.record import CameraStatus, Record

Phase = Literal["waiting", "struck", "healed", "settling", "over"]
STEADY_S, WELL = 1.5, 0.3
"""A camera is well once this part of its frames has come for this long. On a slow machine many are replaced."""
_WAIT_S = 30.0
"""For the camera to be well in the first place; and how much longer than it may take anything is waited for."""


@dataclass
class Result:
    """The result of one fault. None: not reported, or not to be reported.

    ``reported_s``: from the fault until log, event and status had reported it; ``last_s``: until its last state was
    reported; ``back_s``: from the camera's return until all said `live` and a frame had come out at the sink.

    ``late``: what took too long; it is ``excused`` where it is tried again. ``at_start``: it was there before the run.
    """

    case: str
    camera: str
    from_s: float = 0.0
    until_s: float = 0.0
    reported_s: float | None = None
    last_s: float | None = None
    back_s: float | None = None
    problems: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    excused: list[str] = field(default_factory=list)
    at_start: bool = False


class Trial:
    """See the module's docstring; ``now_s`` is on the clock of ``record``."""

    def __init__(self, case: Case, patient: Patient, record: Record, executor: Executor, now_s: float) -> None:
        self.case = case
        self.patient = patient
        self.result = Result(case.name, patient.name, at_start=case.at_start)
        self.phase: Phase = "waiting"
        self._record = record
        self._executor = executor
        self._act: Future[None] | None = None
        self._since_s = now_s
        self._struck_s = self._reported_s = self._healed_s = self._returned_s = 0.0
        self._before = CameraStatus(0.0)

    def turn(self, now_s: float) -> None:
        """Look at what has happened, and take the next step that is due."""
        if self._act and not self._act.done():
            return
        if self._act:
            self._act.result()
            self._act = None
            self._since_s = self._healed_s = now_s
        {"waiting": self._wait, "struck": self._watch, "healed": self._await_return, "settling": self._settle}[
            self.phase
        ](now_s)

    # ---- one for each phase

    def _wait(self, now_s: float) -> None:
        if not (self.case.at_start or self._is_well(now_s - STEADY_S)):
            if now_s - self._since_s > _WAIT_S:
                self._fails(f"not well before the fault: {self._look}", now_s)
            return
        self._before, self._struck_s = self._look, now_s
        if self.case.at_start:
            self._before, self._struck_s = CameraStatus(0.0), self._record.running_s
        self.result.from_s = now_s
        self._enter("struck", now_s)
        self._act = self._executor.submit(self.case.strike, self.patient)

    def _is_well(self, since_s: float) -> bool:
        # Damage by the fault before may be reported late: it must not count for this one.
        comes = self._record.frames_since(self._name, since_s) >= WELL * FPS * STEADY_S
        return comes and self._look.state == "live" and self._record.is_spared(self._name, since_s)

    def _watch(self, now_s: float) -> None:
        first_s, last_s = self._first_reported()
        shown = self.case.shows(self._look.facts)
        late = now_s - self._struck_s > DETECTED_S + self.case.holds_s + _WAIT_S
        held = first_s is not None and last_s is not None and now_s - max(first_s, last_s) >= self.case.holds_s
        if not (held and shown) and not late:
            return
        if not held:
            self.result.problems.append(f"told {self._states} of {list(self.case.states)}; status: {self._look}")
        if not shown:
            self.result.problems.append(f"status does not show it: {self._look.facts}")
        if self.case.states:
            self.result.reported_s, self.result.last_s = (t and t - self._struck_s for t in (first_s, last_s))
        self._reported_s = last_s or now_s
        if self.case.at_start:
            self.result.from_s = now_s  # what came before is no fault: nobody was there yet
        self._enter("healed", now_s)
        self._act = self._executor.submit(self.case.heal, self.patient)

    def _await_return(self, now_s: float) -> None:
        self._returned_s = {
            "healed": self._healed_s,
            "struck": self._struck_s + self.case.down_s,
            "told": self._reported_s,
        }[self.case.returns]
        back_s = self._back()
        if back_s is not None:
            self.result.back_s = max(0.0, back_s - self._returned_s)
            self._judge()
            self._enter("settling", now_s)
        elif now_s - self._returned_s > self.case.back_within_s + _WAIT_S:
            self._fails(f"not back: {self._states}, {self._look}", now_s)

    def _settle(self, now_s: float) -> None:
        if now_s - self._since_s < self.case.settles_s:
            return
        self.result.until_s = now_s
        self.phase = "over"
        self._judge_whole()

    # ---- what has been told

    def _first_reported(self) -> tuple[float | None, float | None]:
        """When log, event and status had told the first state, and the log the last; a fault without any: at once."""
        states = self.case.states
        if not states:
            return self._struck_s, self._struck_s
        # It depends on the moment whether `stalled` or `lost` is reported first.
        first = [self._record.first(self._name, how, AWAY, self._struck_s) for how in ("log", "event")]
        first.append(self._record.shown_lost(self._name, self._before.losses, self._struck_s))
        known = [t for t in first if t is not None]
        last_s = self._record.last_of(self._name, states, self._struck_s)
        return max(known) if len(known) == len(first) else None, last_s

    def _back(self) -> float | None:
        """When log, event and status had all reported `live` and a frame had come out; None before that."""
        lost_s = self._record.first(self._name, "event", AWAY, self._struck_s)
        since_s = self._returned_s if lost_s is None else max(self._returned_s, lost_s)
        times = [self._record.frame_after(self._name, since_s)]
        if lost_s is not None:
            times += [self._record.first(self._name, how, {"live"}, lost_s) for how in ("log", "event")]
        known = [t for t in times if t is not None]
        all_report_it = self._look.state == "live" and self._states[-1:] in ([], ["live"])
        return max(known) if all_report_it and len(known) == len(times) else None

    def _judge(self) -> None:
        """Note the steps that took longer than they may."""
        reported_s, back_s, case = self.result.reported_s, self.result.back_s, self.case
        if reported_s is not None and reported_s > DETECTED_S:
            self.result.late.append(f"told after {reported_s:.1f} s, expected at most {DETECTED_S:g}")
        if back_s is not None and back_s > case.back_within_s:
            self.result.late.append(f"back after {back_s:.1f} s, expected at most {case.back_within_s:g}")

    def _judge_whole(self) -> None:
        states = [state for state in self._states if state not in ("live", "connecting")]
        if not self.case.states and states and not self.case.may_be_lost:
            self.result.problems.append(f"it was {states} and should have stayed live")
        if self._look.state != "live":
            self.result.problems.append(f"it did not stay live afterwards: {self._states}")
        more = {reason for reason, n in self._look.drops.items() if n > self._before.drops.get(reason, 0)}
        if other := more - self.case.counts - {"queue_full"}:
            self.result.problems.append(f"dropped for other reasons than {set(self.case.counts) or 'none'}: {other}")

    @property
    def _name(self) -> str:
        return self.patient.name

    @property
    def _look(self) -> CameraStatus:
        return self._record.look(self._name)

    @property
    def _states(self) -> list[str]:
        return self._record.states(self._name, self._struck_s)

    def _enter(self, phase: Phase, now_s: float) -> None:
        self.phase, self._since_s = phase, now_s

    def _fails(self, why: str, now_s: float) -> None:
        self._executor.submit(self.case.heal, self.patient)
        self.result.problems.append(why)
        self.result.from_s = self.result.from_s or now_s
        self.result.until_s = now_s
        self.phase = "over"
