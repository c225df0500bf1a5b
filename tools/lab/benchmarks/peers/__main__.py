"""camgraph beside the bare loop and others.

    python -m camgraph.tools.lab.benchmarks.peers [--model FILE] [--clip FILE] ...

Each contestant does the same job in a process tree of its own, one after the other in each round: the same clips, the
same YOLO-pose model, the same thresholds, all frames, nothing drawn. The figures are medians of ratios that were taken
within a round. The peers are installed outside of the project, in environments of their own
(`tools/lab/benchmarks/peers/environments.py`); one that cannot be installed or run is left out by name.

`--report docs/benchmarks.md` writes the tables between their marks, `--json FILE` all figures, `--plot FILE` a picture.
With `--gpu` all run the model on NVIDIA's GPU, and one more column says how busy it is. Unverified: it met none yet.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import click

from camgraph.pipeline.errors import EXIT_GAVE_UP, UserError
from camgraph.pipeline.system.paths import resolve
from camgraph.tools.lab.benchmarks.peers.clip import write_clip
from camgraph.tools.lab.benchmarks.peers.contestants import BARE, LIGHT, NAMES, Contestant, find
from camgraph.tools.lab.benchmarks.peers.environments import NotToBeHad
from camgraph.tools.lab.benchmarks.peers.figures import Mark, Row, Run, marks_of, rows_of, run_of
from camgraph.tools.lab.benchmarks.peers.gpu import GpuMeter
from camgraph.tools.lab.benchmarks.peers.job import Answer, Job
from camgraph.tools.lab.benchmarks.peers.meter import watch
from camgraph.tools.lab.benchmarks.peers.page import plot as plot_rows
from camgraph.tools.lab.benchmarks.peers.page import tables
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import machine_line
from camgraph.tools.measuring.plots import require_matplotlib
from camgraph.tools.measuring.processor_time import CpuTime, cpu_time, others_line

_MODEL, _CLIP = "models/yolo11n-pose_640.onnx", "videos/opencv4nodejs_people.mp4"
_AROUND_S, _FPS = 6.0, 18.0
"""Roughly: what a run takes beside its work, and frames a second of two cores, for the estimate alone."""
_LIMIT_S = 600.0
_NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
"""Hides the GPU from all contestants, so that none has what the others lack."""
_GPU_MARKS = "benchmarks.peers_gpu"
"""The figures of a GPU have marks of their own."""
_GPU_THREADS = 2
"""One batch is copied while the other is calculated."""
_NO_MATTER = ("json_file", "plot", "no_install")
"""Options that change no figure."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The measurements to make. ``frames``: of all cameras together; ``light_cameras``: with so many the light ones run
    too.
    """

    model: Path
    clip: Path
    frames: int
    cameras: Sequence[int]
    picture: tuple[int, int]
    size: tuple[int, int]
    min_score: float
    iou: float
    light_cameras: int
    gpu: bool = False

    def job(self, cameras: int, folder: Path) -> Job:
        """With a clip of its share of the frames for each camera, written where it is not there yet."""
        each = max(1, self.frames // cameras)
        clip = folder / f"{each}.mp4"
        if not clip.exists():
            write_clip(self.clip, clip, each, self.picture)
        clips = [str(clip)] * cameras
        threads = _GPU_THREADS if self.gpu else len(os.sched_getaffinity(0))
        provider: Literal["cpu", "cuda"] = "cuda" if self.gpu else "cpu"
        return Job(str(self.model), clips, each, self.size, self.min_score, self.iou, threads, provider)


@dataclass(slots=True)
class Findings:
    """All results. ``left_out``: name -> why; ``versions``: name -> package -> version."""

    runs: list[Run] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    versions: dict[str, Mapping[str, str]] = field(default_factory=dict)
    times: list[CpuTime] = field(default_factory=list)


def measure(subject: Subject, names: Sequence[str], rounds: int, *, install: bool) -> Findings:
    """Run all rounds; a contestant that fails once is left out from then on."""
    findings = Findings(times=[cpu_time()])
    there = list(_found(names, findings.left_out, install=install, gpu=subject.gpu))
    with tempfile.TemporaryDirectory(prefix="camgraph-") as folder:
        for number in range(1, rounds + 1):
            for cameras in subject.cameras:
                job = subject.job(cameras, Path(folder))
                for one in there:
                    if one.name not in findings.left_out and not (one.light and cameras != subject.light_cameras):
                        _take_part(one, number, job, findings)
    return findings


def _found(names: Sequence[str], left_out: dict[str, str], *, install: bool, gpu: bool) -> Iterator[Contestant]:
    for name in names:
        try:
            yield find(name, install=install, gpu=gpu)
        except NotToBeHad as problem:
            _leave_out(name, problem, left_out)


def _take_part(one: Contestant, number: int, job: Job, findings: Findings) -> None:
    try:
        run, versions = run_once(one, number, job)
    except NotToBeHad as problem:
        _leave_out(one.name, problem, findings.left_out)
        return
    findings.runs.append(run)
    findings.versions[one.name] = versions
    findings.times.append(cpu_time())
    click.echo(f"round {number}, {job.cameras} cameras, {one.name}: {run.fps:.1f} frames/s, {run.frames} frames")


def _leave_out(name: str, problem: NotToBeHad, left_out: dict[str, str]) -> None:
    left_out[name] = str(problem)
    click.echo(f"{name} is left out: {problem}")


def run_once(one: Contestant, number: int, job: Job) -> tuple[Run, Mapping[str, str]]:
    """Its figures, and which packages it ran on. Raises NotToBeHad."""
    on_gpu = job.provider == "cuda"
    watched = watch(
        one.command(job), limit_s=_LIMIT_S, environment=None if on_gpu else _NO_GPU, gpu=GpuMeter() if on_gpu else None
    )
    try:
        answer = Answer.from_output(watched.output)
    except ValueError as error:
        raise NotToBeHad(str(error)) from None
    return run_of(one.name, number, job, answer, watched), answer.versions


def report(subject: Subject, findings: Findings, rows: Sequence[Row], rounds: int) -> str:
    """The part of docs/benchmarks.md between the marks."""
    width, height = subject.picture
    lines = [
        f"- {machine_line()}. {others_line(findings.times)}",
        f"- model `{subject.model.name}` at {subject.size[0]}x{subject.size[1]}, clip `{subject.clip.name}` as "
        f"{width}x{height} H.264, {subject.frames} frames a run over all cameras, {rounds} rounds",
        *(f"- {name}: {_packages(versions)}" for name, versions in findings.versions.items()),
        "",
        tables(rows, _marks(subject, findings, rows), subject.light_cameras, findings.left_out),
    ]
    return "\n".join(lines)


def _marks(subject: Subject, findings: Findings, rows: Sequence[Row]) -> list[Mark]:
    """The marks, which were set for CPUs: none on a GPU."""
    return [] if subject.gpu else marks_of(findings.runs, rows, subject.light_cameras)


def _packages(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items() if version)


def as_json(subject: Subject, findings: Findings, rows: Sequence[Row]) -> str:
    """All figures, of each run and as they stand in the tables."""
    marks = _marks(subject, findings, rows)
    values = {
        "machine": machine_line(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "subject": {**asdict(subject), "model": subject.model.name, "clip": subject.clip.name},
        "others": others_line(findings.times),
        "versions": findings.versions,
        "left_out": findings.left_out,
        "runs": [{**asdict(run), "fps": run.fps} for run in findings.runs],
        "rows": [asdict(row) for row in rows],
        "marks": [{**asdict(mark), "verdict": mark.verdict} for mark in marks],
    }
    return json.dumps(values, indent=1, default=str)


def _given_or_usual(given: str | None, usual: str) -> Path | None:
    """The file asked for, else that of the test data or None. Raises UserError if the file asked for is missing."""
    if given is not None:
        path = resolve(given, Path.cwd())
        if not path.is_file():
            raise UserError(f"{path}: no such file")
        return path
    path = Path(os.environ.get("CAMGRAPH_TEST_DATA") or Path("..") / "shared" / "data") / usual
    return path.resolve() if path.is_file() else None


@figure_command("benchmarks.peers", gpu=_GPU_MARKS)
@click.option("--model", help="A YOLO-pose model as ONNX, with a dynamic batch; by default that of the test data.")
@click.option("--clip", help="A video with people; by default one of the test data.")
@click.option("--frames", default=208, show_default=True, help="Of all cameras together, in each run.")
@click.option(
    "--count",
    "counts",
    multiple=True,
    type=click.IntRange(1),
    default=(1, 4, 8, 16),
    show_default=True,
    help="How many cameras; may be given several times.",
)
@click.option("--rounds", default=2, show_default=True, type=click.IntRange(1))
@click.option("--picture", type=(int, int), default=(1280, 720), show_default=True, help="Of the cameras.")
@click.option("--size", type=(int, int), default=(640, 640), show_default=True, help="Of the model's picture.")
@click.option("--min-score", default=0.3, show_default=True)
@click.option("--iou", default=0.5, show_default=True)
@click.option("--only", "onlys", multiple=True, type=click.Choice(NAMES), help="Only these; the bare loop as well.")
@click.option("--gpu", is_flag=True, help="All run the model on NVIDIA's GPU, by CUDA. Unverified.")
@click.option("--no-install", is_flag=True, help="Peers that are not installed yet are left out.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="A PNG; needs matplotlib.")
def main(  # noqa: PLR0917 - click hands options over by name
    figure: Figure, model: str | None, clip: str | None, frames: int, counts: tuple[int, ...], rounds: int,
    picture: tuple[int, int], size: tuple[int, int], min_score: float, iou: float, onlys: tuple[str, ...], gpu: bool,
    no_install: bool, json_file: Path | None, plot: Path | None,
) -> None:  # fmt: skip
    """Measure camgraph beside the bare loop and others."""
    model_file, clip_file = _given_or_usual(model, _MODEL), _given_or_usual(clip, _CLIP)
    if model_file is None or clip_file is None:
        click.echo("left out: no YOLO-pose model and clip here: give --model and --clip, or set CAMGRAPH_TEST_DATA")
        return
    if plot:
        require_matplotlib()
    light = min(counts, key=lambda count: abs(count - 4))
    subject = Subject(model_file, clip_file, frames, counts, picture, size, min_score, iou, light, gpu)
    names = [name for name in NAMES if (not onlys or name in (BARE, *onlys)) and not (gpu and name == LIGHT)]
    runs = rounds * sum(len(names) - (LIGHT in names and count != light) for count in counts)
    figure.takes(runs * (_AROUND_S + frames / _FPS), f"{runs} runs of {frames} frames")
    findings = measure(subject, names, rounds, install=not no_install)
    rows = rows_of(findings.runs, len(os.sched_getaffinity(0)))
    if json_file:
        json_file.write_text(as_json(subject, findings, rows))
    if plot:
        plot_rows(rows, plot)
    text = report(subject, findings, rows, rounds)
    figure.publish(f"{figure.written(but=_NO_MATTER)}\n\n{text}")


if __name__ == "__main__":
    # End the contestant that runs as well: it has a process group of its own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_GAVE_UP))
    main()
