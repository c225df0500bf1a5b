"""A small model of one convolution, by which it shows whether a provider can calculate at all."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from camgraph.pipeline.messages import Array


def convolution() -> tuple[bytes, Mapping[str, Array]]:
    """The model as ONNX, with inputs for it: x (1, 3, 8, 8) -> y, of the same shape."""
    import onnx  # noqa: PLC0415 - large, and only GPUs and the doctor need it
    from onnx import TensorProto, helper  # noqa: PLC0415

    weights = np.ones((3, 3, 3, 3), np.float32) / 27
    stored = helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.ravel())
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, 8, 8]) for name in "xy")
    graph = helper.make_graph([node], "convolution", [x], [y], [stored])
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), {"x": np.ones((1, 3, 8, 8), np.float32)}
