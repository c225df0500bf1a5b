"""A second model on the crops of what a first one has found: crops, keypoints, labels."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from camgraph_test_stages.crops import cropped, frame, people
from onnx import TensorProto, helper

from camgraph.pipeline.stage import Upstream
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Frame, Labels, People
from camgraph.stages.people.add_keypoints import AddKeypoints
from camgraph.stages.people.classify import Classify, ClassifySettings
from camgraph.stages.people.crop import Crop
from camgraph.stages.people.decode import Decode, DecodeSettings
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.inference.outputs import OutputSettings
from camgraph.stages.people.preprocess import Preprocess
from camgraph.stages.vision.decoding.nms import overlaps


def classifier(path: Path, **metadata: str) -> Path:
    """Of crops: `red` by the mean of red, `dark` by what is missing to 255; logits."""
    weights = np.array([[4.0, -4.0], [0, 0], [0, 0]], np.float32)
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["means"], axes=[2, 3], keepdims=0),
        helper.make_node("MatMul", ["means", "weights"], ["sides"]),
        helper.make_node("Add", ["sides", "shift"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 64, 64])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 2])],
        [
            helper.make_tensor("weights", TensorProto.FLOAT, [3, 2], weights.ravel()),
            helper.make_tensor("shift", TensorProto.FLOAT, [2], [-2.0, 2.0]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(("batch", "max_rows"), [(1, 32), (3, 32), (3, 2)])
def test_the_crops_of_all_frames_share_the_runs_of_a_classifier(tmp_path: Path, batch: int, max_rows: int) -> None:
    classifier(tmp_path / "kind.onnx", task="classify", names="{0: 'red', 1: 'dark'}")
    left, right = (20, 20, 60, 100), (200, 20, 240, 100)
    shown = [(left, right), (), (right, left, left)]
    items = [{"frames": frame(seq), "people": people(*boxes, seq=seq)} for seq, boxes in enumerate(shown)]
    crops, _ = cropped(tmp_path, items, size=[64, 64], margin=1.0)
    facts = Infer.describe(InferSettings(model="kind.onnx"))
    settings = Classify.follow(ClassifySettings(), tmp_path, Upstream({"infer": facts}))
    infer = {"model": "kind.onnx", "max_rows": max_rows}
    with opened(Infer, infer, folder=tmp_path) as model, opened(Classify, settings, folder=tmp_path) as stage:
        labels = [out for out in feed(stage, feed(model, crops, batch=batch)) if isinstance(out, Labels)]
    assert [each.names for each in labels] == [("red", "dark")] * 3
    # The best of each frame comes first.
    assert [each.owner.tolist() for each in labels] == [[1, 0], [], [2, 1, 0]]
    assert [each.scores.argmax(axis=1).tolist() for each in labels] == [[0, 1], [], [1, 1, 0]]
    assert all(np.allclose(each.scores.sum(axis=1), 1) for each in labels)
    for each in labels:
        Labels.build(each.stamp, each.fields(), each.arrays())


@pytest.mark.slow
def test_cascade_finds_labelled_keypoints(test_data: Path) -> None:
    """YOLOX finds people, YOLO11-pose looks at each of them: most joints lie near where people have marked them."""
    detector, pose = "models/yolox_nano_bigisland.onnx", "models/yolo11n-pose_640.onnx"
    labels = json.loads((test_data / "images/coco/test_coco.json").read_text())
    names = {image["id"]: image["file_name"] for image in labels["images"]}
    folder = test_data / "images/coco"
    found = {
        image: cascade(test_data, next(folder.rglob(Path(name).name)), detector, pose) for image, name in names.items()
    }
    near = seen = 0
    for note in labels["annotations"]:
        x, y, w, h = note["bbox"]
        if w * h < 96 * 96:
            continue
        posed = found[note["image_id"]]
        same = overlaps(np.array([[x, y, x + w, y + h]], np.float32), posed.boxes, iou=0.5)[0]
        if not same.any():
            continue
        marked = np.array(note["keypoints"], np.float32).reshape(17, 3)
        apart = np.hypot(*(posed.keypoints[same.argmax()][:, :2] - marked[:, :2]).T)
        visible = marked[:, 2] == 2
        seen += int(visible.sum())
        near += int((apart[visible] < 0.1 * np.sqrt(w * h)).sum())
    assert seen > 50
    assert near > 0.75 * seen


def cascade(data: Path, picture: Path, detector: str, pose: str) -> People:
    bgr = cv2.imread(str(picture))
    shown = Frame(stamp(), bgr, bgr.shape[1], bgr.shape[0])
    first = Infer.describe(InferSettings(model=detector))
    second = Infer.describe(InferSettings(model=pose))
    decode = {**Decode.follow(DecodeSettings(), data, Upstream({"infer": first}))}
    add = AddKeypoints.follow(OutputSettings(), data, Upstream({"infer": first, "infer2": second}))
    with (
        opened(Preprocess, {"size": [416, 416], "align": "corner"}, folder=data) as prepare,
        opened(Infer, {"model": detector}, folder=data) as infer,
        opened(Decode, decode, folder=data) as people_stage,
        opened(Crop, {"size": [640, 640]}, folder=data) as crop,
        opened(Infer, {"model": pose}, folder=data) as infer2,
        opened(AddKeypoints, add, folder=data) as posed,
    ):
        [seen] = feed(people_stage, feed(infer, feed(prepare, [shown])))
        [crops] = feed(infer2, feed(crop, [{"frames": shown, "people": seen}]))
        [result] = feed(posed, [{"people": seen, "crops": crops}])
    assert isinstance(result, People)
    return result
