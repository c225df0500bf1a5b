"""`providers: auto`: what is tried, in which order, and what is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from pydantic import ValidationError
from structlog.testing import capture_logs

from pipeline.errors import UserError
from pipeline.testing import feed, opened, stamp
from stages.infer import Infer, InferSettings
from stages.inference import automatic, onnxruntime_engine, openvino_engine, trial
from stages.inference.automatic import candidates, choose, why_not
from stages.inference.opening import Asked
from stages.inference.trial import Trial, tried, try_in_process
from stages.messages import Tensor

ANSWER = {"mean": ("float32", (1,))}
SHAPES = {"images": ("float32", (1, 3, 8, 8))}
INPUTS = {"images": np.zeros((1, 3, 8, 8), np.float32)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The mean of each picture."""
    node = helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=0)
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, "h", "w"])
    mean = helper.make_tensor_value_info("mean", TensorProto.FLOAT, ["n"])
    graph = helper.make_graph([node], "g", [images], [mean])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_only_what_is_there_is_tried_the_best_first() -> None:
    offered = {"cpu", "cuda", "tensorrt"}
    assert candidates(offered, has_openvino=True) == ("tensorrt", "cuda", "openvino")  # type: ignore[arg-type]
    assert candidates({"cpu"}, has_openvino=False) == ()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (Trial("", ANSWER, 1.0), ""),
        (Trial("no GPU"), "no GPU"),
        (Trial("", ANSWER, 0.0), "it runs none of the model's nodes"),
        (Trial("", {"mean": ("float32", (2,))}, 1.0), "output `mean` is float32 [2], and float32 [1] on the CPU"),
        (Trial("", {}, 1.0), "output `mean` is nothing, and float32 [1] on the CPU"),
    ],
)
def test_a_provider_must_answer_as_the_cpu_does(said: Trial, why: str) -> None:
    assert why_not(said, ANSWER) == why


@pytest.mark.parametrize(
    ("works", "taken", "passed_over"),
    [
        ({"cuda", "openvino"}, ("cuda", "cpu"), ["tensorrt"]),
        ({"openvino"}, ("openvino", "cpu"), ["tensorrt", "cuda"]),
        (set(), ("cpu",), ["tensorrt", "cuda", "openvino"]),
    ],
)
def test_the_first_that_works_is_taken(
    model: Path, monkeypatch: pytest.MonkeyPatch, works: set[str], taken: tuple[str, ...], passed_over: list[str]
) -> None:
    asked: list[tuple[str, ...]] = []

    def attempt(path: Path, wanted: Asked, inputs: trial.Inputs) -> Trial:
        asked.append(wanted.providers)
        assert (path, dict(inputs)) == (model, SHAPES)
        return Trial("", ANSWER, 1.0, rate=1e9) if wanted.providers[0] in works else Trial("it is broken")

    monkeypatch.setattr(onnxruntime_engine, "offered", lambda: {"cpu", "cuda", "tensorrt"})
    monkeypatch.setattr(openvino_engine, "is_installed", lambda: True)
    choice = choose(model, Asked(), INPUTS, attempt)
    assert choice.providers == taken
    assert dict(choice.passed_over) == dict.fromkeys(passed_over, "it is broken")
    assert asked == [(name, "cpu") for name in [*passed_over, *taken[:-1]]]


def test_openvino_is_taken_only_where_it_is_faster(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime_engine, "offered", lambda: {"cpu"})
    monkeypatch.setattr(openvino_engine, "is_installed", lambda: True)
    for rate, taken in ((1e9, ("openvino", "cpu")), (1e-9, ("cpu",))):
        choice = choose(model, Asked(at_once=2), INPUTS, lambda *_, rate=rate: Trial("", ANSWER, 1.0, rate))
        assert choice.providers == taken
    assert choice.passed_over["openvino"].startswith("slower than ONNX Runtime's own on this CPU: 0.0 and ")


@pytest.mark.skipif(not openvino_engine.is_installed(), reason="openvino is not installed")
def test_the_rate_of_openvino_is_measured_where_it_runs(model: Path) -> None:
    assert try_in_process(model, Asked(("openvino", "cpu"), at_once=2), SHAPES).rate > 0


def test_a_model_that_runs_nowhere_is_the_users_mistake(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino_engine, "is_installed", lambda: True)
    with pytest.raises(UserError, match="it does not run on a black picture: "):
        choose(model, Asked(), {"images": np.zeros((1, 3, 8, 8), np.float64)})


def test_a_trial_is_a_real_run_in_another_process(model: Path) -> None:
    assert try_in_process(model, Asked(("cpu",)), SHAPES) == Trial("", ANSWER, 0.0)
    assert try_in_process(model, Asked(("coreml", "cpu")), SHAPES).failure.startswith("this ONNX Runtime has only")


def test_what_goes_wrong_in_a_trial_is_its_failure(model: Path) -> None:
    assert "this ONNX Runtime has only" in tried(model, Asked(("coreml",)), SHAPES).failure
    assert tried(model.parent / "absent.onnx", Asked(("cpu",)), SHAPES).failure
    assert "input data type" in tried(model, Asked(("cpu",)), {"images": ("float64", (1, 3, 8, 8))}).failure


def test_a_trial_that_hangs_is_ended(model: Path) -> None:
    # Shorter than any Python takes to import ONNX Runtime.
    assert try_in_process(model, Asked(("cpu",)), SHAPES, limit_s=0.001).failure == "it did not answer within 0.001 s"


AUTO = {"model": "m.onnx", "providers": "auto"}


def pictures() -> list[Tensor]:
    return [
        Tensor(stamp(), {"image": np.full((1, 8, 8, 3), 51, np.uint8)}, np.ones((1, 4), np.float32), (8, 8), (8, 8))
    ]


def test_a_stage_takes_what_works_says_why_and_remembers_it(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[str] = []

    def choosing(path: Path, asked: Asked, inputs: Any) -> automatic.Choice:
        chosen.append(path.name)
        assert {name: array.shape for name, array in inputs.items()} == {"images": (1, 3, 256, 256)}
        return automatic.Choice(("cpu",), {"cuda": "no GPU"})

    monkeypatch.setattr(automatic, "choose", choosing)
    for _ in range(2):  # the second is a process that was started again
        with (
            capture_logs() as logs,
            opened(Infer, AUTO, folder=model.parent) as stage,
        ):
            [output] = feed(stage, pictures())
        assert isinstance(output, Tensor)
        assert output.arrays_by_name["mean"] == pytest.approx([0.2])
        assert [(line["event"], line.get("why")) for line in logs] == [
            ("provider_unavailable", "no GPU"),
            ("model_opened", None),
        ]
    assert chosen == ["m.onnx"]
    with opened(Infer, {**AUTO, "intra_op_threads": 2}, folder=model.parent):
        assert len(chosen) == 2, "it was asked for something else"


@pytest.mark.slow
def test_the_best_that_works_on_this_machine(model: Path) -> None:
    with opened(Infer, AUTO, folder=model.parent) as stage:
        [output] = feed(stage, pictures())
    assert isinstance(output, Tensor)
    assert output.arrays_by_name["mean"] == pytest.approx([0.2])


def test_auto_stands_alone() -> None:
    assert InferSettings(model="m", providers="auto").providers == ("auto",)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="expected auto alone"):
        InferSettings.model_validate({"model": "m", "providers": ["auto", "cpu"]})
    assert "provider" not in Infer.describe(InferSettings(model="m", providers=("auto",)))["model"]
