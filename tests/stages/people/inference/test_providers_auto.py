"""`providers: auto`: what is tried, in which order, and what is taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from pydantic import ValidationError
from structlog.testing import capture_logs

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.inference.contracts import InputSettings, read_contract
from camgraph.stages.people.inference.engines import onnxruntime_engine, openvino_engine
from camgraph.stages.people.inference.selection import automatic, trial
from camgraph.stages.people.inference.selection.automatic import Example, candidates, choose, example_of, why_not
from camgraph.stages.people.inference.selection.opening import Asked
from camgraph.stages.people.inference.selection.trial import Trial, tried, try_in_process
from camgraph.stages.people.inference.signatures import signature_of_file
from camgraph.stages.vision.model_contract import Converter
from camgraph.stages.vision.sample_pictures import sample_pictures

pytestmark = pytest.mark.processes

INPUTS = {"images": np.full((1, 3, 8, 8), 0.5, np.float32)}
ANSWER = {"mean": np.array([0.5], np.float32)}
EXAMPLE = Example(ANSWER)


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
    ("reported", "why"),
    [
        (Trial("", ANSWER, 1.0), ""),
        (Trial("no GPU"), "no GPU"),
        (Trial("", ANSWER, 0.0), "it runs none of the model's nodes"),
        (Trial("", {"mean": np.float32([1, 2])}, 1.0), "output `mean` is float32 [2], and float32 [1] on the CPU"),
        (Trial("", {"mean": np.array([0.5])}, 1.0), "output `mean` is float64 [1], and float32 [1] on the CPU"),
        (Trial("", {}, 1.0), "output `mean` is nothing, and float32 [1] on the CPU"),
        (
            Trial("", {"mean": np.float32([np.nan])}, 1.0),
            "output `mean` holds values that are no numbers, and on the CPU they are",
        ),
        (
            Trial("", {"mean": np.float32([-0.5])}, 1.0),
            "output `mean` is another one than on the CPU: its channels differ by 2 of their spread, the worst by 2; "
            "expected at most 0.4 and 0.9",
        ),
        (Trial("", {"mean": np.float32([0.502])}, 1.0), ""),
    ],
)
def test_a_provider_must_answer_as_the_cpu_does(reported: Trial, why: str) -> None:
    assert why_not(reported, EXAMPLE) == why


def test_row_count_may_differ_if_its_dimension_is_open() -> None:
    rows = {"rows": np.ones((20, 7), np.float32)}
    more = Trial("", {"rows": np.ones((22, 7), np.float32)}, 1.0)
    assert why_not(more, Example(rows, chosen=True, declared={"rows": ("n", 7)})) == ""
    for fixed in (Example(rows, chosen=True, declared={"rows": (20, 7)}), Example(rows, declared={"rows": ("n", 7)})):
        assert why_not(more, fixed) == "output `rows` is float32 [22, 7], and float32 [20, 7] on the CPU"


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

    def attempt(path: Path, wanted: Asked, inputs: trial.Arrays) -> Trial:
        asked.append(wanted.providers)
        assert (path, inputs) == (model, INPUTS)
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
    assert try_in_process(model, Asked(("openvino", "cpu"), at_once=2), INPUTS).rate > 0


def test_a_model_that_runs_nowhere_is_the_users_mistake(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino_engine, "is_installed", lambda: True)
    with pytest.raises(UserError, match="it does not run on a picture: "):
        choose(model, Asked(), {"images": np.zeros((1, 3, 8, 8), np.float64)})


def test_a_trial_is_a_real_run_in_another_process(model: Path) -> None:
    done = try_in_process(model, Asked(("cpu",)), INPUTS)
    assert (done.failure, done.share, done.rate, list(done.outputs)) == ("", 0.0, 0.0, ["mean"])
    np.testing.assert_array_equal(done.outputs["mean"], ANSWER["mean"])
    assert try_in_process(model, Asked(("coreml", "cpu")), INPUTS).failure.startswith("this ONNX Runtime has only")


def test_what_goes_wrong_in_a_trial_is_its_failure(model: Path) -> None:
    assert "this ONNX Runtime has only" in tried(model, Asked(("coreml",)), INPUTS).failure
    assert tried(model.parent / "absent.onnx", Asked(("cpu",)), INPUTS).failure
    assert "input data type" in tried(model, Asked(("cpu",)), {"images": np.zeros((1, 3, 8, 8))}).failure


def test_a_trial_that_hangs_is_ended(model: Path) -> None:
    # Shorter than any Python takes to import ONNX Runtime.
    assert try_in_process(model, Asked(("cpu",)), INPUTS, limit_s=0.001).failure == "it did not answer within 0.001 s"


def test_names_of_a_model_are_no_paths(tmp_path: Path) -> None:
    """Of inputs and outputs, which go to another process in files."""
    node = helper.make_node("Identity", ["../in/file"], ["/out"])
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])] for name in ("../in/file", "/out")]
    graph = helper.make_graph([node], "g", *ends)
    path = tmp_path / "names.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    done = try_in_process(path, Asked(), {"../in/file": np.float32([1, 2])})
    assert (done.failure, done.outputs["/out"].tolist()) == ("", [1, 2])


def convolution(path: Path, seed: int) -> Path:
    """(n, 3, 32, 32) -> (n, 8, 30, 30), by weights of chance."""
    weights = np.random.default_rng(seed).normal(0, 1, (8, 3, 3, 3)).astype(np.float32)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Conv", ["images", "w"], ["out"])], "g",
        [value("images", TensorProto.FLOAT, ["n", 3, 32, 32])],
        [value("out", TensorProto.FLOAT, ["n", 8, 30, 30])],
        [helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.ravel())],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_provider_with_wrong_outputs_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of the CPU stand for providers: one with other weights, one that gives NaN, one that is right."""
    model, other = convolution(tmp_path / "m.onnx", 1), convolution(tmp_path / "other.onnx", 2)
    given = {"images": sample_pictures(1, (32, 32)).transpose(0, 3, 1, 2).astype(np.float32)}

    def attempt(path: Path, asked: Asked, inputs: trial.Arrays) -> Trial:
        name = asked.providers[0]
        done = tried(other if name == "tensorrt" else path, replace(asked, providers=("cpu",)), inputs)
        outputs = {key: array * (np.nan if name == "cuda" else 1) for key, array in done.outputs.items()}
        return replace(done, outputs=outputs, share=1.0, rate=1e9)

    monkeypatch.setattr(onnxruntime_engine, "offered", lambda: {"cpu", "cuda", "tensorrt"})
    monkeypatch.setattr(openvino_engine, "is_installed", lambda: True)
    choice = choose(model, Asked(), given, attempt)
    assert choice.providers == ("openvino", "cpu")
    assert choice.passed_over["tensorrt"].startswith(
        "output `out` is another one than on the CPU: its channels differ by "
    )
    assert choice.passed_over["cuda"] == "output `out` holds values that are no numbers, and on the CPU they are"
    assert choice.found.startswith(
        "it runs 100% of the nodes; outputs differ from the CPU's by 0 of their spread; 1000000"
    )


def with_suppression(model: Path, out: Path) -> Path:
    """A YOLOX that returns the rows left after suppression: one for each, of box, objectness and classes."""
    made = onnx.load(str(model))
    [rows] = made.graph.output
    columns = rows.type.tensor_type.shape.dim[2].dim_value
    constants = {
        "start": np.array([0]), "four": np.array([4]), "five": np.array([5]), "last": np.array([2]),
        "one": np.array([1]), "three": np.array([3]), "most": np.array([100]), "iou": np.float32([0.5]),
        "least": np.float32([1e-5]), "line": np.array([-1]), "table": np.array([-1, columns]),
    }  # fmt: skip
    made.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    made.graph.node.extend([
        helper.make_node("Slice", [rows.name, "start", "four", "last"], ["boxes"]),
        helper.make_node("Slice", [rows.name, "four", "five", "last"], ["column"]),
        helper.make_node("Transpose", ["column"], ["objectness"], perm=[0, 2, 1]),
        helper.make_node(
            "NonMaxSuppression", ["boxes", "objectness", "most", "iou", "least"], ["chosen"], center_point_box=1
        ),
        helper.make_node("Slice", ["chosen", "last", "three", "one"], ["places"]),
        helper.make_node("Reshape", ["places", "line"], ["anchors"]),
        helper.make_node("Reshape", [rows.name, "table"], ["all"]),
        helper.make_node("Gather", ["all", "anchors"], ["kept"], axis=0),
    ])  # fmt: skip
    del made.graph.output[:]
    made.graph.output.append(helper.make_tensor_value_info("kept", TensorProto.FLOAT, ["k", columns]))
    onnx.save(made, out)
    return out


@pytest.mark.skipif(not openvino_engine.is_installed(), reason="openvino is not installed")
@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("nms", [False, True])
def test_openvino_is_near_enough_in_both_precisions(
    test_data: Path, tmp_path: Path, precision: Literal["f32", "bf16"], nms: bool
) -> None:
    """A real model, as it is and with its suppression in the graph, which chooses otherwise after rounding."""
    model = test_data / "models/yolox_nano_bigisland.onnx"
    if nms:
        model = with_suppression(model, tmp_path / "rows.onnx")
    contract = read_contract(signature_of_file(model), "m", InputSettings())
    inputs = {contract.name: Converter(contract).batch([sample_pictures(1, (416, 416))])}
    example = example_of(model, Asked(), inputs)
    assert example.chosen == nms
    done = tried(model, Asked(("openvino", "cpu"), precision=precision), inputs)
    assert why_not(done, example) == ""
    zeros = {name: np.zeros_like(array) for name, array in done.outputs.items()}
    assert "is another one than on the CPU" in why_not(replace(done, outputs=zeros), example)


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
        assert [(line["event"], line["log_level"], line.get("why")) for line in logs] == [
            ("provider_unavailable", "info", "no GPU"),
            ("model_opened", "info", None),
        ]
    assert chosen == ["m.onnx"]
    with opened(Infer, {**AUTO, "intra_op_threads": 2}, folder=model.parent):
        assert len(chosen) == 2, "it was asked for something else"


def test_another_model_of_the_same_name_is_tried_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that runs the first need not run the second."""
    chosen: list[Path] = []

    def choosing(path: Path, asked: Asked, inputs: Any) -> automatic.Choice:
        chosen.append(path)
        return automatic.Choice(("cpu",), {})

    monkeypatch.setattr(automatic, "choose", choosing)
    for seed, tried_so_far in ((1, 1), (1, 1), (2, 2), (1, 3)):
        convolution(tmp_path / "m.onnx", seed)
        with opened(Infer, AUTO, folder=tmp_path):
            assert len(chosen) == tried_so_far


def test_a_provider_that_was_named_and_is_not_there_is_a_warning(model: Path) -> None:
    named = {**AUTO, "providers": ["coreml", "cpu"]}
    with capture_logs() as logs, opened(Infer, named, folder=model.parent):
        pass
    assert ("provider_unavailable", "warning", "coreml") in [
        (line["event"], line["log_level"], line.get("wanted")) for line in logs
    ]


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
