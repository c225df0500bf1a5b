"""Runs a graph of files in many ways, kills processes in it, and checks the results (`tools.lab.proofs.prove`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.supervision.process import Process
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import hit, run_graph
from camgraph.tools.measuring.processes import left_over

STARTS_S = {"north": 0.0, "east": 20.0, "south": 52.0}

LIMIT_S = 900.0
"""A run that takes longer hangs, however slow the model and however busy the machine."""
MODEL = "asset:movenet-multipose.onnx"
_RULE = "{id: seen, when: score > 0.01, update: 100ms}"
"""Makes an event of each person in each frame, with box and keypoints, so that no difference can hide."""

_GRAPH = """
version: 1
name: {name}
processes: {processes}
hang_s: 60       # a machine that is busy with other things is not what is looked for here
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, workers: {workers}, with: {{{prepared}}}}}
  infer: {{use: infer, from: prepare, batch: {{max: {batch}}}, threads: {threads}, with: {{model: "{model}"}}}}
  people: {{use: {decode}, from: infer, workers: {workers}}}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{rules: [{rule}]}}}}
  log: {{use: sink_jsonl, from: actions, batch: {{max: 8}}, with: {{path: events.jsonl, order: time}}}}
"""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of running the same graph. `throttled`: one camera comes at the pace of its clock.

    `model`: the pulled one, or any file of a pose model with metadata. `size`: of the pictures for the pulled one.
    """

    processes: str = "separate"
    workers: int = 1
    threads: int = 1
    batch: int = 1
    throttled: bool = False
    model: str = MODEL
    size: tuple[int, int] = (512, 384)


@dataclass(slots=True)
class Ran:
    """The results of a run. `recovery_s`: process -> seconds from its kill until it was ready again."""

    status: int
    problems: list[str]
    events: bytes
    frames: dict[str, int]
    inferred: int
    drops: int
    recovery_s: dict[str, float] = field(default_factory=dict)


def write_graph(folder: Path, way: Way, seconds: float, name: str) -> Path:
    """The graph file of one way."""
    cameras = "\n".join(
        f'  {camera}: {{url: "asset:vtest.avi", start_s: {at}, duration_s: {seconds}, '
        f"realtime: {str(way.throttled and camera == 'north').lower()}}}"
        for camera, at in STARTS_S.items()
    )
    prepared = f"size: {[*way.size]}" if way.model == MODEL else ""
    path = folder / "graph.yaml"
    path.write_text(
        _GRAPH.format(
            name=name, cameras=cameras, processes=way.processes, workers=way.workers, batch=way.batch,
            threads=way.threads, model=way.model, rule=_RULE, prepared=prepared,
            decode="decode_movenet_multipose" if way.model == MODEL else "decode",
        )
    )  # fmt: skip
    return path


def run_way(way: Way, seconds: float, during: Callable[[Supervisor], None] | None = None) -> Ran:
    """Run the graph one way, in a folder of its own."""
    with own_folder() as folder:
        plan = load_plan(write_graph(folder, way, seconds, run_name()))
        outcome, status = run_graph(plan, during, limit_s=LIMIT_S)
        cameras = status["cameras"]
        return Ran(
            outcome.status,
            outcome.problems,
            (folder / "events.jsonl").read_bytes(),
            {name: camera["frames"] for name, camera in cameras.items()},
            status["stages"]["infer"]["items"],
            sum(camera["drops"] for camera in cameras.values()),
            dict(during.recovery_s) if isinstance(during, Killing) else {},
        )


def run_name() -> str:
    """The name of a run: this process has one at a time, and other processes have other names."""
    return f"prove{os.getpid()}"


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder for a run, with its state in it."""
    before = os.environ.get("XDG_STATE_HOME")
    with tempfile.TemporaryDirectory(prefix="camgraph-") as folder:
        os.environ["XDG_STATE_HOME"] = str(Path(folder) / "state")
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["XDG_STATE_HOME"]
            else:
                os.environ["XDG_STATE_HOME"] = before


def frames_by_pyav(seconds: float) -> dict[str, int]:
    """How many frames of each camera a bare decoder counts in its part of the clip."""
    import av  # noqa: PLC0415 - only here

    from camgraph.pipeline.system.paths import resolve  # noqa: PLC0415

    with av.open(str(resolve("asset:vtest.avi", Path()))) as container:
        times = [float(frame.time or 0.0) for frame in container.decode(video=0)]
    return {
        camera: sum(1 for t in times if at - 1e-6 <= t - times[0] < at + seconds - 1e-6)
        for camera, at in STARTS_S.items()
    }


class Killing:
    """Kills processes once some frames have been read: those of a group at once, group after group when all are back.

    ``groups``: names of processes; one name is a group of its own.
    """

    def __init__(self, groups: Sequence[str | Sequence[str]], after_frames: int) -> None:
        self._todo = [(group,) if isinstance(group, str) else tuple(group) for group in groups]
        self._after = after_frames
        self._killed: list[tuple[Process, int, float]] = []
        self.recovery_s: dict[str, float] = {}

    def __call__(self, supervisor: Supervisor) -> None:
        for killed in list(self._killed):
            process, incarnation, at = killed
            if process.incarnation > incarnation and process.state == "running":
                self.recovery_s[process.plan.name] = process.life.ready_at - at
                self._killed.remove(killed)
        if not self._killed and self._todo and _frames(supervisor) >= self._after:
            group = [p for p in supervisor.processes if p.plan.name in self._todo[0]]
            if all(process.pid and process.state == "running" for process in group):
                self._todo.pop(0)
                for process in group:
                    self._killed.append((process, process.incarnation, time.monotonic()))
                    hit(process.pid, signal.SIGKILL)


def _frames(supervisor: Supervisor) -> int:
    return sum(n for process in supervisor.processes for (name, _), n in process.counts().items() if name == "frames")


@dataclass(frozen=True, slots=True)
class SupervisorKilled:
    """`clean_s`: until nothing was left; `kept`: it died with written events, and they stayed;
    `status`: of a second run of the graph."""

    clean_s: float
    left: list[str]
    kept: bool
    status: int


def kill_supervisor(seconds: float, way: Way = Way(threads=2)) -> SupervisorKilled:
    """SIGKILL `camgraph run` in the middle, see that nothing stays, and run it again."""
    name = run_name()
    with own_folder() as folder:
        graph = write_graph(folder, way, seconds, name)
        command = [sys.executable, "-P", "-m", "camgraph.tools.cli", "run", str(graph), "--quiet"]
        first = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603 - our own program
        events = folder / "events.jsonl"
        late = time.monotonic() + 120
        while not (events.exists() and events.stat().st_size) and time.monotonic() < late:
            time.sleep(0.02)
        first.kill()
        hit = first.wait() == -signal.SIGKILL
        killed = time.monotonic()
        while left_over(name) and time.monotonic() < killed + 10:
            time.sleep(0.02)
        clean_s, left = time.monotonic() - killed, left_over(name)
        before = events.read_bytes().splitlines()
        second = subprocess.run(command, stderr=subprocess.DEVNULL, check=False)  # noqa: S603
        after = events.read_bytes().splitlines()
        kept = hit and bool(before) and after[: len(before)] == before
        return SupervisorKilled(clean_s, left, kept, second.returncode)
