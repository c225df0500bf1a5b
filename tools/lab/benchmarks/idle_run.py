"""A run in which nothing happens: the processor time and the memory of its processes.

    python -m camgraph.tools.lab.benchmarks.idle_run [--against PYTHON] [--report docs/benchmarks.md]

`camgraph run` with two paused cameras, one process for each stage. The interpreter of another checkout is measured in
turns with this one: only such ratios hold on a busy machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.measuring.processes import SUPERVISOR, sample
from camgraph.tools.measuring.processor_time import process_cpu_s

_GRAPH = """
version: 1
name: idle{pid}
processes: separate
cameras:
  north: {{url: "rtsp://127.0.0.1:9/north"}}
  south: {{url: "rtsp://127.0.0.1:9/south"}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture}}
  infer: {{use: infer, from: prepare, group: model, with: {{model: "asset:movenet-multipose.onnx"}}}}
  people: {{use: decode, from: infer, group: model}}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{file: rules.yaml}}}}
  log: {{use: sink_jsonl, from: actions, with: {{path: events.jsonl}}}}
  alarm: {{use: sink_socket, from: actions, with: {{address: "unix://{folder}/alarm.sock", listen: true}}}}
"""
_RULES = "version: 1\nrules: [{use: fall}]\n"
_START_S = 300.0


@dataclass(frozen=True, slots=True)
class Idle:
    """One measurement. ``percents``: the kind of a process -> its processor time, in percent of one core."""

    percents: dict[str, float]
    memory_mb: float
    processes: int

    @property
    def percent(self) -> float:
        return sum(self.percents.values())


def measure(python: str, seconds: float, rest_s: float) -> Idle:
    """Start a run with this interpreter, let it rest, and measure it for so many seconds."""
    with tempfile.TemporaryDirectory() as name, _running(python, Path(name)) as supervisor:
        time.sleep(rest_s)
        run = f"idle{os.getpid()}"
        members = sample(supervisor, run).living
        begin_s, before = time.monotonic(), {member.pid: process_cpu_s(member.pid) for member in members}
        time.sleep(seconds)
        passed_s = time.monotonic() - begin_s
        percents: dict[str, float] = {}
        for member in members:
            used_s = process_cpu_s(member.pid) - before[member.pid]
            percents[member.kind] = percents.get(member.kind, 0.0) + 100 * used_s / passed_s
        return Idle(percents, sum(member.pss_kb for member in members) / 1000, len(members))


@contextmanager
def _running(python: str, folder: Path) -> Iterator[int]:
    """A run whose cameras are paused; the process id of its supervisor."""
    (folder / "graph.yaml").write_text(_GRAPH.format(pid=os.getpid(), folder=folder))
    (folder / "rules.yaml").write_text(_RULES)
    with (folder / "log").open("w") as log:
        command = [python, "-m", "camgraph", "run", "graph.yaml"]
        run = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)  # noqa: S603 - our own interpreter, or the user's
    try:
        _await_running(python, folder, run)
        for camera in ("north", "south"):
            _ask(python, folder, "cameras", "pause", camera)
        yield run.pid
    finally:
        run.terminate()
        run.wait(60)


def _await_running(python: str, folder: Path, run: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + _START_S
    while time.monotonic() < until_s and run.poll() is None:
        asked = _ask(python, folder, "status", "--json")
        if asked and json.loads(asked)["phase"] == "running":
            return
        time.sleep(0.5)
    raise click.ClickException(f"the run has not begun:\n{(folder / 'log').read_text()[-1000:]}")


def _ask(python: str, folder: Path, *words: str) -> bytes:
    """What a command says of the run in this folder; nothing if it fails."""
    command = [python, "-m", "camgraph", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout  # noqa: S603 - as above


def table(found: Sequence[tuple[str, Idle]]) -> str:
    """A row for each interpreter, from all of its rounds."""
    lines = [
        "| of | all, percent of a core | its supervisor | each other process | memory (Pss), MB | processes |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(name for name, _ in found):
        rounds = [idle for known, idle in found if known == name]
        count = len(rounds)
        percent = sum(idle.percent for idle in rounds) / count
        supervisor = sum(idle.percents.get(SUPERVISOR, 0.0) for idle in rounds) / count
        each = (percent - supervisor) / max(1, rounds[0].processes - 1)
        memory_mb = sum(idle.memory_mb for idle in rounds) / count
        lines.append(
            f"| {name} | {percent:.2f} | {supervisor:.2f} | {each:.2f} | {memory_mb:.0f} | {rounds[0].processes} |"
        )
    return "\n".join(lines)


@figure_command("benchmarks.idle_run")
@click.option("--seconds", default=60.0, show_default=True, help="Measured of each run.")
@click.option("--rest-s", default=60.0, show_default=True, help="From the start of a run until it is measured.")
@click.option("--rounds", default=2, show_default=True, help="Runs of each, in turns.")
@click.option("--against", type=click.Path(exists=True, dir_okay=False), help="The python of another checkout.")
def main(figure: Figure, seconds: float, rest_s: float, rounds: int, against: str | None) -> None:
    """Measure a run in which nothing happens."""
    sides = [("this checkout", sys.executable), *([("the other", against)] if against else [])]
    figure.takes(rounds * len(sides) * (seconds + rest_s + 30), "a run in which nothing happens")
    found = [(name, measure(python, seconds, rest_s)) for _ in range(rounds) for name, python in sides]
    figure.publish(f"{figure.head(but=('against',))}\n{figure.others()}\n\n{table(found)}")


if __name__ == "__main__":
    main()
