"""YOLO-pose heads (YOLOv8-pose, YOLO11-pose and alike) into people. Pure.

    heads (5 + 3K, A), one column for each of A anchors
    row 0-3   cx, cy, w, h          model pixels
    row 4     score                 0 to 1
    row 5...  K x (x, y, visibility)    model pixels, 0 to 1

There is no class row. Source: the metadata that Ultralytics writes (`kpt_shape`), checked on yolo11n-pose.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.vision.decoding.nms import nms
from stages.vision.decoding.yolo_heads import decode_yolo_heads

F32 = NDArray[np.float32]


class NotPose(ValueError):
    """The array is no output of a YOLO-pose model."""


class Candidates(NamedTuple):
    """`boxes_xyxy` (N, 4) and `keypoints` (N, K, 3) in model pixels, `scores` (N,)."""

    boxes_xyxy: F32
    scores: F32
    keypoints: F32

    def take(self, index: NDArray[np.int64]) -> Candidates:
        """These of them, in this order."""
        return Candidates(self.boxes_xyxy[index], self.scores[index], self.keypoints[index])


def upright(heads: F32, keypoints: int | None = None) -> F32:
    """The heads as (5 + 3K, A), turned where they came as (A, 5 + 3K). A view.

    Raises NotPose where neither axis, or without `keypoints` each of them, could be the rows.
    """
    if heads.ndim != 2:
        raise NotPose(f"its output has {heads.ndim} axes for each picture, expected (5 + 3 x keypoints, anchors)")
    fits = [_is_rows(side, keypoints) for side in heads.shape]
    wanted = "5 + 3 x keypoints" if keypoints is None else f"{5 + 3 * keypoints} (5 + 3 x {keypoints} keypoints)"
    if fits == [True, True] and heads.shape[0] != heads.shape[1]:
        raise NotPose(f"its output {heads.shape} may be read both ways; say how many `keypoints` the model has")
    if not any(fits):
        raise NotPose(f"its output is {heads.shape}, and neither side is {wanted}")
    return heads if fits[0] else heads.T


def _is_rows(side: int, keypoints: int | None) -> bool:
    if keypoints is not None:
        return side == 5 + 3 * keypoints
    return side >= 8 and (side - 5) % 3 == 0


def decode_yolo_pose(heads: F32, *, min_score: float) -> Candidates:
    """The candidates that score at least ``min_score``, by anchor. ``heads`` is (5 + 3K, A), see the module."""
    found = decode_yolo_heads(heads, classes=1, min_score=min_score)
    return Candidates(found.boxes_xyxy, found.scores, found.keypoints)


def people_of(heads: F32, *, min_score: float, iou: float, most: int) -> Candidates:
    """The people in one picture, best first: candidates after non-maximum suppression, at most ``most``."""
    candidates = decode_yolo_pose(heads, min_score=min_score)
    return candidates.take(nms(candidates.boxes_xyxy, candidates.scores, iou=iou)[:most])
