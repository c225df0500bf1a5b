"""The way through a GPU without decoding.

    python -m camgraph.tools.lab.benchmarks.gpu_path --model FILE [--report docs/gpu.md]

    cameras that send stills ─> prepare ─> [infer on CUDA ─> decode] ─> end
                                           `-- the model's process

A rate is compared with what the device and the cameras allow. A GPU has its own rate, which a bare loop shows; the
pretended CUDA of `tests/gpu` is told how long a picture takes, and that its copies cost nothing, as on a GPU.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.graph_run import run_text
from camgraph.tools.lab.report_page import machine_line, median_and_range, table_head, table_row
from camgraph.tools.measuring.processor_time import CpuTime, cpu_time, other_cores
from camgraph.tools.models.declaration import DeclaredModel

_SIDE = 640
"""Side of a picture, if the model takes any size."""
_WARM_UP_S = 3.0
_AROUND_S = 20.0
"""About what a run takes beside the time it is looked at."""
_PER_PROCESS = 32
_GRAPH = """
version: 1
name: gpupath{pid}
cameras:
{cameras}
stages:
  still: {{use: still_source, cameras_per_process: {per_process}}}
  prepare: {{use: preprocess, from: still, with: {{size: [{width}, {height}]}}}}
  infer:
    use: infer
    from: prepare
    group: model
    batch: {{max: {batch}, wait_ms: {wait_ms}}}
    threads: {threads}
    with: {{model: "{model}", providers: [cuda], {settings}}}
  people: {{use: decode, from: infer, group: model}}
  end: {{use: sink_null, from: people}}
"""


_AS_IT_IS = "as it is"
WAYS: Mapping[str, str] = {
    _AS_IT_IS: "fold: never",
    "folded": "fold: auto",
    "folded, CUDA graphs": "options: {cuda: {enable_cuda_graph: true}}",
}
"""Name -> settings of `infer`."""


@dataclass(frozen=True)
class Subject:
    """What to measure. ``device_ms``: of a picture on the pretended device; ``wait_ms``: how long a batch waits."""

    model: str
    cameras: int
    device_ms: float
    batch: int
    wait_ms: float
    threads: int
    seconds: float

    @property
    def device_fps(self) -> float:
        """Frames a second that the device could do."""
        return 1000 / self.device_ms

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of a picture."""
        contract = DeclaredModel(Path(self.model)).contract()
        return contract.width or _SIDE, contract.height or _SIDE

    def pretended(self, way: str) -> Mapping[str, str]:
        """For the pretended CUDA: it takes its time for each picture, as float32 or as uint8."""
        width, height = self.size
        each = np.dtype(DeclaredModel(Path(self.model)).contract().dtype).itemsize if way == _AS_IT_IS else 1
        per_mb = self.device_ms / (width * height * 3 * each / 1e6)
        return {"CUDA_PRETENDED_WORK_MS_PER_MB": f"{per_mb:.6f}", "CUDA_PRETENDED_COPIES": "none"}

    def text(self, fps: float, settings: str) -> str:
        """The graph."""
        width, height = self.size
        return _GRAPH.format(
            pid=os.getpid(), cameras="\n".join(f"  c{number}: {{fps: {fps:g}}}" for number in range(self.cameras)),
            per_process=min(self.cameras, _PER_PROCESS), width=width, height=height, batch=self.batch,
            wait_ms=self.wait_ms, threads=self.threads, model=self.model, settings=settings,
        )  # fmt: skip


@dataclass
class Way:
    """Frames a second of each camera, and one of `WAYS`; a value a round."""

    fps: float
    name: str
    rates: list[float] = field(default_factory=list)
    batches: list[float] = field(default_factory=list)
    cpu_ms: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    others: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Look:
    """The run at one moment."""

    at_s: float
    status: RunStatus
    cpu: CpuTime


class Watch:
    """Looks when all cameras have been there for a while, looks again, and stops the run. The supervisor calls it."""

    def __init__(self, seconds: float) -> None:
        self.looks: list[Look] = []
        self._seconds = seconds
        self._due = 0.0

    def __call__(self, supervisor: Supervisor) -> None:
        now = time.monotonic()
        if len(self.looks) == 2 or now < self._due:
            return
        status = supervisor.status()
        if not self._due:
            if all(camera.frames for camera in status.cameras.values()) and status.stages["infer"].items:
                self._due = now + _WARM_UP_S
            return
        self.looks.append(Look(now, status, cpu_time()))
        self._due = now + self._seconds
        if len(self.looks) == 2:
            supervisor.stop()


def measure(subject: Subject, way: Way) -> None:
    """One run: its figures go into ``way``."""
    watch = Watch(subject.seconds)
    os.environ |= subject.pretended(way.name)
    run_text(subject.text(way.fps, WAYS[way.name]), watch, limit_s=subject.seconds + 120)
    if len(watch.looks) < 2:
        raise click.ClickException("the run ended too early")
    before, after = watch.looks
    seconds = after.at_s - before.at_s
    then, now = (look.status.stages["infer"] for look in (before, after))
    frames = now.items - then.items
    way.rates.append(frames / seconds)
    way.batches.append(now.batch or 0.0)
    way.others.append(other_cores(before.cpu, after.cpu))
    used: defaultdict[str, float] = defaultdict(float)
    for name, process in after.status.processes.items():
        used[name.partition(".")[0]] += process.cpu_s - before.status.processes[name].cpu_s
    for name, cpu_s in used.items():
        way.cpu_ms[name].append(1000 * cpu_s / max(1, frames))


def lines(subject: Subject, ways: Sequence[Way]) -> list[str]:
    """The table. Pure."""
    processes = list(ways[0].cpu_ms)
    head = ["cameras", "model", "frames/s", "of what is possible", "frames a batch", *(f"ms: `{p}`" for p in processes)]
    rows = [
        table_row(
            f"{subject.cameras} x {way.fps:g}/s",
            way.name,
            f"{median(way.rates):.0f}",
            median_and_range([rate / min(subject.cameras * way.fps, subject.device_fps) for rate in way.rates]),
            f"{median(way.batches):.1f}",
            *(median_and_range(way.cpu_ms[process]) for process in processes),
        )
        for way in ways
    ]
    return [*table_head(*head), *rows]


@figure_command("benchmarks.gpu_path")
@click.option("--model", required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--cameras", default=64, show_default=True)
@click.option(
    "--rate", "rates", default=(10.0, 20.0), multiple=True, show_default=True, help="Frames/s of each; repeatable."
)
@click.option(
    "--way", "ways", default=tuple(WAYS), multiple=True, type=click.Choice(list(WAYS)), help="These alone; repeatable."
)
@click.option("--device-ms", default=0.4, show_default=True, help="What the device takes for a picture.")
@click.option("--batch", default=8, show_default=True)
@click.option("--wait-ms", default=12.0, show_default=True, help="For a batch to be full.")
@click.option("--threads", default=2, show_default=True)
@click.option("--seconds", default=8.0, show_default=True, help="Of each look.")
@click.option("--rounds", default=3, show_default=True)
def main(
    figure: Figure, *, model: Path, rates: Sequence[float], ways: Sequence[str], rounds: int, **options: Any
) -> None:
    """Measure how much of a device's rate a graph reaches, and what a frame costs on the way."""
    subject = Subject(str(model.resolve()), **options)
    runs = [Way(fps, name) for fps in rates for name in ways]
    figure.takes(rounds * len(runs) * (subject.seconds + _AROUND_S), f"{rounds} rounds of {len(runs)} runs")
    for _ in range(rounds):
        for one in runs:
            measure(subject, one)
    others = [each for one in runs for each in one.others]
    taken = f"Other processes took {median(others):.1f} cores ({min(others):.1f} to {max(others):.1f})."
    head = [figure.written(), "", f"{machine_line()}. {taken}", ""]
    figure.publish("\n".join([*head, *lines(subject, runs)]))


if __name__ == "__main__":
    main()
