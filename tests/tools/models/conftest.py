"""A model that is opened and run in no time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper


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
