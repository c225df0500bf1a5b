"""Detectors of many exporters from picture to people, without their weights: models built to their contracts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from camgraph_test_stages.saying_models import SayingModel, grey, people_of

from camgraph.stages.people.infer import Infer, InferSettings

F32 = np.float32
BRIGHT = [255, 0, 255]
"""Of frames: a score that is multiplied by the light is there, is none, is there."""
FRACTIONS = np.array([[0.5, 0.25, 0.25, 0.5], [0.25, 0.5, 0.5, 0.25]], F32)
"""Boxes cx, cy, w, h."""
XYXY = [[24, 0, 40, 32], [0, 24, 32, 40]]
"""The same in pixels of a picture of 64 x 64."""


def found_in(path: Path, **decode: object) -> list[list[list[float]]]:
    """The boxes in a bright, a dark and a bright frame, best first."""
    frames = [grey(seq, value) for seq, value in enumerate(BRIGHT)]
    return [people.boxes.tolist() for people in people_of(path, frames, **decode)]


# ---- the DETR family


def test_rtdetr_of_ultralytics(tmp_path: Path) -> None:
    rows = np.concatenate([FRACTIONS, [[0.1, 0.9], [0.6, 0.2]]], axis=1).astype(F32)
    scores = np.array([0.9, 0.6], F32)
    model = SayingModel({"output0": rows})
    path = model.write(
        tmp_path / "m.onnx", task="detect", names="{0: 'a', 1: 'b'}", description="Ultralytics rtdetr-l model"
    )
    people = people_of(path, [grey(0, 0), grey(1, 255, (128, 64))])
    assert people[0].boxes.tolist() == XYXY
    assert [each.classes.tolist() for each in people] == [[1, 0], [1, 0]]
    np.testing.assert_allclose(people[0].scores, scores)


def told(path: Path) -> Path:
    """A model of which the boxes are in pixels of the size that it is told."""
    corners = np.array([[0.375, 0, 0.625, 0.5], [0, 0.375, 0.5, 0.625]], F32)
    outputs = {"labels": np.array([1, 0]), "boxes": corners, "scores": np.array([0.75, 0.5], F32)}
    model = SayingModel(
        outputs,
        light=["scores"],
        beside={"orig_target_sizes": "int64"},
        scaled={"boxes": "orig_target_sizes"},
    )
    return model.write(path)


def test_rtdetr_is_told_the_size_of_the_picture(tmp_path: Path) -> None:
    """Nobody writes `feeds`."""
    path = told(tmp_path / "m.onnx")
    assert found_in(path) == [XYXY, [], XYXY]
    assert not list(Infer.check(InferSettings(model="m.onnx"), tmp_path))
    wide = people_of(path, [grey(0, 255, (128, 64))])[0]
    # The frame lies in the middle of the picture at half its size, with 16 rows above.
    assert wide.boxes.tolist() == [[48, 0, 80, 32], [0, 16, 64, 48]]
    assert wide.classes.tolist() == [1, 0]


@pytest.mark.parametrize("by_softmax", [False, True])
def test_boxes_and_logits(tmp_path: Path, by_softmax: bool) -> None:
    """Dark pictures have logits of 0: with a sigmoid that is one half."""
    logits = np.array([[-9, 4, -9, -9], [3, -9, -9, -9]], F32)
    names = {"names": "{0: 'a', 1: 'b', 2: 'c'}"} if by_softmax else {"names": "{0: 'a', 1: 'b', 2: 'c', 3: 'd'}"}
    model = SayingModel({"logits": logits, "pred_boxes": FRACTIONS}, light=["logits"])
    path = model.write(tmp_path / "m.onnx", **names)
    assert found_in(path, min_score=0.6) == [XYXY, [], XYXY]
    [bright] = people_of(path, [grey(0, 255)], min_score=0.6)
    assert bright.classes.tolist() == [1, 0]
    assert (bright.scores > 0.9).all()


def test_rfdetr_numbers_people_as_coco_does(tmp_path: Path) -> None:
    logits = np.full((2, 91), -9, F32)
    logits[0, 1] = logits[1, 18] = 3
    path = SayingModel({"dets": FRACTIONS, "labels": logits}).write(tmp_path / "m.onnx")
    [people] = people_of(path, [grey(0, 255)], classes=["person"])
    assert people.boxes.tolist() == XYXY[:1]
    [dogs] = people_of(path, [grey(0, 255)], classes=["dog"])
    assert dogs.boxes.tolist() == XYXY[1:]


# ---- NanoDet


def test_nanodet_plus(tmp_path: Path) -> None:
    """Cells of 8 pixels are the first 64 rows, row by row; the only one of 64 pixels is the last."""
    rows = np.zeros((64 + 16 + 4 + 1, 80 + 32), F32)
    for row, kind, score, bins in ((8 * 2 + 4, 0, 0.75, (1, 2, 1, 2)), (84, 2, 0.5, (0, 0, 1, 1))):
        rows[row, kind] = score
        for side, distance in enumerate(bins):
            rows[row, 80 + 8 * side + distance] = 50
    path = SayingModel({"output": rows}).write(tmp_path / "m.onnx")
    [people] = people_of(path, [grey(0, 255)])
    assert people.boxes.tolist() == [[24, 0, 40, 32], [0, 0, 64, 64]]
    assert people.classes.tolist() == [0, 2]


# ---- TensorFlow


def test_ssd_of_tensorflow(tmp_path: Path) -> None:
    """Boxes are y first; of three rows the count says two. Its classes are numbered from 1."""
    corners = np.array([[0, 0.375, 0.5, 0.625], [0.375, 0, 0.625, 0.5], [0, 0, 1, 1]], F32)
    outputs = {
        "detection_boxes": corners,
        "detection_classes": np.array([1, 3, 1], F32),
        "detection_scores": np.array([0.75, 0.5, 0.9], F32),
        "num_detections": np.array(2, F32),
    }
    path = SayingModel(outputs, light=["detection_scores"]).write(tmp_path / "m.onnx", uint8=True)
    assert found_in(path) == [XYXY, [], XYXY]
    [person] = people_of(path, [grey(0, 255)], classes=["person"])
    assert person.boxes.tolist() == XYXY[:1]


# ---- YOLO with an objectness


def test_yolov7_pose(tmp_path: Path) -> None:
    """Of 252 rows two score: 64 x 64 pixels have 84 cells of three anchors. So few rows may be left by NMS as well."""
    rows = np.zeros((252, 57), F32)
    for row, (box, score) in zip((100, 7), zip(FRACTIONS * 64, (0.9, 0.6), strict=True), strict=True):
        rows[row] = [*box, score, 0.95, *np.array([(row, point, 0.5) for point in range(17)]).ravel()]
    path = SayingModel({"output": rows}).write(tmp_path / "m.onnx")
    [people] = people_of(path, [grey(0, 255)], format="yolo_objectness", keypoints=17)
    assert people.boxes.tolist() == XYXY
    np.testing.assert_allclose(people.scores, [0.9 * 0.95, 0.6 * 0.95], rtol=1e-6)
    assert people.keypoints[:, 3].tolist() == [[100, 3, 0.5], [7, 3, 0.5]]
    assert people.skeleton == "coco-17"
