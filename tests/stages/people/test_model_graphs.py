"""Settings that follow from the model, and the messages of `camgraph check` if graph and model do not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.graph.loading import Graph, parse_graph
from camgraph.pipeline.plan import run_from_wire, run_to_wire
from camgraph.tools.cli import main

GRAPH = """version: 1
cameras:
  a: {{url: clip.mp4}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture{prepare}}}
  infer:   {{use: infer, from: prepare, with: {{model: {model}}}}}
  people:  {{use: decode, from: infer{decode}}}
{more}  out:     {{use: sink_null, from: people}}
"""


def model(path: Path, picture: list[Any], rows: list[Any], **metadata: str) -> Path:
    """A model of one output that says nothing true; only its signature is looked at."""
    nodes = [helper.make_node("RandomUniform", [], ["rows"], shape=rows)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, picture)],
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, rows)],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(made, metadata)
    onnx.save(made, path)
    return path


@pytest.fixture
def folder(tmp_path: Path, make_clip: Any) -> Path:
    make_clip("clip.mp4", frames=2)
    model(tmp_path / "yolox.onnx", [1, 3, 416, 416], [1, 3549, 85])
    model(tmp_path / "pose.onnx", [1, 3, 320, 640], [1, 56, 4200])
    model(tmp_path / "segment.onnx", [1, 3, 640, 640], [1, 116, 8400], task="segment")
    return tmp_path


def load(folder: Path, model: str = "yolox.onnx", prepare: str = "", decode: str = "", more: str = "") -> Graph:
    text = GRAPH.format(model=model, prepare=prepare, decode=decode, more=more)
    return parse_graph(text, "g.yaml", base_folder=folder, environ={})


def mistakes(folder: Path, **parts: str) -> str:
    with pytest.raises(GraphError) as caught:
        load(folder, **parts)
    return str(caught.value)


def settings(graph: Graph, stage: str) -> Any:
    return next(node.settings for node in graph.completed.nodes if node.name == stage)


def test_a_picture_is_as_the_model_wants_it(folder: Path) -> None:
    prepare = settings(load(folder), "prepare")
    assert (prepare.size, prepare.align, prepare.pad) == ((416, 416), "corner", 114)
    prepare = settings(load(folder, "pose.onnx"), "prepare")
    assert (prepare.size, prepare.align) == ((640, 320), "centre")


def test_what_is_written_stays(folder: Path) -> None:
    prepare = settings(load(folder, prepare=", with: {align: centre, pad: 0}"), "prepare")
    assert (prepare.size, prepare.align, prepare.pad) == ((416, 416), "centre", 0)


def test_the_model_says_what_is_to_be_decoded(folder: Path) -> None:
    decode = settings(load(folder), "people")
    assert (decode.format, decode.outputs, decode.keypoints) == ("yolox", ("rows",), 0)
    decode = settings(load(folder, "pose.onnx"), "people")
    assert (decode.format, decode.keypoints, decode.class_names) == ("yolo_pose", 17, ("person",))


def test_a_size_that_the_model_does_not_take(folder: Path) -> None:
    reported = mistakes(folder, prepare=", with: {size: [640, 640]}")
    assert "g.yaml:7:12: stages.infer: yolox.onnx takes pictures of 416 x 416" in reported
    assert "`prepare` makes 640 x 640" in reported


def test_two_models_that_want_other_pictures(folder: Path) -> None:
    more = (
        "  second:  {use: infer, from: prepare, with: {model: pose.onnx}}\n  end:     {use: sink_null, from: second}\n"
    )
    reported = mistakes(folder, more=more)
    assert "g.yaml:6:12: stages.prepare: `infer` wants size (416, 416), and `second` (640, 320)" in reported
    assert "`infer` wants align corner, and `second` centre" in reported


def candidates(folder: Path, **parts: str) -> tuple[int, float] | None:
    found = settings(load(folder, "pose.onnx", **parts), "infer").candidates
    return found and (found.most, found.min_score)


def test_who_decodes_says_how_many_candidates_it_reads(folder: Path) -> None:
    assert candidates(folder) == (1300, 0.1)
    assert candidates(folder, decode=", with: {min_score: 0.2, max_people: 5}") == (1300, 0.2)
    assert candidates(folder, decode=", with: {max_people: 250}") == (3250, 0.1)


def test_candidates_are_kept_for_undeclared_readers(folder: Path) -> None:
    reads_all = "  raw: {use: sink_null, from: infer}\n"
    assert candidates(folder, more=reads_all) is None
    of_each = "  other: {{use: {use}, from: infer{rest}}}\n  end: {{use: sink_null, from: other}}\n"
    assert candidates(folder, more=of_each.format(use="decode", rest="")) == (1300, 0.1)
    assert candidates(folder, more=of_each.format(use="decode_yolo_pose", rest=", with: {min_score: 0.5}")) is None


def test_how_many_candidates_somebody_wants_stays(folder: Path) -> None:
    text = "pose.onnx, candidates: {most: 300}"
    found = settings(load(folder, text), "infer").candidates
    assert (found.most, found.min_score) == (300, 0.3)


def test_a_model_that_nobody_knows(folder: Path) -> None:
    reported = mistakes(folder, model="segment.onnx")
    assert "g.yaml:8:12: stages.people: " in reported
    assert "its metadata says task `segment`" in reported
    assert "are not those of `format: yolox`" in mistakes(folder, model="pose.onnx", decode=", with: {format: yolox}")


@pytest.mark.parametrize("processes", ["separate", "compact"])
def test_the_plan_is_the_same_when_it_has_travelled(folder: Path, processes: str) -> None:
    """It is compared with one that a command sent: what nobody changed must not begin anew at a reload."""
    text = GRAPH.format(model="pose.onnx", prepare="", decode="", more="").replace(
        "cameras:", f"processes: {processes}\ncameras:"
    )
    (folder / "g.yaml").write_text(text)
    plan = load_plan(folder / "g.yaml")
    assert run_from_wire(json.loads(json.dumps(run_to_wire(plan)))) == plan


@pytest.mark.parametrize("picture", [[1, 3, 12, 12], [1, 3, 9000, 9000]])
def test_a_picture_that_no_stage_makes_is_a_mistake(folder: Path, picture: list[Any]) -> None:
    model(folder / "odd.onnx", picture, [1, 56, 4200])
    found = mistakes(folder, model="odd.onnx")
    assert "g.yaml:6:" in found
    assert "stages.prepare: it cannot use the settings that follow from its neighbours (size" in found


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("picture_size: [100, 100]", "infer.with.picture_size: pose.onnx takes pictures of 640 x 320"),
        ("custom_ops: [no.so]", "infer.with.custom_ops: no such library of operators"),
        ("input: {layout: nhwc}", "infer.with.input.layout: pose.onnx: input `images` is"),
        ("feeds: {images: [1, 2]}", "infer.with.feeds.images: pose.onnx has `images`"),
        ("feeds: {imagse: picture}", "infer.with.feeds.imagse: pose.onnx has no input `imagse`"),
        (f"sha256: {'ab' * 32}", "infer.with.sha256: "),
    ],
)
def test_what_does_not_fit_the_model_is_placed_at_its_own_key(folder: Path, message: str, words: str) -> None:
    text = mistakes(folder, model=f"pose.onnx, {message}")
    line = GRAPH.format(model=f"pose.onnx, {message}", prepare="", decode="", more="").splitlines()[6]
    column = line.index(message) + message.rindex(": ") + 3
    assert f"g.yaml:7:{column}: stages.{words}" in text


def test_a_size_that_the_model_takes_may_be_said_again(folder: Path) -> None:
    assert load(folder, "pose.onnx, picture_size: [640, 320]").cameras


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("classes: [persn]", "person, bicycle, car"),
        ("classes: [persn], format: yolox, keypoints: 0", "person, bicycle, car"),
        ("classes: [dog, persn], class_names: [dog, cat, person]", "dog, cat, person"),
    ],
)
def test_unknown_class_is_a_mistake_with_its_place(folder: Path, written: str, known: str) -> None:
    with pytest.raises(GraphError) as caught:
        load(folder, decode=f", with: {{{written}}}")
    [problem] = caught.value.problems
    line = GRAPH.format(model="yolox.onnx", prepare="", decode=f", with: {{{written}}}", more="").splitlines()[7]
    assert (problem.line, problem.column) == (8, line.index("[") + 1)
    assert f"stages.people.with.classes: the model knows no class persn; it knows {known}" in problem.text
    assert problem.text.endswith("; did you mean `person`?")
    assert settings(load(folder, decode=", with: {classes: [person, dog]}"), "people").classes == ("person", "dog")


@pytest.mark.parametrize(
    ("file", "written", "words"),
    [
        ("yolox.onnx", "format: yolox, keypoints: 17", "with.keypoints: models of format yolox have no keypoints"),
        ("pose.onnx", "format: yolo_pose, keypoints: 16", "`format: yolo_pose` with 16 keypoints; without `keypoints`"),
        ("pose.onnx", "point_values: 2", "are of no known format; without `point_values` they are read as yolo_pose"),
        (
            "people.onnx",
            "format: movenet_people, point_values: 2",
            "with.point_values: models of format movenet_people",
        ),
    ],
)
def test_points_that_the_model_has_not_are_a_mistake(folder: Path, file: str, written: str, words: str) -> None:
    model(folder / "people.onnx", [1, 256, 256, 3], [1, 6, 56])
    reported = mistakes(folder, model=file, decode=f", with: {{{written}}}")
    assert "g.yaml:8:" in reported
    assert words in reported


def test_values_of_points_are_passed_on_to_who_reads_the_model(folder: Path) -> None:
    model(folder / "two.onnx", [1, 3, 640, 640], [1, 39, 8400])
    graph = load(folder, "two.onnx", decode=", with: {format: yolo_pose, keypoints: 17, point_values: 2}")
    assert settings(graph, "infer").point_values == 2
    found = settings(graph, "people")
    assert (found.keypoints, found.point_values, found.class_names) == (17, 2, ("person",))


@pytest.mark.parametrize(
    ("stage", "models", "made", "read"),
    [
        ("decode_yolo_pose", "YOLO-pose models", "yolox.onnx", r"yolox \(3549 rows"),
        ("decode_movenet_multipose", "MoveNet MultiPose cut at its heads", "pose.onnx", r"yolo_pose \(56 rows"),
    ],
)
def test_a_stage_for_one_format_says_which_stage_reads_another(
    folder: Path, stage: str, models: str, made: str, read: str
) -> None:
    text = GRAPH.format(model=made, prepare="", decode="", more="").replace("use: decode,", f"use: {stage},")
    with pytest.raises(GraphError) as caught:
        parse_graph(text, "g.yaml", base_folder=folder, environ={})
    [problem] = caught.value.problems
    message = f"are not those of {models}, for which this stage is: write `use: decode`, which can read them as {read}"
    assert re.search(message, problem.text)
    assert "without it" not in problem.text


def test_what_only_a_graph_can_say_is_not_told_by_commands(tmp_path: Path) -> None:
    """Of a pose model with masks, `outputs` is a setting and no option."""
    path = model(tmp_path / "two.onnx", ["n", 3, 640, 640], [1, 56, 8400])
    both = onnx.load(path)
    both.graph.node.append(helper.make_node("RandomUniform", [], ["masks"], shape=[1, 32, 9, 9]))
    both.graph.output.append(helper.make_tensor_value_info("masks", TensorProto.FLOAT, [1, 32, 9, 9]))
    onnx.save(both, path)
    for command in ("inspect", "prepare"):
        given = [str(path), str(tmp_path / "out.onnx")] if command == "prepare" else [str(path)]
        output = CliRunner().invoke(main, ["model", command, *given]).output
        assert "alone, `rows` could be yolo_pose" in output
        assert "name it in" not in output
    make_graph = GRAPH.format(model="two.onnx", prepare=", with: {size: [640, 640]}", decode="", more="")
    (tmp_path / "clip.mp4").touch()
    with pytest.raises(GraphError, match=r"alone, `rows` could be yolo_pose .*: name it in `outputs`"):
        parse_graph(make_graph, "g.yaml", base_folder=tmp_path, environ={})


RULES = """  tracks:  {{use: track, from: people}}
  rules:   {{use: rules, from: tracks, with: {{rules: [{{{}}}]}}}}
  log:     {{use: sink_null, from: rules}}
"""


@pytest.mark.parametrize(
    ("name", "decode", "rule", "told"),
    [
        ("yolox.onnx", "", "use: fall", "`people` finds boxes alone: use a model that finds these joints, or remove"),
        ("hands.onnx", "", "use: fall", "`people` finds 21 others (kpts-21): use a model that"),
        ("hands.onnx", ", with: {skeleton: hand}", "id: up, when: nose.y < hips.y", "`people` finds 21 others (hand)"),
        ("pose.onnx", ", with: {skeleton: animal}", "use: waving", "`people` finds 17 others (animal)"),
        ("yolox.onnx", "", "use: fall}, {use: waving", "`people` finds boxes alone: use"),
        ("pose.onnx", "", "use: fall", ""),
        ("yolox.onnx", "", "use: running", ""),
        ("hands.onnx", "", "id: wide, when: box.width > box.height or nose.y > hips.y", ""),
    ],
)
def test_rules_that_never_fire_of_a_model_are_a_mistake(
    folder: Path, name: str, decode: str, rule: str, told: str
) -> None:
    model(folder / "hands.onnx", [1, 3, 320, 640], [1, 68, 4200], task="pose", kpt_shape="[21, 3]", names="{0: 'hand'}")
    more = RULES.format(rule)
    if not told:
        load(folder, name, decode=decode, more=more)
        return
    ids = [one.split(",")[0].split(": ")[1] for one in rule.split("}, {")]
    with pytest.raises(GraphError) as caught:
        load(folder, name, decode=decode, more=more)
    which = f"the rule `{ids[0]}` asks" if len(ids) == 1 else "the rules `fall`, `waving` ask"
    assert f"{which} for joints of a body (coco-17), and {told}" in str(caught.value)
