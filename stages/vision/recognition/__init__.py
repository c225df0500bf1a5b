"""Recognises a model's format from its inputs, outputs and metadata. Pure; the model itself is opened elsewhere.

    metadata of Ultralytics' exporter (task, names, kpt_shape)       believed where the shapes agree
    else the shapes, for a picture of w x h with cells = w*h/64 + w*h/256 + w*h/1024

    (B, 84, cells)      (B, 56, cells)                  yolo, yolo_pose: of COCO; others by the metadata
    (B, cells, 85)      (B, 3 * cells, 5 + C)           yolox; yolo_objectness (YOLOv5, YOLOv7)
    (B, 3 * cells, 5 + C + 3K), K declared              yolo_objectness (YOLOv7-pose)
    (B, cells, 80 + 32), cells of 8, 16, 32 (, 64)      nanodet: of COCO; others by the metadata
    four (B, cells, C), four (B, cells, 32)             picodet
    (B, cells, N)                                       yolox with N - 5 classes, or yolo turned: who knows
    (B, N, 6 + 3K), N not cells                         yolo_end2end
    (n, 7), called `output` (n, 7), uint8 picture       yolo_v7_rows, nas_flat
    (n, 6 + 3K), uint8 picture                          nas_pose_flat
    (B, 1) (B, N, 4) (B, N) (B, N, K, 3)                nas_pose_batch
    (B, 1) (B, N, 4) (B, N) (B, N)                      efficient_nms
    (n, 4) (n,) (n,)    (n, 6) (k,), without a batch    torchvision, ppyoloe
    (B, cells, 4) (B, 80, cells)                        ppyoloe_raw: of COCO; others by the metadata
    three each of (.., 1) (.., 4) (.., 10)              scrfd
    num_detections, detection_boxes, ... (four)         tf_ssd
    (B, N, 5) (B, N, K, 3)                              rtmo
    (B, N, 84), N not cells                             rtdetr_rows: of COCO; others by the metadata
    (B, N, 6), metadata of RT-DETR                      rtdetr_end2end
    (B, N) (B, N, 4) (B, N), input orig_target_sizes    rtdetr
    dets, labels        pred_boxes, logits              detr; detr or detr_softmax by the number of logits
    (B, K, 2w) (B, K, 2h)   (B, K, h/4, w/4)            simcc, heatmaps: of COCO; others if K is declared
    center, kpt_heatmap, ... (six)                      movenet_multipose
    (B, 6, 56)   (1, 1, 17, 3)                          movenet_people, movenet_single
    (B, C)                                              classes

The metadata that `camgraph model prepare` wrote counts before the shapes (`prepared`). If two readings fit, or none,
nobody guesses: the graph must give `format`. A declared format is believed if no side of a shape contradicts it.

Start with `reading.py` (the result) and `signature.py` (the facts of a file that it is made of).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.recognition.classifiers import read_classifier
from camgraph.stages.vision.recognition.detectors import (
    read_ppyoloe,
    read_ppyoloe_raw,
    read_tf_ssd,
    read_torchvision,
)
from camgraph.stages.vision.recognition.distances import read_nanodet, read_picodet, read_scrfd
from camgraph.stages.vision.recognition.pose_models import read_counted, read_movenet, read_nas_flat, read_rtmo
from camgraph.stages.vision.recognition.prepared import prepared_format, prepared_picture
from camgraph.stages.vision.recognition.reading import EXPECTED, FORMATS, MIXING, Declared, Format, Picture, Reading
from camgraph.stages.vision.recognition.signature import Port, Signature
from camgraph.stages.vision.recognition.top_down import read_heatmaps, read_simcc
from camgraph.stages.vision.recognition.transformers import (
    read_detr,
    read_detr_softmax,
    read_rtdetr,
    read_rtdetr_end2end,
    read_rtdetr_rows,
)
from camgraph.stages.vision.recognition.yolo_heads import read_heads
from camgraph.stages.vision.recognition.yolo_rows import (
    read_end2end,
    read_nas_rows,
    read_objectness,
    read_objectness_pose,
    read_v7_rows,
    read_yolox,
)

__all__ = [
    "FORMATS",
    "MIXING",
    "Declared",
    "Format",
    "Picture",
    "Port",
    "Reading",
    "Signature",
    "Unrecognised",
    "recognise",
]  # fmt: skip

_READERS: tuple[Callable[[Signature, Declared], Reading | None], ...] = (
    read_heads,
    read_end2end,
    read_yolox,
    read_nanodet,
    read_picodet,
    read_scrfd,
    read_objectness,
    read_objectness_pose,
    read_v7_rows,
    read_nas_rows,
    read_nas_flat,
    read_counted,
    read_tf_ssd,
    read_torchvision,
    read_ppyoloe,
    read_ppyoloe_raw,
    read_rtmo,
    read_rtdetr_rows,
    read_rtdetr_end2end,
    read_rtdetr,
    read_detr,
    read_detr_softmax,
    read_simcc,
    read_heatmaps,
    read_movenet,
    read_classifier,
)
_NOTHING_DECLARED = Declared()


class Unrecognised(ValueError):
    """The format cannot be recognised; the text describes the model, and says which settings to state.

    `outputs`: those of the model, for people; `others`: the formats that fit instead of the declared one; `in_graph`:
    advice for graphs alone, to be put behind the text.
    """

    def __init__(self, text: str, *, outputs: str = "", others: str = "", in_graph: str = "") -> None:
        self.outputs = outputs
        self.others = others
        self.in_graph = in_graph
        super().__init__(text)


def recognise(signature: Signature, declared: Declared = _NOTHING_DECLARED) -> Reading:
    """The model's reading. Raises Unrecognised if nothing fits, if several readings do, or not the declared one."""
    signature = _chosen(signature, declared)
    if declared.format is None:
        declared = declared._replace(format=prepared_format(signature))
    found = _readings(signature, declared)
    if len(found) == 1:
        reading = found[0]
        return _named(replace(reading, picture=prepared_picture(signature, reading.picture)), declared)
    raise _unrecognised(signature, declared, found)


def _chosen(signature: Signature, declared: Declared) -> Signature:
    """With the outputs that are declared. Raises Unrecognised if there is no such output."""
    if declared.outputs is None:
        return signature
    ports = {port.name: port for port in signature.outputs}
    missing = [shown(name) for name in declared.outputs if name not in ports]
    if missing:
        there = ", ".join(map(shown, ports)) or "none"
        raise Unrecognised(f"it has no output `{'`, `'.join(missing)}`; its outputs are {there}")
    return replace(signature, outputs=tuple(ports[name] for name in declared.outputs))


def _readings(signature: Signature, declared: Declared) -> list[Reading]:
    """All readings that fit the declared facts."""
    floats = {port.name for port in signature.outputs if port.holds_floats}
    return [reading for reading in _by_shapes(signature, declared) if floats.issuperset(reading.of_floats)]


def _by_shapes(signature: Signature, declared: Declared) -> list[Reading]:
    """The same, also if boxes, scores or joints are whole numbers."""
    numbers = {port.name for port in signature.outputs if port.holds_numbers}
    found = [reading for read in _READERS if (reading := read(signature, declared)) is not None]
    return [
        reading
        for reading in found
        if numbers.issuperset(reading.outputs)
        and declared.format in (None, reading.format)
        and declared.keypoints in (None, reading.keypoints)
        and declared.point_values in (None, reading.point_values)
    ]


def _unrecognised(signature: Signature, declared: Declared, found: Sequence[Reading]) -> Unrecognised:
    outputs = ", ".join(map(_shown, signature.outputs))
    if not found and (whole := _by_shapes(signature, declared)):
        return Unrecognised(_of_whole_numbers(signature, whole[0]))
    if found:
        differ = "format" if len({reading.format for reading in found}) > 1 else "keypoints"
        return Unrecognised(f"its outputs ({outputs}) can be read as {_either(found)}; say which: `{differ}`")
    return _of_no_format(signature, declared, outputs)


def _of_no_format(signature: Signature, declared: Declared, outputs: str) -> Unrecognised:
    if declared.format is None:
        task = shown(signature.metadata.get("task", ""))
        message = f"its outputs ({outputs})"
        message += f" (its metadata says task `{task}`)" if task else ""
        message += _points_in_words(declared) + " are of no known format"
    else:
        message = f"its outputs ({outputs}) are not those of `format: {declared.format}`{_points_in_words(declared)}"
    if freely := _readings(signature, declared._replace(keypoints=None, point_values=None)):
        wrong = "keypoints" if declared.keypoints is not None else "point_values"
        return Unrecognised(f"{message}; without `{wrong}` they are read as {_either(freely)}")
    if alone := _alone(signature, declared):
        return Unrecognised(message + alone, in_graph=": name it in `outputs`")
    if declared.format is None:
        return Unrecognised(f"{message}; known are {', '.join(FORMATS)}")
    if others := _readings(signature, declared._replace(format=None)):
        read = _either(others)
        return Unrecognised(f"{message}; without it they are read as {read}", outputs=outputs, others=read)
    return Unrecognised(message + _expected(signature, declared.format))


def _of_whole_numbers(signature: Signature, reading: Reading) -> str:
    """Why a quantized model cannot be read whose last node gives its own numbers instead of boxes and scores."""
    wrong = [port for port in signature.outputs if port.name in reading.of_floats and not port.holds_floats]
    return (
        f"its outputs fit `{reading.format}`, but boxes, scores and joints must be floats, and it gives whole numbers "
        f"in {', '.join(f'`{shown(port.name)}` ({shown(port.onnx_type)})' for port in wrong)}: end the model with "
        "DequantizeLinear, or quantize it with `camgraph model quantize`, which leaves its end in floats"
    )


def _points_in_words(declared: Declared) -> str:
    if not declared.keypoints:
        return ""
    each = f" of {declared.point_values} values" if declared.point_values else ""
    return f" with {declared.keypoints} keypoints{each}"


def _either(readings: Sequence[Reading]) -> str:
    return " or as ".join(map(_in_words, readings))


def _shown(port: Port) -> str:
    kind = "" if port.holds_floats else f" {shown(port.onnx_type)}"
    return f"{shown(port.name)}{kind} {list(port.shape)}"


def _alone(signature: Signature, declared: Declared) -> str:
    """Which of several outputs could be read by itself."""
    if len(signature.outputs) == 1:
        return ""
    found = {port: _readings(replace(signature, outputs=(port,)), declared) for port in signature.outputs}
    could = ", ".join(
        f"`{shown(port.name)}` could be {' or '.join(map(_in_words, of))}" for port, of in found.items() if of
    )
    return f"; alone, {could}" if could else ""


def _expected(signature: Signature, name: Format) -> str:
    """The outputs of a format that does not fit."""
    is_open = any(not isinstance(side, int) for port in signature.outputs for side in port.shape[1:])
    where_open = "; where they are open, `keypoints` and `class_names` say how many there are" if is_open else ""
    return f", which are {EXPECTED[name]}{where_open}"


def _in_words(reading: Reading) -> str:
    return f"{reading.format} ({reading.why})"


def _named(reading: Reading, declared: Declared) -> Reading:
    """With the names that a person gave. Raises Unrecognised if these are too few or too many."""
    if declared.classes is None:
        return reading
    if len(declared.classes) != len(reading.classes):
        raise Unrecognised(
            f"`class_names` has {len(declared.classes)} names, and the model {len(reading.classes)} classes"
        )
    return replace(reading, classes=declared.classes)
