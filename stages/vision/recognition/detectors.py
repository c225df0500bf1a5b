"""Detectors of TensorFlow, torchvision and PaddleDetection."""

from __future__ import annotations

from camgraph.stages.vision.decoding.yolo_heads import cells_of
from camgraph.stages.vision.recognition.reading import (
    COCO_CATEGORIES,
    COCO_CLASSES,
    STRETCHED,
    Declared,
    Format,
    Reading,
    category_names,
    class_names,
    known_classes,
    unseen_classes,
)
from camgraph.stages.vision.recognition.signature import Port, Signature, boxes_of, fits, ports_with

_TF_SSD = ("num_detections", "detection_boxes", "detection_scores", "detection_classes")
_TF_AXES = (1, 3, 2, 2)


def read_tf_ssd(signature: Signature, declared: Declared) -> Reading | None:
    """tf_ssd: four outputs by their names, which may be among others; as declared, four outputs in this order."""
    by_name = {port.name.removesuffix(":0"): port for port in signature.outputs}
    is_declared = declared.format == "tf_ssd"
    if set(_TF_SSD) <= set(by_name):
        ports = [by_name[name] for name in _TF_SSD]
    elif is_declared and len(signature.outputs) == len(_TF_SSD):
        ports = list(signature.outputs)
    else:
        return None
    if not all(_has_axes(port, axes) for port, axes in zip(ports, _TF_AXES, strict=True)):
        return None
    if not fits(ports[1].shape, (None, None, 4), may_be_open=True):
        return None
    names = tuple(port.name for port in ports)
    why = "a count, boxes, scores and classes, by the names that TensorFlow gives them"
    return Reading("tf_ssd", why, names, _categories(signature, declared), size=signature.picture_size())


def _has_axes(port: Port, axes: int) -> bool:
    """A count may have an axis of its own."""
    return len(port.shape) == axes or (axes == 1 and fits(port.shape, (None, 1), may_be_open=True))


def _categories(signature: Signature, declared: Declared) -> tuple[str, ...]:
    """The names of classes that are numbered by COCO's ids, where 0 is none; as many as somebody names, if so."""
    return category_names(signature, known_classes(signature, declared) or len(COCO_CATEGORIES))


def read_torchvision(signature: Signature, declared: Declared) -> Reading | None:
    """torchvision: boxes, labels and scores of one picture, without an axis for it; as declared, also with one."""
    for axes in _axes_for_pictures(declared, "torchvision"):
        boxes = ports_with(signature.outputs, axes=2 + axes, last=4, may_be_open=declared.format == "torchvision")
        flat = [port for port in signature.outputs if len(port.shape) == 1 + axes]
        labels = [port for port in flat if "int" in port.onnx_type]
        if len(signature.outputs) == 3 and (len(boxes), len(flat), len(labels)) == (1, 2, 1):
            [scores] = [port for port in flat if port is not labels[0]]
            names = (labels[0].name, boxes[0].name, scores.name)
            why, categories = "boxes, labels and scores of one picture", _categories(signature, declared)
            return Reading("torchvision", why, names, categories, size=signature.picture_size(), alone=not axes)
    return None


def read_ppyoloe(signature: Signature, declared: Declared) -> Reading | None:
    """ppyoloe: rows of one picture and their number, without an axis for it; as declared, also with one."""
    for axes in _axes_for_pictures(declared, "ppyoloe"):
        rows = ports_with(signature.outputs, axes=2 + axes, last=6, may_be_open=declared.format == "ppyoloe")
        counts = [port for port in signature.outputs if len(port.shape) == 1 + axes and "int" in port.onnx_type]
        if len(signature.outputs) == 2 and len(rows) == len(counts) == 1:
            why = "rows of class, score and box of one picture, and a count"
            named = unseen_classes(signature, declared, len(COCO_CLASSES))
            names = (rows[0].name, counts[0].name)
            size = signature.picture_size()
            return Reading("ppyoloe", why, names, named, size=size, picture=STRETCHED, alone=not axes)
    return None


def _axes_for_pictures(declared: Declared, name: Format) -> tuple[int, ...]:
    """How many axes stand before those of the format: if a stage has put in one, only the user knows the format."""
    return (0, 1) if declared.format == name else (0,)


def read_ppyoloe_raw(signature: Signature, declared: Declared) -> Reading | None:
    """ppyoloe_raw: boxes, and scores the other way round, for each cell of the picture."""
    is_declared, size = declared.format == "ppyoloe_raw", signature.picture_size()
    boxes = boxes_of(signature.outputs, may_be_open=is_declared)
    if boxes is None or [len(port.shape) for port in signature.outputs] != [3, 3]:
        return None
    [scores] = [port for port in signature.outputs if port is not boxes]
    (_, anchors, _), (_, classes, others) = boxes.shape, scores.shape
    known = known_classes(signature, declared)
    if not is_declared:
        is_each_cell = size is not None and anchors == others == cells_of(*size)
        if not is_each_cell or classes != (known or len(COCO_CLASSES)):
            return None
    count = classes if isinstance(classes, int) else known
    if not count or (isinstance(anchors, int) and isinstance(others, int) and anchors != others):
        return None
    why = f"boxes of {anchors or 'any number of'} anchors, and {count} rows of scores"
    names = (boxes.name, scores.name)
    return Reading("ppyoloe_raw", why, names, class_names(signature, count), size=size, picture=STRETCHED)
