"""One process of a run as the supervisor sees it: its start, its reports, its death.

starting --ready--> running --dies--> waiting (back-off) --> starting ...
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from typing import Any

from pipeline.boot import Boot
from pipeline.channel import Channel
from pipeline.plan import UnitPlan
from pipeline.segments import segments_bytes, unlink_prefix

_BACK_OFF_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_STEADY_S = 60.0


class Process:
    """A unit of the plan, through all of its incarnations."""

    def __init__(self, plan: UnitPlan, number: int) -> None:
        self.plan = plan
        self.number = number
        self.state = "waiting"
        self.incarnation = 0
        self.start_at = 0.0
        self.started_at = 0.0
        self.ready_at = 0.0
        self.last_beat = 0.0
        self.deaths_in_a_row = 0
        self.restarts = 0
        self.endpoint = ""
        self.failure: tuple[int, str] | None = None
        self.ended: dict[str, tuple[str, str]] = {}
        self.beat: dict[str, Any] = {}
        self.held_since = 0.0
        self.frames_done: dict[str, Any] = {}
        self.fruitless_deaths = 0
        self.gave_up = ""
        self.counts_before: Counter[tuple[str, str]] = Counter()
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

    def spawn(self, boot: Boot) -> None:
        """Start the next incarnation: a clean exec, two inherited descriptors, nothing secret in its arguments."""
        ours, theirs = socket.socketpair()
        life_read, self._life = os.pipe2(os.O_CLOEXEC)
        label = f"{boot.run}/{self.plan.name}"
        command = [sys.executable, "-m", "pipeline.child", "--control", str(theirs.fileno()), "--life", str(life_read)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._popen = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [*command, label],
            pass_fds=(theirs.fileno(), life_read),
            stdin=subprocess.DEVNULL,
            env=environment,
            # Ctrl-C goes to all of a terminal's group, and would kill a child that does not ignore it yet.
            process_group=0,
        )
        theirs.close()
        os.close(life_read)
        self._boot, self.incarnation = boot, boot.incarnation
        self.pidfd = os.pidfd_open(self._popen.pid)
        self.channel = Channel(ours)
        self.channel.send("boot", boot=boot.to_wire())
        self.state, self.failure, self.beat = "starting", None, {}
        self.started_at = self.last_beat = time.monotonic()

    def kill(self) -> None:
        """SIGKILL; `reap` follows when the death has been noticed."""
        if self._popen:
            self._popen.kill()

    def reap(self) -> int:
        """Clean up after the death of this incarnation; its exit status, negative for a signal."""
        assert self._popen
        assert self._boot
        status = self._popen.wait()
        self.counts_before += Counter({(name, camera): n for name, camera, n in self.beat.get("counts", ())})
        unlink_prefix(self._boot.shm_prefix)
        with contextlib.suppress(OSError):
            os.unlink(self._boot.endpoint.removeprefix("ipc://"))  # noqa: PTH108
        if self.channel:
            self.channel.close()
        os.close(self._life)
        os.close(self.pidfd)
        self._popen, self.channel, self.pidfd = None, None, -1
        self.beat = {**self.beat, "counts": (), "queue": 0, "held": "", "working_since_ns": 0}
        self.held_since = 0.0
        self.endpoint = ""
        return status

    def back_off(self) -> float:
        """Schedule the next start; in how many seconds."""
        steady = self.ready_at > self.started_at and time.monotonic() - self.ready_at > _STEADY_S
        self.deaths_in_a_row = 1 if steady else self.deaths_in_a_row + 1
        delay = _BACK_OFF_S[min(self.deaths_in_a_row - 1, len(_BACK_OFF_S) - 1)]
        self.state, self.start_at = "waiting", time.monotonic() + delay
        self.fruitless_deaths += 1
        self.restarts += 1
        return delay

    def counts_now(self) -> int:
        """Items and frames that this incarnation has brought through."""
        items = sum(times["items"] for times in self.beat.get("stages", {}).values())
        return int(items + sum(n for name, _, n in self.beat.get("counts", ()) if name == "frames"))

    def counts(self) -> Counter[tuple[str, str]]:
        """(name, camera) -> count, over all incarnations."""
        return self.counts_before + Counter({(name, camera): n for name, camera, n in self.beat.get("counts", ())})

    def hung(self, now: float, hang_s: float, open_s: float) -> str:
        """Why the process counts as hung, or an empty string."""
        if self.state == "starting":
            return f"not ready after {open_s:g} s" if now - self.started_at > open_s else ""
        if now - self.last_beat > hang_s:
            return f"no sign of life for {hang_s:g} s"
        since = self.beat.get("working_since_ns", 0) / 1e9
        return f"one batch takes longer than {hang_s:g} s" if since and now - since > hang_s else ""
