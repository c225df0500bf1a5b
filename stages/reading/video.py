"""Reads video files, exactly: each frame with its index and its time, from any point on.

    frames_of(path)                 every frame from the first
    frames_from(path, start_ns)     the same, begun late: at a keyframe at or before start_ns
    frames_after(path, place)       the same, begun at a keyframe at or before a frame that is known

All three give a frame the same index, time and pixels. What that costs: a late start seeks only where the container
states every frame's time (MP4, Matroska) and the frame that was looked for is found by its exact timestamp; anywhere
else the file is decoded from its beginning, and the frames before are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import av
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from pipeline.errors import BadItem, UserError
from stages.reading.timeline import SECOND_NS, MediaClock, ticks_to_ns
from stages.reading.truncation import end_ns, what_is_missing

# Containers whose packets carry true presentation times, so that a seek can be verified.
SEEKABLE = frozenset({"mov", "matroska"})
# One packet, one frame, in these; not so in VP8, whose invisible frames are packets too.
ONE_FRAME_A_PACKET = frozenset({"h264", "hevc", "av1", "vp9", "mjpeg"})
# Decoding so many frames takes seconds, counting packets milliseconds; but a packet that looks whole and cannot be
# decoded is counted as a frame. So near starts are decoded.
NEAR_PACKETS = 3000
# How far before the wanted frame a seek may begin, one try after the other: the first may land on pictures that refer
# to what lies before their keyframe.
SEEK_BACK_S = (0, 10)

OnDamage = Callable[[], None]


class Timed(NamedTuple):
    """A frame with its index in the file and its time since the file's first frame; a picture is read later."""

    content: VideoFrame | Path
    seq: int
    time_ns: int
    pts: int | None
    time_base: Fraction


class Place(NamedTuple):
    """A frame that is known without decoding what lies before it."""

    pts: int | None
    seq: int
    time_ns: int


@contextmanager
def open_video(path: Path) -> Iterator[tuple[InputContainer, VideoStream]]:
    """The file and its first video stream, decoded by this thread alone. Raises UserError."""
    try:
        container = av.open(str(path))
    except (av.FFmpegError, OSError) as error:
        raise UserError(f"{path}: {_why_not_open(path, error)}") from None
    with container:
        if not container.streams.video:
            raise UserError(f"{path}: there is no video in it, expected a video file")
        stream = container.streams.video[0]
        # One thread for each camera: more cost memory and bring nothing where cameras outnumber cores.
        stream.thread_type = "NONE"
        yield container, stream


def _why_not_open(path: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, PermissionError):
        return "no permission to read it"
    if path.is_file() and path.stat().st_size == 0:
        return "the file is empty, expected a video"
    detail = getattr(error, "strerror", None) or type(error).__name__
    return f"cannot be read as a video ({detail}); it may be none, or be cut off before its index"


def frames_of(path: Path, on_damage: OnDamage) -> Iterator[Timed]:
    """Every frame that can be decoded, counted from 0; `on_damage` is called for each packet that cannot.

    Raises UserError when the file cannot be opened, and BadItem after the last good frame when it is cut off or breaks.
    """
    with open_video(path) as (container, stream):
        clock = new_clock(stream)
        for seq, frame in enumerate(_decoded(path, container, stream, on_damage)):
            yield Timed(frame, seq, clock.at(frame.pts), frame.pts, clock.time_base)


def frames_from(path: Path, start_ns: int, on_damage: OnDamage) -> Iterator[Timed]:
    """As `frames_of`, without some or all of the frames before `start_ns`."""
    place = find_place(path, start_ns) if start_ns > 0 else None
    if place is None or place.seq <= NEAR_PACKETS:
        yield from frames_of(path, on_damage)
    else:
        yield from _frames_at(path, place, on_damage)


def frames_after(path: Path, place: Place, on_damage: OnDamage) -> Iterator[Timed]:
    """As `frames_of`, from the frame behind `place` on. `place` is as an earlier reading stated it."""
    for timed in _frames_at(path, place, on_damage):
        if timed.seq > place.seq:
            yield timed


def _frames_at(path: Path, place: Place, on_damage: OnDamage) -> Iterator[Timed]:
    """From `place` on where seeking there can be verified, from the beginning elsewhere."""
    clock = _clock_at(path, place)
    if clock is not None and place.pts is not None:
        for back_s in SEEK_BACK_S:
            with open_video(path) as (container, stream):
                container.seek(place.pts - int(back_s / clock.time_base), stream=stream)
                frames = _decoded(path, container, stream, on_damage)
                found = _begun_at(frames, place.pts)
                if found is None:
                    continue
                first = next(found)
                yield Timed(first, place.seq, place.time_ns, place.pts, clock.time_base)
                for seq, frame in enumerate(found, place.seq + 1):
                    yield Timed(frame, seq, clock.at(frame.pts), frame.pts, clock.time_base)
                return
    yield from frames_of(path, on_damage)


def _clock_at(path: Path, place: Place) -> MediaClock | None:
    """The clock as it is after `place`; None where only decoding all that comes before would tell."""
    with open_video(path) as (container, stream):
        if place.pts is None or not _is_seekable(container):
            return None
        clock = new_clock(stream)
        first = next(container.decode(stream), None)
        if first is None or first.pts is None:
            return None
        if ticks_to_ns(place.pts - first.pts, clock.time_base) != place.time_ns:
            return None
        return MediaClock.resumed(clock, first.pts, place.time_ns)


def _is_seekable(container: InputContainer) -> bool:
    return not SEEKABLE.isdisjoint(container.format.name.split(","))


def _begun_at(frames: Iterator[VideoFrame], pts: int) -> Iterator[VideoFrame] | None:
    """The frames from the one with this pts on, where they begin at a keyframe before it and no other has its pts."""
    before: int | None = None
    for frame in frames:
        if frame.pts is None or frame.pts > pts or (before is None and not frame.key_frame):
            return None
        if frame.pts == pts:
            after = next(frames, None)
            unique = before is not None and (after is None or (after.pts is not None and after.pts > pts))
            return chain([frame], [after] if after else [], frames) if unique else None
        before = frame.pts
    return None


def new_clock(stream: VideoStream) -> MediaClock:
    """A clock in this stream's units; frames without a pts are one interval of its frame rate apart."""
    rate = stream.guessed_rate or stream.average_rate or Fraction(25)
    return MediaClock(stream.time_base or Fraction(1, 1000), round(SECOND_NS / rate))


def _decoded(path: Path, container: InputContainer, stream: VideoStream, on_damage: OnDamage) -> Iterator[VideoFrame]:
    """The frames as the decoder gives them; a packet that it refuses is reported and left out."""
    packets, last_ns = 0, 0
    try:
        for packet in container.demux(stream):
            if packet.size:
                packets += 1
                last_ns = max(last_ns, end_ns(packet, stream))
            try:
                yield from packet.decode()
            except av.FFmpegError:
                on_damage()
    except av.FFmpegError as error:
        raise BadItem("unreadable", f"{path} after {packets} packets: {error.strerror}") from None
    missing = what_is_missing(path, container, stream, last_ns)
    if missing:
        raise BadItem("truncated", f"{path} is cut off after {packets} packets: {missing}")


def find_place(path: Path, start_ns: int) -> Place | None:
    """The first frame at or after `start_ns`, found by counting packets; None where counting would not be exact."""
    with open_video(path) as (container, stream):
        if stream.codec_context.name not in ONE_FRAME_A_PACKET or stream.time_base is None:
            return None
        if not _is_seekable(container):
            return None
        return _count(container, stream, stream.time_base, start_ns)


def _count(container: InputContainer, stream: VideoStream, time_base: Fraction, start_ns: int) -> Place | None:
    seen: list[int] = []
    found: int | None = None
    for packet in container.demux(stream):
        if packet.size == 0:
            break
        if packet.pts is None or packet.dts is None or packet.is_corrupt or packet.is_discard:
            return None
        seen.append(packet.pts)
        if packet.pts < seen[0] or not (packet.is_keyframe or len(seen) > 1):
            return None
        if found is not None and packet.dts > found:
            break  # everything before `found` has come: no packet is shown before it is decoded
        if ticks_to_ns(packet.pts - seen[0], time_base) >= start_ns:
            found = packet.pts if found is None else min(found, packet.pts)
    if found is None or len(set(seen)) < len(seen):
        return None
    return Place(found, sum(pts < found for pts in seen), ticks_to_ns(found - seen[0], time_base))
