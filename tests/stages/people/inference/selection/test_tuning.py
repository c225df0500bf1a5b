"""`tune: auto`: what is measured, what follows from it, what is remembered, and that outputs stay the same."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from structlog import get_logger
from structlog.testing import capture_logs

from camgraph.pipeline.graph.loading import parse_graph
from camgraph.pipeline.graph.planning import plan_of
from camgraph.pipeline.messages import Array
from camgraph.pipeline.testing import feed, opened, run_graph, stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.inference.batches import BatchRuns, Given
from camgraph.stages.people.inference.engines import nvidia, onnxruntime_engine
from camgraph.stages.people.inference.engines.engine import Placement
from camgraph.stages.people.inference.selection import tuner
from camgraph.stages.people.inference.selection.tuner import OtherWork, Task, rates_of, tuned
from camgraph.stages.people.inference.selection.tuning import (
    Run,
    Tuned,
    best_of,
    candidates,
    in_words,
    rows_worth_trying,
)
from camgraph.stages.vision.model_contract import InputContract
from camgraph.stages.vision.recognition import Port, Signature

# --- what is worth measuring, and what follows from it


def test_candidates_share_the_cores() -> None:
    assert candidates(2, 2, (1, 2)) == (Run(1, 1, 2), Run(1, 2, 2), Run(2, 1, 1), Run(2, 2, 1))
    two = [Run(t, r, 2) for t, r in [(1, 1), (1, 8), (4, 1), (4, 8)]]
    assert candidates(8, 2, (1, 8)) == (*two, Run(8, 1, 1), Run(8, 8, 1), Run(2, 1, 2), Run(2, 8, 2))
    assert candidates(1, 1, (1,)) == (Run(1, 1, 1),)
    assert {run.at_once for run in candidates(16, 16, (1,))} == {16, 8, 1}


@given(st.integers(1, 128), st.integers(1, 16), st.sampled_from([(1,), (4,), (1, 2, 4, 8)]))
def test_candidates_are_few_and_fit(cores: int, at_once: int, rows: tuple[int, ...]) -> None:
    found = candidates(cores, at_once, rows)
    assert len(found) == len(set(found)) <= 4 * len(rows) + 4
    assert all(run.threads == 1 or run.threads * run.at_once <= cores for run in found)
    assert all(1 <= run.at_once <= at_once for run in found)
    assert {run.rows for run in found} == set(rows)
    assert found[0] == Run(1, rows[0], at_once)


def test_sizes_that_are_fixed_are_no_question() -> None:
    assert rows_worth_trying((), 32) == (1, 2, 4, 8)
    assert rows_worth_trying((), 3) == (1, 2)
    assert rows_worth_trying((2, 16), 32) == (16,)


@pytest.mark.parametrize(
    ("rates", "best"),
    [
        ({}, Tuned()),
        ({Run(1, 1): 10.0}, Tuned()),
        ({Run(1, 1): 12.0, Run(1, 8): 10.0}, Tuned(1, 1)),
        ({Run(1, 1): 10.2, Run(1, 8): 10.0}, Tuned()),
        ({Run(1, 1): 10.0, Run(1, 8): 12.0}, Tuned()),
        ({Run(1, 1): 10.0, Run(4, 1): 20.0}, Tuned(4)),
        ({Run(1, 1): 10.0, Run(1, 8): 9.0, Run(4, 1): 11.0, Run(4, 8): 20.0}, Tuned(4)),
        ({Run(1, 1): 10.0, Run(1, 8): 9.0, Run(2, 2): 11.0, Run(4, 8): 10.5}, Tuned(2, 2)),
        ({Run(1, 1, 4): 10.0, Run(4, 1, 1): 12.0}, Tuned(4, None, 1)),
        ({Run(1, 1, 4): 10.0, Run(2, 1, 2): 10.4, Run(4, 1, 1): 9.0}, Tuned()),
    ],
)
def test_what_is_hardly_faster_is_not_taken(rates: dict[Run, float], best: Tuned) -> None:
    assert best_of(rates) == best


def test_what_was_tried_is_told_as_ratios() -> None:
    assert in_words({Run(1, 1): 8.0, Run(2, 8): 10.0}) == "1 x 1 x 1 1.00, 1 x 2 x 8 1.25"
    assert in_words({}) == ""


# --- measuring


@dataclass
class Sleeper:
    """An engine whose runs take so long for each picture."""

    picture_s: float
    runs: Counter[int]
    waiting: threading.Event = field(default_factory=threading.Event)
    signature: Signature = field(default_factory=lambda: Signature((), (), {}))
    provider: str = "CPUExecutionProvider"
    placement: Placement = field(default_factory=lambda: Placement({}))

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        rows = len(inputs["x"])
        self.runs[rows] += 1
        self.waiting.wait(self.picture_s * rows)
        return {}


def task(picture_s: Mapping[int, float], rows: tuple[int, ...] = (1, 4), **other: Any) -> tuple[Task, Counter[int]]:
    """Threads of a run -> how long it takes for a picture."""
    runs: Counter[int] = Counter()
    made = Task(
        key={"model": "m"},
        open=lambda threads: Sleeper(picture_s[threads], runs),
        open_s=0.0,
        inputs=lambda count: {"x": np.zeros(count)},
        at_once=1,
        rows=rows,
    )
    return replace(made, **other), runs


def test_the_faster_wins() -> None:
    made, _ = task({1: 0.02, 2: 0.005})
    rates = rates_of(made, candidates(2, 1, (1, 4)), limit_s=20)
    assert list(rates) == [Run(1, 1), Run(1, 4), Run(2, 1), Run(2, 4)]
    assert rates[Run(2, 1)] > 1.5 * rates[Run(1, 1)]
    assert best_of(rates).threads == 2


def test_a_slow_model_does_not_take_longer_than_it_may() -> None:
    made, runs = task({1: 0.5, 2: 0.5})
    began = time.monotonic()
    rates = rates_of(made, candidates(2, 1, (1, 4)), limit_s=1.2)
    assert time.monotonic() - began < 10
    assert list(rates) == [Run(1, 1)]
    assert runs[4] == 0
    assert best_of(rates) == Tuned()


def test_a_model_that_opens_slowly_is_opened_once() -> None:
    made, _ = task({1: 0.001}, open_s=60.0)
    assert {run.threads for run in rates_of(made, candidates(2, 1, (1, 4)), limit_s=3)} == {1}


def test_work_of_others_is_seen() -> None:
    quiet = OtherWork()
    quiet._began = (time.monotonic() - 10, time.process_time() - 5, tuner._busy_s() - 8)
    assert quiet.cores() == pytest.approx(0.3, abs=0.1)


# --- remembering


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where findings are kept, on a machine of two quiet cores."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tuner, "usable_cores", lambda: 2)
    monkeypatch.setattr(OtherWork, "cores", lambda _: 0.0)
    return tmp_path / "cache" / "camgraph" / "tuning"


def found(made: Task, **options: Any) -> tuple[Tuned, list[dict[str, Any]]]:
    options = {"first_start": True, "limit_s": 1.0} | options
    with capture_logs() as logs:
        return tuned(made, get_logger(), **options), [dict(line) for line in logs]


def test_what_was_measured_is_remembered(cache: Path) -> None:
    made, runs = task({1: 0.02, 2: 0.005}, rows=(1,))
    best, [line] = found(made)
    assert best == Tuned(2)
    assert (line["event"], line["threads"], line["remembered"]) == ("model_tuned", 2, False)
    assert line["tried"].startswith("1 x 1 x 1 1.00, 1 x 2 x 1 ")
    measured = runs.total()
    again, [line] = found(made)
    assert (again, line["remembered"], runs.total()) == (best, True, measured)
    assert found(made, first_start=False)[0] == best
    assert len(list(cache.glob("*.json"))) == 1


@pytest.mark.parametrize("other", [{"key": {"model": "n"}}, {"at_once": 2}, {"rows": (1, 2)}], ids=str)
def test_something_else_is_measured_anew(cache: Path, other: dict[str, Any]) -> None:
    made, runs = task({1: 0.001, 2: 0.001}, rows=(1,))
    found(made)
    measured = runs.total()
    found(replace(made, **other))
    assert runs.total() > measured


def test_a_file_that_cannot_be_understood_is_measured_anew(cache: Path) -> None:
    made, runs = task({1: 0.001, 2: 0.001}, rows=(1,))
    found(made)
    [file] = cache.glob("*.json")
    file.write_text("{")
    measured = runs.total()
    found(made)
    assert runs.total() > measured


def test_a_process_that_was_started_again_measures_nothing(cache: Path) -> None:
    made, runs = task({1: 0.001, 2: 0.001})
    best, [line] = found(made, first_start=False)
    assert (best, runs.total()) == (Tuned(), 0)
    assert (line["log_level"], line["event"]) == ("warning", "model_not_tuned")


def test_what_was_measured_beside_others_is_said_and_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OtherWork, "cores", lambda _: 1.4)
    made, _ = task({1: 0.02, 2: 0.005}, rows=(1,))
    best, [_, line] = found(made)
    assert best == Tuned(2)
    assert (line["event"], line["cores_of_others"]) == ("tuned_beside_others", 1.4)
    assert not list(cache.glob("*.json"))


def test_workers_that_start_together_measure_once(cache: Path) -> None:
    made, _ = task({1: 0.002, 2: 0.002}, rows=(1,))
    times = Counter[int]()

    def counted(threads: int) -> Any:
        times[threads] += 1
        return made.open(threads)

    with ThreadPoolExecutor(3) as pool:
        together = replace(made, open=counted)
        results = list(pool.map(lambda _: tuned(together, get_logger(), first_start=True, limit_s=20.0), range(3)))
    assert len(set(results)) == 1
    assert times == {1: 1, 2: 1}


def test_waiting_for_the_cache_lock_is_bounded(cache: Path) -> None:
    made, _ = task({1: 0.02, 2: 0.002}, rows=(1,))
    best, _ = found(made)
    [file] = cache.glob("*.json")
    with file.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert found(made, limit_s=0.1)[0] == best == Tuned(2)


# --- in the stage


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


def outputs(model: Path, **settings: Any) -> list[Array]:
    items = [
        Tensor(
            stamp(seq),
            {"image": np.random.default_rng(seq).integers(0, 256, (1, 32, 32, 3), dtype=np.uint8)},
            np.ones((1, 4), np.float32),
            (32, 32),
            (32, 32),
        )
        for seq in range(5)
    ]
    with opened(Infer, {"model": model.name, **settings}, folder=model.parent) as stage:
        return [message.arrays_by_name["out"] for message in feed(stage, items, batch=5) if isinstance(message, Tensor)]


@pytest.mark.parametrize("best", [Tuned(), Tuned(1, 1), Tuned(2, 2), Tuned(2, None), Tuned(2, None, 1)])
def test_outputs_do_not_depend_on_what_was_chosen(model: Path, monkeypatch: pytest.MonkeyPatch, best: Tuned) -> None:
    monkeypatch.setattr("camgraph.stages.people.inference.readiness.tuned", lambda *_, **__: best)
    for one, other in zip(outputs(model), outputs(model, tune="auto"), strict=True):
        np.testing.assert_array_equal(other, one, strict=True)


def test_a_stage_is_tuned_for_real_within_its_time(model: Path, cache: Path) -> None:
    with capture_logs() as logs:
        given = outputs(model, tune="auto")
    [line] = [line for line in logs if line["event"] == "model_tuned"]
    assert line["seconds"] < 10 * tuner.LIMIT_S
    for one, other in zip(outputs(model), given, strict=True):
        np.testing.assert_array_equal(other, one, strict=True)
    with capture_logs() as logs:
        outputs(model, tune="auto")
    assert [line["remembered"] for line in logs if line["event"] == "model_tuned"] == [True]


def threads_of(folder: Path, rest: str) -> int:
    text = f"""
version: 1
name: tuned
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
    assert threads_of(model.parent, "with: {model: m.onnx, tune: auto}") == 6
    assert threads_of(model.parent, "workers: 2, with: {model: m.onnx, tune: auto}") == 3
    assert threads_of(model.parent, "threads: 2, with: {model: m.onnx, tune: auto}") == 2


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


def test_no_more_runs_at_once_than_were_found_best(model: Path) -> None:
    running, most = 0, 0
    lock = threading.Lock()

    class Slow(Sleeper):
        def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            self.waiting.wait(0.02)
            with lock:
                running -= 1
            return {"out": np.zeros((1, 1), np.float32)}

    contract = InputContract("images", "nchw", "float32", "rgb", 1 / 255, None, None, None)
    signature = Signature((), (Port("out", (1, 1), "tensor(float)"),), {})
    picture = Given(np.zeros((1, 4, 4, 3), np.uint8))
    for at_once, expected in ((1, 1), (None, 4)):
        most = 0
        runs = BatchRuns(Slow(0, Counter(), signature=signature), contract, sizes=(), most=1, at_once=at_once)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _, runs=runs: runs.rows([picture]), range(12)))
        assert most == 1 if expected == 1 else most > 1


def test_two_ways_of_saying_it_are_a_mistake(model: Path) -> None:
    settings = InferSettings(model="m.onnx", tune="auto", intra_op_threads=2)
    [(place, text)] = Infer.check(settings, model.parent)
    assert place == ("tune",)
    assert "remove one of the two" in text
