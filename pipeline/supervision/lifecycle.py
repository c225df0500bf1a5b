"""The states of one process of a run, and every transition between them. Pure: time is an argument.

    waiting --start--> starting --ready--> running
       ^                   |                  |
       |                   '------ reap ------+
       |                            |
       |                            v
       |                          dead
       |   GoOn: after a pause      |
       |   EndCameras: at once      |
       |   OtherSettings: at once   |
       '---------------------------judge
                                    |   EndRun, NotNeeded
                                    '------------------------> finished

Only in `dead` is there a choice, and `Lifecycle.judge` makes it. Other facts change no state: a start is put off, a
process is killed, must close for new settings, or leaves the plan. These facts decide what a death means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from camgraph.pipeline.errors import EXIT_GAVE_UP, ProblemText, WireError
from camgraph.pipeline.monitoring.health import Plight
from camgraph.pipeline.monitoring.metrics import reason_line
from camgraph.pipeline.plan import StagePlan
from camgraph.pipeline.supervision.deaths import (
    NO_DEATHS,
    Consequence,
    Death,
    EndCameras,
    EndRun,
    NotNeeded,
    OtherSettings,
    Restarts,
    judge,
    lost_at_close,
)

State = Literal["waiting", "starting", "running", "dead", "finished"]

STEADY_S = 60.0
"""After a life of this length, earlier deaths are no reason to wait before the next start."""
_A_ROW = 3
"""This many deaths within `STEADY_S` of each other are reported although the process runs."""


@dataclass(frozen=True, slots=True)
class RunState:
    """The part of the run's state that decides about a death.

    `running`: all processes that the run waits for were ready once. `finite`: the cameras end by themselves.
    `closing`: all processes must close; `hurried`: the run waits for none of them. `longest_pause_s`: the longest pause
    before a restart.
    """

    running: bool
    finite: bool
    closing: bool = False
    hurried: bool = False
    longest_pause_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of a process, and the outcome.

    `number`: the incarnation, 0 before the first. `stages`: the stages with their settings. `opening`: a slow part of
    the opening, and the time until which this part may take. `endpoint`: the address for senders, "" until the process
    is ready. `opened`: the process was ready. `failure`: exit status and reason, if reported. `killed_for`: the reason
    for a kill; `refused`: the reason is a wrong report, after which no report is read. `outdated`: the process must
    close for new settings. `exit_status`: as in `subprocess`, once the process is dead.
    """

    number: int = 0
    stages: tuple[StagePlan, ...] = ()
    started_at: float = 0.0
    opening: tuple[str, float] = ("", 0.0)
    endpoint: str = ""
    opened: bool = False
    failure: tuple[int, ProblemText] | None = None
    killed_for: str = ""
    refused: bool = False
    outdated: bool = False
    exit_status: int = 0


_NO_ATTEMPT = Attempt()


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The state of a process; each transition returns the next value. Times are monotonic seconds, 0 for never.

    `process`, `source`: the name, and whether the process has sources. `stages`: the stages with the settings that the
    process should have; `proven`: with the settings of the last opening. `start_at`: when the next start is due;
    `short`: the resource that the machine lacks, so that no start is tried before `put_off_until`. `died_of`: the
    reason of the last unwanted death; `row_since`: the time of the first death in a row. `trouble`: why the stages have
    not been opened since the last death. `gave_up`: why the process only ends its cameras from now on. `leaving`: the
    process is in no plan any more.
    """

    process: str
    source: bool
    stages: tuple[StagePlan, ...]
    state: State = "waiting"
    attempt: Attempt = _NO_ATTEMPT
    proven: tuple[StagePlan, ...] | None = None
    restarts: Restarts = NO_DEATHS
    start_at: float = 0.0
    put_off_until: float = 0.0
    short: str = ""
    ready_at: float = 0.0
    died_at: float = 0.0
    died_of: str = ""
    row_since: float = 0.0
    trouble: str = ""
    gave_up: str = ""
    leaving: bool = False

    # ---- the transitions

    def start(self, now: float) -> Lifecycle:
        """waiting -> starting: the next incarnation has been started."""
        assert self.state == "waiting", self.state
        attempt = Attempt(self.attempt.number + 1, self.stages, started_at=now)
        return replace(self, state="starting", attempt=attempt, short="")

    def ready(self, endpoint: str, now: float) -> Lifecycle:
        """starting -> running: the stages are open. Raises WireError if they were open before."""
        if self.state != "starting":
            raise WireError(f"{self.process} reports that it is ready while it is {self.state}: expected it once")
        attempt = replace(self.attempt, endpoint=endpoint, opened=True)
        return replace(self, state="running", attempt=attempt, ready_at=now, proven=attempt.stages, trouble="")

    def reap(self, exit_status: int) -> Lifecycle:
        """starting, running -> dead: the child is dead and cleaned up."""
        assert self.is_alive, self.state
        return replace(self, state="dead", attempt=replace(self.attempt, exit_status=exit_status, endpoint=""))

    def judge(self, run: RunState, now: float, *, all_ended: bool) -> tuple[Lifecycle, Consequence]:
        """dead -> waiting, finished: decide what the death means. `all_ended`: all cameras have ended."""
        assert self.state == "dead", self.state
        source_done = self.source and all_ended
        if run.closing or self.leaving or source_done:
            return replace(self, state="finished"), NotNeeded(self._problem_at_close(run, source_done=source_done))
        if self.attempt.outdated or self.on_trial:
            return self._judge_change()
        return self._judge_death(run, now)

    def _problem_at_close(self, run: RunState, *, source_done: bool) -> tuple[int, ProblemText] | None:
        """The exit status and problem of a process that is not needed any more; None for a source that is done."""
        attempt = self.attempt
        if attempt.failure:  # a stage that could not be closed
            return attempt.failure
        unwanted = attempt.exit_status and not (run.hurried and attempt.killed_for)
        if run.closing and not source_done and attempt.opened and unwanted:
            return EXIT_GAVE_UP, lost_at_close(self.process, attempt.exit_status, attempt.killed_for)
        return None

    def _judge_change(self) -> tuple[Lifecycle, Consequence]:
        """The process closed to take new settings; or it did not open with them, and gets the proven settings back."""
        after = replace(self, state="waiting", start_at=0.0)
        if self.attempt.outdated:
            return after, OtherSettings(lost=self.attempt.opened)
        assert self.proven is not None
        why = self.attempt.failure[1] if self.attempt.failure else "it died while it was opened"
        return replace(after, stages=self.proven), OtherSettings(refused=reason_line(why))

    def _judge_death(self, run: RunState, now: float) -> tuple[Lifecycle, Consequence]:
        after = self._died(now)
        death = after.death
        consequence = judge(death, running=run.running or self._is_optional, finite=run.finite)
        if self._is_optional and death.failure and self.attempt.number == 1 and not self.attempt.opened:
            consequence = EndRun(*death.failure)  # a mistake in settings, as for processes that the run waits for
        if isinstance(consequence, EndRun):
            return replace(after, state="finished"), consequence
        if isinstance(consequence, EndCameras):
            return replace(after, state="waiting", start_at=0.0, gave_up=consequence.problem), consequence
        pause_s = min(run.longest_pause_s, after.restarts.pause_s)
        return replace(after, state="waiting", start_at=now + pause_s), replace(consequence, pause_s=pause_s)

    @property
    def _is_optional(self) -> bool:
        """Whether the run starts without this process: then a slow start of the process ends nothing."""
        return not any(stage.awaited for stage in self.stages)

    def _died(self, now: float) -> Lifecycle:
        """Return the lifecycle with one more unwanted death."""
        attempt = self.attempt
        steady = attempt.opened and now - self.ready_at > STEADY_S
        restarts = self.restarts.after_death(opened=attempt.opened, steady=steady)
        after = replace(
            self,
            restarts=restarts,
            died_at=now,
            row_since=now if restarts.in_a_row == 1 else self.row_since,
            trouble=attempt.failure[1] if attempt.failure and not attempt.opened else self.trouble,
        )
        return replace(after, died_of=reason_line(attempt.killed_for or after.death.why))

    # ---- facts that change no state

    def put_off(self, until: float, short: str) -> Lifecycle:
        """The machine is `short` of something: do not start before `until`."""
        return replace(self, put_off_until=until, short=short)

    def start_now(self) -> Lifecycle:
        """Make the next start, if there is one, due now."""
        return replace(self, start_at=0.0)

    def note_opening(self, doing: str, until: float) -> Lifecycle:
        """A slow part of the opening may take until `until`, and is no hang."""
        return replace(self, attempt=replace(self.attempt, opening=(doing, until)))

    def note_failure(self, exit_status: int, why: ProblemText) -> Lifecycle:
        """The process has reported why it fails."""
        return replace(self, attempt=replace(self.attempt, failure=(exit_status, why)))

    def kill(self, why: str, *, refused: bool = False) -> Lifecycle:
        """The child is killed; `refused`: for a wrong report. Without a child this changes nothing."""
        if not self.is_alive:
            return self
        attempt = replace(self.attempt, killed_for=why, refused=refused or self.attempt.refused)
        return replace(self, attempt=attempt)

    def change(self, stages: tuple[StagePlan, ...]) -> Lifecycle:
        """The process gets new settings: a child closes first; without a child the next start is due now."""
        if self.is_alive:
            return replace(self, stages=stages, attempt=replace(self.attempt, outdated=True))
        return replace(self, stages=stages, start_at=0.0)

    def settled(self) -> Lifecycle:
        """The living child has taken the new settings, and need not close for them."""
        attempt = replace(self.attempt, stages=self.stages, outdated=False)
        return replace(self, attempt=attempt, proven=self.stages)

    def leave(self) -> Lifecycle:
        """The process is in no plan any more, and the next death is the end."""
        return replace(self, leaving=True)

    def worked(self) -> Lifecycle:
        """The process has finished some work."""
        return replace(self, restarts=self.restarts.after_work()) if self.restarts.fruitless else self

    def slept(self, seconds: float) -> Lifecycle:
        """The supervisor was stopped for this time, which does not count against an opening."""
        doing, until = self.attempt.opening
        later = replace(self.attempt, started_at=self.attempt.started_at + seconds, opening=(doing, until + seconds))
        return replace(self, attempt=later)

    # ---- questions

    @property
    def is_alive(self) -> bool:
        """Whether there is a child."""
        return self.state in ("starting", "running")

    @property
    def on_trial(self) -> bool:
        """True while the stages have not been opened with the present settings, but were with earlier settings."""
        return self.proven is not None and self.proven != self.stages

    @property
    def changing(self) -> bool:
        """True while the process is leaving, or is not open yet with the settings that it should have."""
        opening = self.attempt.outdated or self.on_trial or not self.ready_at
        return self.leaving or (opening and self.state != "finished")

    @property
    def opened_in_s(self) -> float:
        """How long the last opening took; 0 while the stages are not open."""
        return max(0.0, self.ready_at - self.attempt.started_at)

    def is_due(self, now: float, stopped_at: float) -> bool:
        """Whether a start is due. After a stop of the run (0: none) a start is due at once, or frames would be lost."""
        due = now >= self.start_at or 0 < stopped_at >= self.died_at
        return self.state == "waiting" and due and now >= self.put_off_until

    @property
    def death(self) -> Death:
        """The death of the last incarnation, once the death is counted."""
        attempt = self.attempt
        return Death(
            process=self.process,
            status=attempt.exit_status,
            opened=attempt.opened,
            failure=attempt.failure,
            failed_starts=self.restarts.failed_starts,
            fruitless=self.restarts.fruitless,
            killed_for="" if attempt.refused else attempt.killed_for,
            last_chance=not self.source or bool(self.gave_up),
        )

    def plight(self, now: float) -> Plight | None:
        """Return why the process does nothing now, or may soon stop; None if all is well or it is not needed."""
        if self.state == "finished" or self.leaving:
            return None
        if self.state == "running":
            return self._plight_of_running(now)
        if self.short:
            return Plight(f"cannot be started: {self.short}", now - (self.row_since or self.died_at or now))
        if self.died_at <= self.ready_at:  # the first start, or new settings, but no restart after a death
            doing = f"is being opened: {self.attempt.opening[0]}" if self.attempt.opening[0] else "is being opened"
            started_at = self.attempt.started_at
            return Plight(doing, now - started_at if started_at else 0.0, opening=True)
        return self._plight_of_dead(now)

    def _plight_of_running(self, now: float) -> Plight | None:
        row = self.restarts.in_a_row
        # A process that opened its stages after deaths without opening has recovered.
        if row < _A_ROW or self.restarts.failed_starts or now - self.died_at > STEADY_S:
            return None
        return Plight(f"runs, but has died {row} times in a row, last of: {self.died_of}", now - self.row_since)

    def _plight_of_dead(self, now: float) -> Plight:
        row, wait_s = self.restarts.in_a_row, max(0.0, self.start_at - now)
        doing = "is being opened again" if self.state == "starting" else f"is started again in {wait_s:.0f} s"
        died = f"has died {row} times in a row, last of" if row > 1 else "has died of"
        return Plight(f"{died}: {self.trouble or self.died_of}; it {doing}", now - self.row_since)
