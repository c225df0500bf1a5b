"""camgraph as a contestant.

    python -m camgraph.tools.lab.benchmarks.peers.graph PLACING JOB    (PLACING being one of `PLACINGS`)

The job is JSON (see tools/lab/benchmarks/peers/job.py). The graph ends in a stage of the benchmark's own
(`frame_counts.py`), which is made known as any other package's would be: by an entry point, here of a package that is
nothing but its metadata.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import onnxruntime as ort

from camgraph.tools.lab.benchmarks.peers.job import Answer, Job
from camgraph.tools.lab.graph_run import run_text


@dataclass(frozen=True, slots=True)
class Placing:
    """`processes` of the graph, and how the model is run (None: by the provider of the job)."""

    processes: str
    model_settings: str | None = None


PLACINGS: Mapping[str, Placing] = {
    "separate": Placing("separate"),
    "compact": Placing("compact"),
    "bf16": Placing("compact", "providers: [openvino], precision: bf16"),
}
LIMIT_S = 600.0
_COUNTS = "counts"
_GRAPH = """
version: 1
name: peers{pid}
processes: {placing.processes}
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: {size}}}}}
  infer:
    use: infer
    from: prepare
    threads: {job.threads}
    batch: {{max: {job.batch}}}
    with: {{model: "{job.model}", {model_settings}}}
  people: {{use: decode_yolo_pose, from: infer, with: {{min_score: {job.min_score}, iou: {job.iou}}}}}
  counts: {{use: bench_frame_counts, from: people, with: {{path: {counts}}}}}
"""
_METADATA = "Metadata-Version: 2.1\nName: camgraph-bench-frame-counts\nVersion: 0\n"
_ENTRY_POINTS = "[camgraph.stages]\nbench_frame_counts = camgraph.tools.lab.benchmarks.peers.frame_counts:FrameCounts\n"


def run(job: Job, placing: Placing) -> Answer:
    """One run of the graph in processes of its own; they were all ready when it began. Raises ClickException."""
    with tempfile.TemporaryDirectory() as name, _counts_known(Path(name)):
        status = run_text(graph_text(job, placing), limit_s=LIMIT_S, folder=Path(name))
        return answer_of((Path(name) / _COUNTS).read_text(), job.cameras, status["worked_s"])


def graph_text(job: Job, placing: Placing) -> str:
    """The graph file. Cameras are called c0, c1, ..."""
    cameras = "\n".join(f'  c{number}: {{url: "{clip}"}}' for number, clip in enumerate(job.clips))
    model_settings = placing.model_settings or f"providers: [{job.provider}]"
    return _GRAPH.format(
        pid=os.getpid(), placing=placing, cameras=cameras, size=list(job.size), job=job, counts=_COUNTS,
        model_settings=model_settings,
    )  # fmt: skip


def answer_of(lines: str, cameras: int, worked_s: float) -> Answer:
    """From what `FrameCounts` has written: `camera people now_ns age_ns` for each frame.

    ``worked_s``: until the last one.
    """
    rows = [line.split() for line in lines.splitlines()]
    frames, people, ended_ns = Counter[str](), Counter[str](), 0
    for camera, found, now_ns, _ in rows:
        frames[camera] += 1
        people[camera] += int(found)
        ended_ns = max(ended_ns, int(now_ns))
    names = [f"c{number}" for number in range(cameras)]
    return Answer(
        ended_ns - round(worked_s * 1e9), ended_ns, [frames[name] for name in names], [people[name] for name in names],
        [round(int(age_ns) / 1e6, 3) for *_, age_ns in rows], {"onnxruntime": ort.__version__},
    )  # fmt: skip


@contextmanager
def _counts_known(folder: Path) -> Iterator[None]:
    """Here and in the processes that are started meanwhile."""
    about = folder / "packages" / "camgraph_bench_frame_counts-0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(_METADATA)
    (about / "entry_points.txt").write_text(_ENTRY_POINTS)
    packages, before = str(about.parent), os.environ.get("PYTHONPATH")
    sys.path.append(packages)
    os.environ["PYTHONPATH"] = os.pathsep.join([packages, *([before] if before else [])])
    try:
        yield
    finally:
        sys.path.remove(packages)
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


if __name__ == "__main__":
    click.echo(run(Job.from_json(sys.argv[2]), PLACINGS[sys.argv[1]]).to_json())
