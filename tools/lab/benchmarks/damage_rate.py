"""How many damaged pictures of a bad network get through, and how many good ones are lost with them.

    python -m camgraph.tools.lab.benchmarks.damage_rate [--seconds 60] [--clip FILE] [--only TEXT] [--silent]

Each case is a camera of the simulator whose packets are lost, reordered or changed on the way. Its packets are decoded
twice: by FFmpeg alone, and by `stages.video.live.decoder`. A picture is damaged if it is not, bit for bit, one of
those that the same camera gives without a fault.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import cast

import av
import click
import numpy as np
from av.codec.context import CodecContext
from av.container import InputContainer
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from camgraph.pipeline.testing import HandContext
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.ffmpeg_log import FfmpegLog, Kind, listening
from camgraph.stages.video.live.arrivals import Arrival
from camgraph.stages.video.live.camera_reporter import CameraReporter
from camgraph.stages.video.live.decoder import Decoder, Ticket
from camgraph.stages.video.live.options import options_of
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, Fault, RtspSimulator
from camgraph.tools.scenes.simulator.faults import FaultName
from camgraph.tools.scenes.simulator.nal import Codec
from camgraph.tools.scenes.simulator.rtsp_simulator import CameraHandle

STREAMS: tuple[tuple[Codec, int], ...] = (("h264", 0), ("h264", 2), ("h265", 2))
FAULTS: tuple[tuple[str, FaultName, tuple[float, ...]], ...] = (
    ("udp", "drop", (0.0, 1.0, 5.0, 20.0)),
    ("udp", "reorder", (1.0, 5.0, 20.0)),
    ("tcp", "corrupt", (0.0, 1.0, 5.0, 20.0)),
)
AT_ONCE = 4
STILL_HELD = 8
"""How many of the last pictures one decoder may have given and the other still holds."""
CLIP_S = 4.0
FPS = 50


@dataclass(frozen=True, slots=True)
class Case:
    """A camera, and the fault of so many of 100 packets."""

    codec: Codec
    b_frames: int
    transport: str
    fault: FaultName
    percent: float

    @property
    def name(self) -> str:
        """As the table has it."""
        codec = self.codec + (f", {self.b_frames} B" if self.b_frames else "")
        return f"{codec} | {self.transport} | {self.fault} {self.percent:g} %"


@dataclass(slots=True)
class Confusion:
    """Pictures that FFmpeg gave: damaged ones that were `dropped` or got `through`, good ones `kept` or thrown away."""

    dropped: int = 0
    through: int = 0
    kept: int = 0
    wasted: int = 0

    def add(self, *, good: bool, believed: bool) -> None:
        """Count one picture."""
        if good:
            self.kept += believed
            self.wasted += not believed
        else:
            self.through += believed
            self.dropped += not believed


def digest(frame: VideoFrame) -> bytes:
    """A digest of all planes, without the padding at the end of their lines."""
    made = hashlib.blake2b(digest_size=16)
    for plane in frame.planes:
        lines = np.frombuffer(cast("memoryview[int]", plane), np.uint8).reshape(plane.height, plane.line_size)
        made.update(lines[:, : plane.width].tobytes())
    return made.digest()


def open_camera(url: str, transport: str) -> InputContainer:
    """The camera, opened as camgraph does it, by this transport."""
    options = options_of(Camera.model_validate({"url": url, "transport": transport}))
    return av.open(url, options=options, timeout=(10, 5))


def good_pictures(camera: CameraHandle, count: int) -> set[bytes]:
    """The pictures of a healthy camera, over more than one round."""
    with open_camera(camera.url, "tcp") as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        frames = container.decode(stream)
        return {digest(next(frames)) for _ in range(count)}


def watch(
    camera: CameraHandle, case: Case, good: set[bytes], seconds: float, decodes: type[Decoder] = Decoder
) -> Confusion:
    """Read the camera for so long."""
    if case.percent:
        camera.apply(Fault(name=case.fault, value=f"{case.percent:f}", seed=1))
    believed: set[int] = set()
    verdicts: dict[int, bool] = {}
    reporter = CameraReporter(camera.name, HandContext(Path(), Path()))
    with listening() as logged, open_camera(camera.url, case.transport) as container:
        stream = container.streams.video[0]
        decoder = decodes(stream, Camera.model_validate({"url": camera.url}), reporter, logged)
        plain = plain_decoder(stream)
        end = time.monotonic() + seconds
        for packet in from_keyframe(container.demux(stream)):
            arrival = Arrival(packet, time.monotonic_ns(), time.time_ns())
            believed.update(picture.number for picture in decoder.pictures(arrival))
            for frame in decode(plain, packet):
                # A picture that a decoder makes up for a missing one has no number.
                number = frame.opaque.number if isinstance(frame.opaque, Ticket) else -len(verdicts) - 1
                verdicts[number] = digest(frame) in good
            if time.monotonic() > end:
                break
    return confusion_of(verdicts, believed)


def from_keyframe(packets: Iterable[Packet[VideoStream]]) -> Iterable[Packet[VideoStream]]:
    """The packets from the first keyframe on, up to the end of the stream."""
    started = False
    for packet in packets:
        if packet.size == 0:
            return
        started = started or packet.is_keyframe
        if started:
            yield packet


def plain_decoder(stream: VideoStream) -> VideoCodecContext:
    """FFmpeg's decoder with its own settings; pictures have the number of their packet."""
    made = CodecContext.create(stream.codec_context.name, "r")
    assert isinstance(made, VideoCodecContext)
    made.extradata, made.thread_type, made.copy_opaque = stream.codec_context.extradata, "NONE", True
    return made


def decode(context: VideoCodecContext, packet: Packet[VideoStream]) -> list[VideoFrame]:
    """The pictures that FFmpeg gives for a packet; none if it refuses the packet."""
    try:
        return context.decode(packet)
    except av.FFmpegError:
        return []


def confusion_of(verdicts: dict[int, bool], believed: set[int]) -> Confusion:
    """Compare pictures by number: whether each is good, and whether the decoder let it through."""
    made, last = Confusion(), max(verdicts, default=0) - STILL_HELD
    for number, good in verdicts.items():
        if number <= last:
            made.add(good=good, believed=number in believed)
    return made


def measure(
    cases: Sequence[Case], clip: ClipSettings, seconds: float, decodes: type[Decoder] = Decoder
) -> list[Confusion]:
    """All cases at once, each a camera and a thread of its own."""
    cameras = [
        CameraSettings(name=f"c{index}", clip=clip.model_copy(update={"codec": case.codec, "b_frames": case.b_frames}))
        for index, case in enumerate(cases)
    ]
    with RtspSimulator(cameras) as simulator, ThreadPoolExecutor(len(cases)) as threads:
        goods = list(
            threads.map(partial(good_pictures, count=round(FPS * ((clip.seconds or CLIP_S) + 1))), simulator.cameras)
        )
        return list(threads.map(partial(watch, seconds=seconds, decodes=decodes), simulator.cameras, cases, goods))


def row(case: Case, seen: Confusion) -> str:
    """A line of the table."""
    damaged, good = seen.dropped + seen.through, seen.kept + seen.wasted
    share = f"{100 * seen.through / max(1, seen.through + seen.kept):.2f} %"
    numbers = f"{damaged + good} | {damaged} | {seen.through} | {share} | {good} | {seen.wasted}"
    return f"| {case.name} | {numbers} |"


def all_cases() -> list[Case]:
    """All cases of the table, in its order."""
    return [
        Case(codec, b_frames, way, fault, percent)
        for codec, b_frames in STREAMS
        for way, fault, percents in FAULTS
        for percent in percents
    ]


class OnSilentDevice(Decoder):
    """The decoder of live cameras on a device that says as little of damage as NVDEC, on a machine without a GPU.

        packet -> FFmpeg's own decoder -> nv12, without a flag -> camgraph.stages.video.live.decoder
                        └─ its complaints: nobody hears them

    FFmpeg never asks NVDEC how decoding went, so damage inside a slice is neither flagged nor logged. This device
    reports even less, because it also hides the complaints of FFmpeg's parsers about headers and references, which come
    with any decoder. So damage that is noticed here is noticed with `decode: cuda`. NVDEC's pictures of damaged packets
    are another matter, and not pretended.
    """

    def __init__(self, stream: VideoStream, camera: Camera, reporter: CameraReporter, log: FfmpegLog) -> None:
        super().__init__(stream, camera, reporter, _OfReaders(log))
        self._context = cast("VideoCodecContext", _SilentDevice(self._context))


class _OfReaders(FfmpegLog):
    """FFmpeg's log without the lines of decoders."""

    def __init__(self, log: FfmpegLog) -> None:
        super().__init__([])
        self._log = log

    def take(self) -> set[Kind]:
        return self._log.take() & {"loss"}


class _SilentDevice:
    def __init__(self, context: VideoCodecContext) -> None:
        self._context = context

    def decode(self, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        return [_as_from_device(frame) for frame in self._context.decode(packet)]

    def flush_buffers(self) -> None:
        self._context.flush_buffers()


def _as_from_device(frame: VideoFrame) -> VideoFrame:
    """The same pixels as nv12, in a picture that nothing was ever said of."""
    made = VideoFrame.from_ndarray(frame.to_ndarray(format="nv12"), format="nv12")
    made.pts, made.time_base = frame.pts, frame.time_base
    if isinstance(frame.opaque, Ticket):
        made.opaque = Ticket(*frame.opaque)  # the same one would be forgotten with the first of the two pictures
    return made


@click.command()
@click.option("--seconds", default=60.0, show_default=True, help="For each case.")
@click.option("--clip", help="A video instead of the test picture.")
@click.option("--only", default="", help="Cases with this in their name, such as `tcp | corrupt 5 %`.")
@click.option("--silent", is_flag=True, help="With a decoder that says nothing of damage, as on a GPU.")
def main(seconds: float, clip: str | None, only: str, silent: bool) -> None:
    """Print the table of docs/decoding.md."""
    cases = [case for case in all_cases() if only in case.name]
    settings = ClipSettings(path=clip, width=640, height=360, fps=FPS, gop=FPS, seconds=CLIP_S)
    click.echo("| codec | over | fault | pictures | damaged | got through | of all let through | good | thrown away |")
    click.echo("|---|---|---|---|---|---|---|---|---|")
    rest = iter(cases)
    while some := tuple(islice(rest, AT_ONCE)):
        for case, seen in zip(
            some, measure(some, settings, seconds, OnSilentDevice if silent else Decoder), strict=True
        ):
            click.echo(row(case, seen))


if __name__ == "__main__":
    main()
