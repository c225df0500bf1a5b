"""How long FFmpeg keeps a picture of a live camera.

    python -m camgraph.tools.lab.benchmarks.parser_delay [--fps FPS] ...

A camera of the simulator says when it has sent a picture; here is looked when PyAV hands its packet out, with several
settings. `--report` writes the table into docs/latency.md, between its marks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import av
import click
from av.packet import Packet
from av.video.stream import VideoStream

from camgraph.stages.video.camera import Camera
from camgraph.stages.video.live.arrivals import reported_ns
from camgraph.stages.video.live.options import options_of
from camgraph.tools.lab.benchmarks.latency_figures import nearest
from camgraph.tools.lab.camera_run import CameraSet
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import machine_line, p50_p99
from camgraph.tools.scenes.simulator.rtsp_simulator import CameraHandle

_OPEN_S = 5.0
_WARM_UP_S = 2.0


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How a camera is read. ``read_s``: the read time-out; ``options``: of FFmpeg, beside those of capture."""

    name: str
    transport: Literal["tcp", "udp"]
    options: Mapping[str, str] = field(default_factory=dict)
    read_s: float = 0.5


WAYS = (
    ReadSettings("tcp, with capture's options", "tcp"),
    ReadSettings("`fflags=nobuffer`", "tcp", {"fflags": "nobuffer"}),
    ReadSettings("`flags=low_delay`, `max_delay=0`", "tcp", {"flags": "low_delay", "max_delay": "0"}),
    ReadSettings("tcp, read time-out 50 ms", "tcp", read_s=0.05),
    ReadSettings("udp, with capture's options", "udp"),
    ReadSettings("`reorder_queue_size=0`", "udp", {"reorder_queue_size": "0"}),
    ReadSettings("udp, read time-out 50 ms", "udp", read_s=0.05),
)
Row = tuple[float, ReadSettings, Sequence[float]]
"""What the camera films (fps), how it is read, and how long each picture was held (ms)."""


class _Timeout:
    """PyAV takes the time-out anew at each `demux`: opening must have more of it than reading."""

    def __init__(self) -> None:
        self.seconds = _OPEN_S

    def __float__(self) -> float:
        return self.seconds


def held_ms(camera: CameraHandle, way: ReadSettings, seconds: float) -> list[float]:
    """For each picture, the time from its last byte sent until its packet is here, without the backlog of opening."""
    until_s = time.monotonic() + _WARM_UP_S + seconds
    came = [(reported_ns(packet), at_ns) for packet, at_ns in _packets(camera.url, way, until_s)]
    sent = sorted(camera.sent(), key=lambda frame: frame.wall_ns)
    begin_ns = round((until_s - seconds) * 1e9)
    pairs = [(nearest(sent, wall_ns), at_ns) for wall_ns, at_ns in came if wall_ns is not None and at_ns >= begin_ns]
    return [(at_ns - frame.sent_ns) / 1e6 for frame, at_ns in pairs if frame is not None]


def _packets(url: str, way: ReadSettings, until_s: float) -> Iterator[tuple[Packet[VideoStream], int]]:
    timeout: Any = _Timeout()
    options = {**options_of(Camera.model_validate({"url": url, "transport": way.transport})), **way.options}
    with av.open(url, options=options, timeout=(_OPEN_S, timeout)) as container:
        timeout.seconds = way.read_s
        while time.monotonic() < until_s:
            try:
                for packet in container.demux(container.streams.video[0]):
                    yield packet, time.monotonic_ns()
                    if time.monotonic() >= until_s or not packet.size:
                        return
            except (av.ExitError, OSError):  # the time-out: over TCP it comes as an input/output error too
                continue


def report(rows: Sequence[Row], others: str) -> str:
    """The part of docs/latency.md between the marks. ``others``: the cores that other processes took."""
    lines = [
        f"{machine_line()}. {others}",
        "",
        "| fps | one interval (ms) | read | pictures | sent until it is here p50, p99 (ms) |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *(_line(*row) for row in rows)])


def _line(fps: float, way: ReadSettings, held: Sequence[float]) -> str:
    return f"| {fps:g} | {1000 / fps:.0f} | {way.name} | {len(held)} | {p50_p99(held)} |"


@figure_command("benchmarks.parser_delay")
@click.option("--rate", "rates", multiple=True, type=float, default=(5.0, 25.0), help="Frames a second of the camera.")
@click.option("--seconds", default=6.0, show_default=True, help="How long each way is looked at.")
def main(figure: Figure, rates: Sequence[float], seconds: float) -> None:
    """How long FFmpeg keeps a picture, by how it is read."""
    figure.takes(
        len(rates) * len(WAYS) * (seconds + _WARM_UP_S + 1), f"{len(WAYS)} ways of reading, {len(rates)} rates"
    )
    rows: list[Row] = []
    for fps in rates:
        with CameraSet(1, fps, (640, 360), None).simulator() as simulator:
            for way in WAYS:
                rows.append((fps, way, held_ms(simulator.cameras[0], way, seconds)))
                figure.look()
                click.echo(_line(*rows[-1]))
    figure.publish(f"{figure.written()}\n{report(rows, figure.others())}")


if __name__ == "__main__":
    main()
