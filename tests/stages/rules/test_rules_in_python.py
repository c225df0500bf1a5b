"""Rules that ask conditions in Python: their arguments, their answers, and the cost of their mistakes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from camgraph_test_stages.two_people import write_two_people

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.testing import feed, opened, run_graph
from camgraph.stages import testing
from camgraph.stages.events import CloudEvent, IncidentData
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.python_functions import taken_failures
from camgraph.stages.rules.rules import Rules

NOSE, LEFT_SHOULDER, LEFT_WRIST = 0, 5, 9


@pytest.fixture(autouse=True)
def no_failures_of_others() -> Iterator[None]:
    taken_failures()
    yield
    taken_failures()


def tracks(seq: int, wrist_y: float = 100.0, *, known: bool = True, x: float = 50.0) -> Tracks:
    """One person, 60 pixels high, in a frame of 400 x 300 each tenth of a second; the nose is at 150."""
    keypoints = np.full((1, 17, 3), 0.9, np.float32)
    keypoints[0, :, :2] = x, 170
    keypoints[0, NOSE, 1] = 150
    keypoints[0, LEFT_WRIST] = x, wrist_y, 0.9
    if not known:
        keypoints[0, [LEFT_SHOULDER, LEFT_WRIST], 2] = 0.1
    return testing.tracks({7: (x - 10, 140, x + 10, 200)}, seq, frame_size=(400, 300), keypoints=keypoints)


def judged(rules: list[dict[str, Any]], items: list[Tracks], folder: Path) -> tuple[list[IncidentData], Mock, Any]:
    """The events, the log and the counts."""
    with opened(Rules, {"rules": rules}, folder=folder) as stage:
        stage.context.log = log = Mock()
        events = feed(stage, items)
        return [CloudEvent.model_validate_json(event.body).data for event in events], log, dict(stage.context.counts)


def test_events_have_the_values_that_a_condition_reports(tmp_path: Path) -> None:
    rule = {"id": "up", "when": "test_above_head(left_wrist, 0.1h, 0.75) and score > 0.5"}
    items = [tracks(seq, 100 if seq >= 2 else 180) for seq in range(12)]
    [start], _, _ = judged([rule], items, tmp_path)
    assert start.evidence is not None
    first, second = (one.model_dump(exclude_none=True) for one in start.evidence.conditions)
    assert start.frame.seq == 7, "6 of 8 frames"
    assert first == {
        "text": "test_above_head(left_wrist, 0.1h, 0.75)",
        "holds": True,
        "reported": {"share": 0.75, "frames": 8.0},
    }
    assert second["text"] == "score > 0.5"


def test_words_and_parts_with_memory_keep_what_was_reported(tmp_path: Path) -> None:
    rule = {"id": "up", "when": "(was test_above_head(left_wrist) within 1s) and age > 0.3s"}
    [start], _, _ = judged([rule], [tracks(seq) for seq in range(6)], tmp_path)
    assert start.evidence is not None
    assert start.evidence.conditions[-1].model_dump(exclude_none=True) == {
        "text": "test_above_head(left_wrist)",
        "reported": {"share": 1.0, "frames": 5.0},
    }


def test_a_number_of_a_condition_is_compared_like_any_other(tmp_path: Path) -> None:
    rule = {"id": "moved", "when": "test_moved(x) > 0.5h"}
    [start], _, _ = judged([rule], [tracks(seq, x=50 + 4.0 * seq) for seq in range(12)], tmp_path)
    assert start.frame.seq == 8
    assert start.evidence is not None
    assert start.evidence.conditions[0].model_dump(exclude_none=True) == {
        "text": "test_moved(x) > 0.5h", "left": 32.0, "right": 30.0, "unit": "px",
    }  # fmt: skip


@pytest.mark.parametrize("when", ["test_above_head(left_wrist)", "test_above_head(nose, 1bl)"])
def test_neither_it_nor_its_opposite_holds_of_the_unknown(tmp_path: Path, when: str) -> None:
    rules = [{"id": "yes", "when": when}, {"id": "no", "when": f"not {when}"}]
    assert judged(rules, [tracks(seq, known=False) for seq in range(5)], tmp_path)[0] == []
    assert len(judged(rules, [tracks(seq) for seq in range(5)], tmp_path)[0]) == 1


def test_between_two_questions_the_answer_holds(tmp_path: Path) -> None:
    """`every_s` is 1: asked at 0 s and at 1 s, when half a second holds six frames."""
    rule = {"id": "six", "when": "test_counts() == 6"}
    [start], _, _ = judged([rule], [tracks(seq) for seq in range(15)], tmp_path)
    assert start.frame.seq == 10


def test_in_a_photograph_it_is_unknown(tmp_path: Path) -> None:
    rules = [{"id": "yes", "when": "test_above_head(left_wrist)"}, {"id": "any", "when": "score > 0.1"}]
    photograph = replace(tracks(0), stamp=tracks(0).stamp._replace(alone=True))
    events, _, _ = judged(rules, [photograph], tmp_path)
    assert [one.action for one in events] == ["any"]


@pytest.mark.parametrize(
    ("name", "error", "line"),
    [
        ("test_fails", "ZeroDivisionError: division by zero", "return bool(1 / "),
        ("test_exits", "SystemExit: done", "raise SystemExit"),
        ("test_no_truth", "expected True, False or None (unknown), got str 'yes'", "@condition(past_s=1)\ndef no_tr"),
        ("test_writes_the_past", "ValueError: assignment destination is read-only", "past.boxes[:] = 0"),
    ],
)
def test_a_failure_is_told_once_and_costs_no_other_rule(tmp_path: Path, name: str, error: str, line: str) -> None:
    rules = [
        {"id": "yes", "when": f"{name}()"},
        {"id": "no", "when": f"not {name}()"},
        {"id": "or", "when": f"{name}() or score > 0.5"},
        {"id": "other", "when": "score > 0.5"},
    ]
    events, log, counts = judged(rules, [tracks(seq) for seq in range(5)], tmp_path)
    assert [one.rule.id for one in events] == ["or", "other"]
    assert counts[f"condition_failed.{name}", "cam"] == 5, "asked once for each frame, for all rules"
    [told] = [call for call in log.warning.call_args_list if call.args == ("condition_failed",)]
    assert (told.kwargs["condition"], told.kwargs["package"]) == (name, "camgraph-test-stages")
    assert (told.kwargs["error"], told.kwargs["camera"]) == (error, "cam")
    file, _, number = told.kwargs["at"].rpartition(":")
    assert "\n".join(Path(file).read_text().splitlines()[int(number) - 1 :]).lstrip().startswith(line)


def test_reports_that_no_event_can_have_are_left_out(tmp_path: Path) -> None:
    [start], log, _ = judged([{"id": "yes", "when": "test_reports_nonsense()"}], [tracks(0)], tmp_path)
    assert start.evidence is not None
    assert start.evidence.conditions[0].reported is None
    assert "reported `image`: expected a finite number" in log.warning.call_args.kwargs["error"]


def test_a_slow_condition_is_told_once_and_still_counts(tmp_path: Path) -> None:
    events, log, counts = judged([{"id": "yes", "when": "test_dawdles()"}], [tracks(0), tracks(1)], tmp_path)
    assert [one.phase for one in events] == ["start"]
    assert [call.args for call in log.warning.call_args_list] == [("condition_slow",)]
    assert not any(name.startswith("condition_failed") for name, _ in counts)


def test_after_a_reload_a_rule_that_is_as_before_goes_on(tmp_path: Path) -> None:
    rule = {"id": "up", "when": "test_above_head(left_wrist, 0px, 0.9)"}
    items = [tracks(seq, 180 if seq < 3 else 100) for seq in range(25)]
    with opened(Rules, {"rules": [rule]}, folder=tmp_path) as stage:
        begun = feed(stage, items[:10])
        stage.change_settings(stage.settings_type(rules=[rule, {"id": "new", "when": "age > 100s"}]))
        [start] = feed(stage, items[10:])
    assert begun == []
    assert start.stamp.seq == 21, "19 of the 21 frames of two seconds; one that began anew would know the last only"


GRAPH = """version: 1
name: deadly
cameras:
  front: {url: clip.mp4}
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: capture}
  infer:   {use: infer, from: prepare, with: {model: people.onnx}}
  people:  {use: decode, from: infer}
  tracks:  {use: track, from: people}
  actions: {use: rules, from: tracks, with: {file: rules.yaml}}
  log:     {use: sink_jsonl, from: actions, with: {path: events.jsonl, mode: replace}}
"""
RULES = """rules:
  - {id: deadly, when: test_ends_the_process()}
  - {id: somebody, when: age > 0.5s}
"""


@pytest.mark.slow
def test_a_condition_that_ends_its_process_costs_two_restarts(
    tmp_path: Path, make_clip: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The frames that the dead process had come again, so the other rule misses nothing."""
    make_clip("clip.mp4", frames=20)
    write_two_people(tmp_path / "people.onnx")
    (tmp_path / "graph.yaml").write_text(GRAPH)
    (tmp_path / "rules.yaml").write_text(RULES)
    outcome, status = run_graph(load_plan(tmp_path / "graph.yaml"))
    assert outcome.status == 1, "what the process remembered was lost twice"
    assert status["processes"]["actions.0"]["restarts"] == 2, status["processes"]
    assert capsys.readouterr().out.count("condition_given_up") == 1
    events = [json.loads(line)["data"] for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    told = {(one["rule"]["id"], one["phase"], one["people"][0]["track_id"]) for one in events if "rule" in one}
    assert told == {("somebody", phase, track) for phase in ("start", "end") for track in (1, 2)}
