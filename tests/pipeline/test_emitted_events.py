"""Events that a sink gives to the outbox by itself reach the sinks beside it, before anything ends."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import hit, run_graph

FRAMES = 40
GRAPH = """
version: 1
name: m{pid}
processes: {processes}
cameras: {{a: {{frames: {frames}, pace_ms: 5}}, b: {{frames: {frames}, pace_ms: 5}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src, with: {{every: 4}}}}
  other: {{use: emit, from: src, with: {{every: 20}}}}
  comment: {{use: comment, from: emit, with: {{after_s: {after_s}, at_end: {at_end}, body: {body}}}}}
  all: {{use: sink_jsonl, from: events, with: {{path: all.jsonl}}}}
  same: {{use: sink_jsonl, from: emit, with: {{path: same.jsonl}}}}
  elsewhere: {{use: sink_jsonl, from: other, with: {{path: elsewhere.jsonl}}}}
  sorted: {{use: sink_jsonl, from: emit, with: {{path: sorted.jsonl, order: time}}}}
"""
EVENTS = 2 * FRAMES // 4


def write(folder: Path, processes: str, after_s: float = 0.0, *, at_end: bool = False, body: str = "whole") -> Path:
    path = folder / "graph.yaml"
    values = {"pid": os.getpid(), "processes": processes, "frames": FRAMES, "after_s": after_s, "body": body}
    path.write_text(GRAPH.format(**values, at_end=str(at_end).lower()))
    return path


def comments(path: Path) -> set[str]:
    """The ids of the events that are commented on in a file, in which no comment stands twice."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    on = [line["on"] for line in lines if "on" in line]
    assert len(on) == len(set(on))
    return set(on)


def events(path: Path) -> set[str]:
    """The ids of the other events."""
    return {line.get("id", "") for line in map(json.loads, path.read_text().splitlines()) if "on" not in line}


@pytest.mark.parametrize("processes", ["separate", "one"])
@pytest.mark.parametrize(("after_s", "at_end"), [(0.0, False), (0.3, False), (0.0, True)])
def test_comments_reach_those_who_read_the_same(tmp_path: Path, processes: str, after_s: float, at_end: bool) -> None:
    if processes == "one" and after_s:
        pytest.skip("the one process's loop joins the thread that waits for it")
    outcome, _ = run_graph(load_plan(write(tmp_path, processes, after_s, at_end=at_end)))
    assert (outcome.status, outcome.problems) == (0, [])
    judged = events(tmp_path / "same.jsonl")
    assert len(judged) == EVENTS
    assert comments(tmp_path / "same.jsonl") == judged
    assert comments(tmp_path / "all.jsonl") == judged
    assert comments(tmp_path / "elsewhere.jsonl") == set()
    assert comments(tmp_path / "sorted.jsonl") == set(), "in order of time, the same lines come in every run"


@pytest.mark.parametrize("processes", ["separate", "one"])
def test_a_comment_without_an_id_is_committed_as_others_are(tmp_path: Path, processes: str) -> None:
    outcome, status = run_graph(load_plan(write(tmp_path, processes, body="without_id")))
    assert (outcome.status, outcome.problems) == (0, [])
    assert comments(tmp_path / "same.jsonl") == events(tmp_path / "same.jsonl")
    assert status["totals"]["committed"] == 2 * EVENTS + 2 * FRAMES // 20


@pytest.mark.parametrize("processes", ["separate", "one"])
@pytest.mark.parametrize("body", ["no_json", "too_large"])
def test_a_comment_that_no_sink_could_take_is_dropped_alone(tmp_path: Path, processes: str, body: str) -> None:
    outcome, _ = run_graph(load_plan(write(tmp_path, processes, body=body)))
    assert outcome.status == 1
    assert [problem for problem in outcome.problems if "events that no sink could take" not in problem] == []
    assert comments(tmp_path / "same.jsonl") == set()
    assert len(events(tmp_path / "same.jsonl")) == EVENTS


@pytest.mark.parametrize("victim", ["outbox", "comment"])
def test_a_killed_process_costs_no_comment(tmp_path: Path, victim: str) -> None:
    killed: list[int] = []

    def kill(supervisor: Supervisor) -> None:
        process = next(p for p in supervisor.processes if p.plan.name.startswith(victim))
        if not killed and supervisor.status().totals.committed > 6 and process.state == "running":
            killed.append(process.pid)
            hit(process.pid)

    outcome, _ = run_graph(load_plan(write(tmp_path, "separate", at_end=False)), kill)
    assert killed
    assert outcome.status == 0, outcome.problems
    assert comments(tmp_path / "same.jsonl") == events(tmp_path / "same.jsonl")
    assert len(events(tmp_path / "same.jsonl")) == EVENTS
