"""YOLO models of other kinds: rows with an objectness, and rows that are left after suppression."""

from __future__ import annotations

from camgraph.stages.vision.decoding.yolo_heads import cells_of
from camgraph.stages.vision.recognition.reading import (
    COCO_CLASSES,
    MOST_POINTS,
    Declared,
    Format,
    Picture,
    Reading,
    class_names,
    known_classes,
    named_classes,
    point_shape,
    unseen_classes,
)
from camgraph.stages.vision.recognition.signature import Port, Signature

_BOX = 4
_MOST_ROWS = 1000
"""The most rows after suppression, if nothing declares that they are: more are anchors."""
_ROW = 7
_V7_OUTPUT, _FLAT = "output", "flat"
"""What YOLOv7's exporter calls its rows, and what super-gradients has in the name of its own."""
_COCO_POINTS = 17
_YOLOX_PICTURE = Picture("bgr", 1.0, "corner")


# ---- one row for each anchor: box, objectness, scores


def read_yolox(signature: Signature, declared: Declared) -> Reading | None:
    """yolox: one anchor in each cell of the picture."""
    port, classes = signature.only_output(3), _scores(signature, declared, "yolox")
    if port is None or classes is None:
        return None
    rows, size = port.shape[1], signature.picture_size()
    if size is None or not isinstance(rows, int):
        fits, why = declared.format == "yolox", "as declared"
    else:
        fits, why = rows == cells_of(*size), f"{rows} rows, one for each cell {_of_each(size, classes)}"
    names = class_names(signature, classes)
    return Reading("yolox", why, (port.name,), names, size=size, picture=_YOLOX_PICTURE) if fits else None


def read_objectness(signature: Signature, declared: Declared) -> Reading | None:
    """yolo_objectness of boxes: three anchors in each cell."""
    port, classes = signature.only_output(3), _scores(signature, declared, "yolo_objectness")
    if port is None or classes is None or point_shape(signature, declared) is not None:
        return None
    why, names = _three_a_cell(signature, declared, port), class_names(signature, classes)
    if why is None:
        return None
    why += f" of box, objectness, {classes} scores"
    return Reading("yolo_objectness", why, (port.name,), names, size=signature.picture_size())


def read_objectness_pose(signature: Signature, declared: Declared) -> Reading | None:
    """yolo_objectness of poses: as of boxes, with points behind the scores. YOLOv7-pose has 57 columns.

    57 columns may be 52 scores as well, if neither the metadata nor the user gives the number of points.
    """
    port, shape = signature.only_output(3), point_shape(signature, declared)
    if port is None or signature.task not in (None, "pose"):
        return None
    classes, columns = known_classes(signature, declared) or 1, port.shape[2]
    if shape is None and not declared.format and declared.keypoints is None and signature.task is None:
        shape = (_COCO_POINTS, 3)
    if shape is None or columns != (_BOX + 1 + classes + shape[0] * shape[1] if isinstance(columns, int) else columns):
        return None
    why, names = _three_a_cell(signature, declared, port), class_names(signature, classes)
    if why is None:
        return None
    points, values = shape
    why += f" of box, objectness, {classes} scores, {points} points of {values}"
    return Reading("yolo_objectness", why, (port.name,), names, points, values, signature.picture_size())


def _three_a_cell(signature: Signature, declared: Declared, port: Port) -> str | None:
    """Why there may be three rows for each cell, in words; None if there are not."""
    rows, size = port.shape[1], signature.picture_size()
    if size is None or not isinstance(rows, int):
        return "rows" if declared.format == "yolo_objectness" else None
    if not signature.may_be_cells(rows, each=3):
        return None
    return f"{rows} rows, three for each cell of {size[0]} x {size[1]},"


def _scores(signature: Signature, declared: Declared, name: Format) -> int | None:
    """How many scores stand behind box and objectness; None if the model says that it is something else."""
    port = signature.only_output(3)
    if port is None:
        return None
    columns = port.shape[2]
    classes = columns - _BOX - 1 if isinstance(columns, int) else known_classes(signature, declared)
    if classes is None or classes < 1 or declared.format == name:
        return classes if classes and classes > 0 else None
    is_other = signature.task is not None or point_shape(signature, declared) is not None
    return None if is_other or classes != (named_classes(signature) or classes) else classes


def _of_each(size: tuple[int, int], classes: int) -> str:
    return f"of {size[0]} x {size[1]}, of box, objectness, {classes} scores"


# ---- one row for each detection


def read_end2end(signature: Signature, declared: Declared) -> Reading | None:
    """yolo_end2end: rows of x1, y1, x2, y2, score, class and points; fewer than there are anchors."""
    port = signature.only_output(3)
    if port is None or signature.task not in (None, "pose", "detect") or not _may_be_left(signature, declared, port):
        return None
    columns = port.shape[2]
    points, values = _points_behind(signature, declared, columns)
    if not 0 <= points <= MOST_POINTS or columns != (6 + points * values if isinstance(columns, int) else columns):
        return None
    names = unseen_classes(signature, declared, 1 if points else len(COCO_CLASSES))
    why = f"{port.shape[1]} rows of box, score, class" + (f" and {points} points of {values}" if points else "")
    return Reading("yolo_end2end", why, (port.name,), names, points, values, signature.picture_size())


def _may_be_left(signature: Signature, declared: Declared, port: Port) -> bool:
    """Whether suppression may have left these: no anchors, and no box with 80 scores, as transformers give."""
    _, rows, columns = port.shape
    if declared.format == "yolo_end2end":
        return True
    if signature.is_rtdetr:
        return False
    known = signature.picture_size() is not None
    if known and any(isinstance(side, int) and signature.may_be_cells(side) for side in (rows, columns)):
        return False
    if signature.task is not None:
        return isinstance(columns, int)
    is_few = isinstance(rows, int) and rows <= _MOST_ROWS
    is_scores = columns == _BOX + len(COCO_CLASSES) and point_shape(signature, declared) is None
    return is_few and isinstance(columns, int) and not is_scores


def _points_behind(signature: Signature, declared: Declared, columns: object) -> tuple[int, int]:
    """(points, values of each); -1 points if nothing declares them."""
    if signature.task == "detect" or declared.keypoints == 0:
        return 0, 3
    return point_shape(signature, declared) or ((columns - 6) // 3 if isinstance(columns, int) else -1, 3)


def read_v7_rows(signature: Signature, declared: Declared) -> Reading | None:
    """yolo_v7_rows: the output of YOLOv7's exporter with `--end2end`; its pictures are floats."""
    port = _rows_of_all(signature, declared, "yolo_v7_rows")
    if port is None or (declared.format is None and (_is_of_uint8(signature) or _FLAT in port.name)):
        return None
    why, names = "rows of image, box, class, score", unseen_classes(signature, declared, len(COCO_CLASSES))
    return Reading("yolo_v7_rows", why, (port.name,), names, size=signature.picture_size())


def read_nas_rows(signature: Signature, declared: Declared) -> Reading | None:
    """nas_flat: YOLO-NAS, flat. What tells its rows from YOLOv7's are pictures of uint8, or the name of the output."""
    port = _rows_of_all(signature, declared, "nas_flat")
    if port is None or (declared.format is None and not _is_of_uint8(signature) and port.name == _V7_OUTPUT):
        return None
    why, names = "rows of image, box, score, class", unseen_classes(signature, declared, len(COCO_CLASSES))
    return Reading("nas_flat", why, (port.name,), names, size=signature.picture_size())


def _rows_of_all(signature: Signature, declared: Declared, name: Format) -> Port | None:
    """The output, if its rows of seven may be of the images of a whole batch."""
    port, picture = signature.only_output(2), signature.picture_port()
    if port is None or picture is None:
        return None
    rows, columns = port.shape
    if declared.format == name:
        return port if columns == _ROW or not isinstance(columns, int) else None
    is_of_pictures = isinstance(rows, int) or (rows is not None and rows == picture.shape[0])
    return port if columns == _ROW and not is_of_pictures else None


def _is_of_uint8(signature: Signature) -> bool:
    picture = signature.picture_port()
    return picture is not None and picture.onnx_type == "tensor(uint8)"
