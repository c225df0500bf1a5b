"""Reads video files, exactly: each frame with its index and its time, from any point on.

    frames_of(path)                 every frame from the first
    frames_from(path, start_ns)     the same, begun late: at a keyframe at or before start_ns
    frames_after(path, place)       the same, begun at a keyframe at or before a frame that is known

All three give a frame the same index, time and pixels. The price: a late start seeks only if the container states every
frame's time (MP4, Matroska) and the wanted frame is found by its exact timestamp; any other file is decoded from its
beginning, and the frames before are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from av.video.frame import VideoFrame

from camgraph.pipeline.errors import BadItem
from camgraph.stages.video.opening import Signs, decoded, new_clock, open_video
from camgraph.stages.video.places import Place, clock_at, find_place, sought
from camgraph.stages.video.timeline import MediaClock

# Decoding so many frames takes seconds, counting packets milliseconds; but a packet that looks whole and cannot be
# decoded is counted as a frame. So near starts are decoded.
NEAR_PACKETS = 3000
# How far before the wanted frame a seek may begin, one try after the other: the first may land on pictures that refer
# to packets before their keyframe.
SEEK_BACK_S = (0, 10)


class Timed(NamedTuple):
    """A frame with its index in the file and its time since the file's first frame; a picture is read later."""

    content: VideoFrame | Path
    seq: int
    time_ns: int
    pts: int | None
    time_base: Fraction


def frames_of(path: Path, signs: Signs, *, playlist: bool = False) -> Iterator[Timed]:
    """Every frame that can be decoded, counted from 0; `signs` is called for each packet that cannot.

    Raises UserError when the file cannot be opened, and BadItem after the last good frame when it is cut off, breaks,
    or had none.
    """
    with open_video(path, signs, playlist=playlist) as (container, stream):
        seq = -1
        for timed in _timed(decoded(path, container, stream, signs), new_clock(stream), 0):
            seq = timed.seq
            yield timed
        if seq < 0:
            raise BadItem(
                "unreadable", f"{path} is a video ({stream.codec_context.name}) without a frame to be decoded"
            )


def frames_from(path: Path, start_ns: int, signs: Signs, *, playlist: bool = False) -> Iterator[Timed]:
    """As `frames_of`, without some or all of the frames before `start_ns`."""
    # A playlist is read from its beginning: places in it cannot be verified.
    place = find_place(path, start_ns, signs) if start_ns > 0 and not playlist else None
    if place is None or place.seq <= NEAR_PACKETS:
        yield from frames_of(path, signs, playlist=playlist)
    else:
        yield from _frames_at(path, place, signs)


def frames_after(path: Path, place: Place, signs: Signs, *, playlist: bool = False) -> Iterator[Timed]:
    """As `frames_of`, from the frame behind `place` on. `place` comes from an earlier reading."""
    frames = frames_of(path, signs, playlist=True) if playlist else _frames_at(path, place, signs)
    for timed in frames:
        if timed.seq > place.seq:
            yield timed


def _frames_at(path: Path, place: Place, signs: Signs) -> Iterator[Timed]:
    """From `place` on if seeking there can be verified, from the beginning otherwise."""
    clock = clock_at(path, place, signs)
    for back_s in SEEK_BACK_S if clock is not None else ():
        assert clock is not None
        with open_video(path, signs) as opened:
            found = sought(path, opened, place, back_s, signs)
            if found is None:
                continue
            yield Timed(next(found), place.seq, place.time_ns, place.pts, clock.time_base)
            yield from _timed(found, clock, place.seq + 1)
            return
    yield from frames_of(path, signs)


def _timed(frames: Iterable[VideoFrame], clock: MediaClock[VideoFrame], first_seq: int) -> Iterator[Timed]:
    """The frames, counted from `first_seq`, with their times; also those before the file breaks."""
    seq = first_seq
    try:
        for frame in frames:
            for shown, time_ns in clock.show(frame, frame.pts, frame.dts):
                yield Timed(shown, seq, time_ns, shown.pts, clock.time_base)
                seq += 1
    except BadItem:
        yield from _remaining(clock, seq)
        raise
    yield from _remaining(clock, seq)


def _remaining(clock: MediaClock[VideoFrame], first_seq: int) -> Iterator[Timed]:
    for seq, (shown, time_ns) in enumerate(clock.remaining(), first_seq):
        yield Timed(shown, seq, time_ns, shown.pts, clock.time_base)
