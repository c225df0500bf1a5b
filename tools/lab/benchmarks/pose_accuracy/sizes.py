"""How large people may be in MultiPose's picture: a clip with at most one person, looked at in several sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from camgraph.pipeline.errors import UserError
from camgraph.tools.models.pose_estimators import U8, multipose

LONG_SIDES = (256, 320, 384, 512, 640, 768)


class AtSize(NamedTuple):
    """The findings at one size: frames with nobody, one and more; the height of people, their mean score."""

    long_side: int
    nobody: int
    one: int
    more: int
    height: float
    score: float


def frames(clip: Path, every: int) -> list[U8]:
    """Each `every`th frame of a clip, BGR."""
    return [frame for index, frame in enumerate(_all_frames(clip)) if index % every == 0]


def _all_frames(clip: Path) -> Iterator[U8]:
    capture = cv2.VideoCapture(str(clip))
    if not capture.isOpened():
        raise UserError(f"{clip}: expected a video, got something that OpenCV cannot open")
    while (frame := capture.read()[1]) is not None:
        yield np.asarray(frame, np.uint8)


def by_size(model: Any, pictures: list[U8], min_score: float) -> list[AtSize]:
    """Heights are medians in pixels of the model's picture."""
    return [_at(model, pictures, long_side, min_score) for long_side in LONG_SIDES]


def _at(model: Any, pictures: list[U8], long_side: int, min_score: float) -> AtSize:
    estimate = multipose(model, long_side, min_score)
    found = [estimate(picture) for picture in pictures]
    counts = np.array([len(one.scores) for one in found])
    boxes = np.concatenate([one.boxes_xyxy for one in found]) * (long_side / max(pictures[0].shape[:2]))
    scores = np.concatenate([one.scores for one in found])
    height = float(np.median(boxes[:, 3] - boxes[:, 1])) if len(boxes) else 0.0
    score = float(scores.mean()) if len(scores) else 0.0
    return AtSize(long_side, int((counts == 0).sum()), int((counts == 1).sum()), int((counts > 1).sum()), height, score)
