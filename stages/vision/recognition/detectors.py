"""Detectors of TensorFlow, torchvision and PaddleDetection."""

from __future__ import annotations

from camgraph.stages.vision.recognition.reading import (
    COCO_CATEGORIES,
    Declared,
    Reading,
    category_names,
    known_classes,
)
from camgraph.stages.vision.recognition.signature import Port, Signature, fits

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
