"""A few frames of a file, from moments spread over it, as samples of its content."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import av

from pipeline.errors import UserError
from stages.reading.opening import open_video, span_of
from stages.reading.pictures import is_album, list_pictures, read_picture
from stages.reading.pixels import U8, upright_bgr

MOST_DECODED = 150
"""Frames that are decoded to reach a moment behind a keyframe: a tenth of a second at 720p."""


def some_frames(file: Path, count: int) -> Iterator[U8]:
    """Frames (H, W, 3) BGR from `count` moments, all different; fewer if the file has fewer, or is damaged."""
    try:
        if is_album(file):
            pictures = list_pictures(file)
            for index in middles(len(pictures), min(count, len(pictures))):
                yield upright_bgr(read_picture(pictures[index]))
        else:
            yield from _video_frames(file, count)
    except (UserError, av.FFmpegError, OSError):
        return


def middles(length: int, count: int) -> list[int]:
    """The middles of `count` equal parts of `length`."""
    return [length * (2 * number + 1) // (2 * count) for number in range(count)]


def _video_frames(file: Path, count: int) -> Iterator[U8]:
    last: int | None = None
    with open_video(file) as (container, stream):
        begin, length = span_of(container)
        for moment in (begin + middle for middle in middles(length, count)):
            container.seek(moment)  # to the keyframe before it
            frame = _frame_at(container.decode(stream), moment)
            if frame is None:
                return
            if frame.pts is None or frame.pts != last:
                yield upright_bgr(frame)
            last = frame.pts


def _frame_at(frames: Iterator[av.VideoFrame], moment: int) -> av.VideoFrame | None:
    """The frame at `moment` (microseconds), or the last of those that are looked at; None if there is none."""
    frame = None
    for frame in itertools.islice(frames, MOST_DECODED):
        if frame.time is None or frame.time * 1_000_000 >= moment:
            break
    return frame
