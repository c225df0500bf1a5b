"""Runs a graph on cameras of the simulator and measures it for some seconds after it has warmed up."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click

from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.tools.lab.graph_run import run_text
from camgraph.tools.measuring.processes import own_mb
from camgraph.tools.measuring.processor_time import CpuTime, cpu_time, other_cores, process_cpu_s
from camgraph.tools.scenes.simulator.rtsp_simulator import RtspSimulator
from camgraph.tools.scenes.simulator.settings import CameraSettings, ClipSettings

LOG = "inferred"
"""The name of the file in which a stage of `camgraph_test_stages.timing` says when it ran, in the graph's folder."""


class Inference(NamedTuple):
    """A frame that went through the model, on the machine's monotonic clock."""

    begun_ns: int
    done_ns: int
    camera: str
    epoch: int
    seq: int
    captured_ns: int

    @property
    def key(self) -> tuple[str, int, int]:
        return self.camera, self.epoch, self.seq

    @property
    def age_ms(self) -> float:
        """How old the frame was when inference began with it."""
        return (self.begun_ns - self.captured_ns) / 1e6


def read_inferences(text: str) -> list[Inference]:
    """Lines of `begun_ns done_ns camera epoch seq captured_ns`, in the order of time."""
    rows = (line.split() for line in text.splitlines())
    return sorted(
        Inference(int(begun), int(done), camera, int(epoch), int(seq), int(captured))
        for begun, done, camera, epoch, seq, captured in rows
    )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The run at one moment. No status reports the supervisor (with the tool in it) and the simulator."""

    at_ns: int
    status: RunStatus
    supervisor_cpu_s: float
    simulator_cpu_s: float
    cpu: CpuTime
    supervisor_mb: float


@dataclass(frozen=True, slots=True)
class Window:
    """The work of a graph between two looks."""

    before: Snapshot
    after: Snapshot
    ran: Sequence[Inference]

    @property
    def seconds(self) -> float:
        return (self.after.at_ns - self.before.at_ns) / 1e9

    @property
    def inferred(self) -> list[Inference]:
        """The frames with which inference began meanwhile."""
        return [one for one in self.ran if self.before.at_ns <= one.begun_ns < self.after.at_ns]

    def grown(self, camera: str, kind: str) -> Counter[str]:
        """By how much the camera's counters of this kind (`drops_by_reason`, ...) grew."""
        then, now = (Counter[str](getattr(look.status.cameras[camera], kind)) for look in (self.before, self.after))
        return now - then

    @property
    def frames(self) -> dict[str, int]:
        """Camera -> frames that its source brought."""
        then, now = (look.status.cameras for look in (self.before, self.after))
        return {camera: now[camera].frames - then[camera].frames for camera in now}

    @property
    def cores_by_stage(self) -> dict[str, float]:
        """Name of the processes, without their cameras -> processor time over time."""
        used: defaultdict[str, float] = defaultdict(float)
        before = self.before.status.processes
        for name, process in self.after.status.processes.items():
            used[name.partition(".")[0]] += process.cpu_s - before[name].cpu_s
        used["supervisor"] = self.after.supervisor_cpu_s - self.before.supervisor_cpu_s
        return {name: cpu_s / self.seconds for name, cpu_s in used.items()}

    @property
    def simulator_cores(self) -> float:
        """The cores that the cameras took, which elsewhere are no load of this machine."""
        return (self.after.simulator_cpu_s - self.before.simulator_cpu_s) / self.seconds

    @property
    def other_cores(self) -> float:
        """The cores that other processes of this machine took meanwhile: the graph did without them."""
        return other_cores(self.before.cpu, self.after.cpu)


@dataclass(frozen=True, slots=True)
class CameraSet:
    """Simulated cameras that all send the same clip: H.264 with a keyframe each second, or ``gop`` frames."""

    cameras: int
    fps: float
    size: tuple[int, int]
    clip: str | None
    transport: str = "tcp"
    seconds: float = 10.0
    gop: int | None = None

    @property
    def keyframes_fps(self) -> float:
        """How many keyframes come in a second."""
        return self.fps / self._gop

    @property
    def _gop(self) -> int:
        return self.gop or max(1, round(self.fps))

    @property
    def names(self) -> list[str]:
        return [f"c{number}" for number in range(self.cameras)]

    @property
    def clip_settings(self) -> ClipSettings:
        """The clip of each camera."""
        width, height = self.size
        return ClipSettings(
            path=self.clip, codec="h264", width=width, height=height, fps=self.fps, gop=self._gop,
            seconds=self.seconds,
        )  # fmt: skip

    def simulator(self) -> RtspSimulator:
        """Not started yet."""
        clip = self.clip_settings
        return RtspSimulator([CameraSettings(name=name, clip=clip, seed=n) for n, name in enumerate(self.names)])

    def as_yaml(self, simulator: RtspSimulator, more: str = "") -> str:
        """The entries under `cameras:`, with more settings for each."""
        return "\n".join(
            f'  {camera.name}: {{url: "{camera.url}", transport: {self.transport}{more}}}'
            for camera in simulator.cameras
        )


def watched(text: str, simulator: RtspSimulator, *, warm_up_s: float, seconds: float) -> Window:
    """Run a graph until all its cameras have been there for ``warm_up_s`` and looked at for ``seconds``."""
    with tempfile.TemporaryDirectory() as folder:
        watch = _Watch(simulator, warm_up_s, seconds)
        run_text(text, watch, limit_s=seconds + warm_up_s + 120, folder=Path(folder))
        if not watch.looks[1:]:
            raise click.ClickException("the run ended too early")
        return Window(watch.looks[0], watch.looks[1], read_inferences((Path(folder) / LOG).read_text()))


class _Watch:
    """Called by the supervisor again and again: looks twice, and stops the run."""

    def __init__(self, simulator: RtspSimulator, warm_up_s: float, seconds: float) -> None:
        self.looks: list[Snapshot] = []
        self._simulator = simulator
        self._waits_s = [warm_up_s, seconds]
        self._due_s: float | None = None

    def __call__(self, supervisor: Supervisor) -> None:
        if len(self.looks) == len(self._waits_s):
            return
        status = supervisor.status()
        now = time.monotonic()
        if self._due_s is None and all(camera.frames for camera in status.cameras.values()):
            self._due_s = now + self._waits_s[0]
        if self._due_s is not None and now >= self._due_s:
            self.looks.append(self._look(status))
            self._due_s = now + self._waits_s[-1]
            if len(self.looks) == len(self._waits_s):
                supervisor.stop()

    def _look(self, status: RunStatus) -> Snapshot:
        cpu_s = time.process_time(), process_cpu_s(self._simulator.pid)
        return Snapshot(time.monotonic_ns(), status, *cpu_s, cpu_time(), own_mb(os.getpid()))
