"""Two models whose outputs one stage reads: they must be read in the same way, or `check` says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph.loading import parse_graph
from camgraph.pipeline.stage import Upstream

GRAPH = """version: 1
cameras: {{a: {{url: clip.mp4}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture}}
  one:     {{use: infer, from: prepare, with: {{{one}}}}}
  two:     {{use: infer, from: prepare, with: {{{two}}}}}
  people:  {{use: decode, from: [one, two], with: {{{people}}}}}
{more}  out:     {{use: sink_null, from: people}}
"""
CASCADE = """\
  crops:   {use: crop, from: {frames: capture, people: people}}
  pose:    {use: infer, from: crops, with: {model: pose.onnx}}
  posed:   {use: add_keypoints, from: {people: people, crops: pose}}
  log:     {use: sink_null, from: posed}
"""
ROWS = [1, 56, 84]
CLASSES = {"task": "detect", "names": "{0: 'person', 1: 'dog'}"}


def save(path: Path, rows: list[int], output: str = "rows", side: int = 64, **metadata: str) -> None:
    """A model that says nothing true; only its signature is looked at."""
    nodes = [helper.make_node("RandomUniform", [], [output], shape=rows)]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, side, side])
    output_info = helper.make_tensor_value_info(output, TensorProto.FLOAT, rows)
    graph = helper.make_graph(nodes, "g", [images], [output_info])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata)
    onnx.save(model, path)


def settings(
    folder: Path, *, one: str = "model: one.onnx", two: str = "model: two.onnx", people: str = "", more: str = ""
) -> dict[str, Any]:
    (folder / "clip.mp4").touch()
    text = GRAPH.format(one=one, two=two, people=people, more=more)
    made = parse_graph(text, "g.yaml", base_folder=folder, environ={})
    return {node.name: node.settings for node in made.completed.nodes}


def mistake(folder: Path, **parts: str) -> str:
    with pytest.raises(GraphError) as caught:
        settings(folder, **parts)
    [problem] = caught.value.problems
    return str(problem)


def test_two_models_of_one_kind_are_read_by_one_stage(tmp_path: Path) -> None:
    save(tmp_path / "one.onnx", ROWS)
    save(tmp_path / "two.onnx", ROWS, task="pose", kpt_shape="[17, 3]")
    found = settings(tmp_path)["people"]
    assert (found.format, found.keypoints, found.outputs) == ("yolo_pose", 17, ("rows",))


@pytest.mark.parametrize(
    ("rows", "output", "metadata", "words"),
    [
        ([1, 6, 84], "rows", CLASSES, "has format yolo_pose, the second format yolo; put a stage like this one behind"),
        (ROWS, "heads", {}, "has outputs rows, the second outputs heads; put a stage"),
        ([1, 20, 84], "rows", {"task": "pose", "kpt_shape": "[5, 3]"}, "has keypoints 17, the second keypoints 5;"),
    ],
)
@pytest.mark.parametrize("first", ["one", "two"])
def test_models_that_differ_are_a_mistake_wherever_they_stand(
    tmp_path: Path, rows: list[int], output: str, metadata: dict[str, str], words: str, first: str
) -> None:
    """The order in the file says nothing of which model is meant."""
    save(tmp_path / "one.onnx", ROWS)
    save(tmp_path / "two.onnx", rows, output, **metadata)
    reported = mistake(tmp_path)
    assert reported.startswith("g.yaml:8:12: stages.people: the models of `one` and `two` come together here")
    assert words in reported


def test_names_of_classes_that_differ_may_be_declared(tmp_path: Path) -> None:
    save(tmp_path / "one.onnx", [1, 6, 84], **CLASSES)
    save(tmp_path / "two.onnx", [1, 6, 84], **CLASSES | {"names": "{0: 'worker', 1: 'dog'}"})
    reported = mistake(tmp_path)
    assert "has class_names person, dog, the second class_names worker, dog;" in reported
    assert reported.endswith("or say here what the classes of both are: `class_names`")
    assert settings(tmp_path, people="class_names: [person, pet]")["people"].class_names == ("person", "pet")


def test_a_model_behind_both_is_the_one_that_counts(tmp_path: Path) -> None:
    """Of a cascade the last is read; those that found the people stand before it."""
    save(tmp_path / "one.onnx", ROWS)
    save(tmp_path / "two.onnx", ROWS)
    save(tmp_path / "pose.onnx", [1, 1, 17, 3], "points", side=192)
    found = settings(tmp_path, more=CASCADE)
    assert found["posed"].format == "movenet_single"
    assert found["crops"].size == (192, 192)


def served(model: str) -> str:
    return f'server: {{url: "10.0.0.5:8001", model: {model}}}'


def test_models_on_servers_are_not_known_to_agree(tmp_path: Path) -> None:
    """What they are shows when the graph has begun."""
    pytest.importorskip("tritonclient.grpc", reason="tritonclient is not installed: pip install camgraph[triton]")
    save(tmp_path / "one.onnx", ROWS)
    reported = mistake(tmp_path, two=served("pose"))
    assert "the first has no server, the second model pose on 10.0.0.5:8001; put a stage like this one" in reported
    reported = mistake(tmp_path, one=served("other"), two=served("pose"))
    assert "the first has model other on 10.0.0.5:8001, the second model pose on 10.0.0.5:8001;" in reported
    same = settings(tmp_path, one=served("pose"), two=served("pose"))
    assert same["people"].server.model == "pose"
    declared = settings(tmp_path, one=served("other"), two=served("pose"), people=served("pose"))
    assert declared["people"].server.model == "pose"


def test_every_preprocess_stage_of_a_model_is_checked(tmp_path: Path) -> None:
    save(tmp_path / "one.onnx", ROWS)
    (tmp_path / "clip.mp4").touch()
    text = """version: 1
cameras: {a: {url: clip.mp4}}
stages:
  capture: {use: capture}
  large:   {use: preprocess, from: capture, with: {size: [128, 128]}}
  right:   {use: preprocess, from: capture}
  infer:   {use: infer, from: [large, right], with: {model: one.onnx}}
  out:     {use: sink_null, from: infer}
"""
    with pytest.raises(GraphError, match=r"g.yaml:7:12: stages.infer: .* of 64 x 64 .*, and `large` makes 128 x 128"):
        parse_graph(text, "g.yaml", base_folder=tmp_path, environ={})


def test_the_nearest_of_a_chain_is_the_last() -> None:
    upstream = Upstream({"a": {"model": 1}, "b": {"picture": 2}, "c": {"model": 3}, "d": {}})
    assert upstream.nearest("model") == {"c": {"model": 3}}
    assert upstream.nearest("model", "picture") == {"c": {"model": 3}}
    assert upstream.nearest("picture") == {"b": {"picture": 2}}
    assert upstream.nearest("other") == {}


def test_the_nearest_of_several_ways_are_several() -> None:
    given = {"a": {"model": 1}, "b": {"model": 2}, "c": {"model": 3}}
    before = {"a": frozenset[str](), "b": frozenset({"a"}), "c": frozenset[str]()}
    assert list(Upstream(given, before).nearest("model")) == ["b", "c"]
