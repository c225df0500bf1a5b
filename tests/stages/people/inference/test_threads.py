"""How many threads run the model at once, and how many threads each run has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from structlog.testing import capture_logs

from camgraph.pipeline.graph.loading import parse_graph
from camgraph.pipeline.graph.planning import plan_of
from camgraph.pipeline.testing import opened, run_graph
from camgraph.stages.people.infer import Infer
from camgraph.stages.people.inference.engines import nvidia, onnxruntime_engine


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A convolution, any batch and size."""
    weights = np.random.default_rng(0).normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["images", "weights"], ["out"], pads=[1, 1, 1, 1])
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, "h", "w"])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 8, "h", "w"])
    constants = [helper.make_tensor("weights", TensorProto.FLOAT, weights.shape, weights.ravel())]
    graph = helper.make_graph([node], "g", [images], [out], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def threads_of(folder: Path, rest: str) -> int:
    text = f"""
version: 1
name: threads
cameras: {{a: {{url: "{folder}/a.mp4"}}, b: {{url: "{folder}/b.mp4"}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture}}
  infer: {{use: infer, from: prepare, {rest}}}
  end: {{use: sink_null, from: infer}}
"""
    plan = plan_of(parse_graph(text, "g.yaml", base_folder=folder))
    [stage] = {
        stage.threads: stage for process in plan.processes for stage in process.stages if stage.name == "infer"
    }.values()
    return stage.threads


def test_a_stage_that_says_no_threads_has_one_for_each_core(
    model: Path, make_clip: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine of which one core idles while frames are dropped is no default."""
    for name in ("a.mp4", "b.mp4"):
        make_clip(name, frames=2)
    monkeypatch.setattr("camgraph.stages.people.inference.readiness.usable_cores", lambda: 6)
    assert threads_of(model.parent, "with: {model: m.onnx}") == 6
    assert threads_of(model.parent, "threads: 1, with: {model: m.onnx}") == 1
    assert threads_of(model.parent, "with: {model: m.onnx, intra_op_threads: 2}") == 3
    assert threads_of(model.parent, "workers: 2, with: {model: m.onnx}") == 3
    assert threads_of(model.parent, "threads: 2, with: {model: m.onnx}") == 2


@pytest.mark.parametrize(
    ("providers", "driver", "threads"),
    [
        ("[cuda, cpu]", "libc.so.6", 2),
        ("[cuda, cpu]", "libno.so.1", 6),
        ("[tensorrt, cuda, openvino]", "libno.so.1", 6),
        ("[coreml, cpu]", "libc.so.6", 6),
        ("[coreml, cuda, cpu]", "libc.so.6", 2),
        ("[cuda]", "libno.so.1", 2),
        ("[cpu, cuda]", "libc.so.6", 6),
    ],
)
def test_a_device_that_is_not_here_leaves_all_cores_to_runs(
    model: Path, make_clip: Any, monkeypatch: pytest.MonkeyPatch, providers: str, driver: str, threads: int
) -> None:
    """With libc.so.6 for a driver, which can be loaded everywhere; the engines are those of a machine with a GPU."""
    for name in ("a.mp4", "b.mp4"):
        make_clip(name, frames=2)
    monkeypatch.setattr("camgraph.stages.people.inference.readiness.usable_cores", lambda: 6)
    monkeypatch.setattr(onnxruntime_engine, "offered", lambda: {"tensorrt", "cuda", "cpu"})
    monkeypatch.setattr(nvidia, "_DRIVER", driver)
    assert threads_of(model.parent, f"with: {{model: m.onnx, providers: {providers}}}") == threads


@pytest.mark.parametrize(("planned", "each", "settings"), [(2, 4, {}), (8, 1, {}), (2, 3, {"intra_op_threads": 3})])
def test_runs_on_the_processor_instead_of_a_device_use_all_cores(
    model: Path, monkeypatch: pytest.MonkeyPatch, planned: int, each: int, settings: dict[str, int]
) -> None:
    """Of 8, also if the device fails only when the model is opened."""
    monkeypatch.setattr("camgraph.stages.people.inference.readiness.usable_cores", lambda: 8)
    asked = {"model": "m.onnx", "providers": ["coreml", "cpu"], **settings}
    with capture_logs() as logs, opened(Infer, asked, folder=model.parent, threads=planned) as stage:
        assert stage._engine._session.get_session_options().intra_op_num_threads == each  # type: ignore[attr-defined]
    [line] = [line for line in logs if line["event"] == "model_opened"]
    assert (line["provider"], line["at_once"], line["threads_each"]) == ("CPUExecutionProvider", planned, each)


@pytest.mark.parametrize(("processes", "runs"), [("separate", (3, 1)), ("compact", (3, 1)), ("one", (1, 3))])
def test_all_cores_are_used_wherever_the_stage_is_placed(
    model: Path, make_clip: Any, monkeypatch: pytest.MonkeyPatch, processes: str, runs: tuple[int, int]
) -> None:
    """In one process stages take turns: there a run has all of the threads."""
    make_clip("a.mp4", frames=2)
    monkeypatch.setattr("camgraph.stages.people.inference.readiness.usable_cores", lambda: 3)
    text = f"""
version: 1
name: placed{os.getpid()}
processes: {processes}
cameras: {{a: {{url: a.mp4}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [64, 64]}}}}
  infer: {{use: infer, from: prepare, with: {{model: {model.name}}}}}
  end: {{use: sink_null, from: infer}}
"""
    with capture_logs() as logs:
        outcome, _ = run_graph(plan_of(parse_graph(text, "g.yaml", base_folder=model.parent)))
    [line] = [line for line in logs if line["event"] == "model_opened"]
    assert (outcome.status, line["at_once"], line["threads_each"]) == (0, *runs)
