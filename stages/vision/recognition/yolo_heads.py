"""Heads of YOLO: scores, boxes and points of every anchor.

    (B, rows, anchors)    as Ultralytics exports them; rows: 4 of the box, C scores, points
    (B, anchors, rows)    turned, as others like them

Turned, they look like YOLOX with one class less: they are read only if more is known than the shape.
"""

from __future__ import annotations

from typing import NamedTuple

from camgraph.stages.vision.decoding.yolo_heads import cells_of
from camgraph.stages.vision.recognition.reading import (
    COCO_CLASSES,
    MOST_POINTS,
    Declared,
    Reading,
    class_names,
    known_classes,
    named_classes,
    point_shape,
)
from camgraph.stages.vision.recognition.signature import Port, Side, Signature

_FORMATS = ("yolo", "yolo_pose")
_BOX = 4
_COCO_POINTS = 17
_COCO_YOLOX = 5 + len(COCO_CLASSES)


class _Lie(NamedTuple):
    """How many rows there are, and whether they are the last axis."""

    rows: int
    turned: bool


def read_heads(signature: Signature, declared: Declared) -> Reading | None:
    """yolo_pose or yolo."""
    port = signature.only_output(3)
    if port is None or (signature.is_rtdetr and declared.format not in _FORMATS):
        return None
    return next(
        filter(None, (_lying(signature, declared, port, lie) for lie in _lies(signature, declared, port))), None
    )


def _lying(signature: Signature, declared: Declared, port: Port, lie: _Lie) -> Reading | None:
    if not lie.turned or _is_known_as_yolo(signature, declared):
        return _heads_of(signature, declared, port, lie.rows)
    return _turned(signature, port, lie.rows)


def _lies(signature: Signature, declared: Declared, port: Port) -> list[_Lie]:
    """The axis of the rows. Of two axes it is the shorter: pictures have more anchors than rows.

    A declared format allows any number of anchors: the model may have other strides or small pictures.
    """
    words = _rows_by_words(signature, declared)
    _, first, second = port.shape
    found = [
        (_Lie(rows, turned), signature.may_be_cells(other))
        for side, other, turned in ((first, second, False), (second, first, True))
        if (rows := _rows_of(side, words, _rows_if_open(signature, declared)))
    ]
    usual = sorted(lie for lie, is_usual in found if is_usual)
    return [*usual, *sorted(lie for lie, _ in found)] if declared.format in _FORMATS else usual[:1]


def _rows_by_words(signature: Signature, declared: Declared) -> int | None:
    """How many rows the metadata speaks of; None if it does not."""
    points = point_shape(signature, declared)
    if points is None or signature.task not in (None, "pose") or declared.format == "yolo":
        return None
    return _BOX + (named_classes(signature) or 1) + points[0] * points[1]


def _rows_if_open(signature: Signature, declared: Declared) -> int | None:
    """The number of rows without keypoints, if the model leaves it open."""
    classes = known_classes(signature, declared)
    is_boxes = declared.format == "yolo" or (declared.format is None and signature.task == "detect")
    return _BOX + classes if classes and is_boxes else None


def _rows_of(side: Side, words: int | None, if_open: int | None) -> int | None:
    """The rows that this side may be: an open side needs a declared number."""
    if not isinstance(side, int):
        return words or if_open
    return side if side > _BOX and words in (None, side) else None


def _is_known_as_yolo(signature: Signature, declared: Declared) -> bool:
    """Whether this is declared: by its exporter, by the graph, or by keypoints, which YOLOX has not."""
    return signature.task is not None or declared.format in _FORMATS or point_shape(signature, declared) is not None


def _turned(signature: Signature, port: Port, rows: int) -> Reading | None:
    """Rows that could be YOLOX's as well: one per anchor, whose objectness could be one more score."""
    size, anchors = signature.picture_size(), port.shape[1]
    if size is None or not isinstance(anchors, int):
        return None
    usual = _heads_of(signature, Declared(), port, rows)
    if usual is not None or anchors != cells_of(*size):
        return usual
    is_yolox = rows == _COCO_YOLOX and named_classes(signature) is None
    return None if is_yolox else _boxes(signature, port, rows)


def _heads_of(signature: Signature, declared: Declared, port: Port, rows: int) -> Reading | None:
    if declared.format == "yolo_pose" or (declared.format is None and signature.task == "pose"):
        return _pose(signature, declared, port, rows)
    if declared.format == "yolo" or (declared.format is None and signature.task == "detect"):
        return _boxes(signature, port, rows)
    if signature.task is not None or declared.format is not None:
        return None
    if point_shape(signature, declared) is not None or rows == _BOX + 1 + 3 * _COCO_POINTS:
        return _pose(signature, declared, port, rows)
    return _boxes(signature, port, rows) if rows == _BOX + len(COCO_CLASSES) else None


def _pose(signature: Signature, declared: Declared, port: Port, rows: int) -> Reading | None:
    points, values = point_shape(signature, declared) or ((rows - _BOX - 1) // 3, 3)
    classes = rows - _BOX - points * values
    if declared.keypoints == 0 or not 1 <= points <= MOST_POINTS or classes != (named_classes(signature) or 1):
        return None
    why = f"{rows} rows: {_BOX} of the box, {classes} of scores, {points} points of {values}"
    names = class_names(signature, classes)
    return Reading("yolo_pose", why, (port.name,), names, points, values, signature.picture_size())


def _boxes(signature: Signature, port: Port, rows: int) -> Reading | None:
    classes = rows - _BOX
    if classes != (named_classes(signature) or classes):
        return None
    why = f"{rows} rows: {_BOX} of the box, {classes} of scores"
    return Reading("yolo", why, (port.name,), class_names(signature, classes), size=signature.picture_size())
