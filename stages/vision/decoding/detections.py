"""The findings of a model in one picture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.decoding.nms import nms

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]


class Detections(NamedTuple):
    """N things in pixels of the model's picture.

    `boxes_xyxy` (N, 4), `scores` (N,) in [0, 1], `classes` (N,) by number, `keypoints` (N, K, 3) x, y, confidence in
    [0, 1]; K is 0 for models that have none.
    """

    boxes_xyxy: F32
    scores: F32
    classes: I64
    keypoints: F32

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Detections:
        """These of them, in this order."""
        boxes, scores, classes, keypoints = self
        return Detections(boxes[index], scores[index], classes[index], keypoints[index])


def no_detections(keypoints: int) -> Detections:
    """Nothing, of a model of so many keypoints."""
    points = np.empty((0, keypoints, 3), np.float32)
    return Detections(np.empty((0, 4), np.float32), np.empty(0, np.float32), np.empty(0, np.int64), points)


def best(detections: Detections, *, iou: float, most: int) -> Detections:
    """At most ``most``, best first; of two of one class that overlap by more than ``iou`` the better one."""
    spread = _separated(detections.boxes_xyxy, detections.classes)
    return detections.take(nms(spread, detections.scores, iou=iou)[:most])


def highest(detections: Detections, *, most: int) -> Detections:
    """At most ``most``, best first, equal ones in their order: for models that have suppressed overlaps."""
    return detections.take(np.argsort(-detections.scores, kind="stable")[:most])


def xyxy_of(centres_and_sizes: F32) -> F32:
    """(N, 4) cx, cy, w, h -> (N, 4) xyxy."""
    half = centres_and_sizes[:, 2:4] / 2
    return np.concatenate([centres_and_sizes[:, :2] - half, centres_and_sizes[:, :2] + half], axis=1)


def points_of(values: F32, each: int) -> F32:
    """(N, K * each) -> (N, K, 3); a model that gives two values a point does not say how sure it is: taken for 1."""
    points = values.reshape(len(values), values.shape[1] // each, each)
    if each == 3:
        return points
    return np.concatenate([points, np.ones((*points.shape[:2], 1), np.float32)], axis=2)


def person_of(points: F32, min_score: float) -> Detections:
    """The one person of keypoints (K, 3), K > 0, in a box that spans them; nobody if these score less on average."""
    scores = points[None, :, 2].mean(axis=1)
    box = np.concatenate([points[None, :, :2].min(axis=1), points[None, :, :2].max(axis=1)], axis=1)
    return Detections(box, scores, np.zeros(1, np.int64), points[None]).take(scores >= min_score)


def _separated(boxes_xyxy: F32, classes: I64) -> F32:
    """Shift the boxes of each class so that none of another class can overlap them."""
    if not len(classes) or (classes == classes[0]).all():
        return boxes_xyxy
    # In double precision: shifted float32 boxes of class 79 would be rounded to an eighth of a pixel.
    span = float(boxes_xyxy.max() - boxes_xyxy.min()) + 1.0
    return np.asarray(boxes_xyxy.astype(np.float64) + classes[:, None] * span)
