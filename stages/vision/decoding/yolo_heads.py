"""Heads of Ultralytics' YOLO (YOLOv8, YOLO11 and alike), for boxes and for poses. Pure.

    heads (4 + C + V * K, A), one column for each of A anchors
    row 0-3      cx, cy, w, h              model pixels
    row 4...     C scores, one a class     0 to 1
    behind       K x (x, y[, visibility])  model pixels, 0 to 1; V is 3, or 2 without visibility

Pose models of COCO have one class and 17 points: 4 + 1 + 3 * 17 = 56 rows. Source: the metadata that Ultralytics writes
(`kpt_shape`, `names`), checked on yolo11n-pose and yolov8n-pose.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.vision.decoding.detections import Detections, no_detections, points_of, xyxy_of
from stages.vision.decoding.promised import WrongShape

F32 = NDArray[np.float32]

BOX_ROWS = 4


def upright(heads: F32, rows: int) -> F32:
    """The heads as (rows, A), turned where they came as (A, rows). A view. Raises WrongShape."""
    if heads.ndim != 2 or rows not in heads.shape:
        raise WrongShape(0, f"expected ({rows}, anchors) for each picture, got {heads.shape}")
    return heads if heads.shape[0] == rows else heads.T


def decode_yolo_heads(heads: F32, *, classes: int, point_values: int = 3, min_score: float) -> Detections:
    """The candidates that score at least ``min_score``, by anchor. ``heads`` is (4 + C + V * K, A), see the module.

    The scores are looked at first: of 8400 anchors all but a few are dropped unread.
    """
    scores = heads[BOX_ROWS : BOX_ROWS + classes]
    highest = scores[0] if classes == 1 else scores.max(axis=0)
    passed = np.flatnonzero(highest >= min_score)
    if not len(passed):  # most pictures of most cameras: the rest would take three times as long as this
        return no_detections((len(heads) - BOX_ROWS - classes) // point_values)
    taken = np.ascontiguousarray(heads[:, passed].T, np.float32)
    kinds = taken[:, BOX_ROWS : BOX_ROWS + classes].argmax(axis=1)
    points = points_of(taken[:, BOX_ROWS + classes :], point_values)
    return Detections(xyxy_of(taken), highest[passed].astype(np.float32), kinds, points)
