"""From the light to the event on live streams, by load.

    python -m camgraph.tools.lab.benchmarks.latency [--load PERCENT] ...

Cameras of the simulator report when each picture was caught and sent; a stage makes an event of each frame; a receiver
on a socket records when it comes (`tests/plugin` has the stage, and must be installed). Load is the filmed rate over
the rate that this graph infers, which is measured first. `--report` writes the tables into docs/latency.md, between its
marks.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from camgraph.tools.assets import asset_path
from camgraph.tools.lab.benchmarks.latency_figures import PARTS, FramePath, ReceivedEvent, paths
from camgraph.tools.lab.camera_run import LOG, CameraSet, Window, watched
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import (
    counted,
    machine_line,
    p50_p99,
    percentile,
)
from camgraph.tools.scenes.simulator.event_receiver import EventReceiver

_SLACK_MS = 20.0
_AROUND_S = 15.0
"""About what a run takes beside the time it is looked at: encoding the clip, starting, warming up, ending."""
_WARM_UP_S = 3.0
_TOO_MUCH = 1.15, 2.0
"""To measure the capacity, the cameras film at least and at most so many times the inferred rate."""
_MOST_GUESSES = 8
_GRAPH = """
version: 1
name: latency{pid}
processes: {processes}
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: {size}}}}}
  infer: {{use: timed_infer, from: prepare, threads: {threads}, with: {{model: "{model}", log: {log}}}}}
  people: {{use: decode, from: infer}}
  actions: {{use: every_frame, from: people}}
  alarm: {{use: sink_socket, from: actions, batch: {{max: 8}}, with: {{address: "{address}"}}}}
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """The measurements to make. ``fps``: about the rate of a camera; the number of cameras makes the load."""

    fps: float
    picture: tuple[int, int]
    clip: str | None
    transport: str
    model: str
    size: tuple[int, int]
    processes: str
    seconds: float

    def films(self, rate: float) -> CameraSet:
        """Cameras that film ``rate`` frames a second together."""
        cameras = max(1, round(rate / self.fps))
        return CameraSet(cameras, rate / cameras, self.picture, self.clip, self.transport)


@dataclass(frozen=True, slots=True)
class Row:
    """One load. ``late``: the part of the frames whose age at inference is beyond G2's bound, ``bound_ms``."""

    load: float
    films: CameraSet
    inferred_fps: float
    ways: Sequence[FramePath]
    unmatched: int
    ages_ms: Sequence[float]
    bound_ms: float
    late: float
    frames: int
    drops: Counter[str]
    other_cores: float


class _Receiver(EventReceiver):
    """Notes when each event came."""

    def __init__(self) -> None:
        super().__init__(Path(os.devnull), 0)
        self.received: list[ReceivedEvent] = []

    def keep(self, line: bytes) -> None:
        received_ns = time.monotonic_ns()
        self.received.append(received_event(json.loads(line), received_ns))


def received_event(body: dict[str, Any], received_ns: int) -> ReceivedEvent:
    """An event of the stage `every_frame`."""
    key = body["camera"], body["epoch"], body["seq"]
    return ReceivedEvent(key, body["wall_ns"], body["clock"], body["made_ns"], received_ns)


def measure(subject: Subject, capacity: float, load: float) -> Row:
    """One run."""
    films = subject.films(capacity * load)
    with films.simulator() as simulator, _Receiver() as receiver:
        text = _GRAPH.format(
            pid=os.getpid(), processes=subject.processes, cameras=films.as_yaml(simulator), size=list(subject.size),
            threads=len(os.sched_getaffinity(0)), model=subject.model, log=LOG, address=receiver.address,
        )  # fmt: skip
        window = watched(text, simulator, warm_up_s=_WARM_UP_S, seconds=subject.seconds)
        sent = {camera.name: camera.sent() for camera in simulator.cameras}
    begun = {one.key for one in window.inferred}
    received = [event for event in receiver.received if event.key in begun]
    return row_of(load, films, window, received, paths(received, window.inferred, sent))


def row_of(
    load: float, films: CameraSet, window: Window, received: Sequence[ReceivedEvent], found: Sequence[FramePath]
) -> Row:
    """The figures of a run."""
    ages = [one.age_ms for one in window.inferred]
    bound = bound_ms(films.fps, window)
    return Row(
        load=load,
        films=films,
        inferred_fps=len(ages) / window.seconds,
        ways=found,
        unmatched=len(received) - len(found),
        ages_ms=ages,
        bound_ms=bound,
        late=sum(age > bound for age in ages) / max(1, len(ages)),
        frames=sum(window.frames.values()),
        drops=sum((window.grown(name, "drops_by_reason") for name in films.names), Counter[str]()),
        other_cores=window.other_cores,
    )


def bound_ms(fps: float, window: Window) -> float:
    """G2's: one frame interval, prepare, one batch (their 99th percentiles) and 20 ms."""
    prepare = window.after.status.stages["prepare"].latency_ms_p99
    batch = percentile([(one.done_ns - one.begun_ns) / 1e6 for one in window.inferred], 0.99)
    return 1000 / fps + float(prepare or 0.0) + batch + _SLACK_MS


def report(subject: Subject, capacity: float, rows: Sequence[Row]) -> str:
    """The part of docs/latency.md between the marks."""
    width, height = subject.picture
    lines = [
        f"{machine_line()}.",
        f"Cameras of {width}x{height} H.264 over {subject.transport}, about {subject.fps:g} fps each; the model is "
        f"{Path(subject.model).stem} at {subject.size[0]}x{subject.size[1]};",
        f"`processes: {subject.processes}`; {subject.seconds:g} s each. This graph infers {capacity:.1f} frames/s when "
        "somewhat more are filmed: that is 100 %.",
        "",
        "| load | cameras | frames/s inferred | light to event p50, p99 (ms) | without what the parser holds "
        "| age at inference p50, p99 (ms) | bound (ms) | beyond it | dropped, of all | events without a match "
        "| cores that other processes took |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *map(_line, rows),
        "",
        "The parts of the way, p50, p99 (ms):",
        "",
        f"| load | one frame interval | {' | '.join(PARTS)} | captured to event / inference, p50 "
        "| captured to event, without inference: keyframes | the same: other frames |",
        "|---|---|" + "---|" * len(PARTS) + "---|---|---|",
        *map(_parts_line, rows),
    ]
    return "\n".join(lines)


def _line(row: Row) -> str:
    whole = [way.whole_ms for way in row.ways]
    ours = [way.whole_ms - way.parts_ms[1] for way in row.ways]
    return (
        f"| {row.load:.0%} | {row.films.cameras} x {row.films.fps:.1f} fps | {row.inferred_fps:.1f} | {p50_p99(whole)} "
        f"| {p50_p99(ours)} | {p50_p99(row.ages_ms)} | {row.bound_ms:.0f} | {row.late:.1%} "
        f"| {counted(row.drops, '0')} of {row.frames} | {row.unmatched} of {row.unmatched + len(row.ways)} "
        f"| {row.other_cores:.2f} |"
    )


def _parts_line(row: Row) -> str:
    columns = zip(*(way.parts_ms for way in row.ways), strict=True)
    to_event, inference = ([getattr(way, name) for way in row.ways] for name in ("from_capture_ms", "inference_ms"))
    added = [p50_p99([way.added_ms for way in row.ways if way.keyframe == kind]) for kind in (True, False)]
    ratio = percentile(to_event, 0.5) / percentile(inference, 0.5) if row.ways else 0.0
    return (
        f"| {row.load:.0%} | {1000 / row.films.fps:.0f} | {' | '.join(map(p50_p99, columns))} | {ratio:.2f} "
        f"| {added[0]} | {added[1]} |"
    )


def capacity_of(subject: Subject, filmed: float, seconds: float) -> float:
    """Frames a second that the graph infers when it is given somewhat too many, beginning with a guess at that.

    Far too many would say less: their decoding takes the processor from the model.
    """
    quick = replace(subject, seconds=seconds)
    for _ in range(_MOST_GUESSES):
        rate = measure(quick, filmed, 1.0).inferred_fps
        click.echo(f"{filmed:.0f} frames/s filmed, {rate:.1f} inferred")
        guess = next_guess(filmed, rate)
        if guess is None:
            return rate
        filmed = guess
    raise click.ClickException(f"found no rate that is somewhat too much for this graph; the last try was {filmed:.0f}")


def next_guess(filmed: float, inferred: float) -> float | None:
    """The next rate to film, so that it is somewhat too much (frames/s); None if it was."""
    if filmed < _TOO_MUCH[0] * inferred:
        return 2 * filmed
    if filmed > _TOO_MUCH[1] * inferred:
        return sum(_TOO_MUCH) / 2 * max(inferred, 1.0)
    return None


@figure_command("benchmarks.latency")
@click.option("--load", "loads", multiple=True, type=float, default=(25, 50, 90, 150), help="Percent.")
@click.option("--fps", default=10.0, show_default=True, help="About what a camera films.")
@click.option("--picture", type=(int, int), default=(1280, 720), show_default=True, help="What a camera films.")
@click.option("--clip", help="What it shows; by default the pulled clip.")
@click.option("--transport", type=click.Choice(["tcp", "udp"]), default="tcp", show_default=True)
@click.option("--model", type=click.Path(exists=True), help="A model of people; by default the pulled MoveNet.")
@click.option("--size", type=(int, int), default=(320, 192), show_default=True, help="Of the model's picture.")
@click.option("--processes", default="separate", show_default=True, help="Placement: separate or compact.")
@click.option("--seconds", default=20.0, show_default=True, help="How long each run is looked at.")
@click.option("--capacity", type=float, help="Frames a second that are 100 %; by default measured.")
def main(figure: Figure, **options: Any) -> None:
    """How long it takes from the light to the event, by load."""
    subject = Subject(
        options["fps"], options["picture"], options["clip"] or str(asset_path("vtest.avi")), options["transport"],
        options["model"] or str(asset_path("movenet-multipose.onnx")), options["size"], options["processes"],
        options["seconds"],
    )  # fmt: skip
    tries = 0 if options["capacity"] else 3
    figure.takes(
        (len(options["loads"]) * (subject.seconds + _AROUND_S)) + tries * (min(10.0, subject.seconds) + _AROUND_S),
        "first what this graph infers at most, then each load",
    )
    capacity = options["capacity"] or capacity_of(subject, 50.0, min(10.0, subject.seconds))
    rows = []
    for load in options["loads"]:
        rows.append(measure(subject, capacity, load / 100))
        click.echo(f"{load:g} %: {rows[-1].inferred_fps:.1f} frames/s inferred")
    figure.publish(f"{figure.written()}\n{report(subject, capacity, rows)}")


if __name__ == "__main__":
    main()
