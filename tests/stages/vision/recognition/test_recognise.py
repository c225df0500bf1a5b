"""What models are taken to be, by the signatures that their exporters write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from camgraph.stages.vision.recognition import (
    FORMATS,
    Declared,
    Format,
    Port,
    Reading,
    Signature,
    Unrecognised,
    recognise,
)
from camgraph.stages.vision.recognition.prepared import FORMAT
from camgraph.stages.vision.recognition.reading import (
    COCO_CATEGORIES,
    COCO_CLASSES,
    FIXED_POINTS,
    OF_ANY_VALUES,
    without_effect,
)

FLOAT, UINT8, INT64 = "tensor(float)", "tensor(uint8)", "tensor(int64)"
NCHW_640 = (1, 3, 640, 640)
OPEN = ("batch", 3, "height", "width")

HEADS = {
    "center": 1,
    "kpt_heatmap": 17,
    "kpt_regress": 34,
    "kpt_offset": 34,
    "box_scale": 2,
    "box_offset": 2,
}


def signature(
    shape: tuple[Any, ...], outputs: dict[str, tuple[Any, ...]], kind: str = FLOAT, **metadata: str
) -> Signature:
    """Outputs are floats; those whose names begin with `num` or hold `classes` are integers, and so is `6571`."""
    ports = [
        Port(name, side, INT64 if name.startswith(("num", "6571")) or "classes" in name else FLOAT)
        for name, side in outputs.items()
    ]
    return Signature((Port("images", shape, kind),), tuple(ports), metadata)


POSE = {"task": "pose", "kpt_shape": "[17, 3]", "names": "{0: 'person'}"}
DETECT = {"task": "detect", "names": str(dict(enumerate(COCO_CLASSES)))}

RTDETR = "Ultralytics rtdetr-l model trained on coco.yaml"


FACES = [(side, 2 * (640 // stride) ** 2) for side in (1, 4, 10) for stride in (8, 16, 32)]
"""Columns and rows of SCRFD's outputs."""


def told_a_size(outputs: dict[str, tuple[Any, ...]]) -> Signature:
    """A model with a second input, for the size of the picture."""
    given = signature(("N", 3, 640, 640), outputs)
    return Signature((*given.inputs, Port("orig_target_sizes", ("N", 2), INT64)), given.outputs)


PICODET = {
    **{f"d{n}": (1, cells, 32) for n, cells in enumerate((7600, 1900, 475, 130))},
    **{f"s{n}": (1, cells, 10) for n, cells in enumerate((7600, 1900, 475, 130))},
}
KNOWN: dict[str, tuple[Signature, dict[str, Any]]] = {
    "yolo11n-pose": (
        signature(NCHW_640, {"output0": (1, 56, 8400)}, **POSE),
        {"format": "yolo_pose", "keypoints": 17, "classes": ("person",), "size": (640, 640)},
    ),
    "yolo11n-pose, open": (
        signature(OPEN, {"output0": ("batch", 56, "anchors")}, **POSE),
        {"format": "yolo_pose", "keypoints": 17, "size": None},
    ),
    "pose without metadata": (
        signature(NCHW_640, {"output0": (1, 56, 8400)}),
        {"format": "yolo_pose", "keypoints": 17, "point_values": 3},
    ),
    "pose whose rows are open": (
        signature(OPEN, {"output0": ("batch", "rows", "anchors")}, **POSE),
        {"format": "yolo_pose", "keypoints": 17},
    ),
    "pose of 21 points by half the metadata": (
        signature(NCHW_640, {"output0": (1, 68, 8400)}, kpt_shape="[21, 3]"),
        {"format": "yolo_pose", "keypoints": 21},
    ),
    "pose turned": (
        signature(NCHW_640, {"output0": (1, 8400, 56)}, **POSE),
        {"format": "yolo_pose", "keypoints": 17},
    ),
    "pose of 25 points": (
        signature(NCHW_640, {"output0": (1, 80, 8400)}, task="pose", kpt_shape="[25, 3]", names="{0: 'worker'}"),
        {"format": "yolo_pose", "keypoints": 25, "classes": ("worker",)},
    ),
    "pose of 4 points without visibility, two classes": (
        signature(NCHW_640, {"output0": (1, 14, 8400)}, task="pose", kpt_shape="[4, 2]", names="{0: 'a', 1: 'b'}"),
        {"format": "yolo_pose", "keypoints": 4, "point_values": 2, "classes": ("a", "b")},
    ),
    "yolo11-pose at 1280 with P6": (
        signature((1, 3, 1280, 1280), {"output0": (1, 56, 34000)}, **POSE),
        {"format": "yolo_pose"},
    ),
    "pose end to end": (
        signature(NCHW_640, {"output0": (1, 300, 57)}, **POSE),
        {"format": "yolo_end2end", "keypoints": 17, "classes": ("person",)},
    ),
    "pose end to end, open": (
        signature(OPEN, {"output0": ("batch", 300, 57)}, **POSE),
        {"format": "yolo_end2end", "keypoints": 17},
    ),
    "detector end to end": (
        signature(NCHW_640, {"output0": (1, 300, 6)}, **DETECT),
        {"format": "yolo_end2end", "keypoints": 0, "classes": COCO_CLASSES},
    ),
    "yolo11n": (
        signature(NCHW_640, {"output0": (1, 84, 8400)}, **DETECT),
        {"format": "yolo", "keypoints": 0, "classes": COCO_CLASSES},
    ),
    "yolov8n without metadata": (signature(NCHW_640, {"output0": (1, 84, 8400)}), {"format": "yolo"}),
    "detector of three classes": (
        signature(NCHW_640, {"output0": (1, 7, 8400)}, task="detect", names="{0: 'a', 1: 'b', 2: 'c'}"),
        {"format": "yolo", "classes": ("a", "b", "c")},
    ),
    "yolox-nano": (
        signature((1, 3, 416, 416), {"output": (1, 3549, 85)}),
        {"format": "yolox", "classes": COCO_CLASSES, "size": (416, 416)},
    ),
    "nanodet-plus": (
        signature((1, 3, 416, 416), {"output": (1, 3598, 112)}),
        {"format": "nanodet", "classes": COCO_CLASSES, "size": (416, 416)},
    ),
    "nanodet-plus at 320": (signature((1, 3, 320, 320), {"output": (1, 2125, 112)}), {"format": "nanodet"}),
    "picodet": (
        signature((1, 3, 800, 608), PICODET),
        {"format": "picodet", "outputs": tuple(f"{kind}{n}" for kind in "sd" for n in range(4)), "size": (608, 800)},
    ),
    "nanodet of three classes": (
        signature((1, 3, 320, 320), {"output": (1, 2125, 35)}, names="{0: 'a', 1: 'b', 2: 'c'}"),
        {"format": "nanodet", "classes": ("a", "b", "c")},
    ),
    "scrfd": (
        signature(
            NCHW_640,
            {str(448 + n): (rows, side) for n, (side, rows) in enumerate(FACES)},
        ),
        {
            "format": "scrfd",
            "keypoints": 5,
            "classes": ("face",),
            "alone": True,
            "outputs": tuple(str(448 + n) for n in range(9)),
        },
    ),
    "scrfd, stride by stride, with an axis for pictures": (
        signature(
            NCHW_640,
            {
                f"{name}_{stride}": (1, 2 * (640 // stride) ** 2, side)
                for stride in (32, 8, 16)
                for name, side in (("score", 1), ("box", 4), ("points", 10))
            },
        ),
        {
            "format": "scrfd",
            "alone": False,
            "outputs": tuple(f"{name}_{stride}" for name in ("score", "box", "points") for stride in (8, 16, 32)),
        },
    ),
    "scrfd of any picture": (
        signature((1, 3, "h", "w"), {str(n): (f"rows{n}", side) for n, (side, _) in enumerate(FACES)}),
        {"format": "scrfd", "alone": True, "outputs": tuple(map(str, range(9)))},
    ),
    "yolov7": (
        signature(NCHW_640, {"output": (1, 25200, 85)}),
        {"format": "yolo_objectness", "classes": COCO_CLASSES},
    ),
    "yolov7-pose": (
        signature(NCHW_640, {"output": (1, 25200, 57)}, kpt_shape="[17, 3]"),
        {"format": "yolo_objectness", "keypoints": 17, "classes": ("person",)},
    ),
    "yolov7-w6-pose": (
        signature((1, 3, 960, 960), {"output": (1, 57375, 57)}, kpt_shape="[17, 3]"),
        {"format": "yolo_objectness", "keypoints": 17},
    ),
    "yolov7 of 52 named classes": (
        signature(NCHW_640, {"output": (1, 25200, 57)}, names=str({n: f"thing {n}" for n in range(52)})),
        {"format": "yolo_objectness", "keypoints": 0},
    ),
    "yolov7 end to end": (signature(NCHW_640, {"output": ("n", 7)}), {"format": "yolo_v7_rows"}),
    "efficient nms": (
        signature(
            NCHW_640,
            {"num_dets": (1, 1), "det_boxes": (1, 100, 4), "det_scores": (1, 100), "det_classes": (1, 100)},
        ),
        {"format": "efficient_nms", "outputs": ("num_dets", "det_boxes", "det_scores", "det_classes")},
    ),
    "faster r-cnn of torchvision": (
        signature(OPEN, {"6570": ("k", 4), "6571": ("k",), "6572": ("k",)}),
        {"format": "torchvision", "classes": COCO_CATEGORIES, "outputs": ("6571", "6570", "6572"), "alone": True},
    ),
    "pp-yoloe": (
        signature(NCHW_640, {"multiclass_nms3_0.tmp_0": ("k", 6), "num_of_all": (1,)}),
        {"format": "ppyoloe", "classes": COCO_CLASSES, "alone": True},
    ),
    "pp-yoloe without nms": (
        signature(NCHW_640, {"concat_14.tmp_0": (1, 80, 8400), "tmp_20": (1, 8400, 4)}),
        {"format": "ppyoloe_raw", "classes": COCO_CLASSES, "outputs": ("tmp_20", "concat_14.tmp_0"), "alone": False},
    ),
    "pp-yoloe of two classes without nms": (
        signature(NCHW_640, {"boxes": (1, 8400, 4), "scores": (1, 2, 8400)}, names="{0: 'a', 1: 'b'}"),
        {"format": "ppyoloe_raw", "classes": ("a", "b")},
    ),
    "ssd of tensorflow": (
        signature(
            (1, "h", "w", 3),
            {
                "detection_anchor_indices": (1, 100),
                "detection_boxes": (1, 100, 4),
                "detection_classes": (1, 100),
                "detection_scores": (1, 100),
                "num_detections": (1,),
                "raw_detection_boxes": (1, 51150, 4),
            },
            UINT8,
        ),
        {
            "format": "tf_ssd",
            "classes": COCO_CATEGORIES,
            "outputs": ("num_detections", "detection_boxes", "detection_scores", "detection_classes"),
        },
    ),
    "ssd of tensorflow 1": (
        signature(
            ("unk__1", "h", "w", 3),
            {
                "num_detections:0": ("unk__2",),
                "detection_boxes:0": ("unk__3", "unk__4", "unk__5"),
                "detection_scores:0": ("unk__6", "unk__7"),
                "detection_classes:0": ("unk__8", "unk__9"),
            },
            UINT8,
            names="{0: 'background', 1: 'person'}",
        ),
        {"format": "tf_ssd", "classes": ("background", "person")},
    ),
    "yolo-nas, flat": (
        signature(NCHW_640, {"graph2_flat_predictions": ("rows", 7)}, UINT8),
        {"format": "nas_flat", "classes": COCO_CLASSES, "keypoints": 0},
    ),
    "yolo-nas, flat, whose preprocessing is not in the model": (
        signature(NCHW_640, {"graph2_flat_predictions": ("rows", 7)}),
        {"format": "nas_flat"},
    ),
    "yolo-nas, batch": (
        signature(
            NCHW_640,
            {
                "graph2_num_predictions": (1, 1),
                "graph2_pred_boxes": (1, 300, 4),
                "graph2_pred_scores": (1, 300),
                "graph2_pred_classes": (1, 300),
            },
            UINT8,
        ),
        {"format": "efficient_nms", "classes": COCO_CLASSES},
    ),
    "yolo-nas-pose, batch": (
        signature(
            NCHW_640,
            {"num": (1, 1), "boxes": (1, 100, 4), "scores": (1, 100), "joints": (1, 100, 17, 3)},
            UINT8,
        ),
        {"format": "nas_pose_batch", "keypoints": 17, "outputs": ("num", "boxes", "scores", "joints")},
    ),
    "yolo-nas-pose, flat": (
        signature(NCHW_640, {"graph2_flat": ("Concat_rows", 57)}, UINT8),
        {"format": "nas_pose_flat", "keypoints": 17},
    ),
    "rtmo": (
        signature(OPEN, {"dets": ("batch", "n", 5), "keypoints": ("batch", "n", 17, 3)}),
        {"format": "rtmo", "keypoints": 17, "outputs": ("dets", "keypoints")},
    ),
    "rt-detr of ultralytics": (
        signature(NCHW_640, {"output0": (1, 300, 84)}, **DETECT, description=RTDETR),
        {"format": "rtdetr_rows", "classes": COCO_CLASSES},
    ),
    "rt-detr of ultralytics, open": (
        signature(OPEN, {"output0": ("batch", 300, 84)}, **DETECT, description=RTDETR),
        {"format": "rtdetr_rows", "classes": COCO_CLASSES, "size": None},
    ),
    "rt-detr of newer ultralytics": (
        signature(NCHW_640, {"output0": (1, 300, 6)}, **DETECT, description=RTDETR),
        {"format": "rtdetr_end2end", "classes": COCO_CLASSES},
    ),
    "rt-detr of newer ultralytics, open, by its head": (
        signature(OPEN, {"output0": ("batch", 300, 6)}, **DETECT, head="RTDETRDecoder"),
        {"format": "rtdetr_end2end", "classes": COCO_CLASSES},
    ),
    "yolo end to end of two classes": (
        signature(NCHW_640, {"o": (1, 300, 6)}, task="detect", names="{0: 'a', 1: 'b'}", description="YOLO26n"),
        {"format": "yolo_end2end", "classes": ("a", "b")},
    ),
    "boxes and 80 scores of a transformer": (
        signature(NCHW_640, {"output0": (1, 300, 84)}),
        {"format": "rtdetr_rows", "classes": COCO_CLASSES},
    ),
    "d-fine": (
        told_a_size({"labels": ("N", 300), "boxes": ("N", 300, 4), "scores": ("N", 300)}),
        {"format": "rtdetr", "classes": COCO_CLASSES, "outputs": ("labels", "boxes", "scores")},
    ),
    "rf-detr": (
        signature((1, 3, 560, 560), {"dets": (1, 300, 4), "labels": (1, 300, 91)}),
        {"format": "detr", "classes": COCO_CATEGORIES, "outputs": ("dets", "labels")},
    ),
    "rf-detr of two named classes, with masks": (
        signature(
            (1, 3, 560, 560),
            {"dets": (1, 300, 4), "labels": (1, 300, 3), "masks": (1, 300, 140, 140)},
            names="{0: 'a', 1: 'b'}",
        ),
        {"format": "detr", "classes": ("a", "b"), "outputs": ("dets", "labels")},
    ),
    "rf-detr of four classes": (
        signature((1, 3, 560, 560), {"dets": (1, 300, 4), "labels": (1, 300, 4)}),
        {"format": "detr", "outputs": ("dets", "labels")},
    ),
    "rt-detr of transformers": (
        signature(OPEN, {"logits": ("batch", 300, 80), "pred_boxes": ("batch", 300, 4)}),
        {"format": "detr", "classes": COCO_CLASSES, "outputs": ("pred_boxes", "logits")},
    ),
    "detr of transformers": (
        signature(OPEN, {"logits": ("batch", 100, 92), "pred_boxes": ("batch", 100, 4)}),
        {"format": "detr_softmax", "classes": COCO_CATEGORIES, "outputs": ("pred_boxes", "logits")},
    ),
    "detr of two named classes": (
        signature(OPEN, {"logits": ("b", 100, 3), "pred_boxes": ("b", 100, 4)}, names="{0: 'a', 1: 'b'}"),
        {"format": "detr_softmax", "classes": ("a", "b")},
    ),
    "rtmpose": (
        signature(("batch", 3, 256, 192), {"simcc_x": ("batch", 17, 384), "simcc_y": ("batch", 17, 512)}),
        {"format": "simcc", "keypoints": 17, "outputs": ("simcc_x", "simcc_y")},
    ),
    "rtmpose, square, of 133 points": (
        signature(("batch", 3, 256, 256), {"simcc_y": ("batch", 133, 512), "simcc_x": ("batch", 133, 512)}),
        {"format": "simcc", "keypoints": 133, "outputs": ("simcc_x", "simcc_y")},
    ),
    "rtmpose without names": (
        signature((1, 3, 256, 192), {"b": (1, 26, 512), "a": (1, 26, 384)}),
        {"format": "simcc", "keypoints": 26, "outputs": ("a", "b")},
    ),
    "vitpose": (
        signature(("batch", 3, 256, 192), {"heatmaps": ("batch", 17, 64, 48)}),
        {"format": "heatmaps", "keypoints": 17, "size": (192, 256)},
    ),
    "hrnet of 133 points": (
        signature((1, 3, 384, 288), {"output": (1, 133, 96, 72)}, kpt_shape="[133, 3]"),
        {"format": "heatmaps", "keypoints": 133},
    ),
    "movenet multipose heads": (
        signature(("b", "h", "w", 3), {name: ("b", n, "r", "c") for name, n in HEADS.items()}, UINT8),
        {"format": "movenet_multipose", "keypoints": 17},
    ),
    "movenet multipose": (
        signature((1, "h", "w", 3), {"output_0": (1, 6, 56)}, "tensor(int32)"),
        {"format": "movenet_people"},
    ),
    "movenet lightning": (
        signature((1, 192, 192, 3), {"output_0": (1, 1, 17, 3)}, "tensor(int32)"),
        {"format": "movenet_single", "size": (192, 192)},
    ),
    "classifier": (
        signature((1, 3, 224, 224), {"output0": (1, 2)}, task="classify", names="{0: 'standing', 1: 'fallen'}"),
        {"format": "classes", "classes": ("standing", "fallen")},
    ),
    "classifier, open batch": (
        signature(("n", 3, 224, 224), {"probabilities": ("n", 1000)}),
        {"format": "classes", "why": "1000 scores a picture"},
    ),
    "classifier whose open sides have a name each": (
        signature(("unk__653", 224, 224, 3), {"outputs": ("unk__654", 2)}),
        {"format": "classes"},
    ),
    "classifier of PaddlePaddle": (
        signature((None, 3, "?", "?"), {"o": (None, 4)}, character="0\n90\n180\n270"),
        {"format": "classes", "classes": ("0", "90", "180", "270")},
    ),
    "re-identification": (
        signature(("n", 3, 256, 128), {"o": ("n", 512)}),
        {
            "format": "classes",
            "why": "512 numbers a picture without names: scores, or an appearance for `add_embeddings`",
        },
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_read(name: str) -> None:
    given, expected = KNOWN[name]
    reading = recognise(given)
    assert {key: getattr(reading, key) for key in expected} == expected
    assert reading.why


def test_every_format_is_read_somewhere() -> None:
    assert {expected["format"] for _, expected in KNOWN.values()} == set(FORMATS)


@pytest.mark.parametrize("name", KNOWN)
def test_only_the_right_format_may_be_declared(name: str) -> None:
    given, expected = KNOWN[name]
    assert recognise(given, Declared(format=expected["format"])).format == expected["format"]
    wrong = "rtmo" if expected["format"] != "rtmo" else "yolox"
    with pytest.raises(Unrecognised, match=f"not those of `format: {wrong}`"):
        recognise(given, Declared(format=wrong))


def test_pictures_are_stretched_for_models_trained_with_such() -> None:
    stretched = {expected["format"] for given, expected in KNOWN.values() if recognise(given).picture.fit == "stretch"}
    detr = {"rtdetr_rows", "rtdetr_end2end", "rtdetr", "detr"}
    assert stretched == {*detr, "nanodet", "picodet", "ppyoloe", "ppyoloe_raw"}


def test_picture_defaults_of_each_format() -> None:
    def of(name: str) -> tuple[Any, ...]:
        picture = recognise(KNOWN[name][0]).picture
        return picture.order, picture.scale, picture.align, picture.pad

    assert of("yolo11n-pose") == ("rgb", None, "centre", 114)
    assert of("scrfd") == ("rgb", None, "corner", 0)
    assert of("nanodet-plus") == ("bgr", None, "centre", 114)
    assert of("yolox-nano") == of("rtmo") == ("bgr", 1.0, "corner", 114)
    assert of("yolo-nas-pose, flat") == of("yolo-nas-pose, batch") == ("rgb", 1.0, "corner", 127)
    assert of("movenet lightning") == ("rgb", 1.0, "centre", 114)


UNKNOWN: dict[str, tuple[Signature, str]] = {
    "segmentation": (
        signature(NCHW_640, {"output0": (1, 116, 8400), "output1": (1, 32, 160, 160)}, task="segment"),
        r"its metadata says task `segment`.* known are yolo_pose",
    ),
    "rotated boxes": (signature(NCHW_640, {"output0": (1, 20, 8400)}, task="obb"), "task `obb`"),
    "rows that say nothing": (signature(NCHW_640, {"output0": (1, 80, 8400)}), r"output0 \[1, 80, 8400\]"),
    "points that do not fit the rows": (signature(NCHW_640, {"output0": (1, 57, 8400)}, **POSE), "no known format"),
    "points alone": (signature((1, 3, 256, 192), {"output0": ("n", 17, 3)}), "no known format"),
    "what no suppression has left": (signature(OPEN, {"output0": ("n", 8400, 84)}), "no known format"),
    "labels, boxes and scores in pixels that nothing says": (
        signature(NCHW_640, {"labels": (1, 300), "boxes": (1, 300, 4), "scores": (1, 300)}),
        "no known format",
    ),
    "scores of other anchors than boxes": (
        signature(NCHW_640, {"a": (1, 8400, 4), "b": (1, 80, 8399)}),
        "no known format",
    ),
    "faces of other strides": (
        signature(NCHW_640, {str(n): (rows + 2, side) for n, (side, rows) in enumerate(FACES)}),
        "no known format",
    ),
    "faces without points": (
        signature(NCHW_640, {str(n): (rows, side) for n, (side, rows) in enumerate(FACES[:6])}),
        "no known format",
    ),
    "boxes and logits without their names": (
        signature(NCHW_640, {"a": (1, 300, 4), "b": (1, 300, 80)}),
        "no known format",
    ),
    "the rows of YOLOv7-pose": (
        signature(NCHW_640, {"output0": (1, 25200, 57)}),
        r"52 scores\) or as yolo_objectness \(.* 17 points of 3\); say which: `keypoints`",
    ),
    "labels of a classifier as texts": (
        Signature((Port("images", ("n", 3, 8, 8), FLOAT),), (Port("label", ("n", 3), "tensor(string)"),)),
        r"label tensor\(string\) \['n', 3\]\) are of no known format",
    ),
    "halves of a square picture": (
        signature((1, 3, 256, 256), {"a": (1, 17, 512), "b": (1, 17, 512)}),
        "no known format",
    ),
    "points of two numbers": (
        signature((1, 3, 256, 192), {"simcc_x": (1, 17, 384), "simcc_y": (1, 16, 512)}),
        "no known format",
    ),
    "maps of 32 masks": (signature(NCHW_640, {"masks": (1, 32, 160, 160)}), "no known format"),
    "maps of halves": (signature((1, 3, 256, 192), {"maps": (1, 17, 128, 96)}), "no known format"),
    "maps of any picture": (signature(OPEN, {"maps": ("n", 17, "h", "w")}), "no known format"),
    "a segmentation": (signature((1, 3, 256, 192), {"m": (1, 17, 64, 48)}, task="segment"), "no known format"),
    "no picture": (Signature((Port("x", (1, 8), FLOAT),), (Port("y", (1, 2), FLOAT),)), "no known format"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_is_not_guessed(name: str) -> None:
    given, words = UNKNOWN[name]
    with pytest.raises(Unrecognised, match=words):
        recognise(given)


def test_a_declared_number_of_points_decides() -> None:
    given = UNKNOWN["rows that say nothing"][0]
    reading = recognise(given, Declared(keypoints=25))
    assert (reading.format, reading.keypoints, reading.classes) == ("yolo_pose", 25, ("person",))
    assert recognise(given, Declared(format="yolo")).classes[75] == "class75"


# 640 x 640 has 8400 cells: YOLOX has a row for each, and so has YOLO that was turned.
AMBIGUOUS: dict[str, tuple[tuple[Any, ...], dict[str, str], set[str]]] = {
    "56 columns": ((1, 8400, 56), {}, {"yolo_pose", "yolox"}),
    "84 columns": ((1, 8400, 84), {}, {"yolo", "yolox"}),
    "one class, or two": ((1, 8400, 6), {}, {"yolo", "yolox"}),
    "107 classes of yolox, or 80 of nanodet": ((1, 8400, 112), {}, {"yolo", "yolox", "nanodet"}),
    "with a size that nobody knows": (("n", 84, 300), {}, {"yolo", "yolo_end2end"}),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_of_two_readings_none_is_guessed(name: str) -> None:
    shape, metadata, readings = AMBIGUOUS[name]
    given = signature(OPEN if name.startswith("with") else NCHW_640, {"output0": shape}, **metadata)
    with pytest.raises(Unrecognised, match=r"can be read as .* or as .*; say which: `format`") as caught:
        recognise(given)
    assert {one for one in FORMATS if f" {one} (" in str(caught.value)} == readings
    assert {recognise(given, Declared(format=one)).format for one in FORMATS if one in readings} == readings


@pytest.mark.parametrize(
    ("columns", "metadata", "declared", "expected"),
    [
        (56, {"kpt_shape": "[17, 3]"}, Declared(), ("yolo_pose", 17, 1)),
        (56, {}, Declared(keypoints=17), ("yolo_pose", 17, 1)),
        (65, {}, Declared(keypoints=20), ("yolo_pose", 20, 1)),
        (56, {"names": "{0: 'person'}"}, Declared(), ("yolo_pose", 17, 1)),
        (6, {"names": "{0: 'person'}"}, Declared(), ("yolox", 0, 1)),
        (6, {"names": "{0: 'person', 1: 'dog'}"}, Declared(), ("yolo", 0, 2)),
        (85, {}, Declared(), ("yolox", 0, 80)),
    ],
)
def test_metadata_resolves_ambiguous_cell_rows(
    columns: int, metadata: dict[str, str], declared: Declared, expected: tuple[str, int, int]
) -> None:
    reading = recognise(signature(NCHW_640, {"output0": (1, 8400, columns)}, **metadata), declared)
    assert (reading.format, reading.keypoints, len(reading.classes)) == expected


def test_keypoints_that_do_not_fit_are_no_other_format() -> None:
    given = signature(NCHW_640, {"output0": (1, 8400, 56)}, kpt_shape="[18, 3]")
    with pytest.raises(Unrecognised, match="no known format"):
        recognise(given)
    with pytest.raises(Unrecognised, match="with 21 keypoints are of no known format"):
        recognise(KNOWN["rtmo"][0], Declared(keypoints=21))


def test_nobody_has_thousands_of_keypoints() -> None:
    assert recognise(signature(OPEN, {"output0": ("n", 56, 8400)})).format == "yolo_pose"
    for text in ("[1001, 3]", "[0, 3]", "[-1, 3]", "[True, 3]"):
        assert recognise(signature(NCHW_640, {"output0": (1, 56, 8400)}, kpt_shape=text)).keypoints == 17


DECLARED: list[tuple[str, tuple[Any, ...], dict[str, tuple[Any, ...]], Declared, tuple[int, int]]] = [
    ("open rows", NCHW_640, {"o": ("n", "k", 57)}, Declared("yolo_end2end", 17), (17, 1)),
    ("open columns", NCHW_640, {"o": ("n", 300, "c")}, Declared("yolo_end2end", 17), (17, 1)),
    ("no keypoints", NCHW_640, {"o": ("n", "k", "c")}, Declared("yolo_end2end", 0), (0, 80)),
    ("open sides", OPEN, {"o": ("n", "a", 85)}, Declared("yolox"), (0, 80)),
    ("open faces", OPEN, {str(n): ("n", f"a{n}", "c") for n in range(9)}, Declared("scrfd"), (5, 1)),
    ("open cells", OPEN, {"o": ("n", "a", "c")}, Declared("nanodet", None, ("a", "b")), (0, 2)),
    ("known cells", OPEN, {"o": ("n", 777, 40)}, Declared("nanodet"), (0, 8)),
    ("known rows", OPEN, {"o": ("n", 8400, 56)}, Declared("yolox"), (0, 51)),
    ("open scores", OPEN, {"o": ("n", "a", "c")}, Declared("yolox", None, ("a", "b")), (0, 2)),
    ("three a cell", OPEN, {"o": ("n", "a", 57)}, Declared("yolo_objectness"), (0, 52)),
    ("three a cell, of poses", OPEN, {"o": ("n", "a", 57)}, Declared("yolo_objectness", 17), (17, 1)),
    ("three a cell, of open poses", OPEN, {"o": ("n", "a", "c")}, Declared("yolo_objectness", 5), (5, 1)),
    ("open heads", OPEN, {"o": ("n", "r", "a")}, Declared("yolo_pose", 25), (25, 1)),
    ("turned heads", OPEN, {"o": ("n", 8400, 56)}, Declared("yolo_pose"), (17, 1)),
    ("turned boxes", OPEN, {"o": ("n", 8400, 84)}, Declared("yolo"), (0, 80)),
    ("open boxes", OPEN, {"o": ("n", "r", "a")}, Declared("yolo", None, ("a", "b", "c")), (0, 3)),
    ("a detector's plan", NCHW_640, {"o": (1, 84, 8400)}, Declared("yolo", 0), (0, 80)),
    ("floats", NCHW_640, {"o": ("k", 57)}, Declared("nas_pose_flat"), (17, 1)),
    ("one row", NCHW_640, {"o": (1, "c")}, Declared("nas_pose_flat", 20), (20, 1)),
    ("a row", NCHW_640, {"o": (1, "c")}, Declared("yolo_v7_rows"), (0, 80)),
    ("a row of nas", NCHW_640, {"output": (1, "c")}, Declared("nas_flat"), (0, 80)),
    ("classes", OPEN, {"o": ("m", 7)}, Declared("classes"), (0, 7)),
    ("open classes", OPEN, {"o": ("m", "c")}, Declared("classes", None, ("a", "b", "c")), (0, 3)),
    ("people", OPEN, {"o": ("n", "p", "c")}, Declared("movenet_people"), (17, 1)),
    ("a person", OPEN, {"o": ("n", 1, "k", "c")}, Declared("movenet_single"), (17, 1)),
    ("open queries", OPEN, {"o": ("n", "q", "c")}, Declared("rtdetr_rows", None, ("a", "b")), (0, 2)),
    ("open rows of queries", OPEN, {"o": ("n", "q", "c")}, Declared("rtdetr_end2end"), (0, 80)),
    ("background", OPEN, {"a": ("n", "q", 4), "b": ("n", "q", 3)}, Declared("detr", None, ("x", "y")), (0, 2)),
    ("pixels", OPEN, {"labels": ("n", "k"), "b": ("n", "k", "c"), "s": ("n", "k")}, Declared("rtdetr"), (0, 80)),
    ("logits", OPEN, {"a": ("n", "q", 4), "b": ("n", "q", "c")}, Declared("detr", None, ("x", "y")), (0, 2)),
    ("no object", OPEN, {"a": ("n", "q", 9), "b": ("n", "q", 4)}, Declared("detr_softmax"), (0, 8)),
    ("open maps", OPEN, {"o": ("n", "k", "h", "w")}, Declared("heatmaps", 21), (21, 1)),
    ("a row more", OPEN, {"6571": ("n", "k"), "b": ("n", "k", "c"), "s": ("n", "k")}, Declared("torchvision"), (0, 91)),
    ("a row more of paddle", OPEN, {"o": ("n", "k", "c"), "num": ("n", 1)}, Declared("ppyoloe"), (0, 80)),
    ("open scores of paddle", OPEN, {"b": ("n", "a", 4), "s": ("n", 3, "a")}, Declared("ppyoloe_raw"), (0, 3)),
    (
        "a count of its own",
        OPEN,
        {"a": ("n",), "b": ("n", "k", 4), "s": ("n", "k"), "c": ("n", "k")},
        Declared("tf_ssd"),
        (0, 91),
    ),
    ("open axes", OPEN, {"a": ("n", "k", "c"), "b": ("n", "k", "d")}, Declared("simcc", 26), (26, 1)),
    ("a square", (1, 3, 64, 64), {"a": (1, 17, 128), "b": (1, 17, 128)}, Declared("simcc"), (17, 1)),
    ("open points", OPEN, {"o": ("n", "m", "c"), "p": ("n", "m", "k", "c")}, Declared("rtmo", 26), (26, 1)),
    (
        "all open",
        OPEN,
        {"num": ("n", "c"), "boxes": ("n", "m", "c"), "scores": ("n", "m"), "joints": ("n", "m", "k", "c")},
        Declared("nas_pose_batch", 20),
        (20, 1),
    ),
]


@pytest.mark.parametrize(
    ("picture", "outputs", "declared", "expected"), [pytest.param(*s[1:], id=s[0]) for s in DECLARED]
)
def test_a_declared_format_is_believed_where_a_side_is_open(
    picture: tuple[Any, ...], outputs: dict[str, tuple[Any, ...]], declared: Declared, expected: tuple[int, int]
) -> None:
    reading = recognise(signature(picture, outputs), declared)
    assert (reading.format, reading.keypoints, len(reading.classes)) == (declared.format, *expected)


@pytest.mark.parametrize(
    ("outputs", "declared", "words"),
    [
        ({"o": ("n", "k", 58)}, Declared("yolo_end2end", 17), "`format: yolo_end2end` with 17 .*; where they are open"),
        (
            {"o": ("n", 300, "c")},
            Declared("yolo_end2end"),
            "where they are open, `keypoints` and `class_names` say how",
        ),
        ({"o": (1, 57, 8400)}, Declared("yolo_pose", 17), r"with 17 keypoints, which are \[n, rows.* \(3 or 2\)$"),
        ({"o": (1, 56, 8400)}, Declared("yolo_pose", 0), r"without `keypoints` they are read as yolo_pose \(56 rows"),
        ({"o": (1, 3549, 85)}, Declared("yolox"), r"`format: yolox`, which are \[n, cells, .* \(1\)$"),
        ({"o": (1, 8399, 112)}, Declared("nanodet"), r"`format: nanodet`, which are \[n, cells, columns\]"),
        ({"o": (1, 8400, 85)}, Declared("yolo_objectness"), "; without it they are read as yolox .8400 rows"),
        ({"o": (1, 1, 18, "c")}, Declared("movenet_single"), "not those of `format: movenet_single`"),
    ],
)
def test_a_declared_format_is_not_believed_against_the_shape(
    outputs: dict[str, tuple[Any, ...]], declared: Declared, words: str
) -> None:
    with pytest.raises(Unrecognised, match=words):
        recognise(signature(NCHW_640, outputs), declared)


@pytest.mark.parametrize("name", KNOWN)
def test_what_prepare_writes_is_read_as_before(name: str) -> None:
    given, _ = KNOWN[name]
    found = recognise(given)
    written = {FORMAT: found.format, "names": str(dict(enumerate(found.classes)))}
    if found.keypoints:
        written["kpt_shape"] = str([found.keypoints, found.point_values])
    again = recognise(replace(given, metadata={**given.metadata, **written}))
    assert replace(again, why="") == replace(found, why="")


@pytest.mark.parametrize("name", KNOWN)
def test_declared_points_are_read_or_refused(name: str) -> None:
    """None is without effect: whoever writes the wrong number, or the wrong values, learns so."""
    given, expected = KNOWN[name]
    found = recognise(given)
    one_more = Declared(expected["format"], found.keypoints + 1)
    others = Declared(expected["format"], found.keypoints or None, point_values=5 - found.point_values)
    for declared in (one_more, others):
        try:
            read = recognise(given, declared)
        except Unrecognised:
            continue
        assert read.keypoints == declared.keypoints
        assert declared.point_values in (None, read.point_values)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_of_fixed_points_is_known_to_be_so(name: Format) -> None:
    """What `check` says without a model is what the models of the format say."""
    points = {recognise(given).keypoints for given, expected in KNOWN.values() if expected["format"] == name}
    fixed = FIXED_POINTS.get(name)
    assert fixed is None or points == {fixed}
    for number in (0, 5, 17):
        is_wrong = without_effect(Declared(name, number)) is not None
        assert is_wrong == (fixed not in (None, number))
    assert (without_effect(Declared(name, point_values=2)) is None) == (name in OF_ANY_VALUES)
    assert without_effect(Declared(name, point_values=3)) is None


def test_values_of_points_are_as_declared() -> None:
    given = signature(NCHW_640, {"output0": (1, 39, 8400)})
    reading = recognise(given, Declared("yolo_pose", 17, point_values=2))
    assert (reading.keypoints, reading.point_values, reading.classes) == (17, 2, ("person",))
    with pytest.raises(Unrecognised, match="with 17 keypoints"):
        recognise(given, Declared("yolo_pose", 17))
    with pytest.raises(Unrecognised, match=r"not those of `format: yolox` with 17 keypoints; without `keypoints` they"):
        recognise(KNOWN["yolox-nano"][0], Declared("yolox", 17))
    with pytest.raises(
        Unrecognised, match=r"with 17 keypoints are of no known.*; without `keypoints` .* read as yolo "
    ):
        recognise(KNOWN["yolo11n"][0], Declared(keypoints=17))


def test_rows_of_seven_are_of_yolov7_or_yolo_nas() -> None:
    """One has the class before the score, the other behind; of floats and without a name known, nothing says which."""
    given = signature(NCHW_640, {"detections": ("rows", 7)})
    with pytest.raises(Unrecognised, match=r"yolo_v7_rows \(.*\) or as nas_flat \(.*say which: `format`"):
        recognise(given)
    for name in ("yolo_v7_rows", "nas_flat"):
        assert recognise(given, Declared(name)).format == name  # type: ignore[arg-type]


def test_rows_of_an_open_number_may_be_of_any_picture() -> None:
    """Sides without a name say nothing: seven columns are scores of a picture, or rows of all."""
    given = signature((None, 3, 64, 64), {"o": (None, 7)})
    with pytest.raises(Unrecognised, match=r"yolo_v7_rows .* or as classes"):
        recognise(given)
    assert recognise(given, Declared("classes")).format == "classes"


@pytest.mark.parametrize(("picture", "kind", "columns"), [((3, 64, 64), FLOAT, 7), ((64, 64, 3), UINT8, 57)])
def test_open_rows_of_another_name_may_be_people(picture: tuple[int, ...], kind: str, columns: int) -> None:
    assert recognise(signature(("n", *picture), {"output": ("m", columns)}, kind)).format != "classes"


def test_declared_names_must_be_as_many_as_classes() -> None:
    given = KNOWN["detector of three classes"][0]
    assert recognise(given, Declared(classes=("x", "y", "z"))).classes == ("x", "y", "z")
    with pytest.raises(Unrecognised, match="`class_names` has 2 names, and the model 3 classes"):
        recognise(given, Declared(classes=("x", "y")))


@pytest.mark.parametrize("text", ["[17, 3", "__import__('os')", "[[17], 3]", "[17, 7]", "{}", "(" * 5000])
def test_metadata_that_is_nonsense_is_as_none(text: str) -> None:
    given = signature(NCHW_640, {"output0": (1, 56, 8400)}, task="pose", kpt_shape=text, names=text)
    reading: Reading = recognise(given)
    assert (reading.keypoints, reading.classes) == (17, ("person",))


def test_rtdetr_of_two_classes_may_be_of_either_version() -> None:
    """Six columns are a box with two scores, or with a score and a class."""
    given = signature(NCHW_640, {"o": (1, 300, 6)}, task="detect", names="{0: 'a', 1: 'b'}", description=RTDETR)
    with pytest.raises(Unrecognised, match=r"rtdetr_rows \(.*\) or as rtdetr_end2end \(.*say which: `format`"):
        recognise(given)
    assert recognise(given, Declared("rtdetr_rows")).classes == ("a", "b")
    assert recognise(given, Declared("rtdetr_end2end")).classes == ("a", "b")


@pytest.mark.parametrize(("columns", "names"), [(81, None), (7, None), (6, ("a", "b"))])
def test_logits_that_nobody_counts_may_have_one_of_no_object(columns: int, names: tuple[str, ...] | None) -> None:
    given = signature(OPEN, {"logits": ("b", 100, columns), "pred_boxes": ("b", 100, 4)})
    expected = r"can be read as detr \(.*\) or as detr_softmax \(.*say which: `format`" if names is None else "no known"
    with pytest.raises(Unrecognised, match=expected):
        recognise(given, Declared(classes=names))
    assert len(recognise(given, Declared("detr")).classes) == columns
    assert len(recognise(given, Declared("detr_softmax")).classes) == columns - 1


SEVERAL = {"output0": (1, 56, 8400), "masks": (1, 32, 160, 160)}


def test_one_of_several_outputs_may_be_declared() -> None:
    given = signature(NCHW_640, SEVERAL)
    reading = recognise(given, Declared(outputs=("output0",)))
    assert (reading.format, reading.outputs, reading.keypoints) == ("yolo_pose", ("output0",), 17)
    for declared in (Declared(), Declared("yolo_pose")):
        with pytest.raises(
            Unrecognised, match=r"; alone, `output0` could be yolo_pose \(56 rows: .* of 3\)$"
        ) as caught:
            recognise(given, declared)
        # The commands of `camgraph model` have no such setting.
        assert caught.value.in_graph == ": name it in `outputs`"
    with pytest.raises(Unrecognised, match="it has no output `heads`; its outputs are output0, masks"):
        recognise(given, Declared(outputs=("heads", "masks")))


@pytest.mark.parametrize("shape", [(1, 56, 34000), (1, 34000, 56), (1, 56, 21)])
def test_a_declared_format_may_have_anchors_of_its_own(shape: tuple[int, ...]) -> None:
    """A model with a stride of 4 has more than others."""
    given = signature(NCHW_640, {"o": shape})
    assert recognise(given, Declared("yolo_pose")).keypoints == 17


COUNTED = {"num_dets": (1, 1), "boxes": (1, 100, 4), "scores": (1, 100), "classes": (1, 100)}


@pytest.mark.parametrize(
    ("outputs", "format_name"),
    [({"o": (1, 300, 6)}, "yolo_end2end"), ({"output": ("k", 7)}, "yolo_v7_rows"), (COUNTED, "efficient_nms")],
)
def test_classes_come_from_names_if_shape_has_none(outputs: dict[str, tuple[Any, ...]], format_name: str) -> None:
    given = signature(NCHW_640, outputs)
    assert len(recognise(given).classes) == 80
    reading = recognise(given, Declared(classes=("a", "b", "c")))
    assert (reading.format, reading.classes) == (format_name, ("a", "b", "c"))
    named = signature(NCHW_640, outputs, names="{0: 'x', 1: 'y'}")
    assert recognise(named).classes == ("x", "y")
