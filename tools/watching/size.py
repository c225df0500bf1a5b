"""The size of MultiPose's picture, chosen by a look at the files.

It finds people who are 60 to 250 pixels tall in its picture (docs/accuracy.md): at 640 pixels nobody who fills a
webcam's picture, at 256 few on a square. How tall people are nobody knows beforehand, so a few frames are looked at
in several sizes. Sums of scores over eight frames of each of some clips, at 256, 384, 512, 640, 768:

    a person before a webcam     5.8   5.2   1.1   0.2   0.0   -> 256
    a person walks through       4.2   4.7   4.4   2.0   2.5   -> 384
    a crowd close by             1.1   4.0   6.3   3.9   4.2   -> 512
    a square (vtest.avi)         4.3   9.8  14.8  17.8  20.8   -> 768
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from pipeline.errors import UserError
from stages.reading.opening import open_video
from stages.reading.pictures import is_album, list_pictures, read_picture
from stages.reading.pixels import quarter_turns
from tools.watching.models import MULTIPOSE_SIDE

SIDES = (256, 384, 512, 640, MULTIPOSE_SIDE)
LOOKS = 8
"""Frames over all cameras: at most a second and a half on two cores."""
MIN_SCORE = 0.2
NEARLY = 0.95
"""A smaller size is as good where it reaches this share of the best."""

U8 = NDArray[np.uint8]


def best_side(model: Path, files: Sequence[Path]) -> int:
    """The longer side of the picture in which most is seen of the people in these videos and folders of pictures."""
    # ONNX Runtime takes a while to import.
    from tools.pose_accuracy.estimators import multipose, session  # noqa: PLC0415

    opened = session(model, threads=len(os.sched_getaffinity(0)))
    each = max(1, LOOKS // len(files))
    frames = [frame for file in files[:LOOKS] for frame in some_frames(file, each)]
    seen: dict[int, float] = {}
    for side in SIDES:
        # Small frames are not made larger.
        looks = (multipose(opened, min(side, max(frame.shape)), MIN_SCORE)(frame) for frame in frames)
        seen[side] = float(sum(look.scores.sum() for look in looks))
        if seen[side] < max(seen.values()) / 2:
            break  # people are too tall already, and larger is slower
    return choose(seen)


def choose(seen: Mapping[int, float]) -> int:
    """The smallest side that is nearly as good as the best; the largest where nobody was seen."""
    best = max(seen.values())
    return min(side for side, sum_of_scores in seen.items() if sum_of_scores >= NEARLY * best) if best else max(seen)


def some_frames(file: Path, count: int) -> Iterator[U8]:
    """Frames (H, W, 3) BGR from `count` moments; fewer where the file has fewer, or is damaged."""
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
            # Wherever a keyframe lies before the moment: what is wanted is variety.
            container.seek(moment)
            frame = next(container.decode(stream), None)
            if frame is None:
                return
            yield _upright(frame)


def _upright(frame: av.VideoFrame) -> U8:
    turned = np.rot90(frame.to_ndarray(format="bgr24"), quarter_turns(frame))
    return np.ascontiguousarray(turned, np.uint8)
