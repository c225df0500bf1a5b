"""From a model's output to people in the frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from pydantic import ValidationError

from camgraph.pipeline.errors import BadItem, GraphError, UserError
from camgraph.pipeline.graph.loading import parse_graph
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import People, Tensor
from camgraph.stages.people.decode_yolo_pose import DecodeYoloPose, DecodeYoloPoseSettings

# A frame of 1280x720 in 640x640: half the size, 140 rows of padding above.
FIT = np.array([[0.5, 0.5, 0, 140]], np.float32)


def person(cx: float, cy: float, w: float, h: float, score: float, keypoints: int = 17) -> list[float]:
    return [cx, cy, w, h, score] + [cx, cy, 0.8] * keypoints


def tensor(*people: list[float], keypoints: int = 17, **outputs: Any) -> Tensor:
    heads = np.zeros((1, 5 + 3 * keypoints, 21), np.float32)
    for index, column in enumerate(people):
        heads[0, :, index] = column
    return Tensor(stamp(), {"output0": heads, **outputs}, FIT, (1280, 720), (640, 640))


def decoded(item: Tensor, folder: Path, **settings: Any) -> People:
    with opened(DecodeYoloPose, settings, folder=folder, stage="people") as stage:
        [people] = feed(stage, [item])
    assert isinstance(people, People)
    return people


def test_people_lie_in_the_frame(tmp_path: Path) -> None:
    people = decoded(tensor(person(100, 340, 50, 100, 0.875), person(0, 340, 50, 100, 0.5)), tmp_path)
    assert people.boxes.tolist() == [[150, 300, 250, 500], [0, 300, 50, 500]]
    assert people.keypoints[0, 0].tolist() == [200, 400, pytest.approx(0.8)]
    assert people.scores.tolist() == [0.875, 0.5]
    assert people.classes.tolist() == [0, 0]
    assert (people.skeleton, people.frame_size, people.stamp) == ("coco-17", (1280, 720), stamp())


def test_nobody_is_a_message_too(tmp_path: Path) -> None:
    people = decoded(tensor(), tmp_path)
    assert len(people) == 0
    assert people.keypoints.shape == (0, 17, 3)
    People.build(people.stamp, people.fields(), people.arrays())


def test_who_lies_in_the_padding_alone_is_nobody(tmp_path: Path) -> None:
    assert len(decoded(tensor(person(300, 60, 50, 100, 0.9)), tmp_path)) == 0


def test_settings_choose(tmp_path: Path) -> None:
    item = tensor(person(100, 340, 50, 100, 0.9), person(100, 350, 50, 100, 0.8), person(400, 340, 50, 100, 0.4))
    assert len(decoded(item, tmp_path)) == 2
    assert len(decoded(item, tmp_path, iou=0.9)) == 3
    assert len(decoded(item, tmp_path, min_score=0.5)) == 1
    assert len(decoded(item, tmp_path, max_people=1)) == 1


def test_other_skeletons(tmp_path: Path) -> None:
    item = tensor(person(100, 340, 50, 100, 0.9, 5), keypoints=5)
    people = decoded(item, tmp_path)
    assert people.keypoints.shape == (1, 5, 3)
    assert people.skeleton == "kpts-5"
    assert decoded(item, tmp_path, skeleton="face-5").skeleton == "face-5"


def test_a_model_with_several_outputs_needs_a_choice(tmp_path: Path) -> None:
    item = tensor(person(100, 340, 50, 100, 0.9), masks=np.zeros((1, 32, 8, 8), np.float32))
    with pytest.raises(UserError, match=r"\(output0 .*, masks .*\) are not .*; alone, `output0` could be .*`outputs`"):
        decoded(item, tmp_path)
    assert len(decoded(item, tmp_path, output="output0")) == 1
    assert len(decoded(item, tmp_path, outputs=["output0"])) == 1
    with pytest.raises(UserError, match=r"stage people: .* no output `heads`; its outputs are output0, masks"):
        decoded(item, tmp_path, output="heads")
    with pytest.raises(ValidationError, match="either `output` or `outputs`, got both"):
        DecodeYoloPoseSettings(output="output0", outputs=("heads",))


def test_a_model_that_is_no_pose_model(tmp_path: Path) -> None:
    item = Tensor(stamp(), {"output": np.zeros((1, 3549, 85), np.float32)}, FIT, (1280, 720), (640, 640))
    with pytest.raises(UserError, match=r"stage people: .*\[None, 3549, 85\]\) are not .*yolo_pose.* each keypoint"):
        decoded(item, tmp_path)
    with pytest.raises(BadItem, match=r"shape: .*no outputs of format yolo_pose: expected \(56, anchors\)"):
        decoded(item, tmp_path, keypoints=17, output="output")


@pytest.mark.parametrize("settings", [{}, {"keypoints": 17}, {"format": "yolo_pose"}])
def test_who_is_in_several_crops_of_a_frame_is_in_one_message(tmp_path: Path, settings: dict[str, Any]) -> None:
    heads = np.zeros((2, 56, 21), np.float32)
    heads[:, :, 3] = person(100, 340, 50, 100, 0.9), person(400, 340, 50, 100, 0.95)
    item = Tensor(stamp(), {"output0": heads}, FIT.repeat(2, 0), (1280, 720), (640, 640), np.arange(2))
    assert decoded(item, tmp_path, **settings).scores.tolist() == pytest.approx([0.95, 0.9])


def test_no_other_format_may_be_declared() -> None:
    with pytest.raises(ValidationError, match="yolo_pose"):
        DecodeYoloPoseSettings.model_validate({"format": "yolox"})


GRAPH = """version: 1
cameras:
  a: {{url: clip.mp4}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture}}
  infer:   {{use: infer, from: prepare, with: {{model: {model}}}}}
  people:  {{use: decode_yolo_pose, from: infer, with: {{{people}}}}}
  out:     {{use: sink_null, from: people}}
"""


def save(path: Path, outputs: dict[str, list[int]], **metadata: str) -> None:
    nodes = [helper.make_node("RandomUniform", [], [name], shape=shape) for name, shape in outputs.items()]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 64, 64])
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "g", [images], ports), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    helper.set_model_props(model, metadata)
    onnx.save(model, path)


def settings_of(folder: Path, model: str, people: str = "") -> dict[str, Any]:
    """stage -> its settings in the graph, with all that follows from what is around it."""
    (folder / "clip.mp4").touch()
    made = parse_graph(GRAPH.format(model=model, people=people), "g.yaml", base_folder=folder, environ={})
    return {node.name: node.settings for node in made.completed.nodes}


@pytest.mark.processes
def test_what_the_model_says_of_itself_is_read(tmp_path: Path) -> None:
    names = "{0: 'person', 1: 'dog'}"
    save(tmp_path / "m.onnx", {"o": [1, 16, 84]}, task="pose", kpt_shape="[5, 2]", names=names)
    people = settings_of(tmp_path, "m.onnx")["people"]
    assert (people.class_names, people.keypoints, people.point_values) == (("person", "dog"), 5, 2)
    item = Tensor(stamp(), {"o": np.zeros((1, 16, 84), np.float32)}, FIT, (1280, 720), (640, 640))
    item.arrays_by_name["o"][0, :6, :2] = np.array([(100, 340, 50, 90, 0.9, 0.1), (300, 340, 50, 90, 0.1, 0.8)]).T
    assert decoded(item, tmp_path, **people.model_dump()).scores.tolist() == [pytest.approx(0.9)]


def test_one_of_several_outputs_is_read_before_the_run(tmp_path: Path) -> None:
    save(tmp_path / "m.onnx", {"o": [1, 56, 84], "masks": [1, 32, 8, 8]})
    with pytest.raises(GraphError, match=r"g.yaml:8:12: stages.people: .*alone, `o` could be .*: name it in `outputs`"):
        settings_of(tmp_path, "m.onnx")
    found = settings_of(tmp_path, "m.onnx", "output: o")
    assert (found["people"].outputs, found["people"].keypoints) == (("o",), 17)
    assert (found["infer"].outputs, found["prepare"].size) == (("o",), (64, 64))


def test_another_model_is_refused_before_the_run(tmp_path: Path) -> None:
    save(tmp_path / "m.onnx", {"o": [1, 84, 85]})
    with pytest.raises(
        GraphError, match=r"g.yaml:8:12: stages.people: .*\[1, 84, 85\].* can read them as yolo \(84 rows"
    ):
        settings_of(tmp_path, "m.onnx")
