"""One process of a run, from the supervisor's side, through all of its incarnations.

`Process` is a thin shell: it starts and reaps the child (`child_process`), keeps its last reports (`Reported`), and
leaves every decision to `Lifecycle`, whose docstring draws the states. Only `Process` itself writes its attributes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from camgraph.pipeline.boot import Boot
from camgraph.pipeline.errors import EXIT_GAVE_UP, EnvironmentProblem, ProblemText
from camgraph.pipeline.monitoring.cumulative_counters import CumulativeCounters
from camgraph.pipeline.monitoring.health import Plight
from camgraph.pipeline.monitoring.reports import Ended, Failed, Heartbeat, Opening, Revised, SettingsTaken
from camgraph.pipeline.plan import ProcessPlan, StagePlan
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.shm.segments import segments_bytes, unlink_prefix
from camgraph.pipeline.stage import Stage
from camgraph.pipeline.supervision.child_process import ChildProcess
from camgraph.pipeline.supervision.child_start import ForkServer
from camgraph.pipeline.supervision.deaths import Consequence
from camgraph.pipeline.supervision.hangs import Limits, Starvation, Times, hung
from camgraph.pipeline.supervision.lifecycle import Lifecycle, RunState, State
from camgraph.pipeline.supervision.lines import Allowance
from camgraph.pipeline.supervision.stall_detector import Progress
from camgraph.pipeline.transport.channel import Channel

_EARLY = 0.25
"""After this share of a limit, a process may be hanging: from then on, waiting times for a core are measured."""
_SILENT_S = 5.0
"""A process that has not reported for this long shows no sign of work; a process reports at least once a second."""
_COUNTED = frozenset({"counts", "stages", "files"})
"""The values of a heartbeat that are added up over incarnations."""
_OVER_AT_DEATH: dict[str, Any] = {
    "queue": 0,
    "blocked_on": "",
    "troubles": [],
    "working_since_ns": 0,
    "source_silent_since_ns": 0,
    "source_opening": False,
}


def _goes_on(before: StagePlan, after: StagePlan) -> bool:
    """Whether a living stage can go on with other settings."""
    stage = find_stage(after.use)
    only_settings = replace(before, settings=after.settings) == after
    return only_settings and issubclass(stage, Stage) and stage.takes_settings


class Reported:
    """The reports of one process, added up over its incarnations. Times are monotonic seconds, 0 for never.

    `heartbeat`: the last one, whole, with the stages' items and the files of all incarnations. `frames_done`: camera ->
    the stamp up to which all is done. `ended`: camera -> (reason, error), and `end_status` the exit status of that
    error. `reported_at`: the last report of any kind. `blocked_since`: since when a stage waits impatiently for the
    outside. `slowest_s`: the longest batch of this incarnation.
    """

    def __init__(self) -> None:
        self.heartbeat = Heartbeat()
        self._last = Heartbeat()
        """The last heartbeat of this incarnation alone."""
        self.counters = CumulativeCounters()
        self.frames_done: dict[str, Any] = {}
        self.ended: dict[str, tuple[str, ProblemText]] = {}
        self.end_status: dict[str, int] = {}
        self.reported_at = 0.0
        self.heartbeat_at = 0.0
        self.blocked_since = 0.0
        self.slowest_s = 0.0

    def begin(self, now: float) -> None:
        """Begin the next incarnation."""
        self.reported_at, self.slowest_s = now, 0.0

    def note_heartbeat(self, report: Heartbeat, now: float) -> Heartbeat:
        """Record a heartbeat and its progress, and return the whole heartbeat."""
        heartbeat = self._last = report.after(self._last)
        together = {"stages": self.heartbeat.stages, "files": self.heartbeat.files}
        if not report.model_fields_set.isdisjoint(_COUNTED):
            self.counters.note(heartbeat)
            together = {"stages": self.counters.stages, "files": self.counters.files}
            latencies_s = [(stats.latency_ms_p99 or 0.0) / 1e3 for stats in heartbeat.stages.values()]
            self.slowest_s = max([self.slowest_s, *latencies_s])
        self.frames_done.update(heartbeat.frames_done)
        self.heartbeat = heartbeat.model_copy(update=together)
        self.reported_at = self.heartbeat_at = now
        self.blocked_since = (self.blocked_since or now) if heartbeat.blocked_on and not heartbeat.patient else 0.0
        return heartbeat

    def note_end(self, end: Ended, status: int) -> None:
        """Record the end of a camera; `status`: the exit status of the camera's error."""
        self.ended[end.camera] = (end.reason, ProblemText(end.error, error_id=end.error_id))
        self.end_status[end.camera] = status

    def die(self) -> None:
        """Keep the work of a dead incarnation, and drop the condition in which the incarnation was."""
        self.counters.died()
        self._last = Heartbeat()
        self.heartbeat = self.heartbeat.model_copy(update=_OVER_AT_DEATH)
        self.blocked_since = 0.0

    def forget_all_but(self, cameras: Collection[str]) -> None:
        """Forget cameras that are gone: a camera that comes again under the same name is a new camera."""
        for known in (self.ended, self.end_status, self.frames_done):
            for camera in [camera for camera in known if camera not in cameras]:
                del known[camera]

    def sleep(self, seconds: float) -> None:
        """The supervisor was stopped for this time, which counts neither as silence nor as blocking."""
        self.reported_at += seconds
        if self.blocked_since:
            self.blocked_since += seconds


class Process:
    """A process of the plan. `number`: its place in the run; `incarnation`: counted on from one of the same name."""

    def __init__(self, plan: ProcessPlan, number: int, incarnation: int = 0) -> None:
        self._number = number
        self._plan = plan
        life = Lifecycle(plan.name, bool(plan.sources), plan.stages)
        self._life = replace(life, attempt=replace(life.attempt, number=incarnation))
        self._reported = Reported()
        self._revision = 0
        self._child: ChildProcess | None = None
        self._boot: Boot | None = None
        self._starvation = Starvation()
        self._stderr_allowance = Allowance()
        self._settings_sent = 0
        self._handed = 0
        """The number of the settings that the child was sent and has not taken yet; 0 if there are none."""

    @property
    def number(self) -> int:
        """The place of the process in the run, which no other process has."""
        return self._number

    @property
    def plan(self) -> ProcessPlan:
        """The process's part of the plan, with the settings that the process should have."""
        return self._plan

    @property
    def life(self) -> Lifecycle:
        """The state of the process, with all facts that decide about the next state."""
        return self._life

    @property
    def state(self) -> State:
        """See `Lifecycle`."""
        return self._life.state

    @property
    def incarnation(self) -> int:
        """How often the process has been started."""
        return self._life.attempt.number

    @property
    def trouble(self) -> str:
        """Why the stages have not been opened since the last death; "" if they are open."""
        return self._life.trouble

    @property
    def restarts(self) -> int:
        """How often the process has been restarted."""
        return self._life.restarts.total

    @property
    def revision(self) -> int:
        """The number of the newest plan that the process has."""
        return self._revision

    # ---- the child

    @property
    def pid(self) -> int:
        """The process id; 0 while there is no child."""
        return self._child.pid if self._child else 0

    @property
    def pidfd(self) -> int:
        """Becomes readable when the child is dead; -1 while there is no child."""
        return self._child.pidfd if self._child else -1

    @property
    def channel(self) -> Channel | None:
        """Carries orders to the child and reports of the child; None while there is no child."""
        return self._child.channel if self._child else None

    @property
    def stderr_fd(self) -> int:
        """Becomes readable when the child has written to standard error; -1 while there is no child."""
        return self._child.stderr_fd if self._child else -1

    def read_stderr(self) -> list[str]:
        """Return the lines that have arrived on `stderr_fd`."""
        return self._child.read_stderr() if self._child and self._child.stderr_fd >= 0 else []

    @property
    def stderr_allowance(self) -> Allowance:
        """Limits how many lines of `read_stderr` reach the log."""
        return self._stderr_allowance

    @property
    def shared_bytes(self) -> int:
        """The bytes of the process's segments in shared memory."""
        return segments_bytes(self._boot.shm_prefix) if self._boot else 0

    # ---- the plan

    @property
    def readers(self) -> set[str]:
        """The names of the processes that read from this process."""
        return {reader for routes in self.plan.routes.values() for reader in routes.values()}

    @property
    def has_outbox(self) -> bool:
        """True for the process with the outbox."""
        return any(stage.use == "outbox" for stage in self.plan.stages)

    @property
    def stateful_stages(self) -> list[str]:
        """The stages whose state is lost if the process dies."""
        return [stage.name for stage in self.plan.stages if find_stage(stage.use).stateful]

    # ---- the reports

    @property
    def reported(self) -> Reported:
        """The reports of all incarnations."""
        return self._reported

    @property
    def heartbeat(self) -> Heartbeat:
        """See `Reported`."""
        return self._reported.heartbeat

    @property
    def ended(self) -> Mapping[str, tuple[str, ProblemText]]:
        """Camera -> (reason, error), for cameras that have ended."""
        return self._reported.ended

    @property
    def all_ended(self) -> bool:
        """Whether all cameras of the process have ended."""
        return set(self.plan.cameras) <= set(self.ended)

    def counts(self) -> Counter[tuple[str, str]]:
        """(name, camera) -> count, over all incarnations."""
        return self._reported.counters.counts

    def note_ready(self, endpoint: str) -> None:
        """Note that the stages are open: senders connect to `endpoint`. Raises WireError if noted before."""
        now = time.monotonic()
        self._life = self._life.ready(endpoint, now)
        self._reported.reported_at = now

    def note_opening(self, opening: Opening) -> None:
        """Note that a slow part of the opening goes on, which is no hang."""
        now = self._reported.reported_at = time.monotonic()
        self._life = self._life.note_opening(opening.doing, now + opening.within_s)

    def note_heartbeat(self, report: Heartbeat) -> Heartbeat:
        """Note a heartbeat, and return the whole heartbeat."""
        heartbeat = self._reported.note_heartbeat(report, time.monotonic())
        if self._reported.counters.this_life:
            self._life = self._life.worked()
        return heartbeat

    def note_end(self, end: Ended) -> None:
        """Note that a camera has ended. A camera that was given up after deaths is no error of the source."""
        self._reported.note_end(end, EXIT_GAVE_UP if self._life.gave_up else end.status)

    def note_failure(self, failed: Failed) -> None:
        """Note why the process fails, as the process reports."""
        self._life = self._life.note_failure(failed.status, ProblemText(failed.error, error_id=failed.error_id))

    def note_revised(self, revised: Revised) -> None:
        """Note that the process has a newer plan."""
        self._revision = revised.number

    def note_oversize(self) -> None:
        """Note that the process is alive, but has a report that is too large to send."""
        self._reported.reported_at = time.monotonic()
        self._reported.counters.count("reports_too_large")

    def refuse(self, why: str) -> bool:
        """Kill the process for a wrong report, and read no further report; False if that was done before."""
        if self._life.attempt.refused:
            return False
        self._reported.counters.count("reports_refused")
        self._kill(why, refused=True)
        return True

    # ---- another plan

    def revise(self, plan: ProcessPlan, number: int, boot: Callable[[], Boot]) -> None:
        """Go on with other cameras. A running child gets the new plan from `boot`, and answers with `number`."""
        self._plan = plan
        if self.channel:
            self.channel.send("revise", number=number, boot=boot().to_wire())

    def has_revision(self, number: int) -> None:
        """Note that the plan of this number changes nothing for the process."""
        self._revision = number

    def change_settings(self, plan: ProcessPlan) -> None:
        """Go on with new settings. A running child closes before the next one starts."""
        self._plan = plan
        self._life = self._life.change(plan.stages)
        self._handed = 0
        if self.channel:
            self.channel.send("close")

    def takes(self, plan: ProcessPlan) -> bool:
        """Whether the child can take the settings of this plan: nothing else differs, and all stages take settings."""
        closing = self._life.attempt.outdated and not self._handed
        if self.state != "running" or closing or self._life.leaving or len(plan.stages) != len(self.plan.stages):
            return False
        pairs = zip(self.plan.stages, plan.stages, strict=True)
        return all(_goes_on(before, after) for before, after in pairs if before != after)

    def hand_over(self, plan: ProcessPlan, boot: Callable[[], Boot]) -> None:
        """Hand other settings to the living child, which reports that it has taken them, or dies of them."""
        self._plan = plan
        self._life = self._life.change(plan.stages)
        self._settings_sent += 1
        self._handed = self._settings_sent
        if self.channel:
            self.channel.send("settings", number=self._handed, boot=boot().to_wire())

    def note_settings_taken(self, taken: SettingsTaken) -> None:
        """Note that the child has taken these settings. If newer settings were sent, the child still owes these."""
        if taken.number == self._handed:
            self._handed = 0
            self._life = self._life.settled()

    def leave(self) -> None:
        """Leave the plan: a running child closes, and no other one follows."""
        self._life = self._life.leave()
        if self.channel:
            self.channel.send("close")

    def forget_all_but(self, cameras: Collection[str]) -> None:
        """Forget cameras that are gone."""
        self._reported.forget_all_but(cameras)

    # ---- start and end

    def start_now(self) -> None:
        """Start the next incarnation as soon as possible."""
        self._life = self._life.start_now()

    def put_off(self, until: float, short: str) -> None:
        """Do not start before `until`, because the machine is `short` of something."""
        self._life = self._life.put_off(until, short)

    def start(self, boot: Boot, revision: int, fork_server: ForkServer) -> None:
        """Start the next incarnation, with plan number `revision`. Raises as `ChildProcess`, changing nothing."""
        if self._boot:
            unlink_prefix(self._boot.shm_prefix)
        self._child = ChildProcess(boot, fork_server)
        self._handed = 0
        self._boot, self._revision = boot, revision
        now = time.monotonic()
        self._life = self._life.start(now)
        self._reported.begin(now)
        if not self._child.channel.send("boot", boot=boot.to_wire()):
            raise EnvironmentProblem(
                f"the plan of the process {self.plan.name} is too large to be sent to it: "
                "use fewer cameras or shorter settings, or more `workers`",
                error_id="plan-too-large",
            )

    def kill(self, why: str) -> None:
        """Send SIGKILL; `reap` follows when the death is noticed."""
        self._kill(why)

    def _kill(self, why: str, *, refused: bool = False) -> None:
        self._life = self._life.kill(why, refused=refused)
        if self._child:
            self._child.kill()

    def reap(self) -> None:
        """Clean up after the death of this incarnation; then call `judge`."""
        assert self._child
        status = self._child.reap()
        self._child = None
        self._life = self._life.reap(status)
        self._reported.die()

    def judge(self, run: RunState) -> Consequence:
        """Decide what the death means; afterwards the process waits for a restart, or is finished."""
        self._life, consequence = self._life.judge(run, time.monotonic(), all_ended=self.all_ended)
        self._plan = replace(self._plan, stages=self._life.stages)
        return consequence

    # ---- the condition

    def plight(self, now: float) -> Plight | None:
        """Return why the process does nothing now, or may soon stop; None if all is well or it is not needed."""
        silent_s = now - self._reported.reported_at
        if self.state == "running" and not self._life.leaving and silent_s > _SILENT_S:
            return Plight("gives no sign of life", silent_s)
        return self._life.plight(now)

    def hung(self, now: float, limits: Limits) -> str:
        """Return why the process counts as hung, or an empty string."""
        life, reported = self._life, self._reported
        times = Times(
            now,
            life.attempt.started_at,
            reported.reported_at,
            reported.heartbeat_at,
            opens_until=life.attempt.opening[1],
            opened_in=life.opened_in_s,
            slowest=reported.slowest_s,
        )
        starting = self.state == "starting"
        early = Limits(limits.hang_s * _EARLY, limits.open_s * _EARLY)
        if not hung(starting, self.heartbeat, times, early):
            self._starvation.forget()
            return ""
        self._starvation.measure(self.pid, now)
        return hung(starting, self.heartbeat, replace(times, starved=self._starvation.seconds), limits)

    def progress(self, *, trusted: bool, finite: bool) -> Progress:
        """Return the progress for the stall detector; `trusted`: the last report is recent."""
        last = self.heartbeat
        done = (self.incarnation, [stage.items for stage in last.stages.values()], len(self.ended))
        seen = ((last.in_flight, last.queue, last.slots), list(self._reported.frames_done.items()))
        at_work = bool(last.working_since_ns or last.blocked_on or (finite and last.source_opening))
        return Progress(
            process=self.plan.name,
            source=bool(self.plan.sources),
            done=done,
            seen=(done, seen, frozenset(self.counts().items())),
            in_flight=last.in_flight if self.pid else 0,
            readers=frozenset(self.readers),
            excused=at_work or not trusted or self.state not in ("running", "finished"),
        )

    def sleep(self, seconds: float) -> None:
        """The supervisor was stopped for this time, which does not count."""
        self._life = self._life.slept(seconds)
        self._reported.sleep(seconds)
