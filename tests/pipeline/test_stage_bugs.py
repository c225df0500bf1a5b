"""Mistakes of stages and sources in whole graphs: their cost, and the messages about them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import run_graph

CHAIN = """
version: 1
name: b{pid}
processes: {processes}
cameras: {{a: {camera}, b: {{frames: 40, pace_ms: 2}}}}
stages:
  src: {{use: count_source}}
  bad: {{use: crash, from: src, with: {crash}}}
  out: {{use: collect, from: bad, with: {{path: numbers}}}}
"""


def chain(folder: Path, processes: str, crash: dict[str, Any], **camera: Any) -> Path:
    path = folder / "chain.yaml"
    settings = json.dumps({"frames": 40, "pace_ms": 2, **camera})
    path.write_text(CHAIN.format(pid=os.getpid(), processes=processes, crash=json.dumps(crash), camera=settings))
    return path


@pytest.mark.parametrize(
    ("processes", "how"), [("separate", "interrupt"), ("separate", "system_exit"), ("one", "system_exit")]
)
def test_a_stage_cannot_end_its_process(tmp_path: Path, processes: str, how: str) -> None:
    outcome, status = run_graph(load_plan(chain(tmp_path, processes, {"at_seq": 5, "camera": "a", "how": how})))
    assert len((tmp_path / "numbers").read_text().splitlines()) == 79
    assert status["cameras"]["a"]["drops_by_reason"] == {"error": 1}
    assert status["stages"]["bad"]["restarts"] == 0
    assert outcome.problems == ["frames dropped (1 of a): bad failed on them; the log has the details"]
    assert outcome.status == 1


@pytest.mark.parametrize("processes", ["separate", "one"])
def test_a_loss_in_several_places_is_told_once(tmp_path: Path, processes: str) -> None:
    path = chain(tmp_path, processes, {"at_seq": 5, "camera": "a", "how": "system_exit"})
    worse = "worse: {use: crash, from: bad, with: {at_seq: 7, camera: a, how: system_exit}}"
    path.write_text(
        path.read_text().replace("  out: {use: collect, from: bad", f"  {worse}\n  out: {{use: collect, from: worse")
    )
    outcome, _ = run_graph(load_plan(path))
    assert outcome.problems == ["frames dropped (2 of a): bad, worse failed on them; the log has the details"]


@pytest.mark.parametrize("processes", ["separate", "one"])
def test_a_stage_that_cannot_be_opened_is_named(tmp_path: Path, processes: str) -> None:
    outcome, _ = run_graph(load_plan(chain(tmp_path, processes, {"at_seq": 999, "how": "open"})))
    assert outcome.problems == ["stage bad: RuntimeError while it was opened; the log has the details"]
    assert outcome.status == 1


def test_a_stage_that_cannot_be_made_is_named_with_the_line(tmp_path: Path) -> None:
    outcome, _ = run_graph(load_plan(chain(tmp_path, "separate", {"at_seq": 999, "how": "make"})))
    assert outcome.status == 1
    assert "RuntimeError in camgraph_test_stages.crash, line " in outcome.problems[0]


@pytest.mark.parametrize("processes", ["separate", "compact", "one"])
def test_a_stage_that_cannot_be_closed_shows_in_the_exit_status(tmp_path: Path, processes: str) -> None:
    outcome, _ = run_graph(load_plan(chain(tmp_path, processes, {"at_seq": 999, "how": "close"})))
    assert len((tmp_path / "numbers").read_text().splitlines()) == 80
    assert outcome.problems == ["stage bad: RuntimeError while it was closed; the log has the details"]
    assert outcome.status == 1


@pytest.mark.parametrize(("opening", "block_at"), [(True, 0), (False, 3)])
def test_a_heartbeat_says_since_when_a_source_is_silent(tmp_path: Path, opening: bool, block_at: int) -> None:
    silent: list[tuple[int, bool]] = []
    stays: list[tuple[int, bool]] = []

    def look(supervisor: Supervisor) -> None:
        heartbeats = {process.plan.name: process.heartbeat for process in supervisor.processes}
        heartbeat = heartbeats["src.a"]
        silent.append((heartbeat.source_silent_since_ns, heartbeat.source_opening))
        if not stays and len(silent) > 5 and silent[-1][0] and len({since for since, _ in silent[-5:]}) == 1:
            stays.append(silent[-1])  # the source that is stopped then is asked for nothing any more
            supervisor.stop()
            supervisor.stop()

    path = chain(tmp_path, "separate", {"at_seq": 999}, block_at=block_at)
    run_graph(load_plan(path), look)
    [(since_ns, is_opening)] = stays
    assert since_ns > 0
    assert is_opening == opening
