"""What can run models: providers that really work, and those that only claim to."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import numpy as np
import onnx
from onnx import TensorProto, helper

from stages.inference.engine import ProviderName
from stages.inference.opening import Asked
from stages.inference.trial import try_in_process
from tools.doctor.finding import Finding, State

_TRY_S = 60.0
_CURES: dict[ProviderName, str] = {
    "cuda": "pip install 'onnxruntime-gpu[cuda,cudnn]', and a driver for the CUDA that it was built for",
    "tensorrt": "install TensorRT 10 (libnvinfer.so.10) and put it on LD_LIBRARY_PATH",
    "openvino": "pip install 'camgraph[openvino]'",
}
_ON_NVIDIA: dict[ProviderName, State] = {"cuda": "wrong", "tensorrt": "warning"}
"""How bad it is that it does not work, on a machine with NVIDIA's driver."""

Try = Callable[[ProviderName], str]
"""Why a provider does not work; "" where it does."""


def look_at_providers(why_not: Try | None = None, *, nvidia: bool, openvino: bool) -> Iterator[Finding]:
    """Each is tried with a model of two nodes, in a process of its own: what CUDA once has, it keeps.

    ``nvidia``: the machine has NVIDIA's driver; ``openvino``: that package is installed.
    """
    for name in get_args(ProviderName):
        why = (why_not or _tried)(name)
        what = f"provider {name}"
        if not why:
            yield Finding("ok", what, "runs a model")
        elif name == "cpu":
            yield Finding("wrong", what, why, "pip install --force-reinstall onnxruntime-gpu")
        elif nvidia and name in _ON_NVIDIA:
            yield Finding(_ON_NVIDIA[name], what, f"does not work, and NVIDIA's driver is here ({why})", _CURES[name])
        elif openvino and name == "openvino":
            cure = "pip install --force-reinstall openvino"
            yield Finding("warning", what, f"is installed, and does not work ({why})", cure)
        elif name in _CURES:
            yield Finding("ok", what, f"not to be had here ({why})", f"if wanted: {_CURES[name]}")


def _tried(name: ProviderName) -> str:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "two_nodes.onnx"
        onnx.save(_two_nodes(), model)
        return try_in_process(model, Asked((name,)), {"x": np.zeros((4, 4), np.float32)}, _TRY_S).failure


def _two_nodes() -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("MatMul", ["x", "x"], ["z"]), helper.make_node("Relu", ["z"], ["y"])]
    ends = [value("x", TensorProto.FLOAT, [4, 4])], [value("y", TensorProto.FLOAT, [4, 4])]
    graph = helper.make_graph(nodes, "g", *ends)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
