"""What providers are told, in ONNX Runtime's words. No GPU runs: what is asked of ONNX Runtime is looked at."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.raised_hands import write_raised_hands
from pydantic import ValidationError

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.infer import InferSettings
from camgraph.stages.people.inference.engines import onnxruntime_engine
from camgraph.stages.people.inference.engines.engine import NotToBeHad
from camgraph.stages.people.inference.engines.options import ProviderOptions, bytes_of, with_caches
from camgraph.stages.people.inference.selection.opening import Asked, open_model
from camgraph.stages.people.inference.selection.trial import try_in_process
from camgraph.stages.vision.run_sizes import buckets


def options_of(provider: Any, folder: Path, **options: Any) -> dict[str, str]:
    return dict(ProviderOptions.model_validate({provider: options}).of(provider, folder))


def test_options_are_texts_in_the_words_of_onnxruntime(tmp_path: Path) -> None:
    cuda = {"device_id": 1, "gpu_mem_limit": "2GB", "use_tf32": False, "cudnn_conv_algo_search": "HEURISTIC"}
    assert options_of("cuda", tmp_path, **cuda) == {
        "device_id": "1",
        "gpu_mem_limit": "2000000000",
        "use_tf32": "0",
        "cudnn_conv_algo_search": "HEURISTIC",
    }
    tensorrt = options_of("tensorrt", tmp_path, trt_engine_cache_enable=True, trt_engine_cache_path="engines")
    assert tensorrt == {"trt_engine_cache_enable": "True", "trt_engine_cache_path": str(tmp_path / "engines")}
    assert options_of("cuda", tmp_path) == dict(ProviderOptions().of("cpu", tmp_path)) == {}


def test_graph_overrides_tensorrt_cache_options(tmp_path: Path) -> None:
    kept = with_caches({"device_id": "1"}, tmp_path)
    assert kept == {
        "device_id": "1",
        "trt_engine_cache_enable": "True",
        "trt_engine_cache_path": str(tmp_path),
        "trt_timing_cache_enable": "True",
        "trt_timing_cache_path": str(tmp_path),
    }
    declared = options_of("tensorrt", tmp_path, trt_engine_cache_enable=False, trt_timing_cache_path="mine")
    found = with_caches(declared, tmp_path / "other")
    assert (found["trt_engine_cache_enable"], found["trt_timing_cache_path"]) == ("False", str(tmp_path / "mine"))


@pytest.mark.parametrize(
    ("text", "value"), [("2GB", 2_000_000_000), ("1.5 MiB", 1_572_864), ("512", 512), ("3 kb", 3000), (7, 7)]
)
def test_sizes(text: object, value: int) -> None:
    assert bytes_of(text) == value


WRONG: list[dict[str, Any]] = [
    {"cuda": {"gpu_mem_limit": "much"}},
    {"cuda": {"gpu_mem_limit": 0}},
    {"cuda": {"gpu_mem_limit": 2**63}},
    {"cuda": {"gpu_mem_limt": "2GB"}},
    {"cuda": {"device_id": -1}},
    {"cuda": {"arena_extend_strategy": "kNever"}},
    {"tensorrt": {"trt_builder_optimization_level": 9}},
    {"rocm": {}},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_what_a_provider_does_not_know_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        InferSettings.model_validate({"model": "m.onnx", "options": options})


@pytest.mark.parametrize("sizes", [[4, 2], [2, 2], [0, 1]])
def test_batch_sizes_ascend(sizes: list[int]) -> None:
    with pytest.raises(ValidationError):
        InferSettings.model_validate({"model": "m.onnx", "batch_sizes": sizes})


class Refused(RuntimeError):
    """What the session below raises when it has been asked for."""


@pytest.mark.parametrize("listed", [("cuda",), ("cuda", "cpu"), ("tensorrt", "cuda", "cpu")])
def test_what_onnxruntime_is_asked_for(monkeypatch: pytest.MonkeyPatch, listed: tuple[Any, ...]) -> None:
    asked: list[Any] = []

    def session(path: str, settings: Any, providers: Any, enable_fallback: int) -> None:
        asked.append((settings, providers, enable_fallback))
        raise Refused("no GPU")

    ort = onnxruntime_engine.ort
    monkeypatch.setattr(ort, "InferenceSession", session)
    monkeypatch.setattr(ort, "get_available_providers", lambda: [onnxruntime_engine.PROVIDERS[name] for name in listed])
    options = {name: ({"device_id": "1"} if name != "cpu" else {}) for name in listed}
    monkeypatch.setattr(onnxruntime_engine, "why_no_cuda", lambda: "")
    with pytest.raises(NotToBeHad, match="no GPU"):
        onnxruntime_engine.open_with(options, Path("m.onnx"), threads=3)
    [(settings, providers, fallback)] = asked
    given = {**options, "cuda": {"cudnn_conv_algo_search": "HEURISTIC", **options["cuda"]}}
    assert providers == [(onnxruntime_engine.PROVIDERS[name], given[name]) for name in listed]
    assert fallback == 0
    assert settings.intra_op_num_threads == 3
    strict = settings.get_session_config_entry("session.disable_cpu_ep_fallback") if "cpu" not in listed else "1"
    assert strict == "1"


def test_candidates_are_bounded() -> None:
    """A number that no message can carry would end the run, and not `check`."""
    with pytest.raises(ValidationError, match="less than or equal to 1000000"):
        InferSettings.model_validate({"model": "m.onnx", "candidates": {"most": 10**23}})


def test_usual_sizes_of_batches_are_those_described() -> None:
    text = InferSettings.model_fields["batch_sizes"].description or ""
    examples = re.findall(r"of (\d+) there are ([\d, ]*\d)", text)
    assert {int(most): tuple(map(int, sizes.split(", "))) for most, sizes in examples} == {
        most: buckets(most) for most in (8, 16)
    }


SESSION = {
    "execution": "parallel",
    "inter_op_threads": 3,
    "graph_optimization": "basic",
    "memory_arena": False,
    "memory_pattern": False,
    "config": {"session.set_denormal_as_zero": "1"},
}


def test_a_session_is_as_the_graph_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_raised_hands(tmp_path / "m.onnx")
    made: list[Any] = []
    monkeypatch.setattr(onnxruntime_engine, "_placement_of", made.append)
    settings = InferSettings.model_validate({"model": "m.onnx", "options": {"session": SESSION}})
    asked = Asked(session=settings.options.session.given)
    open_model(tmp_path / "m.onnx", asked)
    [session] = made
    found = session.get_session_options()
    assert found.execution_mode == onnxruntime_engine.ort.ExecutionMode.ORT_PARALLEL
    assert (found.inter_op_num_threads, found.enable_cpu_mem_arena, found.enable_mem_pattern) == (3, False, False)
    assert found.graph_optimization_level == onnxruntime_engine.ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    assert found.get_session_config_entry("session.set_denormal_as_zero") == "1"
    assert try_in_process(tmp_path / "m.onnx", asked, {}).failure == "", "a trial opens it so, too"


def test_a_session_is_usual_if_nothing_is_said() -> None:
    assert InferSettings(model="m.onnx").options.session.given == {}


def test_idle_threads_are_a_mistake() -> None:
    with pytest.raises(ValidationError, match="inter_op_threads is for `execution: parallel`"):
        InferSettings.model_validate({"model": "m.onnx", "options": {"session": {"inter_op_threads": 2}}})


@pytest.mark.parametrize("key", ["", "k" * 1025])
def test_an_entry_of_a_session_has_a_name(key: str) -> None:
    with pytest.raises(ValidationError):
        InferSettings.model_validate({"model": "m.onnx", "options": {"session": {"config": {key: "1"}}}})


def test_a_session_that_cannot_be_opened_names_its_options(tmp_path: Path) -> None:
    write_raised_hands(tmp_path / "m.onnx")
    session = {"config": {"session.load_model_format": "ORT"}}
    with pytest.raises(UserError, match=r"or it is one of `options\.session`"):
        open_model(tmp_path / "m.onnx", Asked(session=session))
