"""Measures the cost of live decoding: processor time of one camera, by the wanted rate and the stream.

    python -m camgraph.tools.lab.benchmarks.decode_cost [--clip FILE] [--seconds 60]

`stages.video.live.decoder` decodes the packets of a camera as fast as it can, as if they came in time, after it has
learnt the structure of the stream. Shares are of the time that decoding everything takes; the median of three rounds.
"""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path

import av
import click
from av.video.frame import VideoFrame

from camgraph.pipeline.testing import HandContext
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.ffmpeg_log import listening
from camgraph.stages.video.live.arrivals import Arrival
from camgraph.stages.video.live.camera_reporter import CameraReporter
from camgraph.stages.video.live.decoder import Decoder
from camgraph.stages.video.live.skipping import GROUPS_LEARNT
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.scenes.simulator.encoding import Encoding, encode
from camgraph.tools.scenes.simulator.nal import Codec
from camgraph.tools.scenes.simulator.pattern import picture

FPS, GOP = 25, 50
ENCODED_S = 10
ROUNDS = 3
LEARNT = (GROUPS_LEARNT + 1) * GOP
"""Before this packet everything is decoded: `Skipping` learns."""
WANTED = (None, 12.0, 5.0, FPS / GOP)
STREAMS: tuple[tuple[Codec, int], ...] = (("h264", 0), ("h264", 2), ("h265", 0))


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one camera: processor time, packets decoded, and pictures that came."""

    cpu_s: float
    level: str
    pictures: int


def pictures_of(clip: str | None, width: int, height: int) -> Iterator[VideoFrame]:
    """Of the clip, or the test picture."""
    if clip is None:
        yield from (VideoFrame.from_ndarray(picture(n, width, height), "gray8") for n in range(ENCODED_S * FPS))
        return
    with av.open(clip) as container:
        yield from (frame.reformat(width, height) for frame in islice(container.decode(video=0), ENCODED_S * FPS))


def stream_of(clip: str | None, codec: Codec, b_frames: int, size: tuple[int, int], seconds: float) -> bytes:
    """Annex B, again and again the same ten seconds."""
    coded = encode(pictures_of(clip, *size), Encoding(codec, *size, Fraction(FPS), GOP, b_frames))
    return b"".join(one.data for one in coded) * max(1, round(seconds / ENCODED_S))


def cost_of(stream: bytes, codec: Codec, max_fps: float | None) -> Cost:
    """Decode the stream once."""
    camera = Camera.model_validate({"url": "rtsp://127.0.0.1/", "max_fps": max_fps})
    form = {"h264": "h264", "h265": "hevc"}[codec]
    reporter, pictures = CameraReporter("camera", HandContext(Path(), Path())), 0
    with listening() as logged, av.open(io.BytesIO(stream), "r", format=form) as container:
        decoder = Decoder(container.streams.video[0], camera, reporter, logged)
        began = 0.0
        for number, packet in enumerate(container.demux(video=0)):
            if number == LEARNT:
                began, pictures = time.thread_time(), 0
            if packet.size:
                # Raw streams hold no time stamps; those of the demuxer are made up.
                packet.pts = packet.dts = None
                arrived_ns = number * 1_000_000_000 // FPS
                pictures += sum(1 for _ in decoder.pictures(Arrival(packet, arrived_ns, arrived_ns)))
        return Cost(time.thread_time() - began, decoder.level, pictures)


def rows(stream: bytes, codec: Codec, seconds: float) -> Iterator[str]:
    """One for each rate that may be wanted."""
    rounds = [[cost_of(stream, codec, wanted) for wanted in WANTED] for _ in range(ROUNDS)]
    for place, wanted in enumerate(WANTED):
        costs = [costs[place] for costs in rounds]
        share = statistics.median(costs[place].cpu_s / costs[0].cpu_s for costs in rounds)
        a_second = 1000 * statistics.median(cost.cpu_s for cost in costs) / (seconds - LEARNT / FPS)
        one = costs[0]
        yield f"{f'{wanted:g}' if wanted else 'all'} | {one.level} | {one.pictures} | {a_second:.1f} | {share:.2f}"


@figure_command("benchmarks.decode_cost")
@click.option("--clip", help="A video instead of the test picture.")
@click.option("--seconds", default=60.0, show_default=True, help="Of the stream, 8 of which are not counted.")
@click.option("--size", type=(int, int), default=(1280, 720), show_default=True)
def main(figure: Figure, clip: str | None, seconds: float, size: tuple[int, int]) -> None:
    """Measure what decoding costs, by stream and wanted rate."""
    lines = [
        "| stream | max_fps | decoded | pictures | ms of processor time a second | share |",
        "|---|---|---|---|---|---|",
    ]
    for codec, b_frames in STREAMS:
        stream = stream_of(clip, codec, b_frames, size, seconds)
        name = f"{codec}, {b_frames} B" if b_frames else codec
        lines += [f"| {name} | {row} |" for row in rows(stream, codec, seconds)]
    figure.publish("\n".join([figure.head(), "", *lines]))


if __name__ == "__main__":
    main()
