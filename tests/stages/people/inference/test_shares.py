"""Who runs how much of a model, as the log says when it is opened. ONNX Runtime has one provider here: what it says of
two is pretended.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from structlog.testing import capture_logs

from camgraph.pipeline.testing import opened
from camgraph.stages.people.infer import Infer
from camgraph.stages.people.inference import readiness
from camgraph.stages.people.inference.engines import onnxruntime_engine
from camgraph.stages.people.inference.engines.engine import Placement

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Pictures (n, 3, 8, 8): one convolution of 2 * 64 * 9 * 3 operations for each of 4 channels, one for each of 2."""
    weights = {"first": (4, 3, 3, 3), "second": (2, 3, 3, 3)}
    nodes = [
        helper.make_node("Conv", ["images", name], [f"{name}_seen"], name=name, pads=[1, 1, 1, 1]) for name in weights
    ]
    nodes.append(helper.make_node("Concat", ["first_seen", "second_seen"], ["seen"], name="both", axis=1))
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 8, 8])
    seen = helper.make_tensor_value_info("seen", TensorProto.FLOAT, ["n", 6, 8, 8])
    constants = [numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in weights.items()]
    graph = helper.make_graph(nodes, "g", [images], [seen], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def logged_shares(folder: Path) -> tuple[str, str]:
    with capture_logs() as logs, opened(Infer, {"model": "m.onnx"}, folder=folder):
        pass
    [line] = [line for line in logs if line["event"] == "model_opened"]
    return line["nodes"], line["operations"]


def placed(monkeypatch: pytest.MonkeyPatch, names: dict[str, frozenset[str]], operators: dict[str, list[str]]) -> None:
    there = Placement({provider: Counter(own) for provider, own in operators.items()}, names)
    monkeypatch.setattr(onnxruntime_engine, "_placement_of", lambda _: there)


def test_all_nodes_means_all_work_without_reading_the_file(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*_: Any) -> Any:
        raise AssertionError("nobody needs it")

    monkeypatch.setattr(readiness, "work_of", unwanted)
    assert logged_shares(model.parent) == (f"{CPU} 100.0%", f"{CPU} 100.0%")


def test_several_have_their_shares_of_nodes_and_of_operations(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {CUDA: frozenset({"first"}), CPU: frozenset({"second", "both"})}
    placed(monkeypatch, names, {CUDA: ["Conv"], CPU: ["Conv", "Concat"]})
    assert logged_shares(model.parent) == (f"{CPU} 66.7%, {CUDA} 33.3%", f"{CUDA} 66.7%, {CPU} 33.3%")


def test_work_is_unknown_if_nodes_cannot_be_matched(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placed(monkeypatch, {}, {CUDA: ["Conv"], CPU: ["Conv", "Concat"]})
    assert logged_shares(model.parent)[1] == "not known"


def test_what_cannot_be_counted_stops_no_start(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {CUDA: frozenset({"first"}), CPU: frozenset({"second", "both"})}
    placed(monkeypatch, names, {CUDA: ["Conv"], CPU: ["Conv", "Concat"]})

    def failing(*_: Any) -> Any:
        raise RuntimeError("ONNX does not like it")

    with monkeypatch.context() as patched:
        patched.setattr(readiness, "work_of", failing)
        assert logged_shares(model.parent)[1] == "not known"
    monkeypatch.setattr(readiness, "_MOST_BYTES_COUNTED", 100)
    assert logged_shares(model.parent)[1] == "not known"
