"""Models that suppress overlaps themselves, and say one row a detection. Pure.

    yolo_end2end     rows (N, 6 + V * K): x1, y1, x2, y2, score, class, K x (x, y[, c])      unused rows score 0
    yolo_v7_rows     rows (n, 7): image, x1, y1, x2, y2, class, score                        all images in one array
    nas_flat         rows (n, 7): image, x1, y1, x2, y2, score, class                        all images in one array
    nas_pose_flat    rows (n, 6 + 3K): image, x1, y1, x2, y2, score, K x (x, y, c)           all images in one array
    nas_pose_batch   count, boxes (N, 4), scores (N,), joints (N, K, 3)                 rows behind count unused
    efficient_nms    count, boxes (N, 4), scores (N,), classes (N,)                     rows behind count unused
    tf_ssd           count, boxes (N, 4) y1, x1, y2, x2, scores (N,), classes (N,)      rows behind count unused
    rtdetr           labels (N,), boxes (N, 4), scores (N,)            pixels of the size that the model is told
    torchvision      boxes (n, 4), labels (n,), scores (n,)                                  of one image
    ppyoloe          rows (n, 6): class, score, x1, y1, x2, y2, count                        of one image
    rtmo             dets (N, 5): x1, y1, x2, y2, score; keypoints (N, K, 3)                 unused rows score 0

All in model pixels, but `tf_ssd` in fractions of the picture. Sources: the exporters of Ultralytics (`nms=True`,
`end2end`), YOLOv7, super-gradients, mmdeploy, TensorFlow's Object Detection API, torchvision, and PaddleDetection.
No real weights were at hand for any of these: the tests build graphs to these contracts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.decoding.detections import Detections, points_of
from camgraph.stages.vision.decoding.promised import numbers_of

F32 = NDArray[np.float32]


def decode_yolo_end2end(rows: F32, *, point_values: int = 3, min_score: float) -> Detections:
    """``rows`` is (N, 6 + V * K)."""
    taken = np.ascontiguousarray(rows[rows[:, 4] >= min_score], np.float32)
    return Detections(taken[:, :4], taken[:, 4], numbers_of(taken[:, 5]), points_of(taken[:, 6:], point_values))


def decode_yolo_v7_rows(rows: F32, *, min_score: float) -> Detections:
    """``rows`` is (n, 7), of one image."""
    taken = np.ascontiguousarray(rows[rows[:, 6] >= min_score], np.float32)
    return Detections(taken[:, 1:5], taken[:, 6], numbers_of(taken[:, 5]), points_of(taken[:, 7:], 3))


def decode_nas_flat(rows: F32, *, min_score: float) -> Detections:
    """``rows`` is (n, 7), of one image."""
    taken = np.ascontiguousarray(rows[rows[:, 5] >= min_score], np.float32)
    return Detections(taken[:, 1:5], taken[:, 5], numbers_of(taken[:, 6]), points_of(taken[:, 7:], 3))


def decode_nas_pose_flat(rows: F32, *, min_score: float) -> Detections:
    """``rows`` is (n, 6 + 3K), of one image."""
    taken = np.ascontiguousarray(rows[rows[:, 5] >= min_score], np.float32)
    return Detections(taken[:, 1:5], taken[:, 5], np.zeros(len(taken), np.int64), points_of(taken[:, 6:], 3))


def decode_nas_pose_batch(count: int, boxes_xyxy: F32, scores: F32, joints: F32, *, min_score: float) -> Detections:
    """The first ``count`` of the N rows are used, 0 to N."""
    passed = np.flatnonzero(scores[:count] >= min_score)
    return Detections(
        boxes_xyxy[passed].astype(np.float32),
        scores[passed].astype(np.float32),
        np.zeros(len(passed), np.int64),
        joints[passed].astype(np.float32),
    )


def decode_efficient_nms(
    count: int, boxes_xyxy: F32, scores: F32, classes: NDArray[Any], *, min_score: float
) -> Detections:
    """The first ``count`` of the N rows are used, 0 to N."""
    passed = np.flatnonzero(scores[:count] >= min_score)
    return Detections(
        boxes_xyxy[passed].astype(np.float32),
        scores[passed].astype(np.float32),
        numbers_of(classes[passed]),
        np.empty((len(passed), 0, 3), np.float32),
    )


def decode_tf_ssd(
    count: int,
    boxes_yxyx: F32,
    scores: F32,
    classes: NDArray[Any],
    *,
    size: tuple[int, int],
    min_score: float,
) -> Detections:
    """The first ``count`` of the N rows are used, 0 to N; ``size`` is the picture's (width, height) in pixels."""
    boxes_xyxy = boxes_yxyx[:, [1, 0, 3, 2]]
    found = decode_efficient_nms(count, boxes_xyxy, scores, classes, min_score=min_score)
    return found._replace(boxes_xyxy=found.boxes_xyxy * np.array([*size, *size], np.float32))


def decode_labelled(labels: NDArray[Any], boxes_xyxy: F32, scores: F32, *, min_score: float) -> Detections:
    """``labels`` (N,), ``boxes_xyxy`` (N, 4), ``scores`` (N,)."""
    return decode_efficient_nms(len(scores), boxes_xyxy, scores, labels, min_score=min_score)


def decode_ppyoloe(rows: F32, count: int, *, min_score: float) -> Detections:
    """The first ``count`` of the rows (N, 6) are used, 0 to N."""
    used = rows[:count]
    taken = np.ascontiguousarray(used[used[:, 1] >= min_score], np.float32)
    return Detections(taken[:, 2:], taken[:, 1], numbers_of(taken[:, 0]), points_of(taken[:, 6:], 3))


def decode_rtmo(dets: F32, keypoints: F32, *, min_score: float) -> Detections:
    """``dets`` is (N, 5), ``keypoints`` (N, K, 3)."""
    passed = np.flatnonzero(dets[:, 4] >= min_score)
    return Detections(
        dets[passed, :4].astype(np.float32),
        dets[passed, 4].astype(np.float32),
        np.zeros(len(passed), np.int64),
        keypoints[passed].astype(np.float32),
    )


def rows_by_image(rows: F32, images: int) -> list[F32]:
    """The rows of each image, if all stand in one array (n, C) with the image's number first: (1, n_i, C) each.

    Raises ValueError if a row is of no image.
    """
    numbers = np.rint(rows[:, 0])
    if not ((numbers >= 0) & (numbers < images)).all():
        raise ValueError(f"a row is of none of the {images} images")
    return [rows[numbers == image][None] for image in range(images)]


def joined_rows(parts: list[F32]) -> F32:
    """Parts (1, n_i, ...) as one array (images, most n_i, ...); filled rows score less than anything."""
    most = max(part.shape[1] for part in parts)
    out = np.full((len(parts), most, *parts[0].shape[2:]), -1, parts[0].dtype)
    for row, part in zip(out, parts, strict=True):
        row[: part.shape[1]] = part[0]
    return out
