"""Pose models other than YOLO's heads: YOLO-NAS-Pose, RTMO, MoveNet; and the counted detections of EfficientNMS."""

from __future__ import annotations

from collections.abc import Sequence

from stages.vision.decoding.movenet_multipose import HEAD_CHANNELS
from stages.vision.recognition.reading import COCO_CLASSES, PERSON, Picture, Reading, Stated
from stages.vision.recognition.signature import Port, Signature

_NAS_PICTURE = Picture("rgb", 1.0, "corner", 127)
_RTMO_PICTURE = Picture("bgr", 1.0, "corner")
_MOVENET_PICTURE = Picture("rgb", 1.0)
_COCO_POINTS = 17


def read_nas_flat(signature: Signature, stated: Stated) -> Reading | None:
    """nas_pose_flat: the rows of all images in one array; its pictures are uint8, which tells it from others."""
    port, picture = signature.only_output(2), signature.picture_port()
    if port is None or picture is None or not isinstance(port.shape[1], int) or isinstance(port.shape[0], int):
        return None
    points = stated.keypoints or (port.shape[1] - 6) // 3
    if points < 1 or port.shape[1] != 6 + 3 * points:
        return None
    if picture.onnx_type != "tensor(uint8)" and stated.format != "nas_pose_flat":
        return None
    why = f"rows of image, box, score, {points} points of 3, from pictures of uint8"
    return Reading("nas_pose_flat", why, (port.name,), PERSON, points, 3, signature.picture_size(), _NAS_PICTURE)


def read_counted(signature: Signature, stated: Stated) -> Reading | None:
    """nas_pose_batch or efficient_nms: four outputs, of which one counts the rows of the others."""
    boxes = _with(signature.outputs, axes=3, last=4)
    counts = [port for port in _with(signature.outputs, axes=2, last=1) if _is_count(port)]
    if len(signature.outputs) != 4 or len(boxes) != 1 or len(counts) != 1:
        return None
    flat = [port for port in signature.outputs if len(port.shape) == 2 and port is not counts[0]]
    joints = _with(signature.outputs, axes=4, last=3)
    if len(flat) == 1 and len(joints) == 1:
        points = _count_of(joints[0].shape[2], stated)
        names = (counts[0].name, boxes[0].name, flat[0].name, joints[0].name)
        why = f"a count, boxes, scores and {points} joints of 3"
        return Reading("nas_pose_batch", why, names, PERSON, points, 3, signature.picture_size(), _NAS_PICTURE)
    return _efficient_nms(signature, counts[0], boxes[0], flat) if len(flat) == 2 else None


def _efficient_nms(signature: Signature, count: Port, boxes: Port, flat: Sequence[Port]) -> Reading:
    scores, classes = sorted(flat, key=lambda port: "int" in port.onnx_type or "class" in port.name)
    names = (count.name, boxes.name, scores.name, classes.name)
    why = "a count, boxes, scores and classes, as EfficientNMS gives them"
    return Reading("efficient_nms", why, names, COCO_CLASSES, size=signature.picture_size())


def read_rtmo(signature: Signature, stated: Stated) -> Reading | None:
    """rtmo: boxes with scores, and points for each."""
    dets, points = _with(signature.outputs, axes=3, last=5), _with(signature.outputs, axes=4, last=3)
    if len(signature.outputs) != 2 or len(dets) != 1 or len(points) != 1:
        return None
    number = _count_of(points[0].shape[2], stated)
    why = f"boxes with scores, and {number} points of 3 for each"
    names = (dets[0].name, points[0].name)
    return Reading("rtmo", why, names, PERSON, number, 3, signature.picture_size(), _RTMO_PICTURE)


def read_movenet(signature: Signature, stated: Stated) -> Reading | None:
    """movenet_multipose by the names of its heads, movenet_people and movenet_single by their shapes."""
    names, size = tuple(port.name for port in signature.outputs), signature.picture_size()
    if set(names) == set(HEAD_CHANNELS):
        why, heads = "the six heads of MoveNet MultiPose", tuple(HEAD_CHANNELS)
        return Reading("movenet_multipose", why, heads, PERSON, _COCO_POINTS, 3, size, _MOVENET_PICTURE)
    if len(names) != 1:
        return None
    shape = signature.outputs[0].shape
    if len(shape) == 3 and shape[1:] == (6, 56):
        why = "six rows of 17 points, box and score"
        return Reading("movenet_people", why, names, PERSON, _COCO_POINTS, 3, size, _MOVENET_PICTURE)
    if len(shape) == 4 and shape[1:] == (1, _COCO_POINTS, 3):
        why = "17 points of y, x, confidence"
        return Reading("movenet_single", why, names, PERSON, _COCO_POINTS, 3, size, _MOVENET_PICTURE)
    return None


def _with(ports: Sequence[Port], *, axes: int, last: int) -> list[Port]:
    return [port for port in ports if len(port.shape) == axes and port.shape[-1] == last]


def _is_count(port: Port) -> bool:
    return "int" in port.onnx_type or "num" in port.name


def _count_of(side: object, stated: Stated) -> int:
    return side if isinstance(side, int) else stated.keypoints or _COCO_POINTS
