"""What is said of models."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from camgraph_test_stages.raised_hands import write_raised_hands
from click.testing import CliRunner
from onnx import TensorProto, helper

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.inference.model.flops import work_of
from camgraph.stages.people.inference.selection.automatic import BEST_FIRST, Choice
from camgraph.tools.cli import main
from camgraph.tools.models.automatic_choice import lines as choice_lines
from camgraph.tools.models.declaration import Declaration, DeclaredModel
from camgraph.tools.models.inspect.inspection import inspect, lines


def test_a_model_of_keypoints_is_told_from_one_of_pictures(tmp_path: Path) -> None:
    path = write_raised_hands(tmp_path / "actions.onnx", axes="nmtvc")
    assert "its windows of keypoints: float32 nmtvc, 10 steps, 17 joints (coco-17) of 3 values, 1 body, any batch" in (
        "\n".join(lines(inspect(DeclaredModel(path))))
    )
    with pytest.raises(UserError, match="takes windows of keypoints, and this command has pictures only"):
        DeclaredModel(path).contract()


def layers(path: Path) -> Path:
    """A convolution of 3 to 8 channels with stride 2, a depthwise one, one that enlarges, and a product."""

    def constant(name: str, *shape: int) -> onnx.TensorProto:
        return helper.make_tensor(name, TensorProto.FLOAT, shape, np.zeros(shape, np.float32).ravel())

    nodes = [
        helper.make_node("Conv", ["images", "w1"], ["a"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["a", "w2"], ["b"], group=8, pads=[1, 1, 1, 1]),
        helper.make_node("ConvTranspose", ["b", "w3"], ["c"], strides=[2, 2]),
        helper.make_node("MatMul", ["c", "w4"], ["d"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, "h", 16])],
        [helper.make_tensor_value_info("d", TensorProto.FLOAT, ["n", 4, "h", 5])],
        [constant("w1", 8, 3, 3, 3), constant("w2", 8, 1, 3, 3), constant("w3", 8, 4, 2, 2), constant("w4", 16, 5)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_operations_are_counted_by_hand(tmp_path: Path) -> None:
    model = onnx.load(str(layers(tmp_path / "m.onnx")))
    found = work_of(model, {"images": (1, 3, 32, 16)}).by_operator
    assert found["Conv"] == 2 * (8 * 16 * 8) * (3 * 9) + 2 * (8 * 16 * 8) * 9
    assert found["ConvTranspose"] == 2 * (8 * 16 * 8) * (4 * 4)
    assert found["MatMul"] == 2 * (4 * 32 * 5) * 16
    assert work_of(model, {"images": (2, 3, 32, 16)}).total == 2 * found.total()
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n", "the model is left as it is"


def test_a_real_model_is_told_in_full(test_data: Path) -> None:
    found = inspect(DeclaredModel(test_data / "models/yolo11n-pose_640.onnx"))
    assert 7.0 < found.work.total / 1e9 < 8.2
    text = "\n".join(lines(found))
    assert "camgraph takes it for yolo_pose: 56 rows: 4 of the box, 1 of scores, 17 points of 3" in text
    assert "float32 nchw, rgb, pixel x 0.00392157" in text
    assert "GFLOP a picture of 640 x 640: Conv" in text


def test_the_command_says_what_runs_it(test_data: Path, tmp_path: Path) -> None:
    path = str(test_data / "models/yolox_nano_bigisland.onnx")
    result = CliRunner().invoke(main, ["model", "inspect", path, "--json", str(tmp_path / "found.json")])
    assert result.exit_code == 0
    record = json.loads((tmp_path / "found.json").read_text())
    assert (record["reading"]["format"], record["picture"]["order"], record["why_not"]) == ("yolox", "bgr", [])
    assert record["shares"] == record["shares_of_operations"] == {"CPUExecutionProvider": 1}
    assert record["flops"]["not_known_of_nodes"] == {}
    assert record["outputs"] == [{"name": "output", "shape": [1, 3549, 85], "type": "tensor(float)"}]
    assert "takes it for yolox: 3549 rows, one for each cell of 416 x 416" in result.output
    assert "bgr, pixel x 1, 416 x 416" in result.output
    assert "the frame in the upper left corner, padded with 114" in result.output
    assert "runs on CPUExecutionProvider" in result.output
    assert "CPUExecutionProvider: 100.0% of its nodes, 100.0% of its operations: Conv" in result.output


def test_words_of_a_model_move_no_cursor(tmp_path: Path) -> None:
    """Names of values, operators and classes, and metadata; in what is told, and in errors."""
    model = onnx.load(str(layers(tmp_path / "m.onnx")))
    evil = "\x1b[2J\x1b]0;title\x07"
    model.producer_name = f"maker{evil}"
    model.graph.node[-1].output[0] = model.graph.output[0].name = f"d{evil}"
    helper.set_model_props(model, {f"key{evil}": f"value{evil}", "task": f"pose{evil}"})
    onnx.save(model, tmp_path / "m.onnx")
    result = CliRunner().invoke(main, ["model", "inspect", str(tmp_path / "m.onnx")])
    assert result.exit_code == 0, result.output
    assert result.output.replace("\n", "").isprintable()
    for words in (r"maker\x1b[2J", r"output d\x1b[2J", r"key\x1b[2J", r"task `pose\x1b[2J", r"its outputs (d\x1b[2J"):
        assert words in result.output
    refused = CliRunner().invoke(main, ["model", "prepare", str(tmp_path / "m.onnx"), str(tmp_path / "o.onnx")])
    assert refused.exit_code == 2
    assert refused.output.replace("\n", "").isprintable()
    assert r"d\x1b[2J" in refused.output


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    text = "\n".join(lines(inspect(DeclaredModel(layers(tmp_path / "m.onnx"), Declaration(size=(16, 32))))))
    assert "camgraph does not recognise it: its outputs (d ['n', 4, 'h', 5])" in text
    assert "GFLOP a picture of 16 x 32" in text


MISTAKES = {
    ("absent.onnx",): "no such model file",
    ("text.onnx",): "cannot be read as an ONNX model",
    ("m.onnx", "--size", "640"): "--size 640: expected WIDTHxHEIGHT",
    ("m.onnx", "--providers", "gpu"): "there is no `gpu`; expected cpu, cuda",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    layers(tmp_path / "m.onnx")
    (tmp_path / "text.onnx").write_text("no model")
    result = CliRunner().invoke(main, ["model", "inspect", *arguments])
    assert result.exit_code == 2
    assert MISTAKES[arguments] in result.output
    assert "Traceback" not in result.output


def test_a_broken_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\x07\x12")
    with pytest.raises(UserError, match="cannot be read as an ONNX model"):
        inspect(DeclaredModel(tmp_path / "m.onnx"))


def test_what_auto_takes_and_what_the_others_did() -> None:
    passed = {"tensorrt": "no \x1b[2JGPU", "cuda": "output `x` is another one"}
    choice = Choice(("directml", "cpu"), passed, "it runs 90% of the nodes")  # type: ignore[arg-type]
    assert list(choice_lines(choice, ("tensorrt", "cuda", "directml", "openvino"))) == [
        "auto takes directml: it runs 90% of the nodes",
        r"  not tensorrt: no \x1b[2JGPU",
        "  not cuda: output `x` is another one",
        "  not coreml: this ONNX Runtime was built without it",
        "  not openvino: not tried, for directml comes before it",
    ]
    assert next(choice_lines(Choice(("cpu",), {}), ())) == "auto takes cpu: no other is installed here"
    assert next(choice_lines(Choice(("cpu",), {}), ("cuda",))) == "auto takes cpu: of the others none is to be taken"


@pytest.mark.processes
def test_auto_is_tried_where_it_is_asked_for(tmp_path: Path) -> None:
    """By real processes, with whatever this machine has."""
    model, saved = layers(tmp_path / "m.onnx"), str(tmp_path / "found.json")
    result = CliRunner().invoke(
        main, ["model", "inspect", str(model), "--size", "16x32", "--providers", "auto", "--json", saved]
    )
    assert result.exit_code == 0, result.output
    taken = re.search(r"^auto takes (\w+): ", result.output, re.MULTILINE)
    assert taken is not None
    assert set(json.loads(Path(saved).read_text())["passed_over"]) < set(BEST_FIRST)
    not_taken = re.findall(r"^  not (\w+): .", result.output, re.MULTILINE)
    assert sorted([taken[1], *not_taken]) == sorted({*BEST_FIRST, taken[1]})
    assert result.output.index("auto takes") < result.output.index("runs on ")


def test_unknown_provider_is_refused_first(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["model", "inspect", str(layers(tmp_path / "m.onnx")), "--providers", "cudaa"])
    assert result.exit_code == 2
    assert result.output.startswith("--providers cudaa: there is no `cudaa`; expected ")
