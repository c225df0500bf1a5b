"""Costs from measurements that are made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.graph.loading import parse_graph
from camgraph.pipeline.graph.planning import plan_of
from camgraph.pipeline.plan import RunPlan
from camgraph.tools.commands.planning.costs import affine, costs_of
from camgraph.tools.commands.planning.trial_run import Moment, Span, Trial
from camgraph.tools.measuring.processes import Member, Sample

GRAPH = """
version: 1
name: costs
cameras: {a: {frames: 9}, b: {frames: 9}, gone: {frames: 9}}
stages:
  src: {use: count_source}
  twice: {use: double, from: src, threads: %d}
  out: {use: sink_null, from: twice}
"""


def plan(tmp_path: Path, threads: int = 1) -> RunPlan:
    return plan_of(parse_graph(GRAPH % threads, "g.yaml", base_folder=tmp_path))


def span(
    cpu_s: dict[str, float], frames: dict[str, int], *, busy_s: float = 0.0, drops: int = 0, seconds: float = 10.0
) -> Span:
    nothing = Moment(100.0, dict.fromkeys(cpu_s, 1.0), {"twice": 1.0}, dict.fromkeys(frames, 7), {"a": 3}, 0.0)
    later = Moment(
        100.0 + seconds,
        {name: 1 + used for name, used in cpu_s.items()},
        {"twice": 1 + busy_s},
        {name: 7 + n for name, n in frames.items()},
        {"a": 3 + drops},
        0.0,
    )
    return Span(nothing, later)


def trial(*, drops: int = 0, busy_s: float = 1.5) -> Trial:
    """Cameras a and b bring 100 frames each in 10 s; then only a does. `gone` brings nothing."""
    loaded = span(
        {"src.a": 0.4, "src.b": 0.6, "src.gone": 0.0, "twice.0": 2.0, "out.0": 0.2, "supervisor": 0.2},
        {"a": 100, "b": 100, "gone": 0},
        busy_s=busy_s,
        drops=drops,
    )
    fewer = span(
        {"src.a": 0.4, "src.b": 0.0, "src.gone": 0.0, "twice.0": 1.2, "out.0": 0.1, "supervisor": 0.1},
        {"a": 100, "b": 0, "gone": 0},
    )
    kb = {
        "src.a": 30_000,
        "src.b": 50_000,
        "src.gone": 20_000,
        "twice.0": 40_000,
        "out.0": 20_000,
        "supervisor": 60_000,
    }
    members = tuple(Member(1, name, pss, own, 1, {}) for name, own in kb.items() for pss in [own + 10_000])
    return Trial(loaded, fewer, Sample(0.0, members, 8_000_000, 3), {"gone": "no frame"})


def test_costs_of_a_camera(tmp_path: Path) -> None:
    costs = costs_of(plan(tmp_path), trial(), {}, has_outbox=True)
    assert costs.read_fps == pytest.approx(10)
    assert costs.reading_s == pytest.approx(1.0 / 200)
    assert costs.after_s == pytest.approx({"twice": 0.008, "out": 0.001, "supervisor": 0.001})
    assert costs.fixed_cores == pytest.approx({"twice": 0.04, "out": 0.0, "supervisor": 0.0})
    assert costs.camera_bytes == pytest.approx(1024 * 50_000)
    assert costs.fixed_bytes == pytest.approx(1024 * (40_000 + 20_000 + 60_000 + 20_000) + 1024 * 60_000 - 8_000_000)
    assert costs.camera_shared_bytes == pytest.approx(4_000_000)


def test_files_that_came_late_count_with_their_own_rate(tmp_path: Path) -> None:
    costs = costs_of(plan(tmp_path), trial(), {"a": 30.0, "b": 20.0, "gone": 50.0}, has_outbox=False)
    assert costs.read_fps == pytest.approx(25)


def test_dropped_frames_cost_the_stages_behind_nothing(tmp_path: Path) -> None:
    costs = costs_of(plan(tmp_path), trial(drops=50), {}, has_outbox=False)
    assert costs.reading_s == pytest.approx(1.0 / 200)
    assert costs.after_s["out"] == pytest.approx(0.2 / 150 if 0.2 / 150 < 0.002 else 0.002)


@pytest.mark.parametrize(("busy_s", "counted_s"), [(1.5, 1.5), (6.0, 2.0)])
def test_a_stage_is_no_longer_busy_than_its_processor_time(tmp_path: Path, busy_s: float, counted_s: float) -> None:
    costs = costs_of(plan(tmp_path), trial(busy_s=busy_s), {}, has_outbox=False)
    assert costs.stages["twice"].busy_s == pytest.approx(counted_s / 200)
    assert costs.stages["twice"].at_once == 1


rates = st.floats(0, 1000)


@given(rates, st.floats(0, 4), rates, st.floats(0, 4))
def test_a_line_through_two_measurements(few: float, few_cores: float, many: float, many_cores: float) -> None:
    slope, fixed = affine((few, few_cores), (many, many_cores))
    assert slope >= 0
    assert fixed >= -1e-9
    assert slope * many + fixed == pytest.approx(many_cores, abs=1e-6)


def test_a_line_by_hand() -> None:
    assert affine((50, 0.3), (100, 0.5)) == pytest.approx((0.004, 0.1))
    assert affine((99, 0.1), (100, 0.5)) == pytest.approx((0.005, 0.0))
