"""How busy a run is, from its first frame to its last."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.monitoring.load_meter import KEPT_S, LoadMeter, Recent, sums_of
from camgraph.pipeline.monitoring.reports import Heartbeat, StageStats
from camgraph.pipeline.plan import ProcessPlan, RunPlan

GRAPH = """
version: 1
name: load
cameras: {a: {frames: 1, live: LIVE}, b: {frames: 1, live: LIVE}}
stages:
  src: {use: count_source}
  model: {use: null_model, from: src, threads: 2, batch: {max: 2}}
  sum: {use: running_sum, from: model}
  out: {use: collect, from: sum, with: {path: out}}
"""


class Measured:
    """A process that reports so much busy time of its stage, and of the processor."""

    def __init__(self, plan: ProcessPlan) -> None:
        self.plan = plan
        self.heartbeat = Heartbeat()

    def reports(self, stage: str, busy_s: float, cpu_s: float) -> None:
        self.heartbeat = Heartbeat(stages={stage: StageStats(items=1, busy_ns=int(busy_s * 1e9))}, cpu_s=cpu_s)


def planned(folder: Path, *, live: bool = False) -> RunPlan:
    (folder / "g.yaml").write_text(GRAPH.replace("LIVE", str(live).lower()))
    return load_plan(folder / "g.yaml")


def counts(frames: int, drops: int = 0) -> Counter[tuple[str, str]]:
    return Counter({("frames", "a"): frames, ("dropped.queue_full", "a"): drops, ("skipped.rate", "a"): 99})


def test_load_spans_first_to_last_frame(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    model = Measured(next(process for process in plan.processes if process.name == "model.0"))
    recent, meter = Recent(), LoadMeter()
    moments = [(0, 0, 0.0), (60, 0, 0.0), (61, 1, 0.0), (65, 1, 0.0), (71, 3, 19.0), (72, 4, 20.9), (500, 4, 20.9)]
    for now_s, frames, busy_s in moments:
        model.reports("model", busy_s, busy_s)
        recent.note(now_s, sums_of([model], counts(frames), plan.camera_settings))
        meter.note(recent)
    load = meter.whole(plan)
    assert load.seconds == pytest.approx(11)
    [stage] = [stage for stage in load.stages if stage.name == "model"]
    assert (stage.busy, stage.share) == (pytest.approx(1.9), pytest.approx(0.95))
    assert load.used == pytest.approx(1.9)


def test_what_would_help_is_known_of_each_stage(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    recent = Recent()
    recent.note(0.0, {"camera a": 0.0})
    recent.note(5.0, {"camera a": 50.0})
    stages = {stage.name: stage for stage in LoadMeter().lately(plan, recent).stages}
    assert {name: stage.more for name, stage in stages.items()} == {
        "model": "threads",
        "sum": "workers",
        "out": "workers",
    }
    assert stages["model"].at_once == 2


def test_only_live_cameras_drop(tmp_path: Path) -> None:
    recent = Recent()
    recent.note(0.0, sums_of([], counts(0), ["a"]))
    recent.note(5.0, sums_of([], counts(40, 10), ["a"]))
    assert LoadMeter().lately(planned(tmp_path, live=True), recent).dropped == pytest.approx(0.25)
    assert LoadMeter().lately(planned(tmp_path), recent).dropped is None


def test_of_a_camera_that_is_not_there_nothing_is_counted() -> None:
    assert {key for key in sums_of([], counts(5), ["b"]) if " " in key} == {"camera b", "drops b"}


def test_a_rate_is_that_of_the_window() -> None:
    recent = Recent()
    assert recent.rates(2.0) == {}
    for second in range(30):
        recent.note(float(second), {"frames": 10.0 * min(second, 20)})
        assert recent.noted_s == second
    assert recent.rates(2.0) == {"frames": 0.0}
    seconds, grown = recent.over(KEPT_S)
    assert (seconds, grown) == (KEPT_S, {"frames": 10.0})


def test_it_is_as_long_as_what_is_known() -> None:
    recent = Recent()
    recent.note(0.0, {"frames": 5.0})
    recent.note(0.5, {"frames": 10.0})
    assert recent.rates(2.0) == {"frames": pytest.approx(10.0)}


def test_new_counters_have_not_grown_and_fallen_restarted() -> None:
    recent = Recent()
    recent.note(0.0, {"cpu": 50.0})
    recent.note(1.0, {"cpu": 0.5, "frames of a camera that came back": 1000.0})
    assert recent.over(1.0) == (1.0, {"cpu": 0.5, "frames of a camera that came back": 0.0})


def test_it_does_not_grow() -> None:
    recent = Recent()
    for n in range(10_000):
        recent.note(n / 10, {"a": float(n)})
    assert len(recent._marks) <= KEPT_S * 10 + 2
