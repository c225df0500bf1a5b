"""A classifier over windows of keypoints, whose answer can be computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

GAIN = 4.0
_NOSE, _LEFT_WRIST = 0, 9


def write_raised_hands(path: Path, *, steps: int = 10, axes: str = "nctvm", joints: int = 17, **metadata: str) -> Path:
    """keypoints (n, 3, steps, joints, 1) or (n, 1, steps, joints, 3) -> logits (n, 2): `hands up`, `hands down`.

    The first logit is GAIN times the mean over the steps of how far the left wrist is above the nose, in the unit of
    the coordinates; the second is its negative.
    """
    sides = {"c": 3, "t": steps, "v": joints, "m": 1}
    shape = [sides[axis] for axis in axes[1:]]
    weights = np.zeros((3, steps, joints, 1, 2), np.float32)  # c, t, v, m, class
    for joint, sign in ((_NOSE, 1), (_LEFT_WRIST, -1)):
        weights[1, :, joint, 0] = np.array([sign, -sign]) * GAIN / steps
    weights = weights.transpose(*("ctvm".index(axis) for axis in axes[1:]), 4).reshape(-1, 2)
    constants: dict[str, Any] = {"flat": np.array([-1, len(weights)], np.int64), "weights": weights}
    graph = helper.make_graph(
        [
            helper.make_node("Reshape", ["keypoints", "flat"], ["row"]),
            helper.make_node("MatMul", ["row", "weights"], ["logits"]),
        ],
        "raised_hands",
        [helper.make_tensor_value_info("keypoints", TensorProto.FLOAT, ["n", *shape])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"names": "{0: 'hands up', 1: 'hands down'}", **metadata})
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path
