"""A pose model that sees one person in the middle of every picture, for next to no time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SIDE = 64
"""Width and height of its picture."""
_KEYPOINTS = 17
_ANCHORS = 4
_OPSET = 17


def write_model(path: Path, *, bright: float = -1.0) -> None:
    """uint8 (n, 64, 64, 3) -> float32 (n, 56, 4), laid out as YOLO-pose: one person in the middle of each picture.

    `bright`: only of those whose pixels are brighter than this on average.
    """
    import onnx  # noqa: PLC0415 - heavy, and only here
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415

    nodes = [
        helper.make_node("Cast", ["images"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["floats"], ["mean"], axes=[2, 3], keepdims=0),
        helper.make_node("ReduceMean", ["mean"], ["level"], axes=[1], keepdims=1),
        helper.make_node("Unsqueeze", ["level", "last"], ["column"]),
        helper.make_node("Greater", ["column", "bright"], ["is_bright"]),
        helper.make_node("Cast", ["is_bright"], ["times"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["times", "person"], ["output0"]),
    ]
    constants = [
        numpy_helper.from_array(np.array([2], np.int64), "last"),
        numpy_helper.from_array(np.array([bright], np.float32), "bright"),
        numpy_helper.from_array(_person(), "person"),
    ]
    rows = 5 + 3 * _KEYPOINTS
    seen = helper.make_tensor_value_info("images", TensorProto.UINT8, ["n", SIDE, SIDE, 3])
    output = helper.make_tensor_value_info("output0", TensorProto.FLOAT, ["n", rows, _ANCHORS])
    graph = helper.make_graph(nodes, "light", [seen], [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _person() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """(1, 5 + 3 x 17, 4): in the first anchor somebody upright, all joints seen; the others hold nobody."""
    heads = np.zeros((1, 5 + 3 * _KEYPOINTS, _ANCHORS), np.float32)
    heads[0, :5, 0] = (32, 32, 20, 40, 0.9)
    joints = [(32.0, 14.0 + 2 * index, 0.9) for index in range(_KEYPOINTS)]
    heads[0, 5:, 0] = np.array(joints, np.float32).reshape(-1)
    return heads
