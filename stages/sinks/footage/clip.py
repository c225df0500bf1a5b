"""An MP4 made of packets as the camera sent them. Only what an MP4 cannot hold is encoded again.

fall.mp4.part   fragmented, written as packets come: it plays while it grows, and after the writer was killed
     |          close(): an ordinary index behind it, then it is renamed
fall.mp4
"""

from __future__ import annotations

from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import av
from av.container import OutputContainer
from av.video.codeccontext import VideoCodecContext
from av.video.frame import PictureType, VideoFrame
from av.video.stream import VideoStream

from camgraph.stages.sinks.footage.still import av_packet, opened_sample
from camgraph.stages.sinks.writing.recording import Encoding, choose_encoder
from camgraph.stages.video.packets import Packet, VideoStreamInfo
from camgraph.stages.vision.orientation import UPRIGHT, Orientation

PART = ".part"
MOVFLAGS = {"movflags": "+hybrid_fragmented+frag_keyframe", "flush_packets": "1"}
HELD = frozenset({"h264", "hevc", "av1", "mpeg4", "mjpeg", "vp9"})
"""Codecs that an MP4 may hold."""
MOST_BYTES = 4_000_000_000
"""Of a file without its index: FAT32, which many cards and sticks have, holds none of 4 GiB."""
_TAGS = {"hevc": "hvc1"}
"""Some players take H.265 under this tag alone."""


class Clip:
    """One file that grows. Its methods raise OSError or av.FFmpegError when the disk fails."""

    def __init__(self, target: Path, stream: VideoStreamInfo) -> None:
        self.target = target
        self.stream = stream
        self.part = target.with_name(target.name + PART)
        self._container = av.open(str(self.part), "w", format="mp4", options=MOVFLAGS)
        self._writer: _Writer = (Copied if stream.codec in HELD else _Encoded)(self._container, stream)
        self.first_pts = self.last_pts = 0
        self.packets = 0
        self.bytes = 0
        """Of the packets that were added."""

    def add(self, packet: Packet) -> None:
        """Append the next packet; the first is a keyframe."""
        if not self.packets:
            self.first_pts = packet.pts
        self._writer.add(packet)
        self.last_pts = max(self.last_pts, packet.pts)
        self.packets += 1
        self.bytes += len(packet.data)

    @property
    def is_full(self) -> bool:
        """Whether some disks may take no more of it."""
        return self.bytes >= MOST_BYTES

    @property
    def seconds(self) -> float:
        """From the first picture to the last one."""
        return float((self.last_pts - self.first_pts) * Fraction(self.stream.time_base)) if self.packets else 0.0

    def close(self) -> None:
        """Give the file its index and its name."""
        self._writer.close()
        self._container.close()
        self.part.replace(self.target)

    def leave(self) -> None:
        """Close what cannot go on, without a name; what was written plays."""
        self._container.close()

    def abandon(self) -> None:
        """Remove what was written."""
        try:
            self._container.close()
        finally:
            self.part.unlink(missing_ok=True)


class _Writer(Protocol):
    """Puts the pictures of packets into a file."""

    def __init__(self, container: OutputContainer, stream: VideoStreamInfo) -> None: ...

    def add(self, packet: Packet) -> None: ...

    def close(self) -> None: ...


class Copied:
    """Packets as they are, in a stream of `container`. `first_dts`: of the first one, which is at 0 there."""

    def __init__(self, container: OutputContainer, stream: VideoStreamInfo) -> None:
        self._container = container
        with opened_sample(stream) as sample:
            # `opaque`: otherwise PyAV looks for an encoder of the decoder's name, and `libdav1d` has none.
            self._video = container.add_stream_from_template(sample.streams.video[0], opaque=True)
        _set_orientation(self._video, stream.orientation)
        if stream.codec in _TAGS:
            self._video.codec_context.codec_tag = _TAGS[stream.codec]
        self.first_dts: int | None = None
        self._last_dts = -1

    def add(self, packet: Packet) -> None:
        if self.first_dts is None:
            self.first_dts = packet.dts
        made: Any = av_packet(packet)
        made.stream = self._video
        # A stream may repeat a dts, which an MP4 does not take.
        made.dts = max(packet.dts - self.first_dts, self._last_dts + 1)
        made.pts = max(packet.pts - self.first_dts, made.dts)
        self._last_dts = made.dts
        self._container.mux_one(made)

    def close(self) -> None:
        """Nothing waits."""


def _set_orientation(video: VideoStream, orientation: Orientation) -> None:
    """Have players show it upright."""
    if orientation != UPRIGHT:
        video.set_display_rotation(90 * orientation.turns, hflip=orientation.mirrored)


class _Encoded:
    """Pictures of an old codec, encoded as H.264."""

    def __init__(self, container: OutputContainer, stream: VideoStreamInfo) -> None:
        self._container = container
        self._open = ExitStack()
        sample = self._open.enter_context(opened_sample(stream))
        self._decoder: VideoCodecContext = sample.streams.video[0].codec_context
        encoding = Encoding(choose_encoder("auto"))
        video = container.add_stream(encoding.encoder, options=encoding.options())
        assert isinstance(video, VideoStream)
        self._video = video
        self._video.width, self._video.height = stream.width // 2 * 2, stream.height // 2 * 2
        _set_orientation(self._video, stream.orientation)
        self._video.pix_fmt = "yuv420p"
        self._video.codec_context.time_base = stream.time_base
        self._first_pts: int | None = None
        self._last_pts = -1

    def add(self, packet: Packet) -> None:
        for frame in self._decoder.decode(av_packet(packet)):
            self._encode(frame, packet)

    def _encode(self, frame: VideoFrame, packet: Packet) -> None:
        pts = packet.pts if frame.pts is None else frame.pts
        if self._first_pts is None:
            self._first_pts = pts
        self._last_pts = max(pts - self._first_pts, self._last_pts + 1)
        made = frame.reformat(self._video.width, self._video.height, "yuv420p")
        made.pts, made.time_base, made.pict_type = self._last_pts, packet.stream.time_base, PictureType.NONE
        self._container.mux(self._video.encode(made))

    def close(self) -> None:
        self._container.mux(self._video.encode())
        self._open.close()
