"""One process of a run as the supervisor sees it: its start, its reports, its death, and the next start.

    starting --ready--> running --dies--> waiting (back-off) --> starting ...
                           '--dies, needed no longer--> finished

With other settings it is closed and begins anew. Until it has opened with them they are on trial: those that it has
opened with before can come back.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal

from pipeline.boot import Boot
from pipeline.errors import EXIT_GAVE_UP, EnvironmentProblem
from pipeline.monitoring.cumulative_counters import CumulativeCounters
from pipeline.monitoring.health import Plight
from pipeline.monitoring.reports import Ended, Heartbeat, Opening
from pipeline.plan import StagePlan, UnitPlan
from pipeline.registry import find_stage
from pipeline.shm.segments import segments_bytes, unlink_prefix
from pipeline.supervision.child_process import ChildProcess
from pipeline.supervision.deaths import Death
from pipeline.supervision.hangs import Limits, Times, hung
from pipeline.supervision.lines import Allowance
from pipeline.supervision.restarts import Restarts
from pipeline.supervision.stall_detector import Sight
from pipeline.supervision.starvation import Starvation
from pipeline.transport.channel import Channel

ProcessState = Literal["waiting", "starting", "running", "finished"]

_STEADY_S = 60.0
_SUSPECT = 0.25
"""After this part of its time a process is suspected of hanging, and what it waits for is looked at."""
_A_ROW = 3
"""So many deaths within `_STEADY_S` of each other are told although it runs."""
_OVER_AT_DEATH: dict[str, Any] = {
    "queue": 0,
    "held": "",
    "troubles": [],
    "working_since_ns": 0,
    "source_silent_since_ns": 0,
    "source_opening": False,
}


class Process:
    """A unit of the plan, through all of its incarnations.

    `heartbeat`: its last `Heartbeat`, with the stages' items and the files of all incarnations. `frames_done`: camera
    -> the stamp up to which all is done. `refused`: why nothing more is heard of this incarnation, if so; `killed_for`:
    why it was killed, if it was, and is not dead yet. `died_of`: of what it died last, `row_since`: since when it dies
    again and again (monotonic seconds). `failure`: why it gave up, as it said itself; `trouble`: why it has not
    opened since, as long as it has not. `revision`: the number of the newest plan that it has; `leaving`: it is in none
    any more; `outdated`: this incarnation is to close, and the next one begins with other settings. `short`: what the
    machine has too little of to start it, which is not tried before `put_off_until`. `opening`: what of its opening
    takes long, and up to when it may.
    """

    def __init__(self, plan: UnitPlan, number: int) -> None:
        self.plan = plan
        self.number = number
        self.state: ProcessState = "waiting"
        self.incarnation = 0
        self.start_at = 0.0
        self.put_off_until = 0.0
        self.short = ""
        self.started_at = 0.0
        self.ready_at = 0.0
        self.died_at = 0.0
        self.died_of = ""
        self.row_since = 0.0
        self.heard_at = 0.0
        self.heartbeat_at = 0.0
        self.held_since = 0.0
        self.endpoint = ""
        self.opening: tuple[str, float] = ("", 0.0)
        self.failure: tuple[int, str] | None = None
        self.trouble = ""
        self.refused = ""
        self.killed_for = ""
        self.gave_up = ""
        self.revision = 0
        self.leaving = False
        self.outdated = False
        self.ended: dict[str, tuple[str, str]] = {}
        self.end_status: dict[str, int] = {}
        self.heartbeat = Heartbeat()
        self.frames_done: dict[str, Any] = {}
        self.deaths = Restarts()
        self.words_allowed = Allowance()
        self.counters = CumulativeCounters()
        self._starvation = Starvation()
        self._slowest_s = 0.0
        self._life: ChildProcess | None = None
        self._boot: Boot | None = None
        self._opened: tuple[StagePlan, ...] | None = None

    @property
    def pid(self) -> int:
        """The process id, 0 while there is none."""
        return self._life.pid if self._life else 0

    @property
    def pidfd(self) -> int:
        """Becomes readable when it is dead; -1 while there is none."""
        return self._life.pidfd if self._life else -1

    @property
    def channel(self) -> Channel | None:
        """Where it is told things, and tells them; None while there is none."""
        return self._life.channel if self._life else None

    @property
    def words(self) -> int:
        """Becomes readable when somebody has written to its standard error; -1 while there is none."""
        return self._life.words if self._life else -1

    def read_words(self) -> list[str]:
        """The lines that have come on `words`."""
        return self._life.read_words() if self._life and self._life.words >= 0 else []

    @property
    def shared_bytes(self) -> int:
        """The size of its segments."""
        return segments_bytes(self._boot.shm_prefix) if self._boot else 0

    @property
    def restarts(self) -> int:
        """How often it had to be started again."""
        return self.deaths.total

    @property
    def readers(self) -> set[str]:
        """The names of the processes that read from it."""
        return {reader for routes in self.plan.routes.values() for reader in routes.values()}

    @property
    def all_ended(self) -> bool:
        """True when all of its cameras have ended."""
        return set(self.plan.cameras) <= set(self.ended)

    @property
    def has_outbox(self) -> bool:
        """True for the one that keeps the events."""
        return any(stage.use == "outbox" for stage in self.plan.stages)

    @property
    def remembering(self) -> list[str]:
        """Its stages that lose something with its death."""
        return [stage.name for stage in self.plan.stages if find_stage(stage.use).stateful]

    def counts(self) -> Counter[tuple[str, str]]:
        """(name, camera) -> count, over all incarnations."""
        return self.counters.counts

    # ---- another plan

    def forget_all_but(self, cameras: Collection[str]) -> None:
        """Of other cameras everything is done: one that comes again under the same name is a new one."""
        for known in (self.ended, self.end_status, self.frames_done):
            for camera in [camera for camera in known if camera not in cameras]:
                del known[camera]

    @property
    def on_trial(self) -> bool:
        """True while it has not opened with its settings yet, but with others before."""
        return self._opened is not None and self._opened != self.plan.stages

    @property
    def changing(self) -> bool:
        """True while it is on its way out, or has not opened yet with the settings that it is to have."""
        opening = self.outdated or self.on_trial or not self.ready_at
        return self.leaving or (opening and self.state != "finished")

    def succeed_with(self, plan: UnitPlan) -> None:
        """Go on with other settings. A living incarnation closes in order for the next; a dead one need not wait."""
        self.plan = plan
        if self.channel:
            self.outdated = True
            self.channel.send("close")
        else:
            self.hurry()

    def go_back(self) -> None:
        """It does not open with its new settings: those that it has opened with are right again."""
        assert self._opened is not None
        self.plan = replace(self.plan, stages=self._opened)

    # ---- its start and its end

    def hurry(self) -> None:
        """Start the next incarnation as soon as possible."""
        self.start_at = 0.0

    def put_off(self, until: float, short: str) -> None:
        """It cannot be started before, for the machine is `short` of something."""
        self.put_off_until, self.short = until, short

    def give_up(self, why: str) -> None:
        """It keeps dying: the next incarnation leaves its cameras alone, and only says that they end."""
        self.gave_up = why
        self.hurry()

    def spawn(self, boot: Boot) -> None:
        """Start the next incarnation. Raises as `ChildProcess`."""
        if self._boot:
            unlink_prefix(self._boot.shm_prefix)
        self._life = ChildProcess(boot)
        self._boot, self.incarnation = boot, boot.incarnation
        self.state, self.failure, self.refused, self.short = "starting", None, "", ""
        self.killed_for, self.outdated, self.opening = "", False, ("", 0.0)
        self._slowest_s = 0.0
        self.started_at = self.heard_at = time.monotonic()
        if not self._life.channel.send("boot", boot=boot.to_wire()):
            raise EnvironmentProblem(
                f"the plan of the process {self.plan.name} is too large to be handed over: "
                "use fewer cameras or shorter settings, or more `workers`"
            )

    def kill(self, why: str = "the run is over") -> None:
        """SIGKILL; `reap` follows when the death has been noticed."""
        self.killed_for = why
        if self._life:
            self._life.kill()

    def reap(self) -> int:
        """Clean up after the death of this incarnation; its exit status, negative for a signal."""
        assert self._life
        status = self._life.bury()
        self._life = None
        self.counters.died()
        self.heartbeat = self.heartbeat.model_copy(update=_OVER_AT_DEATH)
        self.held_since = 0.0
        self.endpoint = ""
        return status

    def back_off(self, *, opened: bool, most_s: float) -> float:
        """Schedule the next start; in how many seconds, `most_s` at most."""
        self.died_at = time.monotonic()
        steady = self.ready_at > self.started_at and self.died_at - self.ready_at > _STEADY_S
        delay = min(most_s, self.deaths.died(opened=opened, steady=steady))
        if self.deaths.in_a_row == 1:
            self.row_since = self.died_at
        self.state, self.start_at = "waiting", self.died_at + delay
        if self.failure and not opened:
            self.trouble = self.failure[1]
        return delay

    def plight(self, now: float) -> Plight | None:
        """Why nothing goes through it at present, or may not for long; None if all is well, or it is not needed."""
        row = self.deaths.in_a_row
        if self.state == "finished" or self.leaving:
            return None
        if self.state == "running":
            # One that had not opened its stages, and now has, is over it.
            if row < _A_ROW or self.deaths.failed_starts or now - self.died_at > _STEADY_S:
                return None
            return Plight(f"runs, but has died {row} times in a row, last of: {self.died_of}", now - self.row_since)
        if self.short:
            return Plight(f"cannot be started: {self.short}", now - (self.row_since or self.died_at or now))
        if self.died_at <= self.ready_at:  # not since a death: the first start, or other settings
            doing = f"is being opened: {self.opening[0]}" if self.opening[0] else "is being opened"
            return Plight(doing, now - self.started_at if self.started_at else 0.0, opening=True)
        wait_s = max(0.0, self.start_at - now)
        doing = "is being opened again" if self.state == "starting" else f"is started again in {wait_s:.0f} s"
        died = f"has died {row} times in a row, last of" if row > 1 else "has died of"
        return Plight(f"{died}: {self.trouble or self.died_of}; it {doing}", now - self.row_since)

    def begin_anew(self) -> None:
        """Start the next incarnation at once: that this one is dead was wanted."""
        self.state = "waiting"
        self.hurry()

    def death(self, status: int, *, opened: bool) -> Death:
        """The death that it has just died; after `back_off`."""
        return Death(
            unit=self.plan.name,
            status=status,
            opened=opened,
            failure=self.failure,
            failed_starts=self.deaths.failed_starts,
            fruitless=self.deaths.fruitless,
            killed_for="" if self.refused else self.killed_for,
            last_chance=not self.plan.sources or bool(self.gave_up),
        )

    # ---- what it says

    def is_ready(self, endpoint: str) -> None:
        """It has opened its stages; others send to `endpoint`."""
        assert self._life
        self.state, self.endpoint = "running", endpoint
        self.ready_at = self.heard_at = time.monotonic()
        self._opened, self.trouble = self._life.boot.unit.stages, ""

    def note_opening(self, opening: Opening) -> None:
        """Opening takes longer, and that is no hang."""
        self.heard_at = time.monotonic()
        self.opening = (opening.doing, self.heard_at + opening.within_s)

    def note_heartbeat(self, heartbeat: Heartbeat) -> None:
        """It lives, and has come so far."""
        now = time.monotonic()
        self.counters.note(heartbeat)
        self.frames_done.update(heartbeat.frames_done)
        latencies_s = [(stats.latency_ms_p99 or 0.0) / 1e3 for stats in heartbeat.stages.values()]
        self._slowest_s = max([self._slowest_s, *latencies_s])
        self.heartbeat = heartbeat.model_copy(update={"stages": self.counters.stages, "files": self.counters.files})
        self.heard_at = self.heartbeat_at = now
        self.held_since = (self.held_since or now) if heartbeat.held and not heartbeat.patient else 0.0
        if self.counters.this_life:
            self.deaths.worked()

    def note_end(self, end: Ended) -> None:
        """A camera's last word has gone through it. What a source gave up after so many deaths is nobody's mistake."""
        self.ended[end.camera] = (end.reason, end.error)
        self.end_status[end.camera] = EXIT_GAVE_UP if self.gave_up else end.status

    def hung(self, now: float, limits: Limits) -> str:
        """Why the process counts as hung, or an empty string."""
        times = Times(
            now,
            self.started_at,
            self.heard_at,
            self.heartbeat_at,
            opens_until=self.opening[1],
            opened_in=max(0.0, self.ready_at - self.started_at),
            slowest=self._slowest_s,
        )
        starting = self.state == "starting"
        early = Limits(limits.hang_s * _SUSPECT, limits.open_s * _SUSPECT)
        if not hung(starting, self.heartbeat, times, early):
            self._starvation.forget()
            return ""
        self._starvation.look(self.pid, now)
        return hung(starting, self.heartbeat, replace(times, starved=self._starvation.seconds), limits)

    def sight(self, *, trusted: bool, finite: bool) -> Sight:
        """How it looks now; `trusted`: what is known of it is not old."""
        heartbeat = self.heartbeat
        done = (self.incarnation, tuple(stage.items for stage in heartbeat.stages.values()), len(self.ended))
        seen = ((heartbeat.custody, heartbeat.queue, heartbeat.slots), tuple(self.frames_done.items()))
        at_work = bool(heartbeat.working_since_ns or heartbeat.held or (finite and heartbeat.source_opening))
        return Sight(
            unit=self.plan.name,
            source=bool(self.plan.sources),
            done=done,
            seen=(done, seen, frozenset(self.counts().items())),
            custody=heartbeat.custody if self.pid else 0,
            readers=frozenset(self.readers),
            excused=at_work or not trusted or self.state not in ("running", "finished"),
        )

    def slept(self, seconds: float) -> None:
        """The supervisor was stopped for so long: what was measured by its clock meanwhile does not count."""
        self.started_at += seconds
        self.heard_at += seconds
        self.opening = (self.opening[0], self.opening[1] + seconds)
        if self.held_since:
            self.held_since += seconds
