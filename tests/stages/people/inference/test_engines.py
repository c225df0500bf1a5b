"""Engines other than ONNX Runtime's CPU: the same answers, who really runs what, and what is said where none can."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.system.cores import usable_cores
from camgraph.stages.people.inference.engines import openvino_engine
from camgraph.stages.people.inference.engines.engine import Engine, Placement, RunFailed
from camgraph.stages.people.inference.selection.opening import Asked, open_model

needs_openvino = pytest.mark.skipif(not openvino_engine.is_installed(), reason="openvino is not installed")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """`out` = relu(3 x 3 convolution), any batch and size; `mean` of each picture."""
    weights = np.random.default_rng(0).normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["images", "weights"], ["sums"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["sums"], ["out"]),
        helper.make_node("ReduceMean", ["out"], ["mean"], axes=[1, 2, 3], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [
            helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 4, "h", "w"]),
            helper.make_tensor_value_info("mean", TensorProto.FLOAT, ["n"]),
        ],
        [helper.make_tensor("weights", TensorProto.FLOAT, weights.shape, weights.ravel())],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def picture(seed: int, rows: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random((rows, 3, 32, 48), dtype=np.float32)


def opened(path: Path, provider: str, **asked: object) -> Engine:
    return open_model(path, Asked((provider,), **asked)).engine  # type: ignore[arg-type]


@needs_openvino
def test_openvino_gives_the_answers_of_onnxruntime(model: Path) -> None:
    reference, engine = opened(model, "cpu"), opened(model, "openvino")
    assert engine.provider == "OpenVINO f32"
    assert engine.signature == reference.signature
    for rows in (1, 3):
        given = {"images": picture(rows, rows)}
        expected, found = reference.run(given), engine.run(given)
        assert list(found) == list(expected) == ["out", "mean"]
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, atol=1e-5)


@needs_openvino
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"), [("yolo11n-pose_640", 640), ("yolov8n-pose_float", 640), ("yolox_nano_bigisland", 416)]
)
def test_openvino_agrees_with_onnxruntime_on_real_models(test_data: Path, name: str, size: int) -> None:
    path = test_data / "models" / f"{name}.onnx"
    given = {"images": np.random.default_rng(0).random((1, 3, size, size), dtype=np.float32)}
    reference, engine = opened(path, "cpu"), opened(path, "openvino")
    given = {reference.signature.inputs[0].name: given["images"]}
    expected, found = reference.run(given), engine.run(given)
    for output, array in expected.items():
        np.testing.assert_allclose(found[output], array, atol=1e-3 * np.abs(array).max())


@needs_openvino
def test_openvino_outputs_persist_across_threads(model: Path) -> None:
    engine = opened(model, "openvino")
    given = [{"images": picture(seed)} for seed in range(40)]
    alone = [{name: array.copy() for name, array in engine.run(each).items()} for each in given]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(engine.run, given))
    for one, other in zip(alone, together, strict=True):
        for name, array in one.items():
            np.testing.assert_array_equal(other[name], array)


@needs_openvino
def test_openvino_says_in_which_precision_nodes_run(model: Path) -> None:
    assert opened(model, "openvino").placement.share("OpenVINO f32") > 0.5
    assert opened(model, "openvino", precision="bf16").provider == "OpenVINO bf16"


@needs_openvino
def test_openvino_has_a_stream_for_each_run_at_once(model: Path) -> None:
    """As far as there are cores: OpenVINO makes no more of them."""
    for at_once in (1, 2):
        compiled = opened(model, "openvino", at_once=at_once)._compiled  # type: ignore[attr-defined]
        assert compiled.get_property("NUM_STREAMS") == min(at_once, usable_cores())


@needs_openvino
def test_an_input_that_openvino_does_not_take_is_said_in_a_line(model: Path) -> None:
    with pytest.raises(RunFailed) as caught:
        opened(model, "openvino").run({"images": np.zeros((1, 7, 8, 8), np.float32)})
    assert "\n" not in str(caught.value)


def test_an_engine_that_is_not_installed_says_how_to_get_it(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino_engine, "is_installed", lambda: False)
    with pytest.raises(EnvironmentProblem, match=r"openvino: the package .* `pip install camgraph\[openvino\]`"):
        opened(model, "openvino")
    found = open_model(model, Asked(("openvino", "cpu")))
    assert found.engine.provider == "CPUExecutionProvider"
    assert "not installed" in found.passed_over["openvino"]


@pytest.mark.parametrize("provider", ["directml", "coreml"])
def test_providers_of_other_systems_are_named(model: Path, provider: str) -> None:
    with pytest.raises(EnvironmentProblem, match=rf"{provider}: this ONNX Runtime has only .*add cpu"):
        opened(model, provider)


def test_on_the_cpu_the_model_is_to_blame(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_text("no model")
    with pytest.raises(UserError, match="cannot be run as an ONNX model"):
        opened(tmp_path / "m.onnx", "cpu")


def test_the_cpu_runs_all_nodes_of_its_own(model: Path) -> None:
    placement = opened(model, "cpu").placement
    assert placement.shares() == {"CPUExecutionProvider": 1.0}
    assert placement.nodes["CPUExecutionProvider"]["ReduceMean"] == 1


def test_shares_come_the_largest_first() -> None:
    placement = Placement({"a": Counter(Conv=1), "b": Counter(Conv=2, Relu=1)})
    assert list(placement.shares().items()) == [("b", 0.75), ("a", 0.25)]
    assert Placement({}).share("a") == 0.0
