"""There is one reading of a model in a graph: what is declared behind it holds for its pictures and its batches too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from camgraph.pipeline.errors import GraphError, UserError
from camgraph.pipeline.graph.loading import Graph, parse_graph
from camgraph.pipeline.stage import Upstream
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Frame
from camgraph.stages.people.add_keypoints import AddKeypoints
from camgraph.stages.people.classify import Classify
from camgraph.stages.people.decode import Decode, DecodeSettings
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.preprocess import Preprocess

SIDE = 64
CELLS = 84
"""Of a picture of 64 x 64."""

GRAPH = """version: 1
cameras: {{a: {{url: clip.mp4}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture}}
  infer:   {{use: infer, from: prepare, with: {{{infer}}}}}
  people:  {{use: decode, from: infer, with: {{{decode}}}}}
  others:  {{use: decode, from: infer, with: {{{others}}}}}
  out:     {{use: sink_null, from: [people, others]}}
"""
YOLO_POSE = "format: yolo_pose, keypoints: 17"


def save(path: Path, nodes: list[Any], output: Sequence[Any], constants: dict[str, Any]) -> Path:
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, output)
    initial = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", [images], [rows], initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return path


@pytest.fixture
def turned(tmp_path: Path) -> Path:
    """YOLO-pose, turned as YOLOX has its rows: a person who scores as red as the picture is, from 0 to 1."""
    heads = np.zeros((1, CELLS, 56), np.float32)
    heads[0, 0, :4] = (32, 32, 16, 32)
    red = np.zeros((3, CELLS * 56), np.float32)
    red[0, 4] = 1
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["means"], axes=[2, 3], keepdims=0),
        helper.make_node("MatMul", ["means", "red"], ["flat"]),
        helper.make_node("Reshape", ["flat", "shape"], ["score"]),
        helper.make_node("Add", ["score", "heads"], ["rows"]),
    ]
    constants = {"heads": heads, "red": red, "shape": np.array([-1, CELLS, 56])}
    return save(tmp_path / "turned.onnx", nodes, ["n", CELLS, 56], constants)


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """YOLO-NAS-Pose, flat, of pictures that are no uint8: a person in each picture that is not black."""
    person = np.zeros((1, 57), np.float32)
    person[0, 1:6] = (8, 8, 24, 40, 0.75)
    number = np.zeros((1, 57), np.float32)
    number[0, 0] = 1
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["means"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("NonZero", ["means"], ["found"]),
        helper.make_node("Transpose", ["found"], ["places"]),
        helper.make_node("Cast", ["places"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["numbers", "number"], ["numbered"]),
        helper.make_node("Add", ["numbered", "person"], ["rows"]),
    ]
    return save(tmp_path / "flat.onnx", nodes, ["k", 57], {"person": person, "number": number})


def graph(folder: Path, model: str, *, infer: str = "", decode: str = "", others: str = "") -> Graph:
    (folder / "clip.mp4").touch()
    text = GRAPH.format(infer=f"model: {model}" + (infer and f", {infer}"), decode=decode, others=others)
    return parse_graph(text, "g.yaml", base_folder=folder, environ={})


def settings(made: Graph, stage: str) -> Any:
    return next(node.settings for node in made.completed.nodes if node.name == stage)


def mistakes(folder: Path, model: str, **parts: str) -> str:
    with pytest.raises(GraphError) as caught:
        graph(folder, model, **parts)
    return str(caught.value)


def through(made: Graph, folder: Path, frames: list[Frame], *, to: str = "people", batch: int = 1) -> list[Any]:
    """What the graph's stages make of them, as it has completed their settings."""
    items: list[Any] = frames
    kinds: dict[str, Any] = {"prepare": Preprocess, "infer": Infer, "people": Decode}
    for name in list(kinds)[: list(kinds).index(to) + 1]:
        plain = settings(made, name).model_dump(mode="json", exclude_none=True)
        with opened(kinds[name], plain, folder=folder, stage=name) as stage:
            items = list(feed(stage, items, batch=batch))
    return items


def red(seq: int, value: int) -> Frame:
    pixels = np.zeros((SIDE, SIDE, 3), np.uint8)
    pixels[..., 2] = value
    return Frame(stamp(seq), pixels, SIDE, SIDE)


def test_a_declared_format_reaches_the_picture(tmp_path: Path, turned: Path) -> None:
    """Taken for a YOLOX, the model would be given BGR from 0 to 255, in the corner."""
    made = graph(tmp_path, turned.name, decode=YOLO_POSE)
    assert (settings(made, "infer").format, settings(made, "infer").keypoints) == ("yolo_pose", 17)
    assert settings(made, "prepare").align == "centre"
    assert [settings(made, stage).format for stage in ("people", "others")] == ["yolo_pose"] * 2
    [found] = through(made, tmp_path, [red(0, 204)])
    assert found.scores == pytest.approx([0.8], abs=1e-4)
    assert found.boxes.tolist() == [[24, 16, 40, 48]]


def test_declared_format_reaches_neighbouring_stages(tmp_path: Path, turned: Path) -> None:
    made = graph(tmp_path, turned.name, infer="format: yolox")
    assert settings(made, "prepare").align == "corner"
    assert (settings(made, "people").format, len(settings(made, "people").class_names)) == ("yolox", 51)


def test_the_input_is_as_the_declared_format_wants_it(tmp_path: Path, turned: Path) -> None:
    """YOLOX wants BGR from 0 to 255; the model says how blue, its first channel, the picture is."""
    made = graph(tmp_path, turned.name, decode="format: yolox")
    pixels = np.zeros((SIDE, SIDE, 3), np.uint8)
    pixels[..., 0] = 204
    [item] = through(made, tmp_path, [Frame(stamp(), pixels, SIDE, SIDE)], to="infer")
    assert item.arrays_by_name["rows"][0, 0, 4] == pytest.approx(204, abs=0.01)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_declared_format_reaches_the_batches(tmp_path: Path, flat: Path, batch: int) -> None:
    made = graph(tmp_path, flat.name, decode="format: nas_pose_flat", others="keypoints: 17")
    found = through(made, tmp_path, [red(seq, value) for seq, value in enumerate((200, 0, 9))], batch=batch)
    assert [len(one) for one in found] == [1, 0, 1]
    assert (settings(made, "prepare").pad, found[2].boxes.tolist()) == (127, [[8, 8, 24, 40]])


def test_two_that_take_a_model_for_something_else_are_a_mistake(tmp_path: Path, turned: Path) -> None:
    reported = mistakes(tmp_path, turned.name, decode=YOLO_POSE, others="format: yolox")
    assert "g.yaml:6:12: stages.infer: `people` wants format yolo_pose, and `others` yolox" in reported
    reported = mistakes(tmp_path, turned.name, infer="format: yolox", decode=YOLO_POSE)
    assert "g.yaml:7:12: stages.people: it takes the model's format to be yolo_pose, and `infer` yolox" in reported
    reported = mistakes(tmp_path, turned.name, infer=YOLO_POSE, decode="keypoints: 16")
    assert "stages.people: it takes the model's keypoints to be 16, and `infer` 17: write the same in both" in reported


def test_a_model_that_may_be_two_things_asks_for_the_format(tmp_path: Path, turned: Path) -> None:
    reported = mistakes(tmp_path, turned.name)
    assert "g.yaml:7:12: stages.people: " in reported
    assert "can be read as yolo_pose (56 rows" in reported
    assert "say which: `format`" in reported


def test_wrong_format_is_reported_at_its_stage(tmp_path: Path, turned: Path) -> None:
    reported = mistakes(tmp_path, turned.name, infer="format: rtmo")
    assert (
        "g.yaml:6:75: stages.infer.with.format: turned.onnx: its outputs (rows ['n', 84, 56]) are not those" in reported
    )
    reported = mistakes(tmp_path, turned.name, decode="format: rtmo")
    assert "g.yaml:7:12: stages.people: " in reported


def test_what_does_not_reach_the_model_is_a_mistake(tmp_path: Path, turned: Path) -> None:
    """A stage of somebody's own stands between: it is not asked for what its readers state."""
    upstream = Upstream({"infer": Infer.describe(InferSettings(model=turned.name)), "own": {}})
    declared = DecodeSettings(format="yolo_pose", keypoints=17)
    with pytest.raises(UserError, match=r"`infer` does not get .* write `format: yolo_pose, keypoints: 17` there as"):
        Decode.follow(declared, tmp_path, upstream)
    facts = Infer.describe(InferSettings(model=turned.name, format="yolo_pose"))
    assert Decode.follow(declared, tmp_path, Upstream({"infer": facts, "own": {}}))["keypoints"] == 17


def test_what_a_model_shows_needs_no_telling(tmp_path: Path, turned: Path) -> None:
    model = onnx.load(turned)
    helper.set_model_props(model, {"task": "pose", "kpt_shape": "[17, 3]", "names": "{0: 'person'}"})
    onnx.save(model, turned)
    upstream = Upstream({"infer": Infer.describe(InferSettings(model=turned.name)), "own": {}})
    declared = DecodeSettings(format="yolo_pose", keypoints=17)
    assert Decode.follow(declared, tmp_path, upstream)["format"] == "yolo_pose"


@pytest.mark.parametrize(
    ("kind", "declared", "wanted"),
    [
        (Decode, {"format": "yolo", "keypoints": 0}, {"format": "yolo", "keypoints": 0}),
        (Decode, {"class_names": ["a", "b"]}, {}),
        (AddKeypoints, {"keypoints": 26}, {"keypoints": 26}),
        (Classify, {}, {"format": "classes"}),
    ],
)
def test_what_each_stage_behind_a_model_states(
    tmp_path: Path, kind: Any, declared: dict[str, Any], wanted: dict[str, Any]
) -> None:
    facts = dict(kind.wants(kind.settings_type.model_validate(declared), tmp_path))
    assert ("candidates" in facts) == (kind is Decode)
    facts.pop("candidates", None)
    assert facts == wanted


SERVER = 'server: {{url: "10.0.0.1:8001", model: pose}}'


def test_a_model_on_a_server_is_told_as_well(tmp_path: Path) -> None:
    pytest.importorskip("tritonclient.grpc", reason="tritonclient is not installed: pip install camgraph[triton]")
    (tmp_path / "clip.mp4").touch()

    def made(infer: str = "", decode: str = "") -> Graph:
        text = GRAPH.replace("{{{infer}}}", "{{" + SERVER + "{infer}}}").format(infer=infer, decode=decode, others="")
        return parse_graph(text, "g.yaml", base_folder=tmp_path, environ={})

    found = made(decode=YOLO_POSE)
    assert (settings(found, "infer").format, settings(found, "infer").keypoints) == ("yolo_pose", 17)
    assert [settings(found, stage).keypoints for stage in ("people", "others")] == [17, 17]
    assert settings(made(infer=", format: yolox"), "people").format == "yolox"
    with pytest.raises(GraphError, match="it takes the model's format to be yolo_pose, and `infer` yolox"):
        made(infer=", format: yolox", decode=YOLO_POSE)


def test_a_stage_between_a_server_and_what_is_declared(tmp_path: Path) -> None:
    facts = Infer.describe(InferSettings.model_validate({"server": {"url": "10.0.0.1:8001", "model": "pose"}}))
    upstream = Upstream({"infer": facts, "own": {}})
    assert Decode.follow(DecodeSettings(), tmp_path, upstream) == {"server": facts["model_server"]}
    with pytest.raises(UserError, match="`infer` does not get these declarations about its model"):
        Decode.follow(DecodeSettings(format="yolo_pose"), tmp_path, upstream)


def test_a_model_that_is_not_what_was_declared_does_not_open(tmp_path: Path, turned: Path) -> None:
    with (
        pytest.raises(UserError, match=r"stage infer: turned.onnx: .* not those of `format: rtmo`"),
        opened(Infer, {"model": turned.name, "format": "rtmo"}, folder=tmp_path, stage="infer"),
    ):
        pass
