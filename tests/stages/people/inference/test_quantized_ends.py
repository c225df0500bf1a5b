"""Models in eight bits: those whose last node gives their own whole numbers are refused, before anything runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from camgraph.pipeline.errors import BadItem, GraphError, UserError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.classify import Classify
from camgraph.stages.people.inference.signatures import read_model
from camgraph.stages.vision.recognition import Declared

GRAPH = """\
version: 1
cameras: {a: {url: "rtsp://10.0.0.1/x"}}
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: capture}
  infer:   {use: infer, from: prepare, with: {model: m.onnx}}
  people:  {use: decode, from: infer}
  end:     {use: sink_null, from: people}
"""


def quantized(path: Path, shape: tuple[int, ...], *, floats: bool) -> Path:
    """Ends with QuantizeLinear, or with DequantizeLinear behind it."""
    constants = {
        "heads": np.random.default_rng(1).random((1, *shape), np.float32),
        "scale": np.float32(0.01), "zero": np.uint8(0), "none": np.float32(0),
        "shape": np.array([-1, *([1] * len(shape))]),
    }  # fmt: skip
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["means"], axes=[1, 2, 3]),
        helper.make_node("Reshape", ["means", "shape"], ["each"]),
        helper.make_node("Mul", ["each", "none"], ["zeros"]),
        helper.make_node("Add", ["zeros", "heads"], ["given"]),
        helper.make_node("QuantizeLinear", ["given", "scale", "zero"], ["whole" if floats else "output0"]),
    ]
    if floats:
        nodes += [helper.make_node("DequantizeLinear", ["whole", "scale", "zero"], ["output0"])]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 32, 32])
    kind = TensorProto.FLOAT if floats else TensorProto.UINT8
    output = helper.make_tensor_value_info("output0", kind, ["n", *shape])
    initial = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", [images], [output], initial)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize(
    ("shape", "declared", "format_name"),
    [
        ((56, 21), Declared(), "yolo_pose"),
        ((56, 21), Declared("yolo_pose", 17), "yolo_pose"),
        ((10,), Declared(), "classes"),
    ],
)
def test_whole_numbers_at_the_end_are_refused(
    tmp_path: Path, shape: tuple[int, ...], declared: Declared, format_name: str
) -> None:
    assert read_model(quantized(tmp_path / "f.onnx", shape, floats=True), declared).format == format_name
    with pytest.raises(UserError) as caught:
        read_model(quantized(tmp_path / "m.onnx", shape, floats=False), declared)
    assert str(caught.value) == (
        f"{tmp_path / 'm.onnx'}: its outputs fit `{format_name}`, but boxes, scores and joints must be floats, and it "
        "gives whole numbers in `output0` (tensor(uint8)): end the model with DequantizeLinear, or quantize it with "
        "`camgraph model quantize`, which leaves its end in floats"
    )


def test_check_refuses_whole_numbers(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text(GRAPH)
    quantized(tmp_path / "m.onnx", (56, 21), floats=True)
    load_plan(tmp_path / "g.yaml")
    quantized(tmp_path / "m.onnx", (56, 21), floats=False)
    with pytest.raises(GraphError, match="must be floats"):
        load_plan(tmp_path / "g.yaml")


def test_scores_of_classes_are_floats(tmp_path: Path) -> None:
    """Also if no model stands before the stage."""
    tensor = Tensor(stamp(), {"output0": np.ones((1, 10), np.uint8)}, np.ones((1, 4), np.float32), (8, 8), (8, 8))
    with opened(Classify, {}, folder=tmp_path) as stage, pytest.raises(BadItem, match="must be floats"):
        feed(stage, [tensor])
