"""An MP4 without an end, as browsers take it piece by piece: packets as the camera sent them, each in a fragment.

    beginning   ftyp, moov: how the pictures are to be decoded
    fragments   moof, mdat: one picture each

A picture leaves when the next one comes: only then is it known how long it is shown.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import av

from camgraph.stages.sinks.footage.clip import Copied
from camgraph.stages.video.packets import Packet, VideoStreamInfo

_MOVFLAGS = "empty_moov+default_base_moof+frag_every_frame+skip_trailer"


class Fragment(NamedTuple):
    """A piece of the file; one whose picture is a keyframe can be the first behind the beginning."""

    data: bytes
    is_key: bool


class LiveMp4:
    """Begin with a keyframe. Raises av.FFmpegError if an MP4 cannot hold the stream."""

    def __init__(self, first: Packet) -> None:
        self._written = _Written()
        self._container = av.open(self._written, "w", format="mp4", options={"movflags": _MOVFLAGS})
        self._copied = Copied(self._container, first.stream)
        self._stream = first.stream
        self._copied.add(first)
        self._is_key = True
        self.beginning = self._written.taken()
        self.content_type = f'video/mp4; codecs="{codec_name(self.beginning)}"'

    @property
    def start(self) -> Fraction:
        """The time of the stream, in seconds, that is 0 in the file."""
        assert self._copied.first_dts is not None
        return self._copied.first_dts * self._stream.time_base

    def add(self, packet: Packet) -> Fragment:
        """The fragment of the packet before."""
        self._copied.add(packet)
        made = Fragment(self._written.taken(), self._is_key)
        self._is_key = packet.is_key
        return made


class _Written:
    """The bytes that FFmpeg writes."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: Any) -> int:
        self._data += data
        return len(data)

    def taken(self) -> bytes:
        found = bytes(self._data)
        self._data.clear()
        return found


def can_play(stream: VideoStreamInfo) -> bool:
    """Whether there are browsers that play it."""
    return stream.codec in _BOXES


_BOXES = {"h264": b"avcC", "hevc": b"hvcC", "av1": b"av1C", "vp9": b"vpcC"}


def codec_name(beginning: bytes) -> str:
    """As browsers are asked about it (RFC 6381), from the decoder's configuration in the file's beginning."""
    for kind, name in ((b"avcC", _avc), (b"hvcC", _hevc), (b"av1C", _av1), (b"vpcC", _vp9)):
        place = beginning.find(kind)
        if place >= 0:
            return name(beginning[place + 4 : place + 4 + 32])
    return "unknown"


def _avc(config: bytes) -> str:
    return f"avc1.{config[1]:02x}{config[2]:02x}{config[3]:02x}"


def _hevc(config: bytes) -> str:
    """ISO 14496-15, annex E.3: profile, its compatibility bits in reverse order, tier and level, constraints."""
    space = ("", "A", "B", "C")[config[1] >> 6]
    tier = "H" if config[1] & 0x20 else "L"
    compatible = int(f"{int.from_bytes(config[2:6], 'big'):032b}"[::-1], 2)
    constraints = config[6:12].rstrip(b"\0")
    parts = [f"hvc1.{space}{config[1] & 0x1F}", f"{compatible:x}", f"{tier}{config[12]}"]
    return ".".join([*parts, *(f"{byte:x}" for byte in constraints)])


def _av1(config: bytes) -> str:
    tier = "H" if config[2] & 0x80 else "M"
    depth = (8, 10, 12)[(config[2] >> 6 & 1) + (config[2] >> 5 & 1)]
    return f"av01.{config[1] >> 5}.{config[1] & 0x1F:02d}{tier}.{depth:02d}"


def _vp9(config: bytes) -> str:
    """Behind the version and flags of the box."""
    return f"vp09.{config[4]:02d}.{config[5]:02d}.{config[6] >> 4:02d}"
