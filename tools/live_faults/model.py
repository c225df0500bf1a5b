"""A pose model that sees one person in the middle of every picture, for next to no time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE = (96, 64)
"""Width and height of its picture."""
_KEYPOINTS, _CANDIDATES = 17, 21


def write_model(path: Path) -> None:
    """As YOLO-pose models are: pictures (1, 3, H, W) -> heads (1, 5 + 3K, A), of which one is somebody."""
    width, height = SIZE
    heads = np.zeros((1, 5 + 3 * _KEYPOINTS, _CANDIDATES), np.float32)
    heads[0, :, 0] = [width / 2, height / 2, width / 4, height / 2, 0.9] + [width / 2, height / 2, 0.8] * _KEYPOINTS
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
        helper.make_node("Add", ["nothing", "somebody"], ["output0"]),
    ]
    graph = helper.make_graph(
        nodes,
        "somebody",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, height, width])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, list(heads.shape))],
        [numpy_helper.from_array(np.zeros(1, np.float32), "zero"), numpy_helper.from_array(heads, "somebody")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
