"""Live cameras: the newest frame wins, every dropped one is counted, nobody waits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.testing import run_graph

GRAPH = """
version: 1
name: l{pid}
cameras:
  quick: {{frames: 400, pace_ms: 4, live: true, bytes: 100000}}
  slow: {{frames: 40, pace_ms: 40, live: true, bytes: 100000}}
stages:
  src: {{use: count_source}}
  model: {{use: null_model, from: {source}, batch: {{max: 2}}, with: {{cost_ms: 60}}}}
  out: {{use: collect, from: model, with: {{path: numbers}}}}
"""


def rows(folder: Path, camera: str) -> list[int]:
    lines = (folder / "numbers").read_text().splitlines()
    return [int(line.split()[2]) for line in lines if line.startswith(f"{camera} ")]


def test_the_newest_frame_wins_and_every_other_is_counted(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text(GRAPH.format(pid=os.getpid(), source="src"))
    outcome, status = run_graph(load_plan(tmp_path / "g.yaml"))
    assert (outcome.status, outcome.problems) == (0, [])
    for camera, frames in (("quick", 400), ("slow", 40)):
        seen = rows(tmp_path, camera)
        assert seen == sorted(set(seen))
        assert seen[-1] == frames - 1, "the last frame is the newest, and nothing replaced it"
        assert status["cameras"][camera]["frames"] == frames
        assert len(seen) + status["cameras"][camera]["drops"] == frames
        assert list(status["cameras"][camera]["drops_by_reason"]) == ["queue_full"]
    # With 60 ms a batch and both cameras in most of them, the quick one has about as many frames as the slow one.
    assert len(rows(tmp_path, "quick")) < 100


def test_a_file_may_be_given_an_edge_that_drops(tmp_path: Path) -> None:
    text = GRAPH.format(pid=os.getpid(), source="{stage: src, policy: drop_newest, depth: 2}").replace(
        "live: true", "live: false"
    )
    (tmp_path / "g.yaml").write_text(text)
    outcome, status = run_graph(load_plan(tmp_path / "g.yaml"))
    assert (outcome.status, outcome.problems) == (0, [])
    seen = rows(tmp_path, "quick")
    assert seen[0] == 0
    assert len(seen) + status["cameras"]["quick"]["drops"] == 400


PATIENT = """
version: 1
name: l{pid}
cameras: {{a: {cam}, b: {cam}, c: {cam}, d: {cam}}}
stages:
  src: {{use: count_source}}
  model: {{use: null_model, from: src, batch: {{max: 4, wait_ms: {wait_ms}}}}}
  out: {{use: collect, from: model, with: {{path: numbers}}}}
"""


@pytest.mark.parametrize(("wait_ms", "least", "most"), [(0, 1.0, 2.5), (200, 3.0, 4.0)])
def test_a_batch_waits_for_more_only_where_it_is_asked_to(
    tmp_path: Path, wait_ms: int, least: float, most: float
) -> None:
    text = PATIENT.format(pid=os.getpid(), cam="{frames: 60, pace_ms: 20}", wait_ms=wait_ms)
    (tmp_path / "g.yaml").write_text(text)
    outcome, status = run_graph(load_plan(tmp_path / "g.yaml"))
    assert (outcome.status, outcome.problems) == (0, [])
    assert status["stages"]["model"]["items"] == 240
    assert least <= status["stages"]["model"]["batch"] <= most


GREEDY = """
version: 1
name: l{pid}
cameras: {{a: {{frames: 30, pace_ms: 10, live: true}}, b: {{frames: 30, pace_ms: 10, live: true}}}}
stages:
  src: {{use: count_source}}
  many: {{use: double, from: src, with: {{copies: 60, bytes: 20000, declares: 1}}}}
  out: {{use: collect, from: many, with: {{path: numbers}}}}
"""


def test_no_slot_drops_and_counts_the_message(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text(GREEDY.format(pid=os.getpid()))
    with capture_logs() as logs:
        outcome, status = run_graph(load_plan(tmp_path / "g.yaml"))
    assert outcome.status == 1
    assert any("declares (Stage.large_messages)" in problem for problem in outcome.problems)
    for camera in "ab":
        dropped = status["cameras"][camera]["drops_by_reason"]
        assert dropped["no_slot"] >= 10
        assert set(dropped) <= {"no_slot", "queue_full"}
        assert status["cameras"][camera]["frames"] == 30
        seen = rows(tmp_path, camera)
        assert len(set(seen)) > 1, "later frames find slots again"
        assert seen == sorted(seen)
    logged = [line for line in logs if line["event"] == "message_dropped"]
    assert sorted(line["camera"] for line in logged) == ["a", "b"], "once for each camera, and counted from there on"
    assert all(stage["restarts"] == 0 for stage in status["stages"].values())
