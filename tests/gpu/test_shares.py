"""A model of which the GPU runs little is not shown as one that the GPU runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.processes

OPEN = """
import json, sys
from pathlib import Path
from structlog.testing import capture_logs
from camgraph.pipeline.testing import opened, reports_of
from camgraph.stages.people.infer import Infer

path = Path(sys.argv[1])
with capture_logs() as logs:
    with opened(Infer, {"model": path.name, "providers": ["cuda", "cpu"]}, folder=path.parent) as stage:
        facts = stage.context.facts
wanted = [line for line in logs if line["event"] in ("model_opened", "provider_runs_little")]
print(json.dumps([facts, wanted]))
"""


def dynamic(path: Path, channels: int) -> Path:
    """A convolution of floats, and one of ``channels`` in eight bits as dynamic quantization makes it: not on CUDA."""
    rng = np.random.default_rng(0)
    weights = {
        "floats": rng.normal(0, 1, (3, 3, 3, 3)).astype(np.float32),
        "bytes": rng.integers(-99, 99, (channels, 3, 3, 3), np.int8),
    }
    nodes = [
        helper.make_node("Conv", ["images", "floats"], ["seen"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("DynamicQuantizeLinear", ["seen"], ["whole", "scale", "zero"], name="quantize"),
        helper.make_node("ConvInteger", ["whole", "bytes", "zero"], ["sums"], name="second", pads=[1, 1, 1, 1]),
        helper.make_node("Cast", ["sums"], ["cast"], name="cast", to=TensorProto.FLOAT),
        helper.make_node("Mul", ["cast", "scale"], ["out"], name="scaled"),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 32, 32])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", channels, 32, 32])
    initial = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", [images], [out], initial)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def opened(cuda: Any, path: Path) -> tuple[dict[str, str], list[dict[str, Any]]]:
    done = cuda.run("-c", OPEN, str(path))
    assert done.status == 0, done.err
    facts, logs = json.loads(done.out)
    return facts, logs


def test_a_gpu_that_runs_little_is_shown_with_its_share(cuda: Any, tmp_path: Path) -> None:
    facts, [line, warning] = opened(cuda, dynamic(tmp_path / "m.onnx", 60))
    assert warning["log_level"] == "warning"
    assert warning["operations"] == "CPUExecutionProvider 95.2%, CUDAExecutionProvider 4.8%"
    assert facts["provider"] == line["operations"] == warning["operations"]
    assert line["provider"] == warning["provider"] == "CUDAExecutionProvider"


def test_a_gpu_that_runs_most_is_shown_by_its_name(cuda: Any, tmp_path: Path) -> None:
    facts, [line] = opened(cuda, dynamic(tmp_path / "m.onnx", 1))
    assert facts["provider"] == "CUDAExecutionProvider"
    assert line["operations"] == "CUDAExecutionProvider 75.0%, CPUExecutionProvider 25.0%"
