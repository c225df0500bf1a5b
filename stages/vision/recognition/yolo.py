"""YOLO models of all kinds: heads, heads with an objectness, and rows of detections."""

from __future__ import annotations

from stages.vision.decoding.yolo_objectness import cells_of
from stages.vision.recognition.reading import (
    COCO_CLASSES,
    Picture,
    Reading,
    Stated,
    class_names,
    named_classes,
    point_shape,
)
from stages.vision.recognition.signature import Port, Signature

_BOX = 4
_COCO_POINTS = 17


def read_heads(signature: Signature, stated: Stated) -> Reading | None:
    """yolo_pose or yolo: one column for each anchor; turned only where somebody says that it is a YOLO."""
    port = signature.only_output(3)
    if port is None:
        return None
    _, first, second = port.shape
    rows = _rows_by_words(signature, stated)
    if _may_be_rows(first, rows) and signature.may_be_cells(second):
        return _heads_of(signature, stated, port, rows or int(str(first)))
    said = signature.task is not None or stated.format in ("yolo", "yolo_pose")
    if said and _may_be_rows(second, rows) and signature.may_be_cells(first):
        return _heads_of(signature, stated, port, rows or int(str(second)))
    return None


def _rows_by_words(signature: Signature, stated: Stated) -> int | None:
    """How many rows the metadata speaks of; None where it does not."""
    points, classes = point_shape(signature, stated), named_classes(signature)
    if points is None or signature.task not in (None, "pose"):
        return None
    return _BOX + (classes or 1) + points[0] * points[1]


def _may_be_rows(side: object, rows: int | None) -> bool:
    """Whether this side may be the rows: it is open only where the metadata says how many there are."""
    if isinstance(side, int):
        return side > _BOX and rows in (None, side)
    return rows is not None


def _heads_of(signature: Signature, stated: Stated, port: Port, rows: int) -> Reading | None:
    if stated.format == "yolo_pose" or (stated.format is None and signature.task == "pose"):
        return _pose(signature, stated, port, rows)
    if stated.format == "yolo" or (stated.format is None and signature.task == "detect"):
        return _boxes(signature, port, rows)
    if signature.task is not None or stated.format is not None:
        return None
    if point_shape(signature, stated) is not None or rows == _BOX + 1 + 3 * _COCO_POINTS:
        return _pose(signature, stated, port, rows)
    return _boxes(signature, port, rows) if rows == _BOX + len(COCO_CLASSES) else None


def _pose(signature: Signature, stated: Stated, port: Port, rows: int) -> Reading | None:
    points, values = point_shape(signature, stated) or ((rows - _BOX - 1) // 3, 3)
    classes = rows - _BOX - points * values
    if points < 1 or classes != (named_classes(signature) or 1):
        return None
    why = f"{rows} rows: {_BOX} of the box, {classes} of scores, {points} points of {values}"
    return Reading(
        "yolo_pose", why, (port.name,), class_names(signature, classes), points, values, signature.picture_size()
    )


def _boxes(signature: Signature, port: Port, rows: int) -> Reading | None:
    classes = rows - _BOX
    if classes != (named_classes(signature) or classes):
        return None
    why = f"{rows} rows: {_BOX} of the box, {classes} of scores"
    return Reading("yolo", why, (port.name,), class_names(signature, classes), size=signature.picture_size())


def read_end2end(signature: Signature, stated: Stated) -> Reading | None:
    """yolo_end2end: rows of x1, y1, x2, y2, score, class and points, of which there are fewer than anchors."""
    port = signature.only_output(3)
    if port is None or not isinstance(port.shape[1], int) or not isinstance(port.shape[2], int):
        return None
    anchors = signature.picture_size() is not None and any(map(signature.may_be_cells, port.shape[1:]))
    if anchors and stated.format != "yolo_end2end":
        return None
    points, values = _points_behind(signature, stated, port.shape[2])
    if port.shape[2] != 6 + points * values or signature.task not in (None, "pose", "detect"):
        return None
    classes = named_classes(signature) or (1 if points else len(COCO_CLASSES))
    why = f"{port.shape[1]} rows of box, score, class" + (f" and {points} points of {values}" if points else "")
    names = class_names(signature, classes)
    return Reading("yolo_end2end", why, (port.name,), names, points, values, signature.picture_size())


def _points_behind(signature: Signature, stated: Stated, columns: int) -> tuple[int, int]:
    if signature.task == "detect":
        return 0, 3
    return point_shape(signature, stated) or ((columns - 6) // 3, 3)


def read_objectness(signature: Signature, stated: Stated) -> Reading | None:
    """yolox or yolo_objectness: one row for each anchor, told apart by the number of anchors in a cell."""
    port, size = signature.only_output(3), signature.picture_size()
    if port is None or signature.task is not None or not isinstance(port.shape[2], int) or port.shape[2] < 6:
        return None
    names = class_names(signature, port.shape[2] - 5)
    if not isinstance(port.shape[1], int) or size is None:
        if stated.format != "yolo_objectness":
            return None
        return Reading("yolo_objectness", "as stated", (port.name,), names, size=size)
    of_each = f"of {size[0]} x {size[1]}, of box, objectness, {len(names)} scores"
    if port.shape[1] == cells_of(*size):
        why = f"{port.shape[1]} rows, one for each cell {of_each}"
        return Reading("yolox", why, (port.name,), names, size=size, picture=Picture("bgr", 1.0, "corner"))
    if signature.may_be_cells(port.shape[1], each=3):
        why = f"{port.shape[1]} rows, three for each cell {of_each}"
        return Reading("yolo_objectness", why, (port.name,), names, size=size)
    return None


def read_v7_rows(signature: Signature, stated: Stated) -> Reading | None:
    """yolo_v7_rows: what YOLOv7's exporter makes with `--end2end`."""
    port, picture = signature.only_output(2), signature.picture_port()
    if port is None or picture is None or isinstance(port.shape[0], int) or port.shape[1] != 7:
        return None
    pixels = picture.onnx_type == "tensor(uint8)" and stated.format != "yolo_v7_rows"
    if pixels or port.shape[0] == picture.shape[0]:
        return None
    why = "rows of image, box, class, score"
    return Reading("yolo_v7_rows", why, (port.name,), COCO_CLASSES, size=signature.picture_size())
