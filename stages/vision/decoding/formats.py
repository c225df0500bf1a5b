"""From a model's format to the function that reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.decoding import detr, distances, end2end, movenet, top_down, yolo_heads
from camgraph.stages.vision.decoding.detections import Detections, best, highest
from camgraph.stages.vision.decoding.movenet import HEAD_CHANNELS, MIN_KEYPOINT, decode_multipose
from camgraph.stages.vision.decoding.promised import NUMBERS, WrongShape, check_number, counted, shaped
from camgraph.stages.vision.decoding.yolo_heads import decode_yolo_heads, upright

Outputs = Sequence[NDArray[Any]]

_PEAKS_EACH, _LEAST_PEOPLE = 3, 100
"""Candidates of MoveNet MultiPose for each of so many people, or more: a peak may be a double, or have no joints."""


@dataclass(frozen=True)
class Asked:
    """Which outputs to read, and which candidates to keep.

    ``classes``: how many the model has; ``kept``: the numbers of the wanted ones, None for all; ``iou``: more of it is
    an overlap; ``most``: at most so many of the wanted; ``min_keypoint``: keypoints of MoveNet MultiPose below this
    confidence do not count for a person's score.
    """

    classes: int = 1
    kept: tuple[int, ...] | None = None
    keypoints: int = 17
    point_values: int = 3
    min_score: float = 0.3
    iou: float = 0.5
    most: int = 100
    min_keypoint: float = MIN_KEYPOINT


def detections_of(format_name: str, outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    """The findings of a model of this format in one picture of ``size`` (width, height), best first.

    ``outputs`` are those of one picture, in the order that `recognition` names them. Raises WrongShape if they break
    the format's promises, NotFinite if one of its heads that matters holds no numbers.
    """
    check_number(outputs, _NUMBER_OF_OUTPUTS.get(format_name, 1))
    with np.errstate(over="ignore", invalid="ignore"):
        found = _READERS[format_name](outputs, size, asked)
        if found.keypoints.shape[1] != asked.keypoints:
            there = found.keypoints.shape[1]
            raise WrongShape(0, f"expected {asked.keypoints} keypoints, and the format has {there}")
        if not len(found.scores):
            return found
        if asked.kept is not None:
            found = found.take(np.isin(found.classes, asked.kept))
        if format_name in _OVERLAPPING:
            return best(found, iou=asked.iou, most=asked.most)
        return highest(found, most=asked.most)


def _yolo(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    points = asked.keypoints * asked.point_values
    heads = upright(shaped(outputs, 0, (None, None)), 4 + asked.classes + points)
    return decode_yolo_heads(heads, classes=asked.classes, point_values=asked.point_values, min_score=asked.min_score)


def _objectness(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    rows = shaped(outputs, 0, (None, 5 + asked.classes + asked.keypoints * asked.point_values))
    return yolo_heads.decode_yolo_objectness(
        rows, classes=asked.classes, point_values=asked.point_values, min_score=asked.min_score
    )


def _yolox(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    rows = shaped(outputs, 0, (yolo_heads.cells_of(*size), 5 + asked.classes))
    return yolo_heads.decode_yolox(rows, size=size, min_score=asked.min_score)


def _nanodet(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    rows = shaped(outputs, 0, (None, asked.classes + 4 * distances.BINS))
    for strides in distances.NANODET_STRIDES:
        if len(rows) == distances.cells_of_strides(*size, strides):
            return distances.decode_nanodet(
                rows, size=size, strides=strides, classes=asked.classes, min_score=asked.min_score
            )
    raise WrongShape(0, f"expected a row for each cell of {size[0]} x {size[1]} pixels, got {rows.shape}")


def _picodet(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    cells = [distances.cells_of_strides(*size, (stride,)) for stride in distances.PICODET_STRIDES]
    scores, logits = (
        [shaped(outputs, first + place, (rows, side)) for place, rows in enumerate(cells)]
        for first, side in ((0, asked.classes), (len(cells), 4 * distances.BINS))
    )
    return distances.decode_picodet(scores, logits, size=size, min_score=asked.min_score)


def _scrfd(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    anchors = [distances.ANCHORS * distances.cells_of_strides(*size, (stride,)) for stride in yolo_heads.STRIDES]
    scores, boxes, points = (
        [shaped(outputs, first + place, (rows, side)) for place, rows in enumerate(anchors)]
        for first, side in ((0, 1), (3, 4), (6, 2 * distances.FACE_POINTS))
    )
    return distances.decode_scrfd(scores, boxes, points, size=size, min_score=asked.min_score)


def _end2end(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    rows = shaped(outputs, 0, (None, 6 + asked.keypoints * asked.point_values))
    return end2end.decode_yolo_end2end(rows, point_values=asked.point_values, min_score=asked.min_score)


def _v7_rows(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    return end2end.decode_yolo_v7_rows(shaped(outputs, 0, (None, 7)), min_score=asked.min_score)


def _nas_flat(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    return end2end.decode_nas_flat(shaped(outputs, 0, (None, 7)), min_score=asked.min_score)


def _nas_pose_flat(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    rows = shaped(outputs, 0, (None, 6 + 3 * asked.keypoints))
    return end2end.decode_nas_pose_flat(rows, min_score=asked.min_score)


def _nas_pose_batch(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    boxes, scores = _boxes_and_scores(outputs)
    joints = shaped(outputs, 3, (len(scores), asked.keypoints, 3))
    count = counted(outputs, 0, len(scores))
    return end2end.decode_nas_pose_batch(count, boxes, scores, joints, min_score=asked.min_score)


def _efficient_nms(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    boxes, scores = _boxes_and_scores(outputs)
    classes = shaped(outputs, 3, (len(scores),), NUMBERS)
    count = counted(outputs, 0, len(scores))
    return end2end.decode_efficient_nms(count, boxes, scores, classes, min_score=asked.min_score)


def _tf_ssd(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    boxes, scores = _boxes_and_scores(outputs)
    classes = shaped(outputs, 3, (len(scores),), NUMBERS)
    count = counted(outputs, 0, len(scores))
    return end2end.decode_tf_ssd(count, boxes, scores, classes, size=size, min_score=asked.min_score)


def _boxes_and_scores(outputs: Outputs) -> tuple[NDArray[Any], NDArray[Any]]:
    scores = shaped(outputs, 2, (None,))
    return shaped(outputs, 1, (len(scores), 4)), scores


def _rtmo(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    dets = shaped(outputs, 0, (None, 5))
    points = shaped(outputs, 1, (len(dets), asked.keypoints, 3))
    return end2end.decode_rtmo(dets, points, min_score=asked.min_score)


def _rtdetr_rows(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    rows = shaped(outputs, 0, (None, 4 + asked.classes))
    return detr.decode_rtdetr_rows(rows, size=size, min_score=asked.min_score)


def _rtdetr_end2end(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    rows = shaped(outputs, 0, (None, 6))
    return detr.decode_rtdetr_end2end(rows, size=size, min_score=asked.min_score)


def _labelled(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    boxes, scores = _boxes_and_scores(outputs)
    labels = shaped(outputs, 0, (len(scores),), NUMBERS)
    return end2end.decode_labelled(labels, boxes, scores, min_score=asked.min_score)


def _ppyoloe(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    rows = shaped(outputs, 0, (None, 6))
    return end2end.decode_ppyoloe(rows, counted(outputs, 1, len(rows)), min_score=asked.min_score)


def _ppyoloe_raw(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    boxes = shaped(outputs, 0, (None, 4))
    scores = shaped(outputs, 1, (asked.classes, len(boxes)))
    return yolo_heads.decode_ppyoloe_raw(boxes, scores, min_score=asked.min_score)


def _detr(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    boxes = shaped(outputs, 0, (None, 4))
    logits = shaped(outputs, 1, (len(boxes), None))
    if logits.shape[1] not in (asked.classes, asked.classes + 1):
        raise WrongShape(1, f"expected logits of {asked.classes} classes, and perhaps of no object, got {logits.shape}")
    logits = logits[:, : asked.classes]
    return detr.decode_detr(boxes, logits, size=size, min_score=asked.min_score)


def _detr_softmax(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    boxes = shaped(outputs, 0, (None, 4))
    logits = shaped(outputs, 1, (len(boxes), asked.classes + 1))
    return detr.decode_detr_softmax(boxes, logits, size=size, min_score=asked.min_score)


def _multipose(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    heads = dict(zip(HEAD_CHANNELS, outputs, strict=True))
    poses = decode_multipose(
        heads,
        min_score=asked.min_score,
        iou=asked.iou,
        min_keypoint=asked.min_keypoint,
        max_candidates=_PEAKS_EACH * max(asked.most, _LEAST_PEOPLE),
    )
    return Detections(poses.boxes_xyxy, poses.scores, np.zeros(len(poses.scores), np.int64), poses.keypoints)


def _movenet_people(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    rows = shaped(outputs, 0, (None, 56))
    return movenet.decode_movenet_people(rows, size=size, min_score=asked.min_score)


def _movenet_single(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    points = shaped(outputs, 0, (1, 17, 3))
    return movenet.decode_movenet_single(points, size=size, min_score=asked.min_score)


def _simcc(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    x = _something(shaped(outputs, 0, (asked.keypoints, None)), 0)
    y = _something(shaped(outputs, 1, (asked.keypoints, None)), 1)
    return top_down.decode_simcc(x, y, size=size, min_score=asked.min_score)


def _heatmaps(outputs: Outputs, size: tuple[int, int], asked: Asked) -> Detections:
    heatmaps = _something(shaped(outputs, 0, (asked.keypoints, None, None)), 0)
    return top_down.decode_heatmaps(heatmaps, size=size, min_score=asked.min_score)


def _something(array: NDArray[Any], place: int) -> NDArray[Any]:
    """The array, if it has a highest value. Raises WrongShape."""
    if not array.size:
        raise WrongShape(place, f"expected values for each keypoint, got {array.shape}")
    return array


_READERS: Mapping[str, Callable[[Outputs, tuple[int, int], Asked], Detections]] = {
    "yolo": _yolo,
    "yolo_pose": _yolo,
    "yolo_end2end": _end2end,
    "yolo_objectness": _objectness,
    "yolo_v7_rows": _v7_rows,
    "yolox": _yolox,
    "nanodet": _nanodet,
    "picodet": _picodet,
    "scrfd": _scrfd,
    "efficient_nms": _efficient_nms,
    "tf_ssd": _tf_ssd,
    "nas_flat": _nas_flat,
    "nas_pose_flat": _nas_pose_flat,
    "nas_pose_batch": _nas_pose_batch,
    "rtmo": _rtmo,
    "simcc": _simcc,
    "heatmaps": _heatmaps,
    "rtdetr_rows": _rtdetr_rows,
    "rtdetr_end2end": _rtdetr_end2end,
    "rtdetr": _labelled,
    "torchvision": _labelled,
    "ppyoloe": _ppyoloe,
    "ppyoloe_raw": _ppyoloe_raw,
    "detr": _detr,
    "detr_softmax": _detr_softmax,
    "movenet_multipose": _multipose,
    "movenet_people": _movenet_people,
    "movenet_single": _movenet_single,
}
"""All that scores at least ``min_score``."""

_NUMBER_OF_OUTPUTS = {
    "picodet": 2 * len(distances.PICODET_STRIDES),
    "scrfd": 9,
    "efficient_nms": 4,
    "tf_ssd": 4,
    "nas_pose_batch": 4,
    "rtmo": 2,
    "simcc": 2,
    "rtdetr": 3,
    "torchvision": 3,
    "ppyoloe": 2,
    "ppyoloe_raw": 2,
    "detr": 2,
    "detr_softmax": 2,
    "movenet_multipose": len(HEAD_CHANNELS),
}
"""Of those that have more than one."""

_OVERLAPPING = frozenset(
    {"yolo", "yolo_pose", "yolo_objectness", "yolox", "nanodet", "picodet", "scrfd", "ppyoloe_raw", "movenet_people"}
)
"""Formats whose models leave it to us to suppress overlaps."""
