"""Many cameras on few cores.

    python -m camgraph.tools.lab.benchmarks.cameras [--cameras N] [--fps FPS] [--way NAME] ...

The same cameras of the simulator run through one graph, placed and set in several ways, with a model and with one that
does nothing (`tests/plugin` has the stage that notes the times, and must be installed). The tables show the inferred
and dropped frames and the cost. `--report` writes them into docs/many_cameras.md, between its marks.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import click
from av.packet import Packet

from camgraph.tools.assets import asset_path
from camgraph.tools.lab.camera_run import LOG, CameraSet, Window, watched
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import (
    counted,
    machine_line,
    p50_p99,
)
from camgraph.tools.scenes.simulator.clip import encode_clip
from camgraph.tools.scenes.simulator.rtsp_simulator import RtspSimulator

_WARM_UP_S = 3.0
_AROUND_S = 18.0
"""About the time of a run beside the measured time: starting, warming up, ending."""
_GRAPH = """
version: 1
name: cameras{pid}
processes: {processes}
cameras:
{cameras}
stages:
  capture: {{use: capture{sharing}}}
  prepare: {{use: preprocess, from: capture, with: {{size: {size}}}}}
{model}
  end: {{use: sink_null, from: people}}
"""
_MODEL = """
  infer: {{use: timed_infer, from: prepare, threads: {threads}, with: {{model: "{file}", log: {log}}}}}
  people: {{use: decode_movenet_multipose, from: infer}}
"""
_NOTHING = """
  people: {{use: null_pose, from: prepare, with: {{log: {log}}}}}
"""


@dataclass(frozen=True, slots=True)
class Placing:
    """How the graph is placed and set. ``sharing``: cameras of one process, None if the graph says nothing."""

    processes: str = "separate"
    sharing: int | None = None
    keyframes_only: bool = False
    null: bool = False


WAYS = {
    "separate": Placing(),
    "compact": Placing("compact"),
    "4 cameras a process": Placing(sharing=4),
    "16 cameras a process": Placing(sharing=16),
    "keyframes only": Placing(keyframes_only=True),
    "keyframes only, 16 a process": Placing(sharing=16, keyframes_only=True),
    "null model, separate": Placing(null=True),
    "null model, compact": Placing("compact", null=True),
    "null model, 16 a process": Placing(sharing=16, null=True),
    "null model, keyframes only": Placing(null=True, keyframes_only=True),
}


@dataclass(frozen=True, slots=True)
class Subject:
    """The measurements to make."""

    films: CameraSet
    model: str
    size: tuple[int, int]
    seconds: float

    def text(self, way: Placing, simulator: RtspSimulator) -> str:
        """The graph."""
        model = (_NOTHING if way.null else _MODEL).format(
            threads=len(os.sched_getaffinity(0)), file=self.model, log=LOG
        )
        return _GRAPH.format(
            pid=os.getpid(), processes=way.processes, size=list(self.size), model=model.strip("\n"),
            cameras=self.films.as_yaml(
                simulator, f", max_fps: {self.films.keyframes_fps:g}" if way.keyframes_only else ""
            ),
            sharing=f", cameras_per_process: {way.sharing}" if way.sharing else "",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One way. Frames are per second, of all cameras; ``shares``: a camera's frames over an equal share; ``drops`` and
    ``skips``: camera -> reason -> frames.
    """

    name: str
    frames_fps: float
    inferred_fps: float
    shares: Mapping[str, float]
    ages_ms: Sequence[float]
    drops: Mapping[str, Counter[str]]
    skips: Mapping[str, Counter[str]]
    frames: Mapping[str, int]
    inferred: Mapping[str, int]
    cores: Mapping[str, float]
    simulator_cores: float
    other_cores: float
    memory_mb: float
    supervisor_mb: float
    processes: int


def measure(subject: Subject, name: str, simulator: RtspSimulator) -> Row:
    """One run."""
    text = subject.text(WAYS[name], simulator)
    return row_of(name, watched(text, simulator, warm_up_s=_WARM_UP_S, seconds=subject.seconds))


def row_of(name: str, window: Window) -> Row:
    """The figures of a run."""
    frames, begun = window.frames, window.inferred
    inferred = Counter(one.camera for one in begun)
    mean = len(begun) / len(frames)
    return Row(
        name=name,
        frames_fps=sum(frames.values()) / window.seconds,
        inferred_fps=len(begun) / window.seconds,
        shares={camera: inferred[camera] / mean if mean else 0.0 for camera in frames},
        ages_ms=[one.age_ms for one in begun],
        drops={camera: window.grown(camera, "drops_by_reason") for camera in frames},
        skips={camera: window.grown(camera, "skipped_by_reason") for camera in frames},
        frames=frames,
        inferred=inferred,
        cores=window.cores_by_stage,
        simulator_cores=window.simulator_cores,
        other_cores=window.other_cores,
        memory_mb=window.after.status.memory_mb,
        supervisor_mb=window.after.supervisor_mb,
        processes=sum(1 for process in window.after.status.processes.values() if process.pid),
    )


def bare_decode_ms(films: CameraSet) -> float:
    """Processor time of decoding one picture of these cameras, by FFmpeg alone in one thread."""
    _, coded = encode_clip(films.clip_settings)
    decoder = av.CodecContext.create("h264", "r")
    decoder.thread_type = "NONE"
    packets = [Packet(picture.data) for picture in coded]
    began_s = time.thread_time()
    pictures = sum(len(decoder.decode(packet)) for packet in packets)
    return 1000 * (time.thread_time() - began_s) / pictures


def report(subject: Subject, rows: Sequence[Row], bare_ms: Sequence[float]) -> str:
    """The part of docs/many_cameras.md between the marks."""
    films = subject.films
    width, height = films.size
    lines = [
        f"{machine_line()}.",
        f"{films.cameras} cameras of {width}x{height} H.264, {films.fps:g} fps each, over {films.transport}; the model "
        f"is {Path(subject.model).stem} at {subject.size[0]}x{subject.size[1]};",
        f"{subject.seconds:g} s each.",
        "",
        "| way | frames/s in | frames/s inferred | share of a camera: lowest, highest | age at inference p50, p99 (ms) "
        "| dropped, a camera: fewest to most | not decoded, or not wanted |",
        "|---|---|---|---|---|---|---|",
        *map(_line, rows),
        "",
        "What it costs. Processor time is in cores; a process of several stages is called after the first of them. "
        f"Decoding alone took {min(bare_ms):.1f} to {max(bare_ms):.1f} ms a picture, measured before each way:",
        "",
        "| way | processes | memory (MB) | and the supervisor | all cores | a frame inferred (ms) | by stage "
        "| cameras (farm) | other processes |",
        "|---|---|---|---|---|---|---|---|---|",
        *map(_cost_line, rows),
        "",
        f"Each camera of `{rows[0].name}`:",
        "",
        "| camera | frames in | inferred | share | dropped |",
        "|---|---|---|---|---|",
        *_camera_lines(rows[0]),
    ]
    return "\n".join(lines)


def _line(row: Row) -> str:
    shares = row.shares.values()
    return (
        f"| {row.name} | {row.frames_fps:.1f} | {row.inferred_fps:.1f} | {min(shares):.2f}, {max(shares):.2f} "
        f"| {p50_p99(row.ages_ms)} | {range_of(row.drops)} | {range_of(row.skips)} |"
    )


def _cost_line(row: Row) -> str:
    cores = sum(row.cores.values())
    stages = ", ".join(f"{name} {used:.2f}" for name, used in row.cores.items() if used >= 0.005)
    each = f"{1000 * cores / row.inferred_fps:.1f}" if row.inferred_fps else "-"
    return (
        f"| {row.name} | {row.processes} | {row.memory_mb:.0f} | {row.supervisor_mb:.0f} | {cores:.2f} | {each} "
        f"| {stages} | {row.simulator_cores:.2f} | {row.other_cores:.2f} |"
    )


def _camera_lines(row: Row) -> list[str]:
    return [
        f"| {camera} | {n} | {row.inferred.get(camera, 0)} | {row.shares[camera]:.2f} "
        f"| {counted(row.drops[camera], '0')} |"
        for camera, n in row.frames.items()
    ]


def range_of(by_camera: Mapping[str, Mapping[str, int]]) -> str:
    """For each reason, the fewest and the most that a camera has of it."""
    reasons = sorted({reason for counts in by_camera.values() for reason in counts})
    each = {reason: [counts.get(reason, 0) for counts in by_camera.values()] for reason in reasons}
    return ", ".join(f"{reason} {min(n)} to {max(n)}" for reason, n in each.items()) or "0"


@figure_command("benchmarks.cameras")
@click.option(
    "--way", "ways", multiple=True, type=click.Choice(list(WAYS)), default=tuple(WAYS), help="All by default."
)
@click.option("--cameras", default=16, show_default=True, help="How many.")
@click.option("--fps", default=5.0, show_default=True, help="What each films.")
@click.option("--gop", type=int, help="Frames from keyframe to keyframe; by default those of a second.")
@click.option("--picture", type=(int, int), default=(1280, 720), show_default=True, help="What a camera films.")
@click.option("--clip", help="What it shows; by default the pulled clip.")
@click.option("--size", type=(int, int), default=(320, 192), show_default=True, help="Of the model's picture.")
@click.option("--seconds", default=20.0, show_default=True, help="How long each run is looked at.")
def main(figure: Figure, *, ways: Sequence[str], **options: Any) -> None:
    """Measure what holds, what drops, and the cost."""
    clip = options["clip"] or str(asset_path("vtest.avi"))
    films = CameraSet(options["cameras"], options["fps"], options["picture"], clip, gop=options["gop"])
    subject = Subject(films, str(asset_path("movenet-multipose.onnx")), options["size"], options["seconds"])
    figure.takes(len(ways) * (subject.seconds + _AROUND_S), f"{len(ways)} ways, one after the other")
    bare_ms, rows = [], []
    with films.simulator() as simulator:
        for name in ways:
            bare_ms.append(bare_decode_ms(films))
            rows.append(measure(subject, name, simulator))
            click.echo(f"{name}: {rows[-1].inferred_fps:.1f} frames/s inferred")
    written = figure.written(but=["ways"] if set(ways) == set(WAYS) else ())
    figure.publish(f"{written}\n{report(subject, rows, bare_ms)}")


if __name__ == "__main__":
    main()
