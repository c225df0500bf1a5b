"""What a video shows of the rules is what the stage `rules` tells."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from camgraph.pipeline.testing import opened
from camgraph.stages import testing
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.evidence import in_words
from camgraph.stages.rules.firing import ONCE_NS
from camgraph.stages.rules.language.judge import Evidence
from camgraph.stages.rules.onlooker import Onlooker, Seen
from camgraph.stages.rules.rule_set import parse_rules
from camgraph.stages.rules.rules import Rules

RULES = """
version: 1
min_confidence: 0.25
zones:
  left_half: [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]
  other: {yard: [[0, 0], [0.5, 0], [0.5, 1]]}
lines:
  middle: {from: [0.5, 0], to: [0.5, 1]}
rules:
  - {id: on_left, action: trespass, when: in left_half, for: 0.2s, hold: 0.3s}
  - {id: appears, when: age >= 0.1s, once: true, min_confidence: 0.1}
"""


def tracks(seq: int, x: float, *, camera: str = "cam", epoch: int = 0) -> Tracks:
    """One person, 40 wide and 100 tall, whose feet are at x."""
    box, joints = (x - 20, 50, x + 20, 150), np.zeros((17, 3))
    return testing.tracks({7: box}, seq, camera, epoch=epoch, frame_size=(320, 240), keypoints=joints)


def walk() -> list[Tracks]:
    """A second on the left, then on the right."""
    return [tracks(seq, 80 if seq < 10 else 250) for seq in range(30)]


def actions(seen: Seen) -> set[str]:
    return {firing.action for firing in seen.firing}


def test_nothing_of_a_photograph_is_shown_in_the_next_one() -> None:
    rules = "version: 1\nrules: [{id: here, when: score > 0}, {id: once, when: score > 0, once: true}]"
    onlooker = Onlooker(parse_rules(rules, "r"))
    seen = []
    for seq in range(2):
        item = tracks(seq, 80)
        people = item.ids if seq == 0 else item.ids + 1
        seen.append(onlooker.judge(replace(item, stamp=item.stamp._replace(alone=True), ids=people)))
    assert [sorted((one.action, one.ids) for one in each.firing) for each in seen] == [
        [("here", (7,)), ("once", (7,))],
        [("here", (8,)), ("once", (8,))],
    ]


def test_it_shows_an_incident_from_its_start_to_its_end(tmp_path: Path) -> None:
    onlooker = Onlooker(parse_rules(RULES, "r"))
    shown = [actions(onlooker.judge(item)) for item in walk()]
    with opened(Rules, {"file": "r.yaml", "text": RULES}, folder=tmp_path) as stage:
        reported: dict[str, list[int]] = {}
        for item in walk():
            for event in stage.process([item]):
                data = json.loads(event.body)["data"]  # type: ignore[attr-defined]
                reported.setdefault(f"{data['action']} {data['phase']}", []).append(item.stamp.seq)
    [start], [end] = reported["trespass start"], reported["trespass end"]
    assert [seq for seq, names in enumerate(shown) if "trespass" in names] == list(range(start, end))


def test_what_is_told_once_is_shown_for_two_seconds() -> None:
    onlooker = Onlooker(parse_rules(RULES, "r"))
    shown = [seq for seq in range(40) if "appears" in actions(onlooker.judge(tracks(seq, 250)))]
    assert shown == list(range(1, 1 + ONCE_NS // 100_000_000))


def test_it_says_whose_it_is_and_why() -> None:
    onlooker = Onlooker(parse_rules(RULES, "r"))
    seen = [onlooker.judge(item) for item in walk()][5]
    firing = {one.action: one for one in seen.firing}
    assert firing["trespass"].ids == (7,)
    assert firing["trespass"].why == "in left_half"
    assert firing["trespass"].shapes == ("left_half",)
    assert firing["appears"].why == "age >= 0.1s (0.1 s)"


def test_zones_and_lines_are_those_of_the_camera_in_pixels() -> None:
    onlooker = Onlooker(parse_rules(RULES, "r"))
    seen = onlooker.judge(tracks(0, 80))
    assert seen.zones == {"left_half": [(0, 0), (160, 0), (160, 240), (0, 240)]}
    assert seen.lines == {"middle": ((160, 0), (160, 240))}
    assert set(onlooker.judge(tracks(0, 80, camera="yard")).zones) == {"left_half", "other"}


def test_the_floor_of_joints_is_the_lowest_that_a_rule_asks_for() -> None:
    assert Onlooker(parse_rules(RULES, "r")).floor("cam") == 0.1
    assert Onlooker(parse_rules(RULES.replace(", min_confidence: 0.1", ""), "r")).floor("cam") == 0.25


NOON_NS = 1_795_608_000_000_000_000
NIGHT = """
version: 1
time_zone: UTC
schedules: {night: {from: "21:00", to: "06:00"}}
rules: [{id: here, when: score > 0, during: night}]
"""


@pytest.mark.parametrize(
    ("clock", "written", "is_shown"),
    [
        ("file", {}, True),
        ("file", {"cam": "wall"}, False),
        ("wall", {}, False),
        ("wall", {"cam": "file"}, True),
        ("wall", {"yard": "file"}, False),
    ],
)
def test_a_schedule_counts_by_the_clock_that_the_rules_are_told(
    tmp_path: Path, clock: Any, written: dict[str, str], is_shown: bool
) -> None:
    """At noon; a file without a date has no time of day, and is judged at any."""
    item = tracks(0, 80)
    item = replace(item, stamp=item.stamp._replace(clock=clock, wall_ns=NOON_NS))
    with opened(Rules, {"file": "r.yaml", "text": NIGHT, "clocks": written}, folder=tmp_path) as stage:
        assert bool(list(stage.process([item]))) is is_shown
    assert bool(Onlooker(parse_rules(NIGHT, "r"), written).judge(item).firing) is is_shown


@pytest.mark.parametrize("new", [{"epoch": 1}, {"camera": "yard"}])
def test_another_epoch_and_another_camera_begin_anew(new: dict[str, Any]) -> None:
    onlooker = Onlooker(parse_rules(RULES, "r"))
    for item in walk()[:9]:
        onlooker.judge(item)
    assert not onlooker.judge(tracks(9, 80, **new)).firing


def test_a_camera_that_has_ended_is_forgotten() -> None:
    onlooker = Onlooker(parse_rules(RULES, "r"))
    for item in walk()[:9]:
        onlooker.judge(item)
    onlooker.forget("cam")
    assert not onlooker.judge(tracks(9, 80)).firing


def test_a_box_that_is_no_number_is_looked_past() -> None:
    onlooker = Onlooker(parse_rules(RULES, "r"))
    for item in walk()[:9]:
        onlooker.judge(item)
    assert actions(onlooker.judge(tracks(9, np.nan))) == {"trespass", "appears"}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Evidence("in lawn", "truth", True), "in lawn"),
        (Evidence("in lawn", "truth", False), "not: in lawn"),
        (Evidence("nose.y < 0.1h", "y", (101.26, 9.5)), "nose.y < 0.1h (101, 9.5 px)"),
        (Evidence("speed < 0.2h/s", "speed", (3.14159, 40.0)), "speed < 0.2h/s (3.14, 40 px/s)"),
        (Evidence("age >= 1s", "time", (1.2345, 1.0)), "age >= 1s (1.23 s)"),
        (Evidence("count >= 3", "number", (5, 3)), "count >= 3 (5)"),
        (Evidence("nose.y < left_hip.y", "y", (float("nan"), 3)), "nose.y < left_hip.y (?, 3 px)"),
    ],
)
def test_the_evidence_in_a_few_words(part: Evidence, words: str) -> None:
    assert in_words([part, part]) == f"{words}; {words}"
