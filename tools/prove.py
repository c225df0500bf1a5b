"""Proves the guarantees on the pulled clip and model: `python -m tools.prove`; writes docs/proof.md.

matrix   the same events, byte for byte, for every batch size, number of workers and threads, placement and pace
kills    SIGKILL of each process in a running graph, and of the supervisor
ring     a slot ring under stress (tools/slot_stress.py)
"""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from pipeline.graph import load_plan
from pipeline.paths import runs_folder
from pipeline.process import Process
from pipeline.supervisor import Supervisor
from pipeline.testing import hit, run_graph
from tools.slot_stress import stress

STARTS_S = {"north": 0.0, "east": 20.0, "south": 52.0}
SHM = Path("/dev/shm")  # noqa: S108 - where the segments are

_RULE = "{id: seen, when: score > 0.01, update: 100ms}"
"""Tells of each person in each frame, with box and keypoints: nothing that differs can hide."""

_GRAPH = """
version: 1
name: {name}
processes: {processes}
hang_s: 60       # a machine that is busy with other things is not what is looked for here
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, workers: {workers}, with: {{size: [512, 384]}}}}
  infer: {{use: infer, from: prepare, batch: {{max: {batch}}}, threads: {threads}, with: {{model: "{model}"}}}}
  people: {{use: decode_movenet_multipose, from: infer, workers: {workers}}}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{rules: [{rule}]}}}}
  log: {{use: sink_jsonl, from: actions, batch: {{max: 8}}, with: {{path: events.jsonl, order: time}}}}
"""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of running the same graph. `throttled`: one camera comes at the pace of its clock."""

    processes: str = "separate"
    workers: int = 1
    threads: int = 1
    batch: int = 1
    throttled: bool = False


@dataclass(slots=True)
class Ran:
    """What a run did. `recovery_s`: unit -> seconds from its kill until it was ready again."""

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
    path = folder / "graph.yaml"
    path.write_text(
        _GRAPH.format(
            name=name, cameras=cameras, processes=way.processes, workers=way.workers, batch=way.batch,
            threads=way.threads, model="asset:movenet-multipose.onnx", rule=_RULE,
        )
    )  # fmt: skip
    return path


def run_way(way: Way, seconds: float, during: Callable[[Supervisor], None] | None = None) -> Ran:
    """Run the graph one way, in a folder of its own."""
    with own_folder() as folder:
        outcome, status = run_graph(load_plan(write_graph(folder, way, seconds, run_name())), during)
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
    """One run at a time in this process; other processes have other names."""
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

    from pipeline.paths import resolve  # noqa: PLC0415

    with av.open(str(resolve("asset:vtest.avi", Path()))) as container:
        times = [float(frame.time or 0.0) for frame in container.decode(video=0)]
    return {
        camera: sum(1 for t in times if at - 1e-6 <= t - times[0] < at + seconds - 1e-6)
        for camera, at in STARTS_S.items()
    }


class Killing:
    """Kills processes once some frames have been read, one after the other is back."""

    def __init__(self, units: Sequence[str], after_frames: int) -> None:
        self._todo = list(units)
        self._after = after_frames
        self._killed: tuple[Process, int, float] | None = None
        self.recovery_s: dict[str, float] = {}

    def __call__(self, supervisor: Supervisor) -> None:
        if self._killed:
            process, incarnation, at = self._killed
            if process.incarnation > incarnation and process.state == "running":
                self.recovery_s[process.plan.name] = process.ready_at - at
                self._killed = None
        elif self._todo and _frames(supervisor) >= self._after:
            process = next(p for p in supervisor.processes if p.plan.name == self._todo[0])
            if process.pid and process.state == "running":
                self._todo.pop(0)
                self._killed = (process, process.incarnation, time.monotonic())
                hit(process.pid, signal.SIGKILL)


def _frames(supervisor: Supervisor) -> int:
    return sum(n for process in supervisor.processes for (name, _), n in process.counts().items() if name == "frames")


def left_over(name: str) -> list[str]:
    """Segments, sockets and processes of a run that are still there."""
    segments = [path.name for path in SHM.glob(f"camgraph-{os.getuid()}-{name}-*")]
    folder = runs_folder() / name
    return [*segments, *([str(folder)] if folder.exists() else []), *_children(name)]


def _children(name: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().rstrip(b"\0").decode(errors="replace").split("\0")
            if words[-1].startswith(f"{name}/") and "pipeline.child" in words:
                found.append(f"process {path.parent.name} {words[-1]}")
    return found


@dataclass(frozen=True, slots=True)
class SupervisorKilled:
    """`clean_s`: until nothing was left; `kept`: what was written stayed; `status`: of a second run of the graph."""

    clean_s: float
    left: list[str]
    kept: bool
    status: int


def kill_supervisor(seconds: float) -> SupervisorKilled:
    """SIGKILL `camgraph run` in the middle, see that nothing stays, and run it again."""
    name = run_name()
    with own_folder() as folder:
        graph = write_graph(folder, Way(threads=2), seconds, name)
        command = [sys.executable, "-m", "tools.cli", "run", str(graph), "--quiet"]
        first = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603 - our own program
        events = folder / "events.jsonl"
        late = time.monotonic() + 120
        while not (events.exists() and events.stat().st_size) and time.monotonic() < late:
            time.sleep(0.02)
        first.kill()
        first.wait()
        killed = time.monotonic()
        while left_over(name) and time.monotonic() < killed + 10:
            time.sleep(0.02)
        clean_s, left = time.monotonic() - killed, left_over(name)
        before = events.read_bytes().splitlines()
        second = subprocess.run(command, stderr=subprocess.DEVNULL, check=False)  # noqa: S603
        after = events.read_bytes().splitlines()
        kept = after[: len(before)] == before
        return SupervisorKilled(clean_s, left, kept, second.returncode)


# ---- the report


def matrix(seconds: float, ways: Sequence[Way]) -> list[str]:
    """Run all ways; the lines of the report. Raises ClickException where one differs."""
    expected = frames_by_pyav(seconds)
    reference = run_way(Way(processes="one"), seconds)
    lines = [
        f"{len(ways)} ways, {seconds:g} s of {len(STARTS_S)} cameras each: {len(reference.events.splitlines())} events "
        f"(each person in each frame), {sum(expected.values())} frames as PyAV counts them.",
        "",
    ]
    for number, way in enumerate(ways):
        ran = run_way(way, seconds)
        good = (
            ran.status == 0
            and ran.events == reference.events
            and ran.frames == expected
            and ran.inferred == sum(expected.values())
            and not ran.drops
            and not left_over(run_name())
        )
        click.echo(f"{number + 1}/{len(ways)} {way}: {'same' if good else f'DIFFERENT {ran.status} {ran.problems}'}")
        if not good:
            raise click.ClickException(f"{way}: {ran.status} {ran.problems} {ran.frames} {left_over(run_name())}")
    lines.append("All gave the same `events.jsonl` (order: time), byte for byte, and processed exactly these frames.")
    return lines


def all_ways() -> list[Way]:
    """The full matrix."""
    axes = (("separate", "compact", "one"), (1, 2), (1, 2), (1, 3, 8), (False, True))
    return [Way(*values) for values in itertools.product(*axes)]


def kills(seconds: float, rounds: int) -> list[str]:
    """Kill everything in turn; the lines of the report."""
    way = Way(threads=2, batch=3, throttled=True)
    reference = run_way(way, seconds)
    stateless = [*(f"capture.{camera}" for camera in STARTS_S), "prepare.0", "infer.0", "people.0", "outbox.0", "log.0"]
    lines = ["| process | rounds | recovery, median and worst | events | exit status |", "|---|---|---|---|---|"]
    for unit in [*stateless, "tracks.0", "actions.0"]:
        found = [run_way(way, seconds, Killing([unit], 12)) for _ in range(rounds)]
        times = sorted(t for ran in found for t in ran.recovery_s.values())
        same = all(ran.events == reference.events for ran in found)
        statuses = sorted({ran.status for ran in found})
        if len(times) < rounds or (unit in stateless and (not same or statuses != [0])) or left_over(run_name()):
            raise click.ClickException(f"{unit}: {times} same={same} {statuses} {left_over(run_name())}")
        verdict = "byte-identical" if same else f"what was lost is said: {found[0].problems[0]}"
        row = f"| {unit} | {rounds} | {times[len(times) // 2]:.2f} s, {times[-1]:.2f} s | {verdict} | {statuses[0]} |"
        click.echo(row)
        lines.append(row)
    for _ in range(rounds):
        killed = kill_supervisor(seconds)
        if killed.left or not killed.kept or killed.status:
            raise click.ClickException(f"supervisor: {killed}")
    row = (
        f"| supervisor | {rounds} | nothing left after {killed.clean_s:.2f} s | those written stay, a new run works | |"
    )
    return [*lines, row]


def ring(frames: int) -> list[str]:
    """Stress a ring; the lines of the report."""
    result = stress(frames)
    if result["torn"] or result["slots_in_use"] or result["left_over"] or not result["noticed"]:
        raise click.ClickException(f"ring: {result}")
    return [f"- {name}: {value}" for name, value in result.items()]


def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "av", "onnxruntime-gpu", "pyzmq"))
    return f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}, Python {platform.python_version()}, {packages}"


@click.command()
@click.argument("what", type=click.Choice(["all", "matrix", "kills", "ring"]), default="all")
@click.option("--seconds", default=3.0, show_default=True, help="How much of the clip each camera shows.")
@click.option("--rounds", default=5, show_default=True, help="Kills of each process.")
@click.option("--frames", default=2_000_000, show_default=True, help="Frames through the ring.")
@click.option("--report", type=click.Path(path_type=Path), default=Path("docs/proof.md"), show_default=True)
def main(what: str, seconds: float, rounds: int, frames: int, report: Path) -> None:
    """Prove WHAT, and write the report when all was proven."""
    ways = all_ways()
    parts: dict[str, tuple[str, Callable[[], list[str]]]] = {
        "matrix": ("The same events, however the graph is run", lambda: matrix(seconds, ways)),
        "kills": ("Any process may die", lambda: kills(seconds + 2, rounds)),
        "ring": ("A slot ring under stress", lambda: ring(frames)),
    }
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    lines = ["# Proof", "", f"Written by `python -m tools.prove` on {today}: {_machine()}.", ""]
    for name, (title, prove) in parts.items():
        if what in ("all", name):
            lines += [f"## {title}", "", *prove(), ""]
    if what == "all":
        report.write_text("\n".join(lines))
    click.echo("\n".join(lines))


if __name__ == "__main__":
    main()
