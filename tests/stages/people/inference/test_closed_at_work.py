"""A process that is closed while its model is at work in native code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import run_graph

GRAPH = """
version: 1
name: atwork{pid}
hang_s: 300
cameras: {{a: {{url: white.mp4}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [32, 32]}}}}
  infer: {{use: infer, from: prepare, with: {{model: m.onnx}}}}
  end: {{use: sink_null, from: infer}}
"""


def write_slow_model(path: Path) -> None:
    """images (1, 3, 32, 32) float32 -> out (1, 1): at once where all is black, and after minutes where it is white."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["before", "square"], ["after"]),
            helper.make_node("Identity", ["on"], ["go_on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("trip", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", TensorProto.FLOAT, [700, 700]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", TensorProto.FLOAT, [700, 700]),
        ],
    )
    nodes = [
        helper.make_node("ReduceMax", ["images"], ["brightest"], keepdims=0),
        helper.make_node("Mul", ["brightest", "trips"], ["many"]),
        helper.make_node("Cast", ["many"], ["count"], to=TensorProto.INT64),
        helper.make_node("Loop", ["count", "", "square"], ["last"], body=body),
        helper.make_node("ReduceMean", ["last"], ["mean"], axes=[0, 1], keepdims=1),
        helper.make_node("Identity", ["mean"], ["out"]),
    ]
    constants = [
        numpy_helper.from_array(np.eye(700, dtype=np.float32), "square"),
        numpy_helper.from_array(np.array(20_000, np.float32), "trips"),
    ]
    graph = helper.make_graph(
        nodes,
        "slow",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 32, 32])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 1])],
        constants,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def test_stop_during_inference_does_not_crash(tmp_path: Path, make_clip: Any) -> None:
    """Python's end tears libraries down while their threads are at work: the process died of SIGABRT."""
    write_slow_model(tmp_path / "m.onnx")
    make_clip("white.mp4", frames=5)
    (tmp_path / "g.yaml").write_text(GRAPH.format(pid=os.getpid()))
    at_work = False

    def end_at_once(run: Supervisor) -> None:
        nonlocal at_work
        infer = next(process for process in run.processes if process.plan.name == "infer.0")
        if infer.heartbeat.working_since_ns and not at_work:
            at_work = True
            run.stop()
            run.stop()

    outcome, _ = run_graph(load_plan(tmp_path / "g.yaml"), end_at_once)
    assert at_work
    assert [problem for problem in outcome.problems if "died" in problem] == []
