"""What it costs to show a camera as a row of pictures: processor time of its decoder, for all its viewers together.

    python -m camgraph.tools.lab.benchmarks.live_pictures [--clip FILE] [--report docs/service.md]

The packets of a camera go through `PictureMaker` as in the service, as fast as it can, with people in each picture.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import av
import click
import structlog
from av.video.stream import VideoStream

from camgraph.pipeline.system.side_link import follow
from camgraph.stages.sinks.footage.still import av_packet, opened_sample
from camgraph.stages.video.packets import Packet, PacketReader
from camgraph.stages.video.tap import PacketTap
from camgraph.tools.lab.benchmarks.decode_cost import FPS, GOP, pictures_of
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.service.live.known_people import KnownPeople
from camgraph.tools.service.live.picture_maker import PictureMaker

_CODECS = {"H.265": "libx265", "H.264": "libx264", "MPEG-4 part 2": "mpeg4"}
_ROUNDS = 3
_PEOPLE = 3


def write_camera(path: Path, codec: str, clip: str | None, size: tuple[int, int]) -> None:
    """Ten seconds, coded as a camera does: without B-frames."""
    quiet = {"x265-params": "log-level=error:bframes=0"} if codec == "libx265" else {}
    with av.open(str(path), "w") as container:
        stream = container.add_stream(
            codec, rate=FPS, options={"g": str(GOP), "bf": "0", "preset": "veryfast", **quiet}
        )
        assert isinstance(stream, VideoStream)
        stream.width, stream.height = size
        stream.pix_fmt, stream.bit_rate = "yuv420p", 3_000_000
        for number, picture in enumerate(pictures_of(clip, *size)):
            picture.pts = number
            picture.time_base = 1 / stream.average_rate if stream.average_rate else None
            container.mux(stream.encode(picture))
        container.mux(stream.encode())


def packets_of(file: Path) -> list[Packet]:
    """Those of the file, as a camera's process hands them on."""
    reader = PacketReader()
    found: list[Packet] = []
    place = file.with_suffix(".packets")
    tap = PacketTap(place, structlog.get_logger(), patient=False)
    with av.open(str(file)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        tap.offer(packets[0], 0)
        with closing(follow(place)) as link:
            for packet in packets:
                tap.offer(packet, 0)
                found += reader.packets(link.receive())
    tap.close()
    return found


def seen_in(packets: Sequence[Packet]) -> Iterator[bytes]:
    """Lines of `rules`: some people in each picture, with all joints."""
    yield json.dumps({"stage": "rules", "zones": {}, "lines": {}, "floor": 0.3}).encode()
    people = [
        {"id": one, "box": [one / 4, 0.2, one / 4 + 0.2, 0.9], "joints": [one / 4 + 0.1, 0.5, 0.9] * 17}
        for one in range(1, _PEOPLE + 1)
    ]
    for packet in packets:
        at = float(packet.pts * packet.stream.time_base)
        yield json.dumps({"stage": "rules", "epoch": 0, "at": at, "people": people, "now": []}).encode()


def decoding_s(packets: Sequence[Packet]) -> float:
    """Processor time of the decoder alone."""
    with opened_sample(packets[0].stream) as container:
        context = container.streams.video[0].codec_context
        context.thread_type = "NONE"
        begun_s = time.thread_time()
        for packet in packets:
            context.decode(av_packet(packet))
        return time.thread_time() - begun_s


def showing(packets: Sequence[Packet]) -> tuple[float, int, int]:
    """Processor time of all, in seconds; how many pictures; their bytes."""
    known = KnownPeople()
    for line in seen_in(packets):
        known.take(line, time.monotonic())
    maker = PictureMaker(known)
    begun_s, count, size = time.thread_time(), 0, 0
    for packet in packets:
        made = maker.make([packet], {True})
        if made is not None:
            count, size = count + 1, size + len(made.jpegs[True])
    took_s = time.thread_time() - begun_s
    maker.close()
    return took_s, count, size


def row_of(name: str, packets: Sequence[Packet]) -> str:
    """A line of the table; the median of some rounds."""
    seconds = len(packets) / FPS
    alone = statistics.median(decoding_s(packets) for _ in range(_ROUNDS)) / seconds
    rounds = [showing(packets) for _ in range(_ROUNDS)]
    cost = statistics.median(took_s for took_s, *_ in rounds) / seconds
    _, count, size = rounds[0]
    return f"| {name} | {cost:.1%} | {alone:.1%} | {count / seconds:.1f} | {size / seconds / 1e3:.0f} kB |"


@figure_command("benchmarks.live_pictures")
@click.option("--clip", help="A video instead of the test picture.")
@click.option("--size", type=(int, int), default=(1280, 720), show_default=True)
def main(figure: Figure, clip: str | None, size: tuple[int, int]) -> None:
    """Measure it."""
    with tempfile.TemporaryDirectory(prefix="cgpictures") as folder:
        rows = []
        for name, codec in _CODECS.items():
            write_camera(file := Path(folder) / f"{codec}.mp4", codec, clip, size)
            rows.append(row_of(name, packets_of(file)))
    shown = "the test picture" if clip is None else f"`{Path(clip).name}`"
    parts = [
        f"{figure.head(but=['clip'])} A camera of {size[0]} x {size[1]} at {FPS} frames a "
        f"second films {shown}, with {_PEOPLE} people drawn on each picture.",
        "",
        "| a camera | of a core | its decoding alone | pictures a second | to each viewer, a second |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
    figure.publish("\n".join(parts))


if __name__ == "__main__":
    main()
