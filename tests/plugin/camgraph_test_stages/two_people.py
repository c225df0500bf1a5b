"""A model that sees the same two people in every picture, whatever is in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_SIDE, _ANCHORS = 64, 84
_METADATA = {
    "task": "pose",
    "kpt_shape": "[17, 3]",
    "names": "{0: 'person'}",
    "imgsz": f"[{_SIDE}, {_SIDE}]",
    "stride": "32",
}
_PEOPLE = {0: (30, 32, 16, 40, 0.9), 7: (30, 33, 16, 40, 0.7), 20: (50, 32, 12, 30, 0.8), 30: (10, 32, 8, 16, 0.2)}
"""Anchor -> cx, cy, w, h, score: one is suppressed, one scores too low."""


def write_two_people(path: Path, joints: Mapping[int, tuple[float, float]] | None = None) -> Path:
    """images (batch, 3, 64, 64) float32 -> output0 (batch, 56, 84), with what Ultralytics writes into its files.

    `joints`: those that it is sure of -> their place, in pixels of the model from the middle of the box.
    """
    heads = np.zeros((1, 56, _ANCHORS), np.float32)
    for anchor, values in _PEOPLE.items():
        heads[0, :5, anchor] = values
        for joint, (x, y) in (joints or {}).items():
            heads[0, 5 + 3 * joint : 8 + 3 * joint, anchor] = values[0] + x, values[1] + y, 0.9
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=1),
        helper.make_node("Mul", ["mean", "nothing"], ["zeros"]),
        helper.make_node("Squeeze", ["zeros", "last"], ["rows"]),
        helper.make_node("Add", ["rows", "heads"], ["output0"]),
    ]
    constants = {"nothing": np.zeros(1, np.float32), "last": np.array([3], np.int64), "heads": heads}
    graph = helper.make_graph(
        nodes,
        "two_people",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, _SIDE, _SIDE])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, ["batch", 56, _ANCHORS])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, _METADATA)
    onnx.save(model, path)
    return path
