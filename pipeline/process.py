"""One process of a run as the supervisor sees it: its start, its reports, its death.

starting --ready--> running --dies--> waiting (back-off) --> starting ...
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection
from contextlib import ExitStack, suppress
from typing import Any

from pipeline.boot import Boot
from pipeline.channel import Channel
from pipeline.deaths import Death
from pipeline.errors import EXIT_GAVE_UP, EnvironmentProblem
from pipeline.hangs import hung
from pipeline.plan import UnitPlan
from pipeline.registry import find_stage
from pipeline.reports import Beat, Ended
from pipeline.restarts import Restarts
from pipeline.run_folder import unlink_socket
from pipeline.scarcity import require_descriptors
from pipeline.segments import segments_bytes, unlink_prefix
from pipeline.standstill import Sight
from pipeline.tally import Tally

_STEADY_S = 60.0
_OVER_AT_DEATH: dict[str, Any] = {
    "queue": 0,
    "held": "",
    "working_since_ns": 0,
    "source_silent_since_ns": 0,
    "source_opening": False,
}


class Process:
    """A unit of the plan, through all of its incarnations.

    `beat`: the fields of its last `Beat`, with the stages' items and the files of all incarnations. `frames_done`:
    camera -> the stamp up to which all is done. `refused`: why nothing more is heard of this incarnation, if so;
    `killed_for`: why it was killed, if it was, and is not dead yet. `revision`: the number of the newest plan that it
    has; `leaving`: it is in none any more; `previous`: its plan before one that it has not opened with yet. `short`:
    what the machine has too little of to start it, which is not tried before `put_off_until`.
    """

    def __init__(self, plan: UnitPlan, number: int) -> None:
        self.plan = plan
        self.number = number
        self.state = "waiting"
        self.incarnation = 0
        self.start_at = 0.0
        self.put_off_until = 0.0
        self.short = ""
        self.started_at = 0.0
        self.ready_at = 0.0
        self.died_at = 0.0
        self.heard_at = 0.0
        self.beat_at = 0.0
        self.held_since = 0.0
        self.endpoint = ""
        self.failure: tuple[int, str] | None = None
        self.refused = ""
        self.killed_for = ""
        self.gave_up = ""
        self.revision = 0
        self.leaving = False
        self.previous: UnitPlan | None = None
        self.ended: dict[str, tuple[str, str]] = {}
        self.end_status: dict[str, int] = {}
        self.beat: dict[str, Any] = {}
        self.frames_done: dict[str, Any] = {}
        self.deaths = Restarts()
        self.tally = Tally()
        self.channel: Channel | None = None
        self.pidfd = -1
        self._popen: subprocess.Popen[bytes] | None = None
        self._life = -1
        self._boot: Boot | None = None

    @property
    def pid(self) -> int:
        """The process id, 0 while there is none."""
        return self._popen.pid if self._popen else 0

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
        return [stage.name for stage in self.plan.stages if getattr(find_stage(stage.use), "stateful", False)]

    def counts(self) -> Counter[tuple[str, str]]:
        """(name, camera) -> count, over all incarnations."""
        return self.tally.counts

    # ---- another plan

    def forget_all_but(self, cameras: Collection[str]) -> None:
        """Of other cameras everything is done: one that comes again under the same name is a new one."""
        for known in (self.ended, self.end_status, self.frames_done):
            for camera in [camera for camera in known if camera not in cameras]:
                del known[camera]

    def succeed_with(self, plan: UnitPlan) -> None:
        """Close this incarnation in order, for the next one to begin with other settings."""
        self.previous, self.plan = self.previous or self.plan, plan
        if self.channel:
            self.channel.send("close")

    def go_back(self) -> None:
        """It does not open with its new settings: those of before are right again."""
        assert self.previous
        self.plan, self.previous = self.previous, None

    # ---- its start and its end

    def spawn(self, boot: Boot) -> None:
        """Start the next incarnation: a clean exec, two inherited descriptors, nothing secret in its arguments.

        Raises OSError where the machine does not give enough for it; then nothing of it stays.
        """
        require_descriptors()
        if self._boot:
            unlink_prefix(self._boot.shm_prefix)
        with ExitStack() as undo:
            ours, theirs = socket.socketpair()
            undo.callback(ours.close)
            with theirs:
                life_read, life = os.pipe2(os.O_CLOEXEC)
                undo.callback(os.close, life)
                try:
                    popen = _executed(f"{boot.run}/{self.plan.name}", theirs.fileno(), life_read)
                finally:
                    os.close(life_read)
            undo.callback(popen.wait)
            undo.callback(popen.kill)
            pidfd = os.pidfd_open(popen.pid)
            undo.pop_all()
        self._popen, self._life, self.pidfd = popen, life, pidfd
        self._boot, self.incarnation = boot, boot.incarnation
        self.channel = Channel(ours)
        self.state, self.failure, self.refused, self.short = "starting", None, "", ""
        self.killed_for = ""
        self.started_at = self.heard_at = time.monotonic()
        if not self.channel.send("boot", boot=boot.to_wire()):
            raise EnvironmentProblem(
                f"the plan of the process {self.plan.name} is too large to be handed over: "
                "use fewer cameras or shorter settings, or more `workers`"
            )

    def kill(self, why: str = "the run is over") -> None:
        """SIGKILL; `reap` follows when the death has been noticed."""
        self.killed_for = why
        if self._popen:
            self._popen.kill()

    def reap(self) -> int:
        """Clean up after the death of this incarnation; its exit status, negative for a signal."""
        assert self._popen
        assert self._boot
        status = self._popen.wait()
        self.tally.died()
        if self.channel:
            self.channel.close()
        os.close(self._life)
        os.close(self.pidfd)
        unlink_socket(self._boot.endpoint)
        with suppress(OSError):  # no descriptor to look with: it is done before the next start
            unlink_prefix(self._boot.shm_prefix)
        self._popen, self.channel, self.pidfd = None, None, -1
        self.beat = {**self.beat, **_OVER_AT_DEATH}
        self.held_since = 0.0
        self.endpoint = ""
        return status

    def back_off(self, *, opened: bool, most_s: float) -> float:
        """Schedule the next start; in how many seconds, `most_s` at most."""
        self.died_at = time.monotonic()
        steady = self.ready_at > self.started_at and self.died_at - self.ready_at > _STEADY_S
        delay = min(most_s, self.deaths.died(opened=opened, steady=steady))
        self.state, self.start_at = "waiting", self.died_at + delay
        return delay

    def death(self, status: int, *, opened: bool) -> Death:
        """The death that it has just died; after `back_off`."""
        return Death(
            unit=self.plan.name,
            status=status,
            opened=opened,
            failure=self.failure,
            failed_starts=self.deaths.failed_starts,
            fruitless=self.deaths.fruitless,
            last_chance=not self.plan.sources or bool(self.gave_up),
        )

    # ---- what it says

    def is_ready(self, endpoint: str) -> None:
        """It has opened its stages; others send to `endpoint`."""
        self.state, self.endpoint = "running", endpoint
        self.ready_at = self.heard_at = time.monotonic()

    def note_beat(self, beat: Beat) -> None:
        """It lives, and has come so far."""
        now = time.monotonic()
        self.tally.note(beat)
        self.frames_done.update(beat.frames_done)
        self.beat = {**beat.model_dump(), "stages": self.tally.stages, "files": self.tally.files}
        self.heard_at = self.beat_at = now
        self.held_since = (self.held_since or now) if beat.held else 0.0
        if self.tally.this_life:
            self.deaths.worked()

    def note_end(self, end: Ended) -> None:
        """A camera's last word has gone through it. What a source gave up after so many deaths is nobody's mistake."""
        self.ended[end.camera] = (end.reason, end.error)
        self.end_status[end.camera] = EXIT_GAVE_UP if self.gave_up else end.status

    def hung(self, now: float, hang_s: float, open_s: float) -> str:
        """Why the process counts as hung, or an empty string."""
        return hung(
            self.state,
            self.beat,
            now=now,
            since=self.started_at,
            heard_at=self.heard_at,
            beat_at=self.beat_at,
            hang_s=hang_s,
            open_s=open_s,
        )

    def sight(self, *, trusted: bool, finite: bool) -> Sight:
        """How it looks now; `trusted`: what is known of it is not old."""
        beat = self.beat
        items = tuple(stage["items"] for stage in beat.get("stages", {}).values())
        done = (self.incarnation, items, len(self.ended))
        seen = (tuple(beat.get(key, 0) for key in ("custody", "queue", "slots")), tuple(self.frames_done.items()))
        at_work = bool(beat.get("working_since_ns") or beat.get("held") or (finite and beat.get("source_opening")))
        return Sight(
            unit=self.plan.name,
            source=bool(self.plan.sources),
            done=done,
            seen=(done, seen, frozenset(self.counts().items())),
            custody=beat.get("custody", 0) if self.pid else 0,
            readers=frozenset(self.readers),
            excused=at_work or not trusted or self.state not in ("running", "finished"),
        )

    def slept(self, seconds: float) -> None:
        """The supervisor was stopped for so long: what was measured by its clock meanwhile does not count."""
        self.started_at += seconds
        self.heard_at += seconds
        if self.held_since:
            self.held_since += seconds


def _executed(label: str, control: int, life: int) -> subprocess.Popen[bytes]:
    """A clean exec of a child that inherits these descriptors."""
    # -P: what lies in the working directory is no module, whatever its name.
    python = [sys.executable, "-P", "-m", "pipeline.child"]
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [*python, "--control", str(control), "--life", str(life), label],
        pass_fds=(control, life),
        stdin=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        # Ctrl-C goes to all of a terminal's group, and would kill a child that does not ignore it yet.
        process_group=0,
    )
