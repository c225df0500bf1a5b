"""Heads of YOLO models, with a candidate for each anchor: of Ultralytics, and of others with an objectness. Pure.

Ultralytics (YOLOv8, YOLO11 and alike), for boxes and for poses:

    heads (4 + C + V * K, A), one column for each of A anchors
    row 0-3      cx, cy, w, h              model pixels
    row 4...     C scores, one a class     0 to 1
    behind       K x (x, y[, visibility])  model pixels, 0 to 1; V is 3, or 2 without visibility

Pose models of COCO have one class and 17 points: 4 + 1 + 3 * 17 = 56 rows. Source: the metadata that Ultralytics writes
(`kpt_shape`, `names`), checked on yolo11n-pose and yolov8n-pose.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.decoding.detections import Detections, no_detections, points_of, xyxy_of
from camgraph.stages.vision.decoding.promised import WrongShape

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


# ---- with an objectness: YOLOv5, YOLOv7, and YOLOX, whose boxes are still to be decoded
#
#     rows (A, 5 + C), one for each of A anchors:  box, objectness, C scores; the score is the objectness times the best
#
#     YOLOv5, v7   box: cx, cy, w, h in model pixels; three anchors a cell
#     YOLOv7-pose  as YOLOv7, behind its one score K x (x, y, confidence) in model pixels, 0 to 1
#     YOLOX        box: x, y as shifts and w, h as logarithms, in units of its cell; one anchor a cell
#
#     cells, for a picture of 416 x 416:  stride 8: 52 x 52, row by row;  then stride 16: 26 x 26;  then 32: 13 x 13
#
# Source: the exporters of these projects; YOLOX checked on yolox_nano at 416.

STRIDES = (8, 16, 32)
MAX_LOGARITHM = 20.0
"""A side of e**20 cells is none: beyond it `exp` would only overflow."""


def decode_yolo_objectness(rows: F32, *, classes: int, point_values: int = 3, min_score: float) -> Detections:
    """The candidates of YOLOv5, YOLOv7 or YOLOv7-pose that score at least ``min_score``.

    ``rows`` is (A, 5 + C + V * K).
    """
    end = 5 + classes
    passed, scores, kinds = _passed(rows[:, :end], min_score)
    taken = rows[passed].astype(np.float32)
    return Detections(xyxy_of(taken), scores, kinds, points_of(taken[:, end:], point_values))


def decode_ppyoloe_raw(boxes_xyxy: F32, scores: F32, *, min_score: float) -> Detections:
    """The candidates of PP-YOLOE that score at least ``min_score``.

    ``boxes_xyxy`` is (A, 4) in model pixels, ``scores`` (C, A) in [0, 1]. Source: the exporter of PaddleDetection.
    """
    highest = scores.max(axis=0)
    passed = np.flatnonzero(highest >= min_score)
    kinds = scores[:, passed].argmax(axis=0)
    taken = boxes_xyxy[passed].astype(np.float32)
    return Detections(taken, highest[passed].astype(np.float32), kinds, _no_points(len(passed)))


def decode_yolox(rows: F32, *, size: tuple[int, int], min_score: float) -> Detections:
    """The candidates of YOLOX for pictures of ``size`` (width, height), multiples of 32: ``rows`` is (A, 5 + C)."""
    passed, scores, kinds = _passed(rows, min_score)
    cells = cells_as_rows(*size)[passed]
    boxes = rows[passed, :4].astype(np.float32)
    boxes[:, :2] += cells[:, :2]
    boxes[:, 2:] = np.exp(np.minimum(boxes[:, 2:], np.float32(MAX_LOGARITHM)))
    return Detections(xyxy_of(boxes * cells[:, 2:]), scores, kinds, _no_points(len(passed)))


def cells_of(width: int, height: int, strides: tuple[int, ...] = STRIDES) -> int:
    """How many cells a picture has, over all strides."""
    return sum((width // stride) * (height // stride) for stride in strides)


def _passed(rows: F32, min_score: float) -> tuple[NDArray[np.int64], F32, NDArray[np.int64]]:
    """(indices, scores, classes) of the rows that score enough. No class scores more than the objectness."""
    likely = np.flatnonzero(rows[:, 4] >= min_score)
    scores = rows[likely, 5:] * rows[likely, 4:5]
    kinds = scores.argmax(axis=1)
    highest = scores[np.arange(len(likely)), kinds].astype(np.float32)
    enough = highest >= min_score
    return likely[enough], highest[enough], kinds[enough]


@lru_cache(maxsize=8)
def cells_as_rows(width: int, height: int) -> F32:
    """(cells, 3): x and y in units of the cell, and its stride in pixels. Shared: do not write to it."""
    grids = []
    for stride in STRIDES:
        y, x = np.mgrid[: height // stride, : width // stride].reshape(2, -1)
        grids.append(np.stack([x, y, np.full(len(x), stride)], axis=1))
    return np.concatenate(grids).astype(np.float32)


def _no_points(count: int) -> F32:
    return np.empty((count, 0, 3), np.float32)
