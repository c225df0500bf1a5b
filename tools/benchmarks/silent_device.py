"""A decoder that says as little of damage as NVDEC, on a machine without a GPU: how much of it is still noticed?

    packet -> FFmpeg's own decoder -> nv12, without a flag -> stages.reading.live.decoder
                    └─ its complaints: nobody hears them

FFmpeg never asks NVDEC how decoding went, so damage inside a slice is neither flagged nor logged. This device reports
even less, because it also hides the complaints of FFmpeg's parsers about headers and references, which come with any
decoder. So damage that is noticed here is noticed with `decode: cuda`. NVDEC's pictures of damaged packets are another
matter, and not pretended.
"""

from __future__ import annotations

from typing import cast

from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from stages.reading.camera import Camera
from stages.reading.live.camera_reporter import CameraReporter
from stages.reading.live.decoder import Decoder, Ticket
from stages.reading.live.ffmpeg_log import FfmpegLog, Kind


class OnSilentDevice(Decoder):
    """The decoder of live cameras, with pictures from such a device."""

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
