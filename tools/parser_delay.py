"""How long FFmpeg keeps a picture of a live camera: `python -m tools.parser_delay [--fps FPS] ...`.

A camera of the farm says when it has sent a picture; here is looked when PyAV hands its packet out, with several
settings. `--report` writes the table into docs/latency.md, between its marks.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import click
from av.packet import Packet
from av.video.stream import VideoStream

from tools.bench_live import machine, put_between_marks
from tools.camera_run import Films
from tools.farm.farm import CameraHandle
from tools.latency import nearest, p50_p99

_PROBING = {"probesize": "200000", "analyzeduration": "500000", "allowed_media_types": "video"}
_OPEN_S = 5.0
_WARM_UP_S = 2.0
_PRODUCER_TIME = struct.Struct("=q")


@dataclass(frozen=True, slots=True)
class Way:
    """How a camera is read. ``read_s``: the read time-out; ``options``: FFmpeg's."""

    name: str
    options: Mapping[str, str]
    read_s: float = 0.5


WAYS = (
    Way("tcp, as capture reads", {"rtsp_transport": "tcp"}),
    Way("`fflags=nobuffer`", {"rtsp_transport": "tcp", "fflags": "nobuffer"}),
    Way("`flags=low_delay`, `max_delay=0`", {"rtsp_transport": "tcp", "flags": "low_delay", "max_delay": "0"}),
    Way("tcp, read time-out 50 ms", {"rtsp_transport": "tcp"}, 0.05),
    Way("udp, as capture reads", {"rtsp_transport": "udp"}),
    Way("`reorder_queue_size=0`", {"rtsp_transport": "udp", "reorder_queue_size": "0"}),
    Way("udp, read time-out 50 ms", {"rtsp_transport": "udp"}, 0.05),
)


class _Timeout:
    """PyAV takes the time-out anew at each `demux`: opening must have more of it than reading."""

    def __init__(self) -> None:
        self.seconds = _OPEN_S

    def __float__(self) -> float:
        return self.seconds


def held_ms(camera: CameraHandle, way: Way, seconds: float) -> list[float]:
    """Of each picture: from when the last of it was sent until its packet is here, behind what opening piled up."""
    until_s = time.monotonic() + _WARM_UP_S + seconds
    came = [(reported_ns(packet), at_ns) for packet, at_ns in _packets(camera.url, way, until_s)]
    sent = sorted(camera.sent(), key=lambda frame: frame.wall_ns)
    begin_ns = round((until_s - seconds) * 1e9)
    pairs = [(nearest(sent, wall_ns), at_ns) for wall_ns, at_ns in came if wall_ns is not None and at_ns >= begin_ns]
    return [(at_ns - frame.sent_ns) / 1e6 for frame, at_ns in pairs if frame is not None]


def reported_ns(packet: Packet[VideoStream]) -> int | None:
    """When the camera caught it, by its own clock in nanoseconds since 1970; None before its first report."""
    if not packet.has_sidedata("prft"):
        return None
    return int(_PRODUCER_TIME.unpack_from(bytes(packet.get_sidedata("prft")))[0]) * 1000


def _packets(url: str, way: Way, until_s: float) -> Iterator[tuple[Packet[VideoStream], int]]:
    timeout: Any = _Timeout()
    with av.open(url, options={**_PROBING, **way.options}, timeout=(_OPEN_S, timeout)) as container:
        timeout.seconds = way.read_s
        while time.monotonic() < until_s:
            try:
                for packet in container.demux(container.streams.video[0]):
                    yield packet, time.monotonic_ns()
                    if time.monotonic() >= until_s or not packet.size:
                        return
            except (av.ExitError, OSError):  # the time-out: over TCP it comes as an input/output error too
                continue


def report(rows: Sequence[tuple[float, Way, Sequence[float]]]) -> str:
    """What stands between the marks of docs/latency.md."""
    lines = [
        f"{machine()}.",
        "",
        "| fps | one interval (ms) | read | pictures | sent until it is here p50, p99 (ms) |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {fps:g} | {1000 / fps:.0f} | {way.name} | {len(held)} | {p50_p99(held)} |" for fps, way, held in rows]
    return "\n".join(lines)


@click.command()
@click.option("--fps", "rates", multiple=True, type=float, default=(5.0, 25.0), help="What the camera films.")
@click.option("--seconds", default=6.0, show_default=True, help="How long each way is looked at.")
@click.option("--report", "target", type=click.Path(path_type=Path, exists=True), help="The page with the marks.")
def main(rates: Sequence[float], seconds: float, target: Path | None) -> None:
    """How long FFmpeg keeps a picture, by how it is read."""
    rows = []
    for fps in rates:
        with Films(1, fps, (640, 360), None).farm() as farm:
            rows += [(fps, way, held_ms(farm.cameras[0], way, seconds)) for way in WAYS]
    text = report(rows)
    click.echo(text)
    if target:
        target.write_text(put_between_marks(target.read_text(), text, "parser_delay"))


if __name__ == "__main__":
    main()
