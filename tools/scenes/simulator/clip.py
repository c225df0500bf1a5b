"""A clip as a camera needs it: each picture packetised once, for all clients and all rounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import cast

import av
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from camgraph.pipeline.errors import UserError
from camgraph.tools.scenes.simulator.encoding import CodedPicture, Encoding, encode
from camgraph.tools.scenes.simulator.nal import Codec, is_padding, is_parameter_set, layout_of, split_annexb
from camgraph.tools.scenes.simulator.pattern import picture
from camgraph.tools.scenes.simulator.settings import ClipSettings

LONGEST_WAIT_S = 2.0
"""Between two keyframes of a clip that is sent as it is: clients start at one, and give up after five seconds."""

_CODECS: dict[str, Codec] = {"h264": "h264", "hevc": "h265"}
_PATTERN = ClipSettings(width=640, height=360, fps=25, seconds=4)
MAX_PAYLOAD = 1400
"""Bytes: with the headers of RTP, UDP and IP less than Ethernet carries."""
_FU_A = 28
_FU = 49


@dataclass(frozen=True, slots=True)
class ClipFrame:
    """One picture: its RTP payloads, when it is shown in frames after its sending (never above 0), if it is a key."""

    payloads: tuple[bytes, ...]
    shown_after: int
    keyframe: bool


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip in the order of decoding; the first picture is a keyframe.

    A picture is taken before it is sent: with B-frames ``delay`` frames before, at the most.
    """

    codec: Codec
    width: int
    height: int
    fps: Fraction
    parameter_sets: tuple[bytes, ...]
    frames: tuple[ClipFrame, ...]
    delay: int


def load_clip(settings: ClipSettings) -> Clip:
    """Read a clip, and encode it if that is asked for or needed. Raises UserError if it is no video."""
    with _reading(settings):
        return (None if settings.asks_for_encoding else _as_it_is(settings)) or _of_annexb(*encode_clip(settings))


def encode_clip(settings: ClipSettings) -> tuple[Encoding, list[CodedPicture]]:
    """Encode a clip or the test picture: Annex B, parameter sets before each keyframe. Raises as `load_clip`."""
    with _reading(settings):
        return _encoded_pattern(settings) if settings.path is None else _encoded_file(settings)


@contextmanager
def _reading(settings: ClipSettings) -> Iterator[None]:
    """Say which file it is that cannot be read."""
    try:
        yield
    except (OSError, av.FFmpegError) as error:
        reason = error.strerror or type(error).__name__
        raise UserError(
            f"{settings.path}: expected a video, got: {reason}; `ffprobe` says more", error_id="video-unreadable"
        ) from error


def _clip(
    codec: Codec,
    size: tuple[int, int],
    fps: Fraction,
    sets: tuple[bytes, ...],
    units: Sequence[tuple[list[bytes], CodedPicture]],
) -> Clip:
    order = sorted(one.shown for _, one in units)
    ranks = {shown: rank for rank, shown in enumerate(order)}
    after = [ranks[one.shown] - place for place, (_, one) in enumerate(units)]
    delay = max(after)
    frames = tuple(
        ClipFrame(payloads_of(codec, _sent(codec, nals, sets, one.keyframe)), shown - delay, one.keyframe)
        for (nals, one), shown in zip(units, after, strict=True)
    )
    return Clip(codec, *size, fps, sets, frames, delay)


def _sent(codec: Codec, nals: Iterable[bytes], sets: tuple[bytes, ...], keyframe: bool) -> list[bytes]:
    """The part of a picture that is sent: each keyframe with the parameter sets, as cameras do, and no padding."""
    kept = [nal for nal in nals if not is_padding(codec, nal)]
    if keyframe and not any(is_parameter_set(codec, nal) for nal in kept):
        return [*sets, *kept]
    return kept


def _as_it_is(settings: ClipSettings) -> Clip | None:
    """The clip without encoding; None if its codec, its keyframes or its time stamps do not allow that."""
    with av.open(cast(str, settings.path)) as container:
        stream = _video_of(container.streams.video, settings)
        codec = _CODECS.get(stream.codec_context.name)
        fps = _fps_of(stream)
        if codec is None:
            return None
        split, sets = layout_of(codec, stream.codec_context.extradata or b"")
        packets = islice((packet for packet in container.demux(stream) if packet.size), _count(settings, fps))
        coded = [(packet.pts, bytes(packet), packet.is_keyframe) for packet in packets]
        size = (stream.codec_context.width, stream.codec_context.height)
    if not _can_be_sent(coded, sets, fps):
        return None
    pictures = [CodedPicture(data, cast(int, pts), key) for pts, data, key in coded]
    return _clip(codec, size, fps, sets, [(split(one.data), one) for one in pictures])


def _can_be_sent(coded: Sequence[tuple[int | None, bytes, bool]], sets: Sequence[bytes], fps: Fraction) -> bool:
    stamps = {pts for pts, _, _ in coded}
    keys = [place for place, (_, _, key) in enumerate(coded) if key]
    gaps = [later - earlier for earlier, later in zip(keys, [*keys[1:], len(coded)], strict=True)]
    in_order = None not in stamps and len(stamps) == len(coded)
    return bool(sets) and in_order and keys[:1] == [0] and max(gaps) <= LONGEST_WAIT_S * fps


def _encoded_file(settings: ClipSettings) -> tuple[Encoding, list[CodedPicture]]:
    with av.open(cast(str, settings.path)) as container:
        stream = _video_of(container.streams.video, settings)
        stream.thread_type = "AUTO"
        own_fps = _fps_of(stream)
        fps = Fraction(settings.fps).limit_denominator(1001) if settings.fps else own_fps
        size = _size(settings, stream.codec_context.width, stream.codec_context.height)
        frames = _resampled(container.decode(stream), own_fps, fps)
        return _encoded(islice(frames, _count(settings, fps)), settings, size, fps)


def _resampled(frames: Iterable[VideoFrame], own_fps: Fraction, fps: Fraction) -> Iterator[VideoFrame]:
    """At each tick of ``fps`` the picture that is shown then."""
    ticks = 0
    for place, frame in enumerate(frames):
        while ticks / fps < (place + 1) / own_fps:
            yield frame
            ticks += 1


def _encoded_pattern(settings: ClipSettings) -> tuple[Encoding, list[CodedPicture]]:
    size = _size(settings, cast(int, _PATTERN.width), cast(int, _PATTERN.height))
    fps = Fraction(settings.fps or cast(float, _PATTERN.fps)).limit_denominator(1001)
    count = cast(int, _count(settings if settings.seconds else _PATTERN, fps))
    frames = (VideoFrame.from_ndarray(picture(number, *size), "gray8") for number in range(count))
    return _encoded(frames, settings, size, fps)


def _encoded(
    frames: Iterable[VideoFrame], settings: ClipSettings, size: tuple[int, int], fps: Fraction
) -> tuple[Encoding, list[CodedPicture]]:
    codec = settings.codec or "h264"
    encoding = Encoding(codec, *size, fps, settings.gop or max(1, round(fps)), settings.b_frames or 0)
    coded = encode(frames, encoding)
    if not coded:
        raise UserError(f"{settings.path}: expected a video, got one without a picture", error_id="video-unreadable")
    return encoding, coded


def _of_annexb(encoding: Encoding, coded: Sequence[CodedPicture]) -> Clip:
    """A clip of coded pictures in Annex B, the first of which holds the parameter sets."""
    units = [split_annexb(one.data) for one in coded]
    sets = tuple(nal for nal in units[0] if is_parameter_set(encoding.codec, nal))
    size = (encoding.width, encoding.height)
    return _clip(encoding.codec, size, encoding.fps, sets, list(zip(units, coded, strict=True)))


def _video_of(streams: Sequence[VideoStream], settings: ClipSettings) -> VideoStream:
    if not streams:
        raise UserError(f"{settings.path}: expected a video, got a file without one", error_id="video-unreadable")
    return streams[0]


def _fps_of(stream: VideoStream) -> Fraction:
    return stream.average_rate or stream.guessed_rate or Fraction(25)


def _count(settings: ClipSettings, fps: Fraction) -> int | None:
    return max(1, round(settings.seconds * fps)) if settings.seconds else None


def _size(settings: ClipSettings, width: int, height: int) -> tuple[int, int]:
    """Even sides; the one that is not given follows from the other and the clip."""
    if settings.width and settings.height:
        return settings.width, settings.height
    if settings.width:
        height = height * settings.width // width
    if settings.height:
        width = width * settings.height // height
    wide, high = settings.width or width, settings.height or height
    return wide + wide % 2, high + high % 2


def clip_path(path: Path) -> str:
    """A file as settings name it. Raises UserError if there is none."""
    try:
        there = path.is_file()
    except PermissionError:
        raise UserError(f"{path}: no permission to look at it", error_id="file-permission") from None
    if not there:
        raise UserError(f"{path}: expected a video, got no such file", error_id="video-unreadable")
    return str(path.resolve())


def payloads_of(codec: Codec, nals: Sequence[bytes], max_payload: int = MAX_PAYLOAD) -> tuple[bytes, ...]:
    """The RTP payloads of one picture, in order: NAL units whole if they fit, else in fragments.

        H.264, RFC 6184 5.8 (FU-A)                        H.265, RFC 7798 4.4.3 (FU)
        +----------+----------+---------------+           +----------+----------+----------+---------------+
        | F NRI 28 | S E R typ| part of a NAL |           | F 49 layer, tid     | S E type | part of a NAL |
        +----------+----------+---------------+           +----------+----------+----------+---------------+

    S marks the first and E the last fragment. The header of the NAL unit is in these bytes and is not sent again. The
    last payload belongs into the packet with the marker bit.
    """
    return tuple(payload for nal in nals for payload in _payloads_of_nal(codec, nal, max_payload))


def _payloads_of_nal(codec: Codec, nal: bytes, max_payload: int) -> Iterator[bytes]:
    if len(nal) <= max_payload:
        yield nal
        return
    header_bytes = 1 if codec == "h264" else 2
    room = max_payload - header_bytes - 1
    last = (len(nal) - header_bytes - 1) // room
    for index in range(last + 1):
        at = header_bytes + index * room
        yield _fragment_header(codec, nal, first=index == 0, last=index == last) + nal[at : at + room]


def _fragment_header(codec: Codec, nal: bytes, *, first: bool, last: bool) -> bytes:
    marks = first << 7 | last << 6
    if codec == "h264":
        return bytes((nal[0] & 0xE0 | _FU_A, marks | nal[0] & 31))
    return bytes((nal[0] & 0x81 | _FU << 1, nal[1], marks | nal[0] >> 1 & 63))
