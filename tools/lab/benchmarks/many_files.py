"""Many short files, beside a bare loop over the same files: processor time, memory, processes.

python -m camgraph.tools.lab.benchmarks.many_files [--files 200] [--frames 5] [--rounds 3] [--report docs/files.md]

The files are pieces of `vtest.avi`. The bare loop opens one after the other with PyAV, makes each frame smaller, and
hands it to ONNX Runtime with one thread; it makes no people of what the model says. Ratios are taken within a round.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import av
import click
import cv2
import numpy as np
import onnxruntime as ort
from av.video.stream import VideoStream

from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.system.paths import asset_folder
from camgraph.tools.commands.watching.models import MULTIPOSE
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.graph_run import run_text
from camgraph.tools.measuring.processes import sample
from camgraph.tools.measuring.processor_time import cpu_time

_SIDE = 256
_LIMIT_S = 3600.0
_LOOK_S = 1.0
_ROUND_S_A_FRAME = 0.2
"""About what a frame takes in all ways together."""
_WAYS = {"by default": "", "a process for each file": ", cameras_per_process: 1"}
_GRAPH = """
version: 1
name: files{pid}
cameras: {{{cameras}}}
stages:
  capture: {{use: capture{sharing}}}
  prepare: {{use: preprocess, from: capture, with: {{size: auto, max_side: {side}}}}}
  infer: {{use: infer, from: prepare, batch: {{max: 8}}, with: {{model: "asset:{model}"}}}}
  people: {{use: decode, from: infer}}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{use: fall}}, {{use: somebody}}]}}}}
  log: {{use: sink_jsonl, from: actions, with: {{path: events.jsonl, mode: replace}}}}
"""


@dataclass(slots=True)
class Ran:
    """One way through all files once. `memory_mb` (Pss) and `processes`: the most that were seen at a time."""

    cpu_s: float = 0.0
    wall_s: float = 0.0
    memory_mb: float = 0.0
    processes: int = 0
    _looked_s: float = field(default=0.0, repr=False)

    def look(self, _: Supervisor | None = None) -> None:
        """Note the memory of all our processes now, once a second."""
        if time.monotonic() - self._looked_s < _LOOK_S:
            return
        self._looked_s = time.monotonic()
        living = sample(os.getpid(), f"files{os.getpid()}").living
        self.memory_mb = max(self.memory_mb, sum(member.pss_kb for member in living) / 1000)
        self.processes = max(self.processes, len(living))


@contextmanager
def measured() -> Iterator[Ran]:
    """What the block and the processes that it starts take."""
    ran, before = Ran(), cpu_time()
    yield ran
    after = cpu_time()
    ran.cpu_s, ran.wall_s = after.own_s - before.own_s, after.at_s - before.at_s


def write_files(folder: Path, files: int, frames: int) -> None:
    """Pieces of a film of a square, one after the other, and from the beginning again."""
    with av.open(str(asset_folder() / "vtest.avi")) as film:
        pictures = [one.to_ndarray(format="bgr24") for _, one in zip(range(300), film.decode(video=0), strict=False)]
    for number in range(files):
        with av.open(str(folder / f"{number}.mp4"), "w") as container:
            stream = container.add_stream("libx264", rate=10, options={"preset": "ultrafast"})
            assert isinstance(stream, VideoStream)
            stream.height, stream.width = pictures[0].shape[:2]
            stream.pix_fmt = "yuv420p"
            for place in range(frames):
                picture = pictures[(number * frames + place) % len(pictures)]
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="bgr24")))
            container.mux(stream.encode())


def bare_loop(folder: Path, files: int) -> Ran:
    """One frame after the other through the model, in this process."""
    with measured() as ran:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(str(asset_folder() / MULTIPOSE), options, providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        for number in range(files):
            with av.open(str(folder / f"{number}.mp4")) as container:
                for frame in container.decode(video=0):
                    picture = frame.to_ndarray(format="rgb24")
                    height = round(_SIDE * picture.shape[0] / picture.shape[1] / 32) * 32
                    session.run(None, {name: cv2.resize(picture, (_SIDE, height))[np.newaxis]})
            ran.look()
    return ran


def graph_run(folder: Path, files: int, sharing: str) -> Ran:
    """The files as cameras of one graph. ``sharing``: more keys of its stage `capture`. Raises ClickException."""
    cameras = ", ".join(f'c{n}: {{url: "{folder / f"{n}.mp4"}"}}' for n in range(files))
    text = _GRAPH.format(pid=os.getpid(), cameras=cameras, sharing=sharing, side=_SIDE, model=MULTIPOSE)
    with measured() as ran:
        status = run_text(text, ran.look, limit_s=_LIMIT_S, folder=folder)
    if [camera["state"] for camera in status["cameras"].values()] != ["done"] * files:
        raise click.ClickException("not all files were judged to their end")
    return ran


def table(bare: Sequence[Ran], ways: dict[str, list[Ran]]) -> str:
    """Medians over the rounds; ratios of processor time to that of the bare loop in the same round."""
    rows = [_row("bare loop, one thread", bare, bare), *(_row(name, found, bare) for name, found in ways.items())]
    head = "| way | processor time / bare loop | processor time, s | seconds | memory (Pss), MB | processes |"
    return "\n".join([head, "|---|---|---|---|---|---|", *rows])


def _row(name: str, found: Sequence[Ran], bare: Sequence[Ran]) -> str:
    ratio = statistics.median(one.cpu_s / other.cpu_s for one, other in zip(found, bare, strict=True))
    cpu_s, wall_s = (statistics.median(getattr(one, key) for one in found) for key in ("cpu_s", "wall_s"))
    memory_mb, processes = (max(getattr(one, key) for one in found) for key in ("memory_mb", "processes"))
    return f"| {name} | {ratio:.2f} | {cpu_s:.1f} | {wall_s:.1f} | {memory_mb:.0f} | {processes} |"


@figure_command("benchmarks.many_files")
@click.option("--files", default=200, show_default=True, help="How many.")
@click.option("--frames", default=5, show_default=True, help="Of each.")
@click.option("--rounds", default=3, show_default=True)
def main(figure: Figure, files: int, frames: int, rounds: int) -> None:
    """Judge many short files by one graph, and compare what it takes with a bare loop."""
    figure.takes(_ROUND_S_A_FRAME * rounds * files * frames, f"{rounds} rounds of {files} files")
    bare: list[Ran] = []
    ways: dict[str, list[Ran]] = {name: [] for name in _WAYS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, files, frames)
        for number in range(rounds):
            bare.append(bare_loop(folder, files))
            for way, sharing in _WAYS.items():
                ways[way].append(graph_run(folder, files, sharing))
                figure.look()
            click.echo(f"round {number + 1}: {bare[-1]}, {[found[-1] for found in ways.values()]}")
    figure.publish(f"{figure.head()} {figure.others()}\n\n{table(bare, ways)}")


if __name__ == "__main__":
    main()
