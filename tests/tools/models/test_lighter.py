"""Lighter models, and what they lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper

from tools.cli import main
from tools.models.lighter import halve, head_nodes, quantize_dynamic

CROWD = "videos/opencv4nodejs_people.mp4"


def network(path: Path) -> Path:
    """images -> Conv a -> Relu -> Conv b -> Sigmoid -> out, and from the Relu by Conv c -> side."""
    rng = np.random.default_rng(0)
    value = helper.make_tensor_value_info
    sizes = {"a": 3, "b": 4, "c": 4}
    weights = {name: rng.normal(0, 0.3, (4, size, 3, 3)).astype(np.float32) for name, size in sizes.items()}
    nodes = [
        helper.make_node("Conv", ["images", "a"], ["sums"], pads=[1, 1, 1, 1], name="first"),
        helper.make_node("Relu", ["sums"], ["trunk"], name="relu"),
        helper.make_node("Conv", ["trunk", "b"], ["logits"], pads=[1, 1, 1, 1], name="last"),
        helper.make_node("Sigmoid", ["logits"], ["out"], name="sigmoid"),
        helper.make_node("Conv", ["trunk", "c"], ["side"], pads=[1, 1, 1, 1]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [value("images", TensorProto.FLOAT, ["n", 3, 16, 16])],
        [value("out", TensorProto.FLOAT, ["n", 4, 16, 16]), value("side", TensorProto.FLOAT, ["n", 4, 16, 16])],
        [helper.make_tensor(name, TensorProto.FLOAT, array.shape, array.ravel()) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"names": "{0: 'person'}"})
    onnx.save(model, path)
    return path


def outputs(model: Path) -> list[np.ndarray]:
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    given = np.random.default_rng(1).random((2, 3, 16, 16), dtype=np.float32)
    return [np.asarray(array) for array in session.run(None, {"images": given})]


def test_the_head_is_what_lies_behind_the_last_convolutions(tmp_path: Path) -> None:
    graph = onnx.load(str(network(tmp_path / "m.onnx"))).graph
    graph.node[4].name = "side"
    assert head_nodes(graph, 0) == []
    assert head_nodes(graph, 1) == ["last", "sigmoid", "side"]
    assert head_nodes(graph, 2) == ["first", "relu", "last", "sigmoid", "side"]


def test_half_precision_keeps_types_and_metadata_outside(tmp_path: Path) -> None:
    model = network(tmp_path / "m.onnx")
    halve(model, tmp_path / "half.onnx")
    half = onnx.load(str(tmp_path / "half.onnx"))
    assert {tensor.data_type for tensor in half.graph.initializer} == {TensorProto.FLOAT16}
    assert half.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
    assert {entry.key: entry.value for entry in half.metadata_props}["names"] == "{0: 'person'}"
    for one, other in zip(outputs(model), outputs(tmp_path / "half.onnx"), strict=True):
        assert other.dtype == np.float32
        np.testing.assert_allclose(one, other, atol=0.02)


def test_eight_bits_leave_the_head_in_float(tmp_path: Path) -> None:
    model = network(tmp_path / "m.onnx")
    assert quantize_dynamic(model, tmp_path / "int8.onnx", float_head=1) == 3
    kinds = [node.op_type for node in onnx.load(str(tmp_path / "int8.onnx")).graph.node]
    assert kinds.count("Conv") == 2
    assert "ConvInteger" in kinds
    for one, other in zip(outputs(model), outputs(tmp_path / "int8.onnx"), strict=True):
        np.testing.assert_allclose(one, other, atol=0.1)


def camgraph(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["model", *map(str, arguments)])


@pytest.mark.slow
def test_a_quantized_pose_model_finds_the_people_of_the_first(test_data: Path, tmp_path: Path) -> None:
    model, clip, out = test_data / "models/yolo11n-pose_640.onnx", test_data / CROWD, tmp_path / "int8.onnx"
    told = camgraph("quantize", model, out, "--frames", clip, "--count", 2)
    assert told.exit_code == 0, told.output
    assert "nodes of the head stay in float" in told.output
    assert out.stat().st_size < 0.45 * model.stat().st_size
    good = camgraph("compare", model, out, "--frames", clip, "--count", 3, "--least", 0.7)
    assert good.exit_code == 0, good.output
    assert "| int8.onnx |" in good.output
    assert "good |" in good.output
    strict = camgraph("compare", model, out, "--frames", clip, "--count", 1, "--least", 1.0)
    assert strict.exit_code == 1
    assert "**below 1**" in strict.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "m.onnx", "--frames", "."], "expected two models or more"),
        (["quantize", "m.onnx", "out.onnx"], "expected --frames with what your cameras see, or --dynamic"),
        (["quantize", "m.onnx", "nowhere/out.onnx", "--dynamic"], "nowhere is no folder"),
        (["fp16", "absent.onnx", "out.onnx"], "no such model file"),
    ],
)
def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str) -> None:
    monkeypatch.chdir(tmp_path)
    network(tmp_path / "m.onnx")
    told = camgraph(*arguments)
    assert told.exit_code == 2
    assert words in told.output
