"""Detectors of many exporters from picture to people, without their weights: models built to their contracts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from camgraph_test_stages.saying_models import SIDE, SayingModel, grey, people_of
from onnx import TensorProto, helper, numpy_helper

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Frame, People, Tensor
from camgraph.stages.people.decode import Decode
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.tools.models.declaration import DeclaredModel

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
    people = people_of(path, [grey(0, 0), grey(1, 255, (128, 64))], format="rtdetr_rows")
    assert [each.boxes.tolist() for each in people] == [XYXY, [[48, 0, 80, 32], [0, 24, 64, 40]]]
    assert [each.classes.tolist() for each in people] == [[1, 0], [1, 0]]
    np.testing.assert_allclose(people[0].scores, scores)


def test_rtdetr_of_newer_ultralytics(tmp_path: Path) -> None:
    rows = np.concatenate([FRACTIONS, [[0.75, 1], [0.5, 0]]], axis=1).astype(F32)
    metadata = {"task": "detect", "names": "{0: 'a', 1: 'b', 2: 'c'}", "head": "RTDETRDecoder"}
    path = SayingModel({"output0": rows}, light=["output0"]).write(tmp_path / "m.onnx", **metadata)
    assert found_in(path) == [XYXY, [], XYXY]
    [people] = people_of(path, [grey(0, 255)])
    assert people.classes.tolist() == [1, 0]


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
    # The frame is stretched over the picture, as those are with which such models are trained.
    assert wide.boxes.tolist() == [[48, 0, 80, 32], [0, 24, 64, 40]]
    assert wide.classes.tolist() == [1, 0]


def test_a_size_in_the_graph_counts_before_the_usual_one(tmp_path: Path) -> None:
    """Of `infer`; whoever reads its outputs must know."""
    told(tmp_path / "m.onnx")
    image = np.full((1, SIDE, SIDE, 3), 255, np.uint8)
    item = Tensor(stamp(), {"image": image}, np.ones((1, 4), F32), (320, 240), (SIDE, SIDE))
    feeds = {"orig_target_sizes": "frame_width_height"}
    with opened(Infer, {"model": "m.onnx", "feeds": feeds}, folder=tmp_path) as infer:
        [seen] = feed(infer, [item])
    assert isinstance(seen, Tensor)
    assert seen.arrays_by_name["boxes"].tolist() == [[[120, 0, 200, 120], [0, 90, 160, 150]]]


def test_commands_without_feeds_say_that_they_have_none(tmp_path: Path) -> None:
    """`inspect` alone, which runs nothing, shows the picture."""
    model = DeclaredModel(told(tmp_path / "m.onnx"))
    assert model.any_contract().name == "images"
    with pytest.raises(UserError, match="nothing fills the input `orig_target_sizes`"):
        model.contract()


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


# ---- SCRFD


@pytest.mark.parametrize("batched", [False, True])
def test_scrfd_finds_faces(tmp_path: Path, batched: bool) -> None:
    """Of cells of 16 pixels, the one in the middle and the third of the first row."""
    cells = {8: 64, 16: 16, 32: 4}
    outputs = {
        f"{name}{stride}": np.zeros((2 * rows, side), F32)
        for name, side in (("score", 1), ("box", 4), ("point", 10))
        for stride, rows in cells.items()
    }
    for row, score, distances in ((2 * 2, 0.75, (0.5, 0, 0.5, 2)), (2 * (4 + 1) + 1, 0.5, (1, -0.5, 1, 1.5))):
        outputs["score16"][row], outputs["box16"][row], outputs["point16"][row] = score, distances, 0.5
    path = SayingModel(outputs, light=["score16"], batched=batched).write(tmp_path / "m.onnx")
    assert found_in(path) == [XYXY, [], XYXY]
    [faces] = people_of(path, [grey(0, 255)])
    assert faces.keypoints.tolist() == [[[40, 8, 1]] * 5, [[24, 24, 1]] * 5]
    assert faces.skeleton == "kpts-5"


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


# ---- torchvision and PaddleDetection: a run for each picture


CORNERS = np.array(XYXY, F32)


def test_torchvision_has_no_axis_for_pictures(tmp_path: Path) -> None:
    outputs = {"boxes": CORNERS, "labels": np.array([1, 18]), "scores": np.array([0.75, 0.5], F32)}
    path = SayingModel(outputs, light=["scores"], batched=False).write(tmp_path / "m.onnx")
    assert found_in(path, batch=3) == [XYXY, [], XYXY]
    [dog] = people_of(path, [grey(0, 255)], classes=["dog"])
    assert dog.boxes.tolist() == XYXY[1:]


def test_a_model_without_an_axis_for_pictures_takes_one_at_once(tmp_path: Path) -> None:
    """Whatever batch its input allows: nothing would tell whose boxes these are."""
    outputs = {"boxes": CORNERS, "labels": np.array([1, 18]), "scores": np.array([0.75, 0.5], F32)}
    for pictures, problems in (("any", []), (4, ["it for one picture"])):
        model = onnx.load(SayingModel(outputs, light=["scores"], batched=False).write(tmp_path / "m.onnx"))
        side = model.graph.input[0].type.tensor_type.shape.dim[0]
        side.dim_param = "n"
        if isinstance(pictures, int):
            side.dim_value = pictures
        onnx.save(model, tmp_path / "m.onnx")
        found = [text for _, text in Infer.check(InferSettings(model="m.onnx"), tmp_path)]
        assert [any(words in text for words in problems) for text in found] == [True] * len(problems)
    assert "have no axis for them" in found[0]


def rows_of_bright_pixels(path: Path) -> Path:
    """PP-YOLOE: a row of class 0, 0.75, x, y, x + 4, y + 4 for each bright pixel, and their number."""
    matrix = np.zeros((5, 6), F32)
    matrix[3, 2] = matrix[3, 4] = matrix[2, 3] = matrix[2, 5] = 1
    matrix[4] = [0, 0.75, 0, 0, 4, 4]
    constants = {
        "ends": np.array([1]), "begin": np.array([0]), "half": np.array(0.5, F32), "matrix": matrix,
        "behind": np.array([0, 0, 0, 1]), "unit": np.array(1, F32), "unit_scale": np.ones((1, 2), F32),
    }  # fmt: skip
    nodes = [
        helper.make_node("Slice", ["image", "begin", "ends", "ends"], ["red"]),
        helper.make_node("Greater", ["red", "half"], ["shines"]),
        helper.make_node("NonZero", ["shines"], ["found"]),
        helper.make_node("Transpose", ["found"], ["places"]),
        helper.make_node("Cast", ["places"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Pad", ["floats", "behind", "unit"], ["padded"]),
        helper.make_node("MatMul", ["padded", "matrix"], ["rows"]),
        helper.make_node("Concat", ["unit_scale", "scale_factor", "scale_factor"], ["scales"], axis=1),
        helper.make_node("Div", ["rows", "scales"], ["multiclass_nms3_0.tmp_0"]),
        helper.make_node("Shape", ["places"], ["multiclass_nms3_0.tmp_2"], end=1),
    ]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("image", [1, 3, SIDE, SIDE]), ("scale_factor", [1, 2]))
    ]
    outputs = [
        helper.make_tensor_value_info("multiclass_nms3_0.tmp_0", TensorProto.FLOAT, ["k", 6]),
        helper.make_tensor_value_info("multiclass_nms3_0.tmp_2", TensorProto.INT64, [1]),
    ]
    initial = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "g", ports, outputs, initial),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return path


def test_ppyoloe_counts_the_people_of_each_picture(tmp_path: Path) -> None:
    """`scale_factor` is filled, so that the rows are in pixels of the picture."""
    path = rows_of_bright_pixels(tmp_path / "m.onnx")
    shown: list[list[tuple[int, int]]] = [[(5, 7)], [], [(1, 1), (30, 40), (50, 2)]]
    frames = []
    for seq, places in enumerate(shown):
        frame = grey(seq, 0)
        pixels = np.zeros((SIDE, SIDE, 3), np.uint8)
        for x, y in places:
            pixels[y, x, 2] = 255
        frames.append(Frame(frame.stamp, pixels, SIDE, SIDE))
    found = [sorted(people.boxes[:, :2].tolist()) for people in people_of(path, frames, batch=3)]
    assert found == [[list(map(float, place)) for place in sorted(places)] for places in shown]


def test_several_pictures_of_one_frame_have_rows_of_their_own(tmp_path: Path) -> None:
    """Of crops: 2, 0 and 1 rows come as one array, whose filled rows are nobody."""
    path = rows_of_bright_pixels(tmp_path / "m.onnx")
    image = np.zeros((3, SIDE, SIDE, 3), np.uint8)
    for row, y, x in ((0, 3, 4), (0, 30, 40), (2, 9, 8)):
        image[row, y, x, 0] = 255
    fit = np.tile(np.array([1, 1, 0, 0], F32), (3, 1))
    item = Tensor(stamp(), {"image": image}, fit, (SIDE, SIDE), (SIDE, SIDE), np.arange(3))
    names = ["multiclass_nms3_0.tmp_0", "multiclass_nms3_0.tmp_2"]
    decode = {"format": "ppyoloe", "outputs": names, "keypoints": 0, "class_names": ["person"]}
    with (
        opened(Infer, {"model": path.name}, folder=tmp_path) as infer,
        opened(Decode, decode, folder=tmp_path) as last,
    ):
        [seen] = feed(infer, [item])
        [people] = feed(last, [seen])
    assert isinstance(seen, Tensor)
    assert [array.shape for array in seen.arrays_by_name.values()] == [(3, 2, 6), (3, 1)]
    assert isinstance(people, People)
    assert sorted(people.boxes[:, :2].tolist()) == [[4, 3], [8, 9], [40, 30]]


def test_ppyoloe_without_nms(tmp_path: Path) -> None:
    boxes, scores = np.zeros((84, 4), F32), np.zeros((80, 84), F32)
    boxes[[3, 50, 51]] = [*XYXY, XYXY[1]]
    scores[0, [3, 50, 51]] = [0.9, 0.8, 0.7]
    path = SayingModel({"boxes": boxes, "scores": scores}, light=["scores"], beside={"scale_factor": "float32"}).write(
        tmp_path / "m.onnx"
    )
    assert found_in(path) == [XYXY, [], XYXY]


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
