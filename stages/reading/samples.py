"""A few frames of a file, from moments spread over it, as samples of its content."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from pipeline.errors import UserError
from stages.reading.opening import open_video
from stages.reading.pictures import is_album, list_pictures, read_picture
from stages.reading.pixels import quarter_turns

U8 = NDArray[np.uint8]


def some_frames(file: Path, count: int) -> Iterator[U8]:
    """Frames (H, W, 3) BGR from `count` moments; fewer if the file has fewer, or is damaged."""
    try:
        if is_album(file):
            pictures = list_pictures(file)
            for index in middles(len(pictures), min(count, len(pictures))):
                yield _upright(read_picture(pictures[index]))
        else:
            yield from _video_frames(file, count)
    except (UserError, av.FFmpegError, OSError):
        return


def middles(length: int, count: int) -> list[int]:
    """The middles of `count` equal parts of `length`."""
    return [length * (2 * number + 1) // (2 * count) for number in range(count)]


def _video_frames(file: Path, count: int) -> Iterator[U8]:
    with open_video(file) as (container, stream):
        for moment in middles(container.duration or 0, count):
            # At any keyframe before the moment: variety is all that is wanted.
            container.seek(moment)
            frame = next(container.decode(stream), None)
            if frame is None:
                return
            yield _upright(frame)


def _upright(frame: av.VideoFrame) -> U8:
    turned = np.rot90(frame.to_ndarray(format="bgr24"), quarter_turns(frame))
    return np.ascontiguousarray(turned, np.uint8)
