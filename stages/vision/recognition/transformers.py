"""Transformers of the DETR family: a fixed number of queries, whose boxes do not overlap."""

from __future__ import annotations

from camgraph.stages.vision.recognition.reading import (
    COCO_CATEGORIES,
    COCO_CLASSES,
    STRETCHED,
    Declared,
    Format,
    Picture,
    Reading,
    category_names,
    class_names,
    known_classes,
    named_classes,
    point_shape,
    unseen_classes,
)
from camgraph.stages.vision.recognition.signature import Port, Side, Signature, boxes_of, ports_with

_BOX = 4
_MOST_QUERIES = 1000
SIZES = "orig_target_sizes"
"""The input that is told in which pixels the boxes of `rtdetr` are to count."""
_OF_RFDETR = {"dets", "labels"}
_OF_TRANSFORMERS = ({"pred_boxes", "logits"}, {"pred_boxes", "pred_logits"})


def read_rtdetr_rows(signature: Signature, declared: Declared) -> Reading | None:
    """rtdetr_rows: boxes with a score for each class, for fewer queries than there are cells."""
    port = signature.only_output(3)
    if port is None:
        return None
    _, rows, columns = port.shape
    is_declared = declared.format == "rtdetr_rows"
    classes = columns - _BOX if isinstance(columns, int) else known_classes(signature, declared)
    if classes is None or classes < 1 or not (is_declared or _are_queries(signature, declared, rows, columns)):
        return None
    names = class_names(signature, classes)
    why = f"{rows} rows: {_BOX} of the box, {classes} of scores"
    return Reading("rtdetr_rows", why, (port.name,), names, size=signature.picture_size(), picture=STRETCHED)


def read_rtdetr_end2end(signature: Signature, declared: Declared) -> Reading | None:
    """rtdetr_end2end: rows of box, score and class, which only the metadata tell from those of yolo_end2end."""
    port = signature.only_output(3)
    if port is None:
        return None
    columns, is_declared = port.shape[2], declared.format == "rtdetr_end2end"
    fits = columns == _BOX + 2 or (is_declared and not isinstance(columns, int))
    if not fits or not (is_declared or signature.is_rtdetr):
        return None
    names = unseen_classes(signature, declared, len(COCO_CLASSES))
    why = f"{port.shape[1] or 'any number of'} rows of box, score, class"
    return Reading("rtdetr_end2end", why, (port.name,), names, size=signature.picture_size(), picture=STRETCHED)


def _are_queries(signature: Signature, declared: Declared, rows: Side, columns: Side) -> bool:
    """Whether rows that nobody declares are queries with a box and the scores of all classes that are known.

    Six columns are a box, a score and a class, unless the exporter names RT-DETR.
    """
    if signature.task not in (None, "detect") or point_shape(signature, declared) is not None:
        return False
    if not isinstance(rows, int) or rows > _MOST_QUERIES:
        return False
    known = signature.picture_size() is not None
    if known and any(signature.may_be_cells(side) for side in (rows, columns)):
        return False
    is_box_and_scores = columns == _BOX + (named_classes(signature) or len(COCO_CLASSES))
    return is_box_and_scores and (columns != _BOX + 2 or signature.is_rtdetr)


def read_rtdetr(signature: Signature, declared: Declared) -> Reading | None:
    """rtdetr: labels, boxes and scores, of a model that is told a size."""
    is_declared = declared.format == "rtdetr"
    boxes = ports_with(signature.outputs, axes=3, last=_BOX, may_be_open=is_declared)
    flat = [port for port in signature.outputs if len(port.shape) == 2]
    labels = [port for port in flat if "int" in port.onnx_type or "label" in port.name]
    if len(signature.outputs) != 3 or len(boxes) != 1 or len(flat) != 2 or len(labels) != 1:
        return None
    if not (is_declared or SIZES in {port.name for port in signature.inputs}):
        return None
    [scores] = [port for port in flat if port is not labels[0]]
    names = unseen_classes(signature, declared, len(COCO_CLASSES))
    outputs = (labels[0].name, boxes[0].name, scores.name)
    why = "labels, boxes and scores" + ("" if is_declared else f", and an input `{SIZES}`")
    return Reading("rtdetr", why, outputs, names, size=signature.picture_size(), picture=STRETCHED)


def read_detr(signature: Signature, declared: Declared) -> Reading | None:
    """detr: boxes, and logits of which each is a class."""
    return _logits(signature, declared, "detr", beside=0)


def read_detr_softmax(signature: Signature, declared: Declared) -> Reading | None:
    """detr_softmax: boxes, and logits of which the last is of no object."""
    return _logits(signature, declared, "detr_softmax", beside=1)


def _logits(signature: Signature, declared: Declared, name: Format, beside: int) -> Reading | None:
    """A reading with ``beside`` logits that are no class."""
    is_declared = declared.format == name
    ports = _boxes_and_logits(signature, is_declared)
    if ports is None or not (is_declared or _may_be(name, signature, declared)):
        return None
    boxes, logits = ports
    columns, known = logits.shape[2], known_classes(signature, declared)
    if name == "detr" and known is not None and columns == known + 1:  # RF-DETR has one of no object, too
        beside = 1
    classes = columns - beside if isinstance(columns, int) else known
    if classes is None or classes < 1:
        return None
    why = "boxes, and logits of " + (f"{classes} classes" if not beside else f"{classes} classes and of no object")
    names = category_names(signature, classes)
    picture = Picture() if name == "detr_softmax" else STRETCHED
    return Reading(name, why, (boxes.name, logits.name), names, size=signature.picture_size(), picture=picture)


def _boxes_and_logits(signature: Signature, is_declared: bool) -> tuple[Port, Port] | None:
    """The two outputs, by their names; if the format is declared, the one of four columns is the boxes.

    RF-DETR may have masks beside them.
    """
    ports = [port for port in signature.outputs if port.name in _OF_RFDETR]
    ports = ports if len(ports) == 2 else list(signature.outputs)
    if [len(port.shape) for port in ports] != [3, 3]:
        return None
    named = [port for port in ports if port.name in ("dets", "pred_boxes")]
    boxes = boxes_of(named or ports, may_be_open=is_declared)
    if boxes is None:
        return None
    return boxes, next(port for port in ports if port is not boxes)


def _may_be(name: Format, signature: Signature, declared: Declared) -> bool:
    """Whether outputs of these names and so many logits may be of this format, which nobody declares."""
    names = {port.name for port in signature.outputs}
    if names >= _OF_RFDETR:
        return name == "detr"
    if names not in _OF_TRANSFORMERS:
        return False
    columns = next(port.shape[2] for port in signature.outputs if port.name != "pred_boxes")
    if (known := known_classes(signature, declared)) is not None:
        return columns == known + (name == "detr_softmax")
    if name == "detr":
        return columns != len(COCO_CATEGORIES) + 1
    return columns not in (len(COCO_CLASSES), len(COCO_CATEGORIES))
