"""Pose models other than YOLO's heads: YOLO-NAS-Pose, RTMO, MoveNet; and the counted detections of EfficientNMS."""

from __future__ import annotations

from collections.abc import Sequence

from camgraph.stages.vision.decoding.movenet import HEAD_CHANNELS
from camgraph.stages.vision.recognition.reading import (
    COCO_CLASSES,
    MOST_POINTS,
    PERSON,
    Declared,
    Picture,
    Reading,
    point_shape,
    unseen_classes,
)
from camgraph.stages.vision.recognition.signature import Port, Side, Signature, fits, ports_with

_NAS_PICTURE = Picture("rgb", 1.0, "corner", 127)
_RTMO_PICTURE = Picture("bgr", 1.0, "corner")
_MOVENET_PICTURE = Picture("rgb", 1.0)
_COCO_POINTS = 17


def read_nas_flat(signature: Signature, declared: Declared) -> Reading | None:
    """nas_pose_flat: the rows of all images in one array; its pictures are uint8, which tells it from others."""
    port, picture = signature.only_output(2), signature.picture_port()
    if port is None or picture is None:
        return None
    is_declared = declared.format == "nas_pose_flat"
    if not is_declared and (isinstance(port.shape[0], int) or picture.onnx_type != "tensor(uint8)"):
        return None
    points = _points_behind(6, port.shape[1], signature, declared)
    if points is None:
        return None
    why = f"rows of image, box, score, {points} points of 3" + ("" if is_declared else ", from pictures of uint8")
    return Reading("nas_pose_flat", why, (port.name,), PERSON, points, 3, signature.picture_size(), _NAS_PICTURE)


def read_counted(signature: Signature, declared: Declared) -> Reading | None:
    """nas_pose_batch or efficient_nms: four outputs, one of which counts the rows of the others."""
    may_be_open = declared.format in ("nas_pose_batch", "efficient_nms")
    boxes = ports_with(signature.outputs, axes=3, last=4, may_be_open=may_be_open)
    counts = [port for port in ports_with(signature.outputs, axes=2, last=1) if _is_count(port)]
    if not counts and may_be_open:
        counts = [port for port in signature.outputs if len(port.shape) == 2 and "num" in port.name]
    if len(signature.outputs) != 4 or len(boxes) != 1 or len(counts) != 1:
        return None
    flat = [port for port in signature.outputs if len(port.shape) == 2 and port is not counts[0]]
    joints = ports_with(signature.outputs, axes=4, last=3, may_be_open=may_be_open)
    if len(flat) == 2:
        return _efficient_nms(signature, declared, counts[0], boxes[0], flat)
    points = _points_of(joints[0], signature, declared) if len(flat) == len(joints) == 1 else None
    if points is None:
        return None
    names = (counts[0].name, boxes[0].name, flat[0].name, joints[0].name)
    why = f"a count, boxes, scores and {points} joints of 3"
    return Reading("nas_pose_batch", why, names, PERSON, points, 3, signature.picture_size(), _NAS_PICTURE)


def _efficient_nms(signature: Signature, declared: Declared, count: Port, boxes: Port, flat: Sequence[Port]) -> Reading:
    scores, classes = sorted(flat, key=lambda port: "int" in port.onnx_type or "class" in port.name)
    names = (count.name, boxes.name, scores.name, classes.name)
    why = "a count, boxes, scores and classes, as EfficientNMS gives them"
    named = unseen_classes(signature, declared, len(COCO_CLASSES))
    return Reading("efficient_nms", why, names, named, size=signature.picture_size())


def read_rtmo(signature: Signature, declared: Declared) -> Reading | None:
    """rtmo: boxes with scores, and points for each."""
    may_be_open = declared.format == "rtmo"
    dets = ports_with(signature.outputs, axes=3, last=5, may_be_open=may_be_open)
    joints = ports_with(signature.outputs, axes=4, last=3, may_be_open=may_be_open)
    if len(signature.outputs) != 2 or len(dets) != 1 or len(joints) != 1:
        return None
    points = _points_of(joints[0], signature, declared)
    if points is None:
        return None
    why = f"boxes with scores, and {points} points of 3 for each"
    names = (dets[0].name, joints[0].name)
    return Reading("rtmo", why, names, PERSON, points, 3, signature.picture_size(), _RTMO_PICTURE)


def read_movenet(signature: Signature, declared: Declared) -> Reading | None:
    """movenet_multipose by the names of its heads, movenet_people and movenet_single by their shapes."""
    names, size = tuple(port.name for port in signature.outputs), signature.picture_size()
    if set(names) == set(HEAD_CHANNELS):
        why, heads = "the six heads of MoveNet MultiPose", tuple(HEAD_CHANNELS)
        return Reading("movenet_multipose", why, heads, PERSON, _COCO_POINTS, 3, size, _MOVENET_PICTURE)
    if len(names) != 1:
        return None
    shape = signature.outputs[0].shape
    if fits(shape, (None, 6, 56), may_be_open=declared.format == "movenet_people"):
        why = "six rows of 17 points, box and score"
        return Reading("movenet_people", why, names, PERSON, _COCO_POINTS, 3, size, _MOVENET_PICTURE)
    if fits(shape, (None, 1, _COCO_POINTS, 3), may_be_open=declared.format == "movenet_single"):
        why = "17 points of y, x, confidence"
        return Reading("movenet_single", why, names, PERSON, _COCO_POINTS, 3, size, _MOVENET_PICTURE)
    return None


def _is_count(port: Port) -> bool:
    return "int" in port.onnx_type or "num" in port.name


def _points_of(joints: Port, signature: Signature, declared: Declared) -> int | None:
    """The number of points of each person; None if that contradicts the declared one."""
    shape, side = point_shape(signature, declared), joints.shape[2]
    if declared.keypoints is not None and isinstance(side, int) and side != declared.keypoints:
        return None
    if isinstance(side, int):
        return side
    return shape[0] if shape else _COCO_POINTS


def _points_behind(first: int, columns: Side, signature: Signature, declared: Declared) -> int | None:
    """How many points of 3 stand in a row behind its ``first`` columns; None if there are none, or none that fit."""
    shape = point_shape(signature, declared)
    if not isinstance(columns, int):
        return shape[0] if shape else None
    points = shape[0] if shape else (columns - first) // 3
    return points if 1 <= points <= MOST_POINTS and columns == first + 3 * points else None
