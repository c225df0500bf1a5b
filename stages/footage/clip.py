"""An MP4 made of packets as the camera sent them: nothing is encoded again.

fall.mp4.part   fragmented, written as packets come: it plays while it grows, and after the writer was killed
     |          close(): an ordinary index behind it, then it is renamed
fall.mp4
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av

from stages.footage.packets import Packet, VideoStreamInfo
from stages.footage.still import av_packet, opened_sample

PART = ".part"
MOVFLAGS = {"movflags": "+hybrid_fragmented+frag_keyframe", "flush_packets": "1"}
PLAYABLE = frozenset({"h264", "hevc", "av1", "mpeg4", "mjpeg", "vp9"})
"""Codecs that an MP4 may hold."""
_TAGS = {"hevc": "hvc1"}
"""Some players take H.265 under this tag alone."""


def why_no_clip(stream: VideoStreamInfo) -> str:
    """Why packets of this stream make no MP4, for people; "" if they do."""
    return "" if stream.codec in PLAYABLE else f"an MP4 cannot hold {stream.codec}"


class Clip:
    """One file that grows. Its methods raise OSError or av.FFmpegError when the disk fails."""

    def __init__(self, target: Path, stream: VideoStreamInfo) -> None:
        self.target = target
        self.stream = stream
        self._part = target.with_name(target.name + PART)
        self._container = av.open(str(self._part), "w", format="mp4", options=MOVFLAGS)
        with opened_sample(stream) as sample:
            self._video = self._container.add_stream_from_template(sample.streams.video[0])
        if stream.codec in _TAGS:
            self._video.codec_context.codec_tag = _TAGS[stream.codec]
        self._first_dts: int | None = None
        self.first_pts = self.last_pts = 0
        self._last_dts = -1
        self.packets = 0

    def add(self, packet: Packet) -> None:
        """Append the next packet; the first is a keyframe."""
        if self._first_dts is None:
            self._first_dts, self.first_pts = packet.dts, packet.pts
        made: Any = av_packet(packet)
        made.stream = self._video
        # A stream may repeat a dts, which an MP4 does not take.
        made.dts = max(packet.dts - self._first_dts, self._last_dts + 1)
        made.pts = max(packet.pts - self._first_dts, made.dts)
        self._last_dts = made.dts
        self._container.mux_one(made)
        self.last_pts = max(self.last_pts, packet.pts)
        self.packets += 1

    @property
    def seconds(self) -> float:
        """From the first picture to the last one."""
        return float((self.last_pts - self.first_pts) * Fraction(self.stream.time_base)) if self.packets else 0.0

    def close(self) -> None:
        """Give the file its index and its name."""
        self._container.close()
        self._part.replace(self.target)

    def abandon(self) -> None:
        """Remove what was written."""
        try:
            self._container.close()
        finally:
            self._part.unlink(missing_ok=True)
