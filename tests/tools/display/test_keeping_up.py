"""Whether a person hears that the machine is too slow, and what to do; not more often than that helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.monitoring.bottleneck import Limit
from camgraph.pipeline.monitoring.run_status import CameraStatus, RunStatus, Totals
from camgraph.pipeline.plan import RunPlan
from camgraph.tools.display.keeping_up import AGAIN_S, KeepingUp

GRAPH = """
version: 1
name: g
cameras: {a: {frames: 3}}
stages:
  src: {use: count_source}
  out: {use: collect, from: src, with: {path: out}}
"""
LIMIT = "infer is busy 99% of the time on 2 of 2 cores"


@pytest.fixture(name="plan")
def _plan(tmp_path: Path) -> RunPlan:
    (tmp_path / "g.yaml").write_text(GRAPH)
    return load_plan(tmp_path / "g.yaml")


def told(plan: RunPlan, until_s: int, drops: float, *, limit: str = LIMIT, phase: str = "running") -> list[str]:
    """What two cameras of 10 frames a second are told in this time, with this share of their frames dropped."""
    keeping_up = KeepingUp(plan)
    cameras = {name: CameraStatus(fps=10.0) for name in "ab"}
    return [
        words
        for at_s in range(until_s)
        if (
            words := keeping_up.words(
                RunStatus(
                    uptime_s=float(at_s),
                    phase=phase if at_s > 5 else "starting",
                    bottleneck=Limit("infer", "", limit) if limit else None,
                    cameras=cameras,
                    totals=Totals(frames=20 * at_s, drops=round(20 * at_s * drops)),
                )
            )
        )
    ]


def test_who_is_too_slow_hears_why_and_what_to_do(plan: RunPlan) -> None:
    (words,) = told(plan, 120, 0.26)
    assert "does not keep up with these cameras: of their last pictures, 26% were left out" in words
    assert f"Why: {LIMIT}" in words
    assert "manages about 7.4 a second of each camera" in words
    assert "max_fps: 7" in words
    assert "camgraph plan" in words


def test_drops_of_frames_that_came_before_make_no_more_than_all(plan: RunPlan) -> None:
    """After the death of a stage, frames that waited for it are dropped."""
    (words,) = told(plan, 120, 1.01)
    assert "100% were left out" in words
    assert "It manages hardly any of each camera." in words


def test_it_is_said_again_after_half_an_hour(plan: RunPlan) -> None:
    assert len(told(plan, int(AGAIN_S) + 120, 0.26)) == 2


@pytest.mark.parametrize(
    ("drops", "limit", "phase"),
    [(0.02, LIMIT, "running"), (0.26, "", "running"), (0.26, LIMIT, "stopping")],
    ids=["few drops", "no limit of this machine", "it stops"],
)
def test_nothing_is_said_without_a_reason(plan: RunPlan, drops: float, limit: str, phase: str) -> None:
    assert told(plan, 300, drops, limit=limit, phase=phase) == []


def test_frames_of_the_start_do_not_count(plan: RunPlan) -> None:
    """The first ten seconds of a run drop frames on any machine."""
    keeping_up = KeepingUp(plan)
    states = [RunStatus(uptime_s=0.0, phase="starting")]
    states += [
        RunStatus(
            uptime_s=float(n), bottleneck=Limit("infer", "", LIMIT), totals=Totals(frames=20 * n, drops=20 * min(n, 10))
        )
        for n in range(1, 200)
    ]
    assert not any(map(keeping_up.words, states))
