"""Finds a frame in the middle of a file, and begins there, without a doubt about which frame it is.

A seek is trusted only if the container states every frame's time (MP4, Matroska), and only if the wanted frame comes by
with its exact timestamp, after a keyframe and a frame before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import av
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from camgraph.stages.video.opening import Signs, decoded, is_repetition, new_clock, open_video, packets_of
from camgraph.stages.video.timeline import LONGEST_NS, MediaClock, ticks_to_ns

# Containers whose packets carry true presentation times.
SEEKABLE = frozenset({"mov", "matroska"})
# One packet, one frame, in these; not so in VP8, whose invisible frames are packets too.
ONE_FRAME_A_PACKET = frozenset({"h264", "hevc", "av1", "vp9", "mjpeg"})


class Place(NamedTuple):
    """A frame that is known without decoding those before it."""

    pts: int | None
    seq: int
    time_ns: int


def is_seekable(container: InputContainer) -> bool:
    """Whether a seek in it can be verified."""
    return not SEEKABLE.isdisjoint(container.format.name.split(","))


def find_place(path: Path, start_ns: int, signs: Signs) -> Place | None:
    """The first frame at or after `start_ns`, found by counting packets; None if counting would not be exact."""
    with open_video(path, signs) as (container, stream):
        if stream.codec_context.name not in ONE_FRAME_A_PACKET or stream.time_base is None:
            return None
        if not is_seekable(container):
            return None
        try:
            return _count(container, stream, stream.time_base, start_ns, signs)
        except av.FFmpegError:
            return None


def _count(
    container: InputContainer, stream: VideoStream, time_base: Fraction, start_ns: int, signs: Signs
) -> Place | None:
    seen: list[int] = []
    found: int | None = None
    for packet in packets_of(container, stream, signs):
        if is_repetition(packet):
            return None
        if packet.size == 0:
            break
        if packet.pts is None or packet.is_corrupt or packet.is_discard:
            return None
        seen.append(packet.pts)
        if packet.pts < seen[0] or not (packet.is_keyframe or len(seen) > 1):
            return None
        if found is not None and packet.dts is not None and packet.dts > found:
            break  # everything before `found` has come: no packet is shown before it is decoded
        if ticks_to_ns(packet.pts - seen[0], time_base) >= start_ns:
            found = packet.pts if found is None else min(found, packet.pts)
    if found is None or len(set(seen)) < len(seen) or ticks_to_ns(found - seen[0], time_base) >= LONGEST_NS:
        return None
    return Place(found, sum(pts < found for pts in seen), ticks_to_ns(found - seen[0], time_base))


def clock_at(path: Path, place: Place, signs: Signs) -> MediaClock[VideoFrame] | None:
    """The clock as it is after `place`; None if only decoding all that comes before would tell."""
    with open_video(path, signs) as (container, stream):
        if place.pts is None or not is_seekable(container):
            return None
        clock = new_clock(stream)
        first = next(
            decoded(path, container, stream, signs._replace(damaged=Signs().damaged, packet=Signs().packet)), None
        )
        if first is None or first.pts is None:
            return None
        if ticks_to_ns(place.pts - first.pts, clock.time_base) != place.time_ns:
            return None
        clock.resume(first.pts, place.time_ns)
        return clock


def sought(
    path: Path, opened: tuple[InputContainer, VideoStream], place: Place, back_s: int, signs: Signs
) -> Iterator[VideoFrame] | None:
    """The frames from `place` on, begun at a keyframe at least `back_s` before it; None if that is not certain."""
    container, stream = opened
    assert place.pts is not None
    assert stream.time_base is not None
    try:
        with signs.in_ffmpeg:
            container.seek(place.pts - int(back_s / stream.time_base), stream=stream)
    except av.FFmpegError:
        return None
    return _begun_at(decoded(path, container, stream, signs), place.pts)


def _begun_at(frames: Iterator[VideoFrame], pts: int) -> Iterator[VideoFrame] | None:
    """The frames from the one with this pts on, if they begin at a keyframe before it and no other has its pts."""
    before: int | None = None
    for frame in frames:
        if frame.pts is None or frame.pts > pts or (before is None and not frame.key_frame):
            return None
        if before is not None and frame.pts <= before:
            return None
        if frame.pts == pts:
            after = next(frames, None)
            unique = before is not None and (after is None or (after.pts is not None and after.pts > pts))
            return chain([frame], [after] if after else [], frames) if unique else None
        before = frame.pts
    return None
