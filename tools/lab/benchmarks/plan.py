"""Whether `camgraph plan` is right.

    python -m camgraph.tools.lab.benchmarks.plan [--model light|movenet] [--rounds N]

Each round plans a graph of four cameras, then runs it with as many cameras as the plan allows, and with a third more.
The processor time of these runs is read from /proc, of all their processes, so it owes nothing to the plan.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from camgraph.pipeline.supervision.control_client import ask
from camgraph.tools.lab import blinking, light_model
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import machine_line
from camgraph.tools.measuring.processor_time import CpuTime, machine_cpu_s, other_cores, tree_cpu_s

Model = Literal["light", "movenet"]
_PLANNED = 4
_MORE = 4 / 3
_FPS = {"light": 25.0, "movenet": 10.0}
_WARM_UP_S = 4.0
_LATE_S = 120.0
_ROUND_S = 90.0
_LIGHT = """
  prepare: {use: preprocess, from: capture, with: {size: [64, 64]}}
  infer: {use: infer, from: prepare, batch: {max: 4}, with: {model: light.onnx}}
  people: {use: decode, from: infer, with: {format: yolo_pose, keypoints: 17}}
"""
_MOVENET = """
  prepare: {use: preprocess, from: capture, with: {size: [256, 192]}}
  infer: {use: infer, from: prepare, batch: {max: 4}, with: {model: "asset:movenet-multipose.onnx"}}
  people: {use: decode, from: infer}
"""
_GRAPH = """
version: 1
name: {name}
camera_defaults: {{url: {url}, realtime: true, loop: true}}
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  {model}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: "score > 0.3", for: 300ms}}]}}}}
  log: {{use: sink_jsonl, from: actions, with: {{path: events.jsonl}}}}
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """A run with so many cameras. `share`: of the frames that their files have for this time."""

    cameras: int
    cores: float
    share: float
    other_cores: float


@dataclass(frozen=True, slots=True)
class Round:
    """One plan, and the runs with its number of cameras and with more. `predicted`: cores for these numbers."""

    cameras: int
    resource: str
    predicted: Sequence[float]
    ran: Sequence[Ran]

    @property
    def ratio(self) -> float:
        """The cores that the planned number of cameras takes if all of its frames come, over the predicted ones.

        If other programs take the cores, some frames come late, and the time of the others stands for theirs.
        """
        return self.ran[0].cores / min(1.0, self.ran[0].share) / self.predicted[0]


def write_graph(folder: Path, model: Model, cameras: int) -> Path:
    """A graph of so many cameras that show the same clip again and again."""
    if model == "light":
        light_model.write_model(folder / "light.onnx", bright=100)
        blinking.write_clip(folder / "clip.mp4", size=(640, 480), fps=round(_FPS[model]), gop=round(_FPS[model]))
    path = folder / f"cameras{cameras}.yaml"
    path.write_text(
        _GRAPH.format(
            name=f"plan{os.getpid()}-{cameras}",
            url="clip.mp4" if model == "light" else '"asset:vtest.avi"',
            cameras="\n".join(f"  c{number}: {{}}" for number in range(cameras)),
            model=(_LIGHT if model == "light" else _MOVENET).strip(),
        )
    )
    return path


def one_round(model: Model, seconds: float) -> Round:
    """Plan, then run."""
    with tempfile.TemporaryDirectory(prefix="camgraph-plan-") as name:
        folder = Path(name)
        planned = _planned(write_graph(folder, model, _PLANNED), seconds)
        counts = planned["most"]["cameras"], math.ceil(_MORE * planned["most"]["cameras"])
        ran = [measured(write_graph(folder, model, count), count, _FPS[model], seconds) for count in counts]
        return Round(counts[0], planned["most"]["resource"], [_cores(planned["costs"], count) for count in counts], ran)


def _planned(graph: Path, seconds: float) -> dict[str, Any]:
    command = [
        sys.executable,
        "-P",
        "-m",
        "camgraph.tools.cli",
        "plan",
        str(graph),
        "--json",
        "--seconds",
        f"{seconds}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    if done.returncode:
        raise click.ClickException(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _cores(costs: dict[str, Any], cameras: int) -> float:
    frame_s = costs["reading_s"] + sum(costs["after_s"].values())
    return float(sum(costs["fixed_cores"].values()) + cameras * costs["read_fps"] * frame_s)


def measured(graph: Path, cameras: int, fps: float, seconds: float) -> Ran:
    """Run a graph as a user does, and measure it when all of its cameras are there."""
    command = [sys.executable, "-P", "-m", "camgraph.tools.cli", "run", str(graph), "--quiet"]
    name = f"plan{os.getpid()}-{cameras}"
    environ = {**os.environ, "CAMGRAPH_STATE_DIR": str(graph.parent / "state")}
    run = subprocess.Popen(command, env=environ)  # noqa: S603 - our own program
    try:
        _wait_for_all(name, run)
        time.sleep(_WARM_UP_S)
        before, frames = _cpu_time(run.pid), _frames(name)
        time.sleep(seconds)
        after, more = _cpu_time(run.pid), _frames(name)
    finally:
        run.send_signal(signal.SIGTERM)
        try:
            run.wait(60)
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()
    passed_s = after.at_s - before.at_s
    share = (more - frames) / (cameras * fps * passed_s)
    return Ran(cameras, (after.own_s - before.own_s) / passed_s, share, other_cores(before, after))


def _wait_for_all(name: str, run: subprocess.Popen[bytes]) -> None:
    late_s = time.monotonic() + _LATE_S
    while time.monotonic() < late_s and run.poll() is None:
        try:
            if all(camera["frames"] for camera in ask(name, "status")["cameras"].values()):
                return
        except Exception as error:  # noqa: BLE001 - it is not there yet
            last = error
        time.sleep(0.2)
    raise click.ClickException(f"{name} has not begun: {last}")


def _frames(name: str) -> int:
    return int(ask(name, "status")["totals"]["frames"])


def _cpu_time(pid: int) -> CpuTime:
    return CpuTime(time.monotonic(), machine_cpu_s(), tree_cpu_s(pid))


def report(model: str, rounds: Sequence[Round]) -> str:
    """The table of one model."""
    return "\n".join(
        [
            f"`{model}`, {_FPS[model]:g} frames a second:",
            "",
            "| planned cameras | limit | cores: predicted | measured | frames in time | ratio for all frames "
            "| a third more cameras: cores predicted | measured | frames in time | other programs |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *map(_line, rounds),
        ]
    )


def _line(one: Round) -> str:
    at, more = one.ran
    return (
        f"| {one.cameras} | {one.resource} | {one.predicted[0]:.2f} | {at.cores:.2f} | {at.share:.0%} "
        f"| {one.ratio:.2f} | {more.cameras}: {one.predicted[1]:.2f} | {more.cores:.2f} | {more.share:.0%} "
        f"| {at.other_cores:.2f}, {more.other_cores:.2f} |"
    )


@figure_command("benchmarks.plan")
@click.option("--model", "models", multiple=True, type=click.Choice(list(_FPS)), default=tuple(_FPS), help="Both.")
@click.option("--rounds", default=3, show_default=True, help="Plans of each.")
@click.option("--seconds", default=12.0, show_default=True, help="Of each measurement.")
def main(figure: Figure, *, models: Sequence[Model], rounds: int, seconds: float) -> None:
    """Plan graphs, and run them with the planned number of cameras."""
    figure.takes(len(models) * rounds * _ROUND_S, f"{rounds} rounds of {', '.join(models)}")
    parts = [figure.written(but=["models"]), f"{machine_line()}."]
    for model in models:
        found = []
        for _ in range(rounds):
            found.append(one_round(model, seconds))
            click.echo(_line(found[-1]))
        parts.append(report(model, found))
    figure.publish("\n\n".join(parts))


if __name__ == "__main__":
    main()
