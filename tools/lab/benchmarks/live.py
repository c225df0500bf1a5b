"""Live cameras and a device that is loaded more and more.

    python -m camgraph.tools.lab.benchmarks.live [--camera FPS[:PRIORITY]] ...

The cameras only count, and the device only takes its time for a batch (`tests/plugin` has both, and must be installed),
but all between them is real: processes, sockets, shared memory, mailboxes. Both write down when: so the age of each
frame is known at which inference began with it. `--report` writes the table into docs/live.md, between its marks.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.graph_run import run_text
from camgraph.tools.lab.report_page import (
    counted,
    machine_line,
    percentile,
)
from camgraph.tools.measuring.processor_time import cpu_time, other_cores

_WARM_UP_S = 1.0
_AROUND_S = 6.0
"""About what a run takes beside the filming: starting, ending."""
_SLACK_MS = 20.0
_GRAPH = """
version: 1
name: live{pid}
processes: {processes}
cameras:
{cameras}
stages:
  capture: {{use: count_source, workers: 1}}
  prepare: {{use: double, from: capture, with: {{bytes: 307200}}}}
  infer: {{use: null_model, from: prepare, batch: {{max: {batch}}}, with: {{cost_ms: {cost_ms}, log: begun}}}}
  end: {{use: sink_null, from: infer}}
"""


@dataclass(frozen=True, slots=True)
class Camera:
    """One that films `fps` frames a second."""

    fps: float
    priority: int = 1


@dataclass(frozen=True, slots=True)
class Subject:
    """The measurements to make. `cameras`: by name; `batch`: the largest; `processes`: the placement of the graph."""

    cameras: Mapping[str, Camera]
    batch: int
    processes: str
    seconds: float

    @property
    def filmed_fps(self) -> float:
        return sum(camera.fps for camera in self.cameras.values())

    def cost_ms(self, load: float) -> float:
        """The time of a batch, for a `load` of the filmed rate over the rate of whole batches."""
        return 1000 * self.batch * load / self.filmed_fps


@dataclass(frozen=True, slots=True)
class Begun:
    """A frame with which inference began, `at_s` after the first one, `age_ms` after it was filmed."""

    camera: str
    at_s: float
    age_ms: float


@dataclass(frozen=True, slots=True)
class Row:
    """One load. `bound_ms`: by camera; `shares`: each camera's frames over its fair share."""

    load: float
    cost_ms: float
    inferred_fps: float
    ages_ms: Sequence[float]
    bound_ms: Mapping[str, float]
    late: float
    shares: Mapping[str, float]
    drops: Mapping[str, int]
    frames: int
    other_cores: float = 0.0


def fair_rates(cameras: Mapping[str, Camera], rate: float, most: float) -> dict[str, float]:
    """Camera -> its max-min fair part of `rate` frames a second, of which one camera can have `most`.

    Nobody gets more than it films; the rest is shared by priority.
    """
    can = {name: min(camera.fps, most) for name, camera in cameras.items()}
    rates: dict[str, float] = {}
    while left := [name for name in cameras if name not in rates]:
        level = (rate - sum(rates.values())) / sum(cameras[name].priority for name in left)
        content = {name: can[name] for name in left if can[name] <= level * cameras[name].priority}
        rates.update(content or {name: level * cameras[name].priority for name in left})
    return rates


def measure(subject: Subject, load: float) -> Row:
    """One run."""
    cost_ms, before = subject.cost_ms(load), cpu_time()
    with tempfile.TemporaryDirectory() as folder:
        status = run_text(_text(subject, cost_ms), limit_s=600, folder=Path(folder))
        begun = read_begun((Path(folder) / "begun").read_text())
    return replace(row_of(subject, load, begun, status), other_cores=other_cores(before, cpu_time()))


def _text(subject: Subject, cost_ms: float) -> str:
    filming_s = subject.seconds + _WARM_UP_S
    cameras = "\n".join(
        f"  {name}: {{frames: {round(filming_s * camera.fps)}, pace_ms: {1000 / camera.fps}, live: true, "
        f"bytes: 345600, priority: {camera.priority}}}"
        for name, camera in subject.cameras.items()
    )
    return _GRAPH.format(
        pid=os.getpid(), processes=subject.processes, cameras=cameras, batch=subject.batch, cost_ms=cost_ms
    )


def read_begun(text: str) -> list[Begun]:
    """Lines of `begun_ns camera epoch seq captured_ns`."""
    rows = [line.split() for line in text.splitlines()]
    first_ns = min(int(row[0]) for row in rows)
    return [
        Begun(camera, (int(at_ns) - first_ns) / 1e9, (int(at_ns) - int(captured_ns)) / 1e6)
        for at_ns, camera, _, _, captured_ns in rows
    ]


def row_of(subject: Subject, load: float, begun: Sequence[Begun], status: Mapping[str, Any]) -> Row:
    """The figures of a run, without its beginning and the time after the cameras' last frames."""
    kept = [one for one in begun if _WARM_UP_S <= one.at_s <= subject.seconds]
    cost_ms, rate = subject.cost_ms(load), len(kept) / (subject.seconds - _WARM_UP_S)
    prepare_ms = status["stages"]["prepare"]["latency_ms_p99"]
    bound = {name: 1000 / camera.fps + prepare_ms + cost_ms + _SLACK_MS for name, camera in subject.cameras.items()}
    got = Counter(one.camera for one in kept)
    fair = fair_rates(subject.cameras, rate, 1000 / cost_ms)
    return Row(
        load=load,
        cost_ms=cost_ms,
        inferred_fps=rate,
        ages_ms=sorted(one.age_ms for one in kept),
        bound_ms=bound,
        late=sum(one.age_ms > bound[one.camera] for one in kept) / len(kept),
        shares={name: got[name] / (subject.seconds - _WARM_UP_S) / fair[name] for name in subject.cameras},
        drops=sum((Counter(camera["drops_by_reason"]) for camera in status["cameras"].values()), Counter[str]()),
        frames=sum(camera["frames"] for camera in status["cameras"].values()),
    )


def report(subject: Subject, rows: Sequence[Row]) -> str:
    """The part of docs/live.md between the marks."""
    films = ", ".join(
        f"{n} x {camera.fps:g} fps" + (f" of priority {camera.priority}" if camera.priority > 1 else "")
        for camera, n in Counter(subject.cameras.values()).items()
    )
    lines = [
        f"{machine_line()}.",
        f"Cameras: {films}; frames as large as 640x360 in YUV, prepared ones as 320x320 in RGB;",
        f"batches of at most {subject.batch}; `processes: {subject.processes}`; {subject.seconds:g} s each.",
        "",
        "| load | a batch takes | frames/s inferred | age p50, p99, highest (ms) | bound (ms) | beyond it "
        "| share / fair share: lowest, highest | dropped, of all | cores that other processes took |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [_line(row) for row in rows])


def _line(row: Row) -> str:
    ages, bounds, shares = row.ages_ms, row.bound_ms.values(), row.shares.values()
    p50, p99 = (percentile(ages, part) for part in (0.5, 0.99))
    bound = f"{min(bounds):.0f}" + (f" to {max(bounds):.0f}" if max(bounds) > min(bounds) + 1 else "")
    return (
        f"| {row.load:.0%} | {row.cost_ms:.0f} ms | {row.inferred_fps:.1f} | {p50:.0f}, {p99:.0f}, {ages[-1]:.0f} "
        f"| {bound} | {row.late:.1%} | {min(shares):.2f}, {max(shares):.2f} "
        f"| {counted(row.drops, '0')} of {row.frames} | {row.other_cores:.2f} |"
    )


def _camera(text: str) -> Camera:
    fps, _, priority = text.partition(":")
    try:
        return Camera(float(fps), int(priority or 1))
    except ValueError:
        raise click.BadParameter(f"expected FPS or FPS:PRIORITY, such as 10 or 5:3, got {text!r}") from None


@figure_command("benchmarks.live")
@click.option("--camera", "cameras", multiple=True, default=("10",) * 8, help="FPS[:PRIORITY], once for each camera.")
@click.option("--load", "loads", multiple=True, type=float, default=(25, 50, 90, 150, 400), help="Percent.")
@click.option("--batch", default=4, show_default=True, help="The largest batch.")
@click.option("--processes", default="separate", show_default=True, help="Placement: separate or compact.")
@click.option("--seconds", default=15.0, show_default=True, help="How long each run films.")
def main(  # noqa: PLR0917 - click hands options over by name
    figure: Figure, cameras: Sequence[str], loads: Sequence[float], batch: int, processes: str, seconds: float
) -> None:
    """How old frames are when inference begins, and who gets how many in, by load."""
    named = {f"c{n}": _camera(text) for n, text in enumerate(cameras)}
    subject = Subject(named, batch, processes, seconds)
    figure.takes(len(loads) * (seconds + _AROUND_S), f"{len(loads)} loads, one after the other")
    rows = []
    for load in loads:
        rows.append(measure(subject, load / 100))
        click.echo(f"{load:g} %: {rows[-1].inferred_fps:.1f} frames/s inferred")
    figure.publish(f"{figure.written()}\n{report(subject, rows)}")


if __name__ == "__main__":
    main()
