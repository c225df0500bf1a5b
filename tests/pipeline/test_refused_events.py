"""An event that a sink refuses, or that kills it, is a dead letter beside the outbox: nothing else has it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from camgraph.pipeline.dead_letters import DeadLetters
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.outbox.outbox_folder import outbox_folder
from camgraph.pipeline.testing import run_graph

FRAMES = 20
GRAPH = """
version: 1
name: m{pid}
processes: {processes}
cameras: {{a: {{frames: {frames}}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  picky: {{use: collect_events, from: emit, batch: {{max: 8}}, with: {{path: taken, {picky}}}}}
  log: {{use: collect_events, from: emit, with: {{path: all}}}}
"""


def write(folder: Path, processes: str, picky: str) -> Path:
    path = folder / "graph.yaml"
    path.write_text(GRAPH.format(pid=os.getpid(), processes=processes, frames=FRAMES, picky=picky))
    return path


def taken(path: Path) -> list[int]:
    return [int(line.split()[2]) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("processes", ["separate", "one"])
def test_a_refused_event_is_kept_with_the_reason(tmp_path: Path, processes: str) -> None:
    plan = load_plan(write(tmp_path, processes, "refuses: 5"))
    with capture_logs() as logs:
        outcome, status = run_graph(plan)
    backlogs = {sink: (row["waiting"], row["dead_letters"]) for sink, row in status["outbox"].items()}
    assert backlogs == {"log": (0, 0), "picky": (0, 4)}
    assert [(line["sink"], line["letters"]) for line in logs if line["event"] == "dead_letters_kept"] == [("picky", 4)]
    assert (outcome.status, len(outcome.problems)) == (1, 1)
    folder = outbox_folder(plan)
    assert folder is not None
    letters = list(DeadLetters(folder, "picky"))
    assert [json.loads(letter.event.body)["seq"] for letter in letters] == [0, 5, 10, 15]
    assert [letter.why for letter in letters] == [f"refused: {letter.id} is not for us" for letter in letters]
    assert {letter.event.stamp.camera for letter in letters} == {"a"}
    assert taken(tmp_path / "taken") == [n for n in range(FRAMES) if n % 5]
    assert taken(tmp_path / "all") == [*range(FRAMES)]
    assert [path.name for path in folder.iterdir()] == ["dead_letters"], "nothing else is left of the outbox"


def test_an_event_that_kills_its_sink_is_kept(tmp_path: Path) -> None:
    plan = load_plan(write(tmp_path, "separate", "dies_of: 3"))
    outcome, _ = run_graph(plan)
    assert outcome.status == 1
    folder = outbox_folder(plan)
    assert folder is not None
    [letter] = DeadLetters(folder, "picky")
    assert json.loads(letter.event.body)["seq"] == 3
    assert "died while they worked on it" in letter.why
    assert set(taken(tmp_path / "taken")) == {*range(FRAMES)} - {3}
