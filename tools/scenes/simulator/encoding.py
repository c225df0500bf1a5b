"""Pictures to H.264 or H.265, once, at the start of a simulator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import av
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame

from camgraph.tools.scenes.simulator.nal import Codec

_PIXELS = "yuv420p"
_LEAST_FRAMES = 8
"""libx265 makes up the time stamps of streams of fewer than about four frames."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How pictures are encoded: sides in pixels, ``gop`` in frames."""

    codec: Codec
    width: int
    height: int
    fps: Fraction
    gop: int
    b_frames: int


@dataclass(frozen=True, slots=True)
class CodedPicture:
    """One picture in the order of decoding, and its place in the order of showing."""

    data: bytes
    shown: int
    keyframe: bool


def encode(pictures: Iterable[VideoFrame], encoding: Encoding) -> list[CodedPicture]:
    """All pictures, in Annex B with parameter sets before each keyframe; closed groups of ``gop`` frames.

    Streams of fewer than eight pictures show their last one again until they are eight.
    """
    encoder = _encoder(encoding)
    coded = [packet for frame in _numbered(pictures, encoding) for packet in encoder.encode(frame)]
    coded += encoder.encode(None)
    return [CodedPicture(bytes(packet), int(packet.pts or 0), packet.is_keyframe) for packet in coded]


def _numbered(pictures: Iterable[VideoFrame], encoding: Encoding) -> Iterator[VideoFrame]:
    number, frame = 0, None
    for picture in pictures:
        frame = picture.reformat(encoding.width, encoding.height, _PIXELS)
        # Keyframes of the clip must not become keyframes here.
        frame.pict_type = 0
        frame.pts, frame.time_base = number, 1 / encoding.fps
        yield frame
        number += 1
    while frame is not None and number < _LEAST_FRAMES:
        frame.pts = number
        yield frame
        number += 1


def _encoder(encoding: Encoding) -> VideoCodecContext:
    name = "libx264" if encoding.codec == "h264" else "libx265"
    made = cast(VideoCodecContext, av.CodecContext.create(name, "w"))
    made.width, made.height, made.pix_fmt = encoding.width, encoding.height, _PIXELS
    made.framerate, made.time_base = encoding.fps, 1 / encoding.fps
    made.options = {"preset": "superfast", "crf": "26", **_parameters(encoding)}
    return made


def _parameters(encoding: Encoding) -> dict[str, str]:
    """One thread, fixed groups and fixed B-frames: the same pictures give the same bytes."""
    common = f"keyint={encoding.gop}:min-keyint={encoding.gop}:scenecut=0:open-gop=0"
    b_frames = f"bframes={encoding.b_frames}:b-adapt=0:repeat-headers=1:annexb=1"
    if encoding.codec == "h264":
        return {"x264-params": f"{common}:{b_frames}:b-pyramid=none:threads=1"}
    return {"x265-params": f"{common}:{b_frames}:b-pyramid=0:log-level=none:pools=none:frame-threads=1"}
