"""What models are taken to be, by the signatures that their exporters write."""

from __future__ import annotations

from typing import Any

import pytest

from stages.vision.recognition import FORMATS, Port, Reading, Signature, Stated, Unrecognised, recognise
from stages.vision.recognition.reading import COCO_CLASSES

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
    """Outputs are floats; those whose names begin with `num` or hold `classes` are integers."""
    ports = [
        Port(name, side, INT64 if name.startswith("num") or "classes" in name else FLOAT)
        for name, side in outputs.items()
    ]
    return Signature((Port("images", shape, kind),), tuple(ports), metadata)


POSE = {"task": "pose", "kpt_shape": "[17, 3]", "names": "{0: 'person'}"}
DETECT = {"task": "detect", "names": str(dict(enumerate(COCO_CLASSES)))}

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
    "yolov7": (
        signature(NCHW_640, {"output": (1, 25200, 85)}),
        {"format": "yolo_objectness", "classes": COCO_CLASSES},
    ),
    "yolov7 end to end": (signature(NCHW_640, {"output": ("n", 7)}), {"format": "yolo_v7_rows"}),
    "efficient nms": (
        signature(
            NCHW_640,
            {"num_dets": (1, 1), "det_boxes": (1, 100, 4), "det_scores": (1, 100), "det_classes": (1, 100)},
        ),
        {"format": "efficient_nms", "outputs": ("num_dets", "det_boxes", "det_scores", "det_classes")},
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
        {"format": "classes"},
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
def test_the_right_format_may_be_stated_and_a_wrong_one_may_not(name: str) -> None:
    given, expected = KNOWN[name]
    assert recognise(given, Stated(format=expected["format"])).format == expected["format"]
    wrong = "rtmo" if expected["format"] != "rtmo" else "yolox"
    with pytest.raises(Unrecognised, match=f"not those of `format: {wrong}`"):
        recognise(given, Stated(format=wrong))


def test_how_a_picture_is_wanted_where_the_input_does_not_show_it() -> None:
    def of(name: str) -> tuple[Any, ...]:
        picture = recognise(KNOWN[name][0]).picture
        return picture.order, picture.scale, picture.align, picture.pad

    assert of("yolo11n-pose") == ("rgb", None, "centre", 114)
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
    "no picture": (Signature((Port("x", (1, 8), FLOAT),), (Port("y", (1, 2), FLOAT),)), "no known format"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_is_not_guessed(name: str) -> None:
    given, words = UNKNOWN[name]
    with pytest.raises(Unrecognised, match=words):
        recognise(given)


def test_a_stated_number_of_points_decides() -> None:
    given = UNKNOWN["rows that say nothing"][0]
    reading = recognise(given, Stated(keypoints=25))
    assert (reading.format, reading.keypoints, reading.classes) == ("yolo_pose", 25, ("person",))
    assert recognise(given, Stated(format="yolo")).classes[75] == "class75"


def test_stated_names_must_be_as_many_as_classes() -> None:
    given = KNOWN["detector of three classes"][0]
    assert recognise(given, Stated(classes=("x", "y", "z"))).classes == ("x", "y", "z")
    with pytest.raises(Unrecognised, match="`class_names` has 2 names, and the model 3 classes"):
        recognise(given, Stated(classes=("x", "y")))


@pytest.mark.parametrize("text", ["[17, 3", "__import__('os')", "[[17], 3]", "[17, 7]", "{}", "(" * 5000])
def test_metadata_that_is_nonsense_is_as_none(text: str) -> None:
    given = signature(NCHW_640, {"output0": (1, 56, 8400)}, task="pose", kpt_shape=text, names=text)
    reading: Reading = recognise(given)
    assert (reading.keypoints, reading.classes) == (17, ("person",))
