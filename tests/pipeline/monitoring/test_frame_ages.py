"""How old frames are when their processing ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.graph import load_plan
from pipeline.monitoring.frame_ages import FrameAges
from pipeline.testing import run_graph

FAR_TOO_OLD_MS = 5000.0

CHAIN = """
version: 1
name: {name}
processes: {processes}
cameras:
  a: {{frames: 30, pace_ms: 25, live: true}}
  b: {{frames: 30, pace_ms: 25, live: true}}
stages:
  src: {{use: count_source}}
"""
EVENTS = """
  model: {use: null_model, from: src, with: {cost_ms: 30}}
  emit: {use: emit, from: model, with: {every: 7}}
  log: {use: collect_events, from: events, with: {path: events}}
"""
VIDEO_BESIDE = """
  quick: {use: emit, from: src, with: {every: 7}}
  log: {use: collect_events, from: quick, with: {path: events}}
  model: {use: null_model, from: src, with: {cost_ms: 30}}
  video: {use: pair, from: {left: src, right: model}}
  out: {use: collect, from: video, with: {path: numbers}}
"""
IN_ITS_SOURCE = """
  out: {use: collect, from: src, with: {path: numbers, cost_ms: 30}}
"""


@pytest.mark.parametrize("processes", ["separate", "compact", "one"])
@pytest.mark.parametrize(
    "stages", [EVENTS, VIDEO_BESIDE, IN_ITS_SOURCE], ids=["events", "video beside", "in its source"]
)
def test_age_is_that_of_the_slowest_last_stage(tmp_path: Path, processes: str, stages: str) -> None:
    path = tmp_path / "g.yaml"
    path.write_text(CHAIN.format(name=f"f{os.getpid()}", processes=processes) + stages)
    outcome, status = run_graph(load_plan(path))
    assert (outcome.status, outcome.problems) == (0, [])
    for camera in "ab":
        age_ms = status["cameras"][camera]["age_ms"]
        assert age_ms is not None
        assert 30 <= age_ms < FAR_TOO_OLD_MS


@pytest.mark.parametrize(
    ("processes", "stages", "ends"),
    [
        ("separate", EVENTS, {"emit"}),
        ("separate", VIDEO_BESIDE, {"quick", "out"}),
        ("separate", IN_ITS_SOURCE, {"out"}),
        ("compact", IN_ITS_SOURCE, {"out"}),
        ("compact", VIDEO_BESIDE, {"out"}),
    ],
)
def test_age_ends_before_the_outbox(tmp_path: Path, processes: str, stages: str, ends: set[str]) -> None:
    """Few frames make an event: what only events reach says nothing of the frames."""
    path = tmp_path / "g.yaml"
    path.write_text(CHAIN.format(name="ends", processes=processes) + stages)
    ending = [unit for unit in load_plan(path).units if unit.ends_frames]
    assert {stage.name for unit in ending for stage in unit.stages} >= ends
    assert {edge.type for unit in ending for edge in unit.outgoing} <= {"event"}
    assert not any(stage.use in ("outbox", "collect_events") for unit in ending for stage in unit.stages)


def test_of_several_places_where_frames_end_the_slowest_counts() -> None:
    ages = FrameAges()
    ages.note("rules", {"a": 40.0, "b": 50.04}, 10.0)
    ages.note("video", {"a": 90.0}, 10.1)
    assert (ages.of("a", 11.0, 5.0), ages.of("b", 11.0, 5.0), ages.of("c", 11.0, 5.0)) == (90.0, 50.0, None)
    ages.note("video", {"a": 30.0}, 11.1)
    assert ages.of("a", 11.2, 5.0) == 40.0


def test_what_has_not_ended_for_long_has_no_age() -> None:
    """A model that hangs leaves no fresh-looking figure behind."""
    ages = FrameAges()
    ages.note("rules", {"a": 40.0}, 10.0)
    ages.note("video", {"a": 90.0}, 12.0)
    assert [ages.of("a", now_s, 5.0) for now_s in (15.0, 15.1, 17.0, 17.1)] == [90.0, 90.0, 90.0, None]
    ages.note("rules", {"a": 35.0}, 17.1)
    assert ages.of("a", 17.2, 5.0) == 35.0


def test_cameras_that_are_gone_are_forgotten() -> None:
    ages = FrameAges()
    ages.note("rules", {"a": 40.0, "b": 50.0}, 10.0)
    ages.keep(["b"])
    assert (ages.of("a", 10.0, 5.0), ages.of("b", 10.0, 5.0)) == (None, 50.0)
