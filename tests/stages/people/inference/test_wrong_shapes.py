"""Outputs of another shape than the model promised: at the start a mistake, later the loss of the frames concerned."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from structlog.testing import capture_logs

from camgraph.pipeline.errors import BadItem, UserError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.testing import feed, opened, run_graph, stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.infer import Infer

FLOAT = TensorProto.FLOAT
FRAMES = 6
BRIGHT = 0.5
"""Of all pictures of a run, in the mean of one of them."""


def lying(path: Path, wrong: Sequence[Any], declared: Sequence[Any] = ("n", 56, 21), **metadata: str) -> Path:
    """What it says is (n, 56, 21), and where a picture of the run is bright, (n, 56, 21) made into something else.

    ``wrong``: nodes from `good` to `bad`. The file states ``declared``, which ONNX Runtime cannot look through: the
    branches of an If may have any shapes.
    """
    heads = np.zeros((1, 56, 21), np.float32)
    heads[0, :5, 0] = (16, 16, 10, 20, 0.8)
    constants = {"heads": heads, "zero": np.float32(0), "bright": np.float32(BRIGHT)}
    make, nothing = helper.make_node, helper.make_tensor_value_info
    nodes = [
        make("ReduceMean", ["images"], ["means"], axes=[1, 2, 3]),
        make("ReduceMax", ["means"], ["most"], keepdims=0),
        make("Greater", ["most", "bright"], ["is_bright"]),
        make("ReduceMean", ["images"], ["rows"], axes=[2, 3], keepdims=0),
        make("ReduceMean", ["rows"], ["row"], axes=[1], keepdims=1),
        make("Unsqueeze", ["row", "last"], ["each"]),
        make("Mul", ["each", "zero"], ["zeros"]),
        make("Add", ["zeros", "heads"], ["good"]),
        make(
            "If",
            ["is_bright"],
            ["output0"],
            then_branch=helper.make_graph(list(wrong), "bad", [], [nothing("bad", FLOAT, None)]),
            else_branch=helper.make_graph(
                [make("Identity", ["good"], ["same"])], "good", [], [nothing("same", FLOAT, None)]
            ),
        ),
    ]
    constants |= {"last": np.array([2]), "axis": np.array([1])}
    graph = helper.make_graph(
        nodes,
        "g",
        [nothing("images", FLOAT, ["n", 3, 32, 32])],
        [nothing("output0", FLOAT, declared)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata)
    onnx.save(model, path)
    return path


MORE_ROWS = [helper.make_node("Concat", ["good", "good"], ["bad"], axis=1)]
MORE_AXES = [helper.make_node("Unsqueeze", ["good", "axis"], ["bad"])]
NO_AXES = [helper.make_node("ReduceMax", ["good"], ["bad"], keepdims=0)]
TWICE = [helper.make_node("Concat", ["good", "good"], ["bad"], axis=0)]
WRONG = {"more rows": MORE_ROWS, "more axes": MORE_AXES, "no axes": NO_AXES, "twice the pictures": TWICE}


def picture(seq: int, value: int) -> Tensor:
    image = np.full((1, 32, 32, 3), value, np.uint8)
    return Tensor(stamp(seq), {"image": image}, np.ones((1, 4), np.float32), (32, 32), (32, 32))


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_shape_costs_its_frames_and_is_told_once(tmp_path: Path, name: str) -> None:
    lying(tmp_path / "m.onnx", WRONG[name])
    with opened(Infer, {"model": "m.onnx"}, folder=tmp_path, stage="infer") as stage, capture_logs() as logs:
        for items in ([picture(0, 255)], [picture(1, 0), picture(2, 255)], [picture(3, 255)]):
            with pytest.raises(BadItem, match="output `output0` is ") as caught:
                list(stage.process(items))
            assert (caught.value.reason, caught.value.logged) == ("shape", True)
        assert len(feed(stage, [picture(4, 0), picture(5, 0)], batch=2)) == 2
    [line] = [line for line in logs if line["event"] == "wrong_shape"]
    assert (line["stage"], line["output"], line["log_level"]) == ("infer", "output0", "warning")


def test_file_declaring_wrong_output_shape_is_refused(tmp_path: Path) -> None:
    lying(tmp_path / "m.onnx", MORE_ROWS, ("n", 57, 21))
    with pytest.raises(UserError, match=r"stage infer: .* is \(1, 56, 21\), but the model declares \(any, 57, 21\)"):
        with opened(Infer, {"model": "m.onnx"}, folder=tmp_path, stage="infer"):
            pass


def test_rows_of_one_item_that_differ_from_run_to_run_cost_it(tmp_path: Path) -> None:
    """Two crops, each in a run of its own, and one of them bright."""
    lying(tmp_path / "m.onnx", MORE_ROWS, ("n", "rows", 21))
    crops = np.zeros((2, 32, 32, 3), np.uint8)
    crops[1] = 255
    item = Tensor(stamp(), {"image": crops}, np.ones((2, 4), np.float32), (32, 32), (32, 32), np.arange(2))
    with opened(Infer, {"model": "m.onnx", "max_rows": 1}, folder=tmp_path) as stage:
        with pytest.raises(BadItem, match="output `output0` differs from run to run"):
            feed(stage, [item])


# --- whole graphs

GRAPH = """
version: 1
name: shapes{pid}
processes: {processes}
cameras: {{dark: {{url: dark.mp4}}, light: {{url: light.mp4}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [32, 32]}}}}
  infer: {{use: infer, from: prepare, batch: {{max: 4}}, with: {{model: m.onnx}}}}
  people: {{use: decode, from: infer}}
  end: {{use: sink_null, from: people}}
"""


@pytest.fixture
def ran(tmp_path: Path) -> Callable[..., tuple[Any, Any, list[str]]]:
    """Runs a graph of two cameras, one of them bright: how it ended, its status, and where wrong shapes were told."""
    for name, value in (("dark.mp4", 0), ("light.mp4", 255)):
        with av.open(str(tmp_path / name), "w") as container:
            stream = container.add_stream("libx264", rate=10)
            stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
            for _ in range(FRAMES):
                pixels = np.full((64, 64, 3), value, np.uint8)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
            container.mux(stream.encode())

    def run(processes: str) -> tuple[Any, Any, list[str]]:
        (tmp_path / "g.yaml").write_text(GRAPH.format(pid=os.getpid(), processes=processes))
        with capture_logs() as logs:
            outcome, status = run_graph(load_plan(tmp_path / "g.yaml"))
        logged = [line for line in logs if line["event"] in ("wrong_shape", "batch_split", "item_dropped")]
        return outcome, status, [f"{line['event']} {line['stage']}" for line in logged]

    return run


@pytest.mark.parametrize("processes", ["one", "separate"])
def test_other_cameras_go_on(tmp_path: Path, ran: Any, processes: str) -> None:
    lying(tmp_path / "m.onnx", MORE_ROWS)
    outcome, status, reported = ran(processes)
    drops = {camera: logged["drops_by_reason"] for camera, logged in status["cameras"].items()}
    assert drops == {"dark": {}, "light": {"shape": FRAMES}}
    assert outcome.status == 1
    [problem] = outcome.problems
    assert problem.startswith(f"frames dropped ({FRAMES} of light): a model gave outputs of another shape")
    assert reported == ["wrong_shape infer"]


def test_a_shape_that_only_its_reader_knows_is_dropped_there(tmp_path: Path, ran: Any) -> None:
    """The file leaves open how many rows its output has; its metadata say what they are."""
    lying(tmp_path / "m.onnx", MORE_ROWS, ("n", "rows", 21), task="pose", kpt_shape="[17, 3]", names="{0: 'person'}")
    outcome, status, reported = ran("one")
    drops = {camera: logged["drops_by_reason"] for camera, logged in status["cameras"].items()}
    # A run of both cameras is right for neither: `decode` cannot tell its rows apart.
    assert drops["light"] == {"shape": FRAMES}
    assert outcome.status == 1
    assert reported == ["wrong_shape people"]
