"""What can run models: providers that really work, and those that only claim to."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import onnx
from onnx import TensorProto, helper

from stages.inference.engine import ProviderName
from stages.inference.opening import Asked
from stages.inference.trial import try_in_process
from tools.doctor.finding import Finding

_TRY_S = 60.0
_DRIVER = Path("/proc/driver/nvidia/version")
_CURES: dict[ProviderName, str] = {
    "cuda": "pip install 'onnxruntime-gpu[cuda,cudnn]', and a driver for CUDA 13",
    "tensorrt": "install TensorRT 10 (libnvinfer.so.10) and put it on LD_LIBRARY_PATH",
    "openvino": "pip install 'camgraph[openvino]'",
}

Try = Callable[[ProviderName], str]
"""Why a provider does not work; "" where it does."""


def look_at_providers(why_not: Try | None = None) -> Iterator[Finding]:
    """Each is tried with a model of two nodes, in a process of its own: what CUDA once has, it keeps."""
    for name in get_args(ProviderName):
        why = (why_not or _tried)(name)
        if not why:
            yield Finding("ok", f"provider {name}", "runs a model")
        elif name == "cpu":
            yield Finding("wrong", "provider cpu", why, "pip install --force-reinstall onnxruntime-gpu")
        elif name in _CURES:
            yield Finding("ok", f"provider {name}", f"not to be had here ({why})", f"if wanted: {_CURES[name]}")


def _tried(name: ProviderName) -> str:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "two_nodes.onnx"
        onnx.save(_two_nodes(), model)
        return try_in_process(model, Asked((name,)), {"x": ("float32", (4, 4))}, _TRY_S).failure


def _two_nodes() -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("MatMul", ["x", "x"], ["z"]), helper.make_node("Relu", ["z"], ["y"])]
    ends = [value("x", TensorProto.FLOAT, [4, 4])], [value("y", TensorProto.FLOAT, [4, 4])]
    graph = helper.make_graph(nodes, "g", *ends)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def look_at_gpu(driver: Path = _DRIVER) -> Iterator[Finding]:
    """The NVIDIA driver, and its GPUs with their memory."""
    if not driver.exists():
        yield Finding("ok", "gpu", "no NVIDIA driver is loaded: models run on the CPU")
        return
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.free,memory.total", "--format=csv,noheader"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        yield Finding("warning", "gpu", f"a driver is loaded, and nvidia-smi does not answer: {error}", "nvidia-smi")
        return
    for line in told.stdout.splitlines():
        name, version, free, total = (part.strip() for part in line.split(","))
        yield Finding("ok", "gpu", f"{name}, driver {version}, {free} of {total} free")
