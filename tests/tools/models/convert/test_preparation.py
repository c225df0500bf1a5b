"""Models that were prepared: what they say of themselves, and that they find the same people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from camgraph_test_stages.commands import model_command
from click.testing import Result
from onnx import TensorProto, helper

from camgraph.stages.people.inference.contracts import InputSettings, read_contract
from camgraph.stages.people.inference.signatures import signature_of_file
from camgraph.stages.vision.recognition import Declared, recognise
from camgraph.tools.models.chain import Chain
from camgraph.tools.models.frames import frames_of


def pose(path: Path, *, batch: int | str = "batch", rows: int = 56) -> Path:
    """A picture of 64 x 64 -> (batch, rows, 84), which depend on the picture."""
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.3, (rows, 3, 8, 8)).astype(np.float32)
    value = helper.make_tensor_value_info
    shape = helper.make_tensor("shape", TensorProto.INT64, [3], [0, rows, 64])
    pads = helper.make_tensor("pads", TensorProto.INT64, [6], [0, 0, 0, 0, 0, 20])
    nodes = [
        helper.make_node("Conv", ["images", "w"], ["cells"], strides=[8, 8]),
        helper.make_node("Reshape", ["cells", "shape"], ["flat"]),
        helper.make_node("Pad", ["flat", "pads"], ["out"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [value("images", TensorProto.FLOAT, [batch, 3, 64, 64])],
        [value("out", TensorProto.FLOAT, [batch, rows, 84])],
        [helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.ravel()), shape, pads],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if rows == 56:
        helper.set_model_props(
            model, {"task": "pose", "kpt_shape": "[17, 3]", "names": "{0: 'person'}", "stride": "32"}
        )
    onnx.save(model, path)
    return path


def test_keeps_metadata_and_records_folding(tmp_path: Path) -> None:
    result = model_command("prepare", pose(tmp_path / "m.onnx"), tmp_path / "pixels.onnx")
    assert result.exit_code == 0, result.output
    assert "in the graph pixels / 255, as float32 nchw" in result.output
    assert "camgraph takes it for yolo_pose: 56 rows" in result.output
    signature = signature_of_file(tmp_path / "pixels.onnx")
    [picture], [rows] = signature.inputs, signature.outputs
    assert (picture.name, picture.shape, picture.onnx_type) == ("images", ("batch", 64, 64, 3), "tensor(uint8)")
    assert rows.shape == ("batch", 56, 84)
    kept = {key: signature.metadata[key] for key in ("task", "kpt_shape", "names", "stride")}
    assert kept == {"task": "pose", "kpt_shape": "[17, 3]", "names": "{0: 'person'}", "stride": "32"}
    assert signature.metadata["camgraph.format"] == "yolo_pose"
    assert read_contract(signature, "m", InputSettings()).takes_pixels_as_they_are


def test_any_batch_gives_the_same_bits(tmp_path: Path) -> None:
    model_command("prepare", pose(tmp_path / "m.onnx"), tmp_path / "pixels.onnx")
    sessions = [ort.InferenceSession(str(tmp_path / name)) for name in ("m.onnx", "pixels.onnx")]
    pixels = np.random.default_rng(1).integers(0, 256, (3, 64, 64, 3), np.uint8)
    floats = np.ascontiguousarray((pixels.transpose(0, 3, 1, 2) / 255).astype(np.float32))
    [wanted], [found] = (
        one.run(None, {"images": given}) for one, given in zip(sessions, (floats, pixels), strict=True)
    )
    np.testing.assert_array_equal(found, wanted)


def test_sides_that_are_open_stay_open(tmp_path: Path) -> None:
    """As Ultralytics exports with `dynamic=True`."""
    model = onnx.load(str(pose(tmp_path / "m.onnx")))
    for port, names in (
        (model.graph.input[0], ("batch", "", "h", "w")),
        (model.graph.output[0], ("batch", "", "anchors")),
    ):
        for side, name in zip(port.type.tensor_type.shape.dim, names, strict=True):
            if name:
                side.dim_param = name
    onnx.save(model, tmp_path / "open.onnx")
    result = model_command("prepare", tmp_path / "open.onnx", tmp_path / "pixels.onnx")
    assert result.exit_code == 0, result.output
    assert signature_of_file(tmp_path / "pixels.onnx").inputs[0].shape == ("batch", "h", "w", 3)


@pytest.mark.parametrize(
    "name", [pytest.param("yolo11n-pose_640.onnx", marks=pytest.mark.slow), "yolox_nano_bigisland.onnx"]
)
def test_real_models_find_the_same_people(test_data: Path, tmp_path: Path, name: str) -> None:
    model = test_data / "models" / name
    assert model_command("prepare", model, tmp_path / "pixels.onnx").exit_code == 0
    found = []
    for path in (model, tmp_path / "pixels.onnx"):
        with Chain(path) as chain:
            frames = list(frames_of([str(test_data / "videos/opencv4nodejs_people.mp4")], 2))
            found.append([chain.people(chain.inferred(chain.prepared(frame))) for frame in frames])
    first, other = found
    assert sum(map(len, first)) > 3
    for mine, theirs in zip(first, other, strict=True):
        for one, two in ((mine.boxes, theirs.boxes), (mine.scores, theirs.scores), (mine.keypoints, theirs.keypoints)):
            np.testing.assert_array_equal(two, one)


def folded(model: Path, *message: object) -> tuple[Result, np.ndarray]:
    """What was told, and what the model says of a picture then."""
    out = model.with_name("folded.onnx")
    out.unlink(missing_ok=True)
    result = model_command("prepare", model, out, *message)
    if result.exit_code:
        return result, np.empty(0)
    return result, np.asarray(ort.InferenceSession(str(out)).run(None, {"images": PIXELS})[0])


PIXELS = np.random.default_rng(1).integers(0, 256, (1, 64, 64, 3), np.uint8)


def given(model: Path, floats: np.ndarray) -> np.ndarray:
    """What the model says of values in its own order and scale, (1, 64, 64, 3)."""
    floats = np.ascontiguousarray(floats.transpose(0, 3, 1, 2).astype(np.float32))
    return np.asarray(ort.InferenceSession(str(model)).run(None, {"images": floats})[0])


def test_unknown_pixel_format_is_not_folded(tmp_path: Path, turned_model: Path) -> None:
    for model, why in (
        (turned_model, "can be read as yolo_pose (56 rows: 4 of the box, 1 of scores, 17 points of 3) or as yolox"),
        (pose(tmp_path / "unknown.onnx", rows=30), "are of no known format; known are yolo_pose, yolo,"),
    ):
        reported, _ = folded(model)
        assert reported.exit_code == 2
        assert why in reported.output
        assert (
            "nothing is folded: say what it is (--format), or how it wants them (--order and --scale)"
            in reported.output
        )
        assert not model.with_name("folded.onnx").exists()
    assert folded(turned_model, "--order", "bgr")[0].exit_code == 2, "and the scale?"
    assert folded(turned_model, "--format", "yolo_pose")[0].exit_code == 0


def test_declared_pixels_are_folded_only_once(tmp_path: Path) -> None:
    model = pose(tmp_path / "unknown.onnx", rows=30)
    reported, found = folded(model, "--order", "bgr", "--scale", "1/255")
    assert "in the graph pixels / 255, as float32 nchw, bgr" in reported.output
    np.testing.assert_array_equal(found, given(model, (PIXELS[..., ::-1] / 255)))
    kind = recognise(signature_of_file(tmp_path / "folded.onnx"), Declared("yolo"))
    assert (kind.picture.order, kind.picture.scale) == ("rgb", 1.0)


def test_yolox_gets_its_pixels_from_0_to_255_as_bgr(tmp_path: Path) -> None:
    """By its shape: one row for each cell of the picture, with an objectness before its seven classes."""
    model = rows_of(tmp_path / "m.onnx", 84, 12, names=str(dict.fromkeys(range(7), "thing")))
    reported, found = folded(model)
    assert "in the graph pixels as they are, as float32 nchw, bgr" in reported.output, reported.output
    assert "note: " not in reported.output
    np.testing.assert_array_equal(found, given(model, PIXELS[..., ::-1]))


def rows_of(path: Path, count: int, columns: int, **metadata: str) -> Path:
    """A picture of 64 x 64 -> (n, count, columns)."""
    model = onnx.load(str(pose(path, rows=columns)))
    model.graph.node[2].output[0] = "turned"
    model.graph.initializer.extend(
        helper.make_tensor(name, TensorProto.INT64, [1], [at]) for name, at in (("from", 0), ("to", count), ("axis", 1))
    )
    model.graph.node.append(helper.make_node("Transpose", ["turned"], ["rows"], perm=[0, 2, 1]))
    model.graph.node.append(helper.make_node("Slice", ["rows", "from", "to", "axis"], ["out"]))
    for side, length in zip(model.graph.output[0].type.tensor_type.shape.dim[1:], (count, columns), strict=True):
        side.dim_value = length
    helper.set_model_props(model, metadata)
    onnx.save(model, path)
    return path


def classifier(path: Path) -> Path:
    """A picture of 64 x 64 -> 10 scores."""
    value, mean = helper.make_tensor_value_info, np.ones((3, 10), np.float32)
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["light"], axes=[2, 3], keepdims=0),
        helper.make_node("MatMul", ["light", "w"], ["scores"]),
    ]
    ends = [value("images", TensorProto.FLOAT, ["n", 3, 64, 64])], [value("scores", TensorProto.FLOAT, ["n", 10])]
    graph = helper.make_graph(nodes, "g", *ends, [helper.make_tensor("w", TensorProto.FLOAT, (3, 10), mean.ravel())])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_what_a_kind_does_not_show_is_noted(tmp_path: Path) -> None:
    model = classifier(tmp_path / "classes.onnx")
    note = "note: a classifier does not show how its pixels were normalised"
    assert note in folded(model)[0].output
    assert note not in folded(model, "--mean", "0.5,0.5,0.5")[0].output
    assert note not in folded(model, "--scale", 1)[0].output
    rows, note = (
        rows_of(tmp_path / "rows.onnx", 20, 6),
        "note: many kinds of models have outputs as these (yolo_end2end)",
    )
    assert note in folded(rows)[0].output
    assert note not in folded(rows, "--order", "bgr", "--scale", 1)[0].output
    assert note not in folded(rows_of(rows, 20, 6, task="detect"))[0].output


MISTAKES = {
    ("folded.onnx", "o.onnx"): "it takes uint8 RGB pictures as they are: there is nothing to fold",
    ("unknown.onnx", "o.onnx"): "its outputs (out ['batch', 30, 84]) are of no known format",
    ("m.onnx", "o.onnx", "--format", "yolov8"): "--format yolov8: expected one of yolo_pose",
    ("m.onnx", "o.onnx", "--format", "yolox"): "are not those of `format: yolox`",
    ("m.onnx", "o.onnx", "--layout", "nhwc"): "that is not the layout nhwc",
    ("m.onnx", "o.onnx", "--mean", "1,2"): "--mean 1,2: expected three numbers",
    ("m.onnx", "o.onnx", "--scale", "1/0"): "--scale 1/0: expected a number above 0, such as 1/255",
    ("m.onnx", "o.onnx", "--std", "1,0,1"): "cannot be divided by 0",
    ("m.onnx", "nowhere/o.onnx"): "nowhere is no folder",
    ("absent.onnx", "o.onnx"): "no such model file",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    pose(tmp_path / "m.onnx")
    pose(tmp_path / "unknown.onnx", rows=30)
    model_command("prepare", "m.onnx", "folded.onnx")
    result = model_command("prepare", *arguments)
    assert result.exit_code == 2, result.output
    assert MISTAKES[arguments] in result.output
    assert "Traceback" not in result.output
