"""What a model is, read from its inputs, outputs and metadata. Pure; the model itself is opened elsewhere.

    metadata of Ultralytics' exporter (task, names, kpt_shape)       believed where the shapes agree
    else the shapes, for a picture of w x h with cells = w*h/64 + w*h/256 + w*h/1024

    (B, 84, cells)      (B, 56, cells)                  yolo, yolo_pose: of COCO; others by the metadata
    (B, cells, 85)      (B, 3 * cells, 5 + C)           yolox; yolo_objectness (YOLOv5, YOLOv7)
    (B, cells, N)                                       yolox with N - 5 classes, or yolo turned: who knows
    (B, N, 6 + 3K), N not cells                         yolo_end2end
    (n, 7)              (n, 6 + 3K), uint8 picture      yolo_v7_rows, nas_pose_flat
    (B, 1) (B, N, 4) (B, N) (B, N, K, 3)                nas_pose_batch
    (B, 1) (B, N, 4) (B, N) (B, N)                      efficient_nms
    (B, N, 5) (B, N, K, 3)                              rtmo
    center, kpt_heatmap, ... (six)                      movenet_multipose
    (B, 6, 56)   (1, 1, 17, 3)                          movenet_people, movenet_single
    (B, C)                                              classes

What `camgraph model prepare` wrote into the metadata counts before the shapes (`prepared`). Where two readings fit, or
none, nobody guesses: the graph says `format`. What is stated is believed where no side of a shape contradicts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from stages.vision.foreign_text import shown
from stages.vision.recognition.classifiers import read_classifier
from stages.vision.recognition.pose_models import read_counted, read_movenet, read_nas_flat, read_rtmo
from stages.vision.recognition.prepared import prepared_format, prepared_picture
from stages.vision.recognition.reading import FORMATS, Format, Picture, Reading, Stated
from stages.vision.recognition.signature import Port, Signature
from stages.vision.recognition.yolo_heads import read_heads
from stages.vision.recognition.yolo_rows import read_end2end, read_objectness, read_v7_rows, read_yolox

__all__ = ["FORMATS", "Format", "Picture", "Port", "Reading", "Signature", "Stated", "Unrecognised", "recognise"]

_READERS: tuple[Callable[[Signature, Stated], Reading | None], ...] = (
    read_heads,
    read_end2end,
    read_yolox,
    read_objectness,
    read_v7_rows,
    read_nas_flat,
    read_counted,
    read_rtmo,
    read_movenet,
    read_classifier,
)
_NOTHING_STATED = Stated()


class Unrecognised(ValueError):
    """It cannot be said what the model is; the text says what it has, and what to state."""


def recognise(signature: Signature, stated: Stated = _NOTHING_STATED) -> Reading:
    """What the model is. Raises Unrecognised where nothing fits, where several readings do, or not the stated one."""
    if stated.format is None:
        stated = stated._replace(format=prepared_format(signature))
    found = _readings(signature, stated)
    if len(found) == 1:
        reading = found[0]
        return _named(replace(reading, picture=prepared_picture(signature) or reading.picture), stated)
    raise Unrecognised(_text(signature, stated, found))


def _readings(signature: Signature, stated: Stated) -> list[Reading]:
    """All that the model may be, by what is stated."""
    numbers = {port.name for port in signature.outputs if port.holds_numbers}
    found = [reading for read in _READERS if (reading := read(signature, stated)) is not None]
    return [
        reading for reading in found if stated.format in (None, reading.format) and numbers.issuperset(reading.outputs)
    ]


def _text(signature: Signature, stated: Stated, found: Sequence[Reading]) -> str:
    outputs = ", ".join(map(_shown, signature.outputs))
    if found:
        return f"its outputs ({outputs}) can be read as {' or as '.join(map(_said, found))}; say which: `format`"
    if stated.format is not None:
        return f"its outputs ({outputs}) are not those of `format: {stated.format}`{_instead(signature, stated)}"
    task = shown(signature.metadata.get("task", ""))
    known = f" (its metadata says task `{task}`)" if task else ""
    known += f" with {stated.keypoints} keypoints" if stated.keypoints else ""
    return f"its outputs ({outputs}){known} are of no known format; known are {', '.join(FORMATS)}"


def _shown(port: Port) -> str:
    kind = "" if port.holds_numbers else f" {shown(port.onnx_type)}"
    return f"{shown(port.name)}{kind} {list(port.shape)}"


def _instead(signature: Signature, stated: Stated) -> str:
    """What to do about a format that does not fit."""
    others = _readings(signature, stated._replace(format=None))
    if others:
        return f"; without it they are read as {' or as '.join(map(_said, others))}"
    is_open = any(not isinstance(side, int) for port in signature.outputs for side in port.shape[1:])
    return "; where they are open, `keypoints` and `class_names` say how many there are" if is_open else ""


def _said(reading: Reading) -> str:
    return f"{reading.format} ({reading.why})"


def _named(reading: Reading, stated: Stated) -> Reading:
    """With the names that a person gave. Raises Unrecognised where these are too few or too many."""
    if stated.classes is None:
        return reading
    if len(stated.classes) != len(reading.classes):
        raise Unrecognised(
            f"`class_names` has {len(stated.classes)} names, and the model {len(reading.classes)} classes"
        )
    return replace(reading, classes=stated.classes)
