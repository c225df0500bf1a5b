"""A model that is opened and run in no time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper


@pytest.fixture
def turned_model(tmp_path: Path) -> Path:
    """images float32 (n, 3, 64, 64) -> (n, 84, 56), one person; by its shape a YOLO-pose turned, or a YOLOX."""
    rows = np.zeros((1, 84, 56), np.float32)
    rows[0, 0] = [32, 32, 20, 40, 0.9, *[32, 32, 0.9] * 17]
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["light"], axes=[1, 2], keepdims=0),
        helper.make_node("ReduceMean", ["light"], ["mean"], axes=[1], keepdims=1),
        helper.make_node("Mul", ["mean", "nothing"], ["zero"]),
        helper.make_node("Unsqueeze", ["zero", "axis"], ["zeros"]),
        helper.make_node("Add", ["zeros", "rows"], ["out"]),
    ]
    constants = {"nothing": np.float32(0), "axis": np.array([2]), "rows": rows}
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g",
        [value("images", TensorProto.FLOAT, ["n", 3, 64, 64])],
        [value("out", TensorProto.FLOAT, ["n", 84, 56])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )  # fmt: skip
    path = tmp_path / "turned.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def tiny_model(tmp_path: Path) -> Path:
    """images float32 (n, 3, 32, 32) -> Conv `first` -> Softmax `middle` -> Conv `last` -> out (n, 4, 32, 32)."""
    value = helper.make_tensor_value_info
    weights = {"a": np.full((8, 3, 3, 3), 0.1, np.float32), "b": np.full((4, 8, 3, 3), 0.1, np.float32)}
    nodes = [
        helper.make_node("Conv", ["images", "a"], ["sums"], pads=[1, 1, 1, 1], name="first"),
        helper.make_node("Softmax", ["sums"], ["trunk"], name="middle"),
        helper.make_node("Conv", ["trunk", "b"], ["out"], pads=[1, 1, 1, 1], name="last"),
    ]
    graph = helper.make_graph(
        nodes, "g",
        [value("images", TensorProto.FLOAT, ["n", 3, 32, 32])],
        [value("out", TensorProto.FLOAT, ["n", 4, 32, 32])],
        [helper.make_tensor(name, TensorProto.FLOAT, array.shape, array.ravel()) for name, array in weights.items()],
    )  # fmt: skip
    path = tmp_path / "tiny.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def endless_model(tiny_model: Path) -> Path:
    """The tiny model in a loop without an end, of as many rounds as there are numbers."""
    model = onnx.load(str(tiny_model))
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Identity", ["on"], ["go_on"]), helper.make_node("Identity", ["x"], ["y"])]
    body = helper.make_graph(
        nodes,
        "body",
        [value("i", TensorProto.INT64, []), value("on", TensorProto.BOOL, []), value("x", TensorProto.FLOAT, None)],
        [value("go_on", TensorProto.BOOL, []), value("y", TensorProto.FLOAT, None)],
    )
    model.graph.node[-1].output[0] = "once"
    constants = {"many": np.array(1 << 62), "true": np.array(True)}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    model.graph.node.append(helper.make_node("Loop", ["many", "true", "once"], ["out"], body=body))
    path = tiny_model.with_name("endless.onnx")
    onnx.save(model, path)
    return path
