"""Which worker runs on which GPU. No GPU runs: what is asked of ONNX Runtime is looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from pydantic import ValidationError
from structlog.testing import capture_logs

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import parse_graph, plan_of
from camgraph.pipeline.single_stage import HandContext
from camgraph.pipeline.testing import opened, run_graph
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.inference import readiness
from camgraph.stages.people.inference.engines import onnxruntime_engine
from camgraph.stages.people.inference.engines.devices import device_of, on_device
from camgraph.stages.people.inference.engines.engine import NotToBeHad
from camgraph.stages.people.inference.model.model_memory import ModelMemory


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Says what it was given."""
    shape = ["n", 3, "h", "w"]
    node = helper.make_node("Identity", ["images"], ["seen"])
    images, seen = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("images", "seen"))
    graph = helper.make_graph([node], "g", [images], [seen])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_workers_are_dealt_out_among_devices() -> None:
    assert [device_of((2, 5), worker) for worker in range(5)] == [2, 5, 2, 5, 2]
    assert device_of((), 3) is None
    assert on_device({"use_tf32": "0"}, "cuda", 5) == {"use_tf32": "0", "device_id": "5"}
    assert on_device({}, "cpu", 5) == on_device({}, "cuda", None) == {}


@pytest.mark.parametrize("worker", [0, 1, 2])
def test_each_worker_asks_for_its_own_device(model: Path, monkeypatch: pytest.MonkeyPatch, worker: int) -> None:
    asked: list[dict[str, dict[str, str]]] = []
    really = onnxruntime_engine.open_with

    def refuse(wanted: Any, path: Path, **other: Any) -> Any:
        asked.append({name: dict(options) for name, options in wanted.items()})
        if next(iter(wanted)) != "cpu":
            raise NotToBeHad("no GPU here")
        return really(wanted, path, **other)

    monkeypatch.setattr(onnxruntime_engine, "open_with", refuse)
    settings = {
        "model": "m.onnx",
        "providers": ["tensorrt", "cuda", "cpu"],
        "devices": [0, 3],
        "options": {"cuda": {"gpu_mem_limit": "1GB"}},
    }
    with capture_logs() as logs, opened(Infer, settings, folder=model.parent, worker=worker):
        pass
    device = ["0", "3", "0"][worker]
    assert asked[0].pop("tensorrt").items() >= {"device_id": device, "trt_engine_cache_enable": "True"}.items()
    assert asked[0] == {
        "cuda": {"gpu_mem_limit": "1000000000", "device_id": device},
        "cpu": {},
    }
    [line] = [line for line in logs if line["event"] == "model_opened"]
    assert (line["worker"], line["device_wanted"], line["provider"]) == (worker, int(device), "CPUExecutionProvider")


def problems(folder: Path, **settings: Any) -> list[tuple[tuple[str, ...], str]]:
    return list(Infer.check(InferSettings.model_validate({"model": "m.onnx", **settings}), folder))


def test_what_does_not_go_together(model: Path) -> None:
    folder = model.parent
    both = {"devices": [0, 1], "providers": ["cuda"], "options": {"cuda": {"device_id": 1}}}
    [(place, text)] = problems(folder, **both)
    assert place == ("options", "cuda", "device_id")
    assert "`devices` sets the GPU" in text
    [(place, text)] = problems(folder, devices=[0], providers=["cpu"])
    assert place == ("devices",)
    assert "none of the providers runs on a GPU" in text
    assert problems(folder, devices=[0], providers="auto") == []
    with pytest.raises(ValidationError, match="each GPU once"):
        InferSettings.model_validate({"model": "m.onnx", "devices": [1, 1]})


@pytest.mark.parametrize(
    ("provider", "settings", "sizes"),
    [
        ("CUDAExecutionProvider", {}, (1, 2, 6)),
        ("CUDAExecutionProvider", {"max_rows": 3}, (1, 3)),
        ("CUDAExecutionProvider", {"batch_sizes": [5]}, (5,)),
        ("CPUExecutionProvider", {}, ()),
    ],
)
def test_a_gpu_gets_batches_of_few_sizes(
    model: Path, monkeypatch: pytest.MonkeyPatch, provider: str, settings: dict[str, Any], sizes: tuple[int, ...]
) -> None:
    really = readiness.open_model

    def opened_on(*arguments: Any) -> Any:
        found = really(*arguments)
        monkeypatch.setattr(found.engine, "provider", provider)
        return found

    monkeypatch.setattr(readiness, "open_model", opened_on)
    context = HandContext(model.parent, model.parent, batch_max=6)
    ready = readiness.ready_model(
        InferSettings.model_validate({"model": "m.onnx", **settings}), context, ModelMemory(None)
    )
    assert ready.sizes == sizes


GRAPH = """\
version: 1
cameras:
  a: {url: a.mp4}
  b: {url: b.mp4}
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: capture, with: {size: [64, 64]}}
  infer: {use: infer, from: prepare, WORKERS, with: {model: m.onnx, providers: [cuda, cpu], devices: [0, 1]}}
"""


def test_a_device_without_a_worker_is_a_mistake(model: Path) -> None:
    for name in ("a.mp4", "b.mp4"):
        (model.parent / name).write_bytes(b"no matter")
    with pytest.raises(GraphError) as caught:
        parse_graph(GRAPH.replace("WORKERS", "threads: 2"), "g.yaml", base_folder=model.parent)
    assert "stages.infer.workers: its settings are for 2 processes, got 1: write 2" in str(caught.value)


def test_workers_of_a_run_say_where_they_run(model: Path, make_clip: Callable[..., Path]) -> None:
    for name in ("a.mp4", "b.mp4"):
        make_clip(name, frames=3)
    text = GRAPH.replace("WORKERS", "workers: 2") + "  end: {use: sink_null, from: infer}\n"
    with capture_logs() as logs:
        outcome, status = run_graph(plan_of(parse_graph(text, "g.yaml", base_folder=model.parent)))
    assert outcome.status == 0, status
    assert sorted((line["worker"], line["device_wanted"]) for line in logs if line["event"] == "model_opened") == [
        (0, 0),
        (1, 1),
    ]
