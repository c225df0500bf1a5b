"""Lighter models, and what they lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import cv2
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from camgraph_test_stages.commands import model_command
from onnx import TensorProto, helper

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.tools.models.convert import model_output
from camgraph.tools.models.convert.lighter import halve, head_nodes, quantize, quantize_dynamic
from camgraph.tools.models.convert.model_output import written

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


def test_a_model_of_an_old_opset_is_brought_to_a_newer_one(tmp_path: Path) -> None:
    """Eight bits with a scale for each channel came with opset 13; exporters of YOLOX write 11."""
    model = onnx.load(str(network(tmp_path / "m.onnx")))
    model.opset_import[0].version = 11
    onnx.save(model, tmp_path / "old.onnx")
    inputs = iter([{"images": np.random.default_rng(1).random((2, 3, 16, 16), dtype=np.float32)}])
    quantize(tmp_path / "old.onnx", tmp_path / "int8.onnx", inputs, float_head=1)
    made = onnx.load(str(tmp_path / "int8.onnx"))
    assert made.opset_import[0].version >= 13
    assert {entry.key: entry.value for entry in made.metadata_props}["names"] == "{0: 'person'}"
    for one, other in zip(outputs(tmp_path / "m.onnx"), outputs(tmp_path / "int8.onnx"), strict=True):
        np.testing.assert_allclose(one, other, atol=0.1)


@pytest.mark.parametrize("command", [("fp16",), ("quantize", "--dynamic")])
def test_a_lighter_model_is_not_made_lighter_again(tmp_path: Path, command: tuple[str, ...]) -> None:
    halve(network(tmp_path / "m.onnx"), tmp_path / "half.onnx")
    quantize_dynamic(tmp_path / "m.onnx", tmp_path / "int8.onnx", float_head=1)
    for name, kind in (("half.onnx", "in float16"), ("int8.onnx", "quantized")):
        result = model_command(*command, tmp_path / name, tmp_path / "o.onnx")
        assert result.exit_code == 2
        assert f"{name}: it is {kind} already, and nothing lighter is made of it" in result.output


@pytest.mark.parametrize(
    "command", [("fp16",), ("quantize", "--dynamic"), ("prepare", "--order", "rgb", "--scale", "1")]
)
@pytest.mark.parametrize("name", ["m.onnx", "./m.onnx", "link.onnx", "hard.onnx"])
def test_a_model_is_not_written_over_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = network(tmp_path / "m.onnx").read_bytes()
    (tmp_path / "link.onnx").symlink_to("m.onnx")
    (tmp_path / "hard.onnx").hardlink_to("m.onnx")
    result = model_command(*command, "m.onnx", name)
    assert result.exit_code == 2
    assert "is the model itself, which would be lost" in result.output
    assert (tmp_path / "m.onnx").read_bytes() == before


@pytest.mark.parametrize(
    "command", [("fp16",), ("quantize", "--dynamic"), ("prepare", "--order", "rgb", "--scale", "1")]
)
def test_what_is_there_is_replaced_only_where_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = network(tmp_path / "m.onnx").read_bytes()
    (tmp_path / "old.onnx").write_bytes(before)
    result = model_command(*command, "m.onnx", "old.onnx")
    assert (result.exit_code, (tmp_path / "old.onnx").read_bytes()) == (2, before)
    assert "old.onnx: exists already: name another file, or add --overwrite" in result.output
    result = model_command(*command, "m.onnx", "old.onnx", "--overwrite")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "old.onnx").read_bytes() != before


@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)])
def test_what_is_no_model_is_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    network(tmp_path / "m.onnx")
    (tmp_path / "clip.mp4").write_bytes(b"no model")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    mistakes = {
        "clip.mp4": "is there already, and is no model: expected a file of another name",
        "empty": "is there already, and is no model",
        "pipe": "pipe: is a pipe, expected a file to write the model to",
        "/dev/null": "is a device, expected a file to write the model to",
    }
    for name, words in mistakes.items():
        result = model_command("fp16", "m.onnx", name, *overwrite)
        assert result.exit_code == 2
        assert words in result.output
    assert (tmp_path / "clip.mp4").read_bytes() == b"no model"
    assert (tmp_path / "pipe").is_fifo()
    assert {path.name for path in tmp_path.iterdir()} == {"m.onnx", "clip.mp4", "empty", "pipe"}


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    model, out = network(tmp_path / "m.onnx"), tmp_path / "out.onnx"
    before = onnx.ModelProto(ir_version=8, doc_string="what was there before").SerializeToString()
    out.write_bytes(before)
    with pytest.raises(UserError, match=r"m\.onnx: the result does not load, and was not kept: cannot be read"):
        with written(model, out) as part:
            part.write_bytes(b"no model")
    with pytest.raises(ZeroDivisionError), written(model, out) as part:
        part.write_bytes(model.read_bytes()[: 1 // 0])
    assert out.read_bytes() == before
    with written(model, out) as part:
        part.write_bytes(model.read_bytes())
    assert out.read_bytes() == model.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"m.onnx", "out.onnx"}


def test_a_full_disk_is_the_machines_problem(tmp_path: Path) -> None:
    model, out = network(tmp_path / "m.onnx"), tmp_path / "out.onnx"
    with pytest.raises(EnvironmentProblem, match=r"out\.onnx: cannot be written: No space left on device"):
        with written(model, out):
            raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(FileNotFoundError), written(model, out):
        raise FileNotFoundError(errno.ENOENT, "what is no matter of this file")
    assert {path.name for path in tmp_path.iterdir()} == {"m.onnx"}


def test_a_model_too_large_for_a_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_output, "_MOST_BYTES", 1000)
    result = model_command("fp16", network(tmp_path / "m.onnx"), tmp_path / "out.onnx")
    assert result.exit_code == 2
    assert "GB with its weights, and an ONNX file holds" in result.output
    assert not (tmp_path / "out.onnx").exists()


def test_a_folder_that_takes_no_file_is_named(tmp_path: Path) -> None:
    name = "o" * 245 + ".onnx"  # so long that nothing can be written beside it
    result = model_command("fp16", network(tmp_path / "m.onnx"), tmp_path / name)
    assert result.exit_code == 2
    assert "o.onnx: cannot be written: File name too long" in result.output


@pytest.mark.parametrize("way", [["--dynamic"], ["--frames", "p.png"]])
def test_a_model_in_which_nothing_was_quantized_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cv2.imwrite("p.png", np.zeros((16, 16, 3), np.uint8))
    result = model_command("quantize", network(tmp_path / "m.onnx"), "out.onnx", *way, "--float-head", 2)
    assert result.exit_code == 2
    assert (
        "m.onnx: nothing in it was quantized, and nothing is written: 5 of its 5 nodes stay in float" in result.output
    )
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("way", [["--dynamic"], ["--frames", "p.png"]])
def test_advice_for_developers_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, way: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cv2.imwrite("p.png", np.zeros((16, 16, 3), np.uint8))
    result = model_command("quantize", network(tmp_path / "m.onnx"), "out.onnx", *way)
    assert result.exit_code == 0, result.output
    assert caplog.text == ""


@pytest.mark.lab
@pytest.mark.slow
def test_a_quantized_pose_model_finds_the_people_of_the_first(test_data: Path, tmp_path: Path) -> None:
    model, clip, out = test_data / "models/yolo11n-pose_640.onnx", test_data / CROWD, tmp_path / "int8.onnx"
    result = model_command("quantize", model, out, "--frames", clip, "--count", 2)
    assert result.exit_code == 0, result.output
    assert "nodes of the head stay in float" in result.output
    assert out.stat().st_size < 0.45 * model.stat().st_size
    good = model_command("compare", model, out, "--frames", clip, "--count", 3, "--least", 0.7, "--least-frames", 3)
    assert good.exit_code == 0, good.output
    assert "| int8.onnx |" in good.output
    assert "good: boxes, scores, classes, keypoints |" in good.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "m.onnx", "--frames", "."], "expected two models or more"),
        (["quantize", "m.onnx", "out.onnx"], "expected --frames with frames of your cameras, or --dynamic"),
        (["quantize", "m.onnx", "nowhere/out.onnx", "--dynamic"], "nowhere is no folder"),
        (["fp16", "absent.onnx", "out.onnx"], "no such model file"),
    ],
)
def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str) -> None:
    monkeypatch.chdir(tmp_path)
    network(tmp_path / "m.onnx")
    result = model_command(*arguments)
    assert result.exit_code == 2
    assert words in result.output
