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
from collections.abc import Mapping, Sequence
from pathlib import Path

from stages.reading import examiner
from stages.reading.inspection import MEMORY_MB
from tools.commands.watching.models import MULTIPOSE_SIDE

SIDES = (256, 384, 512, 640, MULTIPOSE_SIDE)
LOOKS = 8
"""Frames over all cameras: at most a second and a half on two cores."""
MIN_SCORE = 0.2
NEARLY = 0.95
"""A smaller size is as good if it reaches this share of the best."""


def best_side(model: Path, files: Sequence[Path]) -> int:
    """The longer side of the picture in which most is seen of the people in these videos and folders of pictures."""
    # ONNX Runtime takes a while to import.
    from tools.models.pose_estimators import multipose, session  # noqa: PLC0415

    opened = session(model, threads=len(os.sched_getaffinity(0)))
    each = max(1, LOOKS // len(files))
    frames = [frame for file in files[:LOOKS] for frame in examiner.frames(file, each, MEMORY_MB)]
    seen: dict[int, float] = {}
    for side in SIDES:
        # Small frames are not made larger.
        looks = (multipose(opened, min(side, max(frame.shape)), MIN_SCORE)(frame) for frame in frames)
        seen[side] = float(sum(look.scores.sum() for look in looks))
        if seen[side] < max(seen.values()) / 2:
            break  # people are too tall already, and larger is slower
    return choose(seen)


def choose(seen: Mapping[int, float]) -> int:
    """The smallest side that is nearly as good as the best; the largest if nobody was seen."""
    best = max(seen.values())
    return min(side for side, sum_of_scores in seen.items() if sum_of_scores >= NEARLY * best) if best else max(seen)
