"""The whole graph against the limit: `python -m camgraph.tools.lab.benchmarks.graph [--model FILE] [--clip FILE] ...`.

The limit is a bare loop of `session.run` on tensors that are ready, with as many threads on one session as there are
cores. The graph gets the same model and as many frames of four file cameras. Rounds are interleaved, and figures are
medians of ratios taken within a round. `--report docs/benchmarks.md` writes the tables between their marks.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnxruntime as ort

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.system.paths import resolve
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.graph_run import run_text
from camgraph.tools.lab.report_page import machine_line

_CAMERAS = 4
_ROUND_S = 8.0
"""About what one placement and its bare loop take for a second of the cameras' film."""
_GRAPH = """
version: 1
name: bench{pid}
processes: {processes}
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: {size}}}}}
  infer: {{use: infer, from: prepare, threads: {threads}, batch: {{max: 1}}, with: {{model: "{model}"}}}}
  people: {{use: {decode}, from: infer}}
  end: {{use: sink_null, from: people}}
"""


@dataclass(slots=True)
class Row:
    """One way of placing the processes: its figures, a value a round. `cpu_ms`: per frame, by stage (or stages)."""

    ratios: list[float] = field(default_factory=list)
    cores_used: list[float] = field(default_factory=list)
    fps: list[float] = field(default_factory=list)
    frames: int = 0
    cpu_ms: dict[str, list[float]] = field(default_factory=dict)

    def add(self, status: dict[str, Any], frames: int, limit: float, cores: int) -> None:
        """Take in one round."""
        self.frames = frames
        self.fps.append(frames / status["worked_s"])
        self.ratios.append(self.fps[-1] / limit)
        by_stage: dict[str, float] = {}
        for process, values in status["processes"].items():
            stage = process.partition(".")[0]
            by_stage[stage] = by_stage.get(stage, 0.0) + 1000 * values["cpu_s"] / frames
        for stage, cost in by_stage.items():
            self.cpu_ms.setdefault(stage, []).append(cost)
        self.cores_used.append(sum(by_stage.values()) * self.fps[-1] / 1000 / cores)


@dataclass(frozen=True, slots=True)
class Subject:
    """The measurements to make."""

    model: str
    clip: str
    size: str
    decode: str
    seconds: float
    threads: int


def bare_fps(subject: Subject, shape: Sequence[int], frames: int, provider: str = "CPUExecutionProvider") -> float:
    """Frames a second of a bare loop, one thread a core on one session.

    Raises EnvironmentProblem if ONNX Runtime leaves the model to another provider.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(subject.model, options, providers=[provider])
    if session.get_providers()[0] != provider:
        raise EnvironmentProblem(f"ONNX Runtime has no {provider} here: camgraph doctor says what is missing")
    model_input = session.get_inputs()[0]
    tensor = np.zeros(shape, np.uint8 if "uint8" in model_input.type else np.float32)
    session.run(None, {model_input.name: tensor})
    each = frames // subject.threads

    def loop() -> None:
        for _ in range(each):
            session.run(None, {model_input.name: tensor})

    threads = [threading.Thread(target=loop) for _ in range(subject.threads)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return each * subject.threads / (time.perf_counter() - started)


def run_once(subject: Subject, processes: str) -> dict[str, Any]:
    """One run of the graph: its last status."""
    cameras = "\n".join(f'  c{n}: {{url: "{subject.clip}", duration_s: {subject.seconds}}}' for n in range(_CAMERAS))
    text = _GRAPH.format(
        pid=os.getpid(), processes=processes, cameras=cameras, size=subject.size, threads=subject.threads,
        model=subject.model, decode=subject.decode,
    )  # fmt: skip
    return run_text(text, limit_s=600)


def measure(subject: Subject, shape: Sequence[int], rounds: int, look: Callable[[], None]) -> dict[str, Row]:
    """Interleaved rounds of the bare loop and of each placement, with a ``look`` at the machine after each."""
    rows = {"separate": Row(), "compact": Row()}
    for number in range(rounds):
        for name, row in rows.items():
            status = run_once(subject, name)
            frames = sum(camera["frames"] for camera in status["cameras"].values())
            limit = bare_fps(subject, shape, frames)
            row.add(status, frames, limit, subject.threads)
            look()
            click.echo(f"round {number + 1} {name}: {row.fps[-1]:.1f} fps, bare {limit:.1f} fps, {row.ratios[-1]:.3f}")
    return rows


def report(subject: Subject, rows: dict[str, Row], rounds: int, others: str) -> str:
    """The part of docs/benchmarks.md between the marks. ``others``: the cores that other processes took."""
    lines = [
        f"- {machine_line()}, ONNX Runtime {ort.__version__}. {others}",
        f"- model `{Path(subject.model).name}`, clip `{Path(subject.clip).name}`, {_CAMERAS} file cameras, "
        f"{next(iter(rows.values())).frames} frames a run, {rounds} rounds, {subject.threads} threads",
        "",
        "| placement | throughput / bare loop | lowest, highest | frames/s | cores kept busy |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {statistics.median(row.ratios):.3f} | {min(row.ratios):.3f}, {max(row.ratios):.3f} "
        f"| {statistics.median(row.fps):.1f} | {statistics.median(row.cores_used):.2f} |"
        for name, row in rows.items()
    ]
    lines += ["", "CPU time of each stage's processes per frame, from when they were ready:", ""]
    lines += ["| placement | process | ms a frame | share |", "|---|---|---|---|"]
    for name, row in rows.items():
        medians = {stage: statistics.median(costs) for stage, costs in row.cpu_ms.items()}
        lines += [f"| {name} | {s} | {ms:.2f} | {ms / sum(medians.values()):.1%} |" for s, ms in medians.items()]
    return "\n".join(lines) + "\n"


@figure_command("benchmarks.graph")
@click.option("--model", default="asset:movenet-multipose.onnx", show_default=True, help="An ONNX pose model.")
@click.option("--clip", default="asset:vtest.avi", show_default=True, help="A video, for all four cameras.")
@click.option("--size", default="native", show_default=True, help="The model's picture, as in a graph file.")
@click.option("--decode", default="decode_movenet_multipose", show_default=True)
@click.option("--shape", default="1,576,768,3", show_default=True, help="Shape of the bare loop's tensor.")
@click.option("--seconds", default=4.0, show_default=True, help="How much of the clip each camera shows.")
@click.option("--rounds", default=3, show_default=True)
def main(  # noqa: PLR0917 - click hands options over by name
    figure: Figure, model: str, clip: str, size: str, decode: str, shape: str, seconds: float, rounds: int
) -> None:
    """Measure the whole graph against the bare loop."""
    threads = len(os.sched_getaffinity(0))
    here = Path.cwd()
    subject = Subject(str(resolve(model, here)), str(resolve(clip, here)), size, decode, seconds, threads)
    figure.takes(rounds * 2 * _ROUND_S * seconds, f"{rounds} rounds, each of two placements and the bare loop")
    rows = measure(subject, [int(n) for n in shape.split(",")], rounds, figure.look)
    figure.publish(f"{figure.written()}\n\n{report(subject, rows, rounds, figure.others())}")


if __name__ == "__main__":
    main()
