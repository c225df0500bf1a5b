"""Counters of lines and zones, as conditions about a scene ask them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pipeline.testing import feed, opened
from stages.messages import Tracks
from stages.rulebook.counting import Counting
from stages.rulebook.rule_file import RuleFile
from stages.rulebook.rule_set import examined_rules
from stages.rules import Rules, RulesSettings
from tests.stages.test_rules import ZONES, data_of, run, tracks

LINE = {"gate": {"from": [0.5, 1], "to": [0.5, 0]}}
VISITORS = {"visitors": {"line": "gate"}, "door_count": {"zone": "door"}}
LEFT, RIGHT = 120.0, 300.0


def rules(when: str, **more: Any) -> dict[str, Any]:
    rule = {"id": "a", "scope": "scene", "when": when, "hold": "0s"}
    return {"zones": ZONES, "lines": LINE, "counters": VISITORS, "rules": [rule], **more}


def walk(places: dict[int, str], begin: int = 0) -> list[Tracks]:
    """`places`: id -> a letter a frame: l(eft of the line, in the door), r(ight of it), anything else: not there."""
    found = []
    for seq in range(max(map(len, places.values()))):
        there = [(i, LEFT if text[seq] == "l" else RIGHT, 200.0) for i, text in places.items() if text[seq] in "lr"]
        found.append(tracks(begin + seq, there))
    return found


def true_in(when: str, items: Sequence[Tracks], folder: Path, **more: Any) -> list[tuple[int, int]]:
    """The frames of the starts and ends."""
    found = run(rules(when, **more), items, folder, end=True)
    return [(one.frame.seq, other.frame.seq) for one, other in zip(found[::2], found[1::2], strict=True)]


WALK = {1: "llrrrrllll", 2: "lllrrrrrll", 3: "rrrrllllll"}


@pytest.mark.parametrize(
    ("when", "spans"),
    [
        ("visitors.rightward >= 1", [(2, 9)]),
        ("visitors.rightward >= 2", [(3, 9)]),
        ("visitors.leftward >= 2", [(6, 9)]),
        ("visitors.inside == 2", [(3, 3)]),
        ("visitors.inside == 1", [(2, 2), (4, 5)]),
        ("visitors.inside == 0", [(0, 1), (6, 9)]),
        ("door_count.inside == 2", [(0, 1), (6, 7)]),
        ("door_count.inside == 3", [(8, 9)]),
        ("door_count.entered - door_count.left > 0", [(8, 9)]),
        ("visitors.rightward + people > 4", [(3, 9)]),
    ],
)
def test_what_is_counted(tmp_path: Path, when: str, spans: list[tuple[int, int]]) -> None:
    assert true_in(when, walk(WALK), tmp_path) == spans


def test_nobody_is_owed(tmp_path: Path) -> None:
    """Who was inside before the run began makes no debt when they leave."""
    assert true_in("visitors.inside == 1", walk({1: "rrllllll", 2: "llllrrrr"}), tmp_path) == [(4, 7)]


def evening(items: Sequence[Tracks]) -> list[Tracks]:
    """A frame an hour, from 21:30 on."""
    begin = int(datetime.fromisoformat("2026-10-24T21:30:00+02:00").timestamp()) * 10**9
    return [
        replace(item, stamp=item.stamp._replace(wall_ns=begin + item.stamp.seq * 3600 * 10**9, clock="ntp"))
        for item in items
    ]


@pytest.mark.parametrize(
    ("reset", "spans"), [("00:00", [(1, 2)]), ("24:00", [(1, 2)]), ("02:30", [(1, 4)]), (None, [(1, 7)])]
)
def test_it_begins_at_zero_once_a_day(tmp_path: Path, reset: str | None, spans: list[tuple[int, int]]) -> None:
    """In the night in which the hour after two happens twice."""
    counters = {"visitors": {"line": "gate", **({"reset": reset} if reset else {})}}
    items = evening(walk({1: "lrrrrrrr"}))
    assert true_in("visitors.inside > 0", items, tmp_path, counters=counters, time_zone="Europe/Berlin") == spans


def test_an_hour_that_happens_twice_resets_once() -> None:
    shapes: dict[str, Any] = {"lines": LINE, "counters": {"v": {"line": "gate", "reset": "02:45"}}}
    rule = {"id": "a", "when": "score > 0"}
    file = RuleFile.model_validate({**shapes, "time_zone": "Europe/Berlin", "rules": [rule]})
    counting = Counting()
    [counter] = counting.of("cam", file).values()
    found = []
    for moment in ("02:40+02:00", "02:50+02:00", "02:10+01:00", "02:44+01:00", "02:50+01:00"):
        wall_ns = int(datetime.fromisoformat(f"2026-10-25T{moment}").timestamp()) * 10**9
        counting.begin_frame("cam", file, wall_ns)
        counter.forward += 1
        found.append(counter.forward)
    assert found == [1, 1, 2, 3, 4]


def test_counts_outlive_a_restart_and_a_reload(tmp_path: Path) -> None:
    first = rules("visitors.rightward >= 2")
    with opened(Rules, first, folder=tmp_path) as stage:
        assert feed(stage, walk({1: "llrr"})) == []
    with opened(Rules, first, folder=tmp_path) as stage:
        other = rules("visitors.rightward >= 2 and people > 0", zones={"door": [[0, 0], [1, 0], [1, 1]]})
        feed(stage, walk({4: "ll"}, 10))
        stage.change_settings(RulesSettings.model_validate(other))
        assert [data.phase for data in data_of(feed(stage, walk({4: "llrr"}, 20)))] == ["start"]
    moved = {"gate": {"from": [0.6, 1], "to": [0.6, 0]}}
    with opened(Rules, rules("visitors.rightward >= 1", lines=moved), folder=tmp_path) as stage:
        assert feed(stage, walk({1: "ll"}, 30), end=True) == []
    with opened(Rules, first, folder=tmp_path) as stage:  # the camera had ended
        assert feed(stage, walk({1: "llrr"}, 40)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("counters: {v: {line: gaet}}", "counters.v.line: there is no line `gaet`; did you mean `gate`?"),
        ("counters: {v: {line: gate, zone: door}}", "expected either `line` or `zone`"),
        ("counters: {v: {}}", "expected either `line` or `zone`"),
        ("counters: {v: {line: gate, reset: '00:00'}}", "counters.v.reset: expected `time_zone` beside it"),
        ("counters: {count: {line: gate}}", "`count` is a word of the language"),
        ("counters: {v: {line: gate}}\nrules: [{id: b, when: v.inside > 1}]", "is about the whole camera"),
        (
            "counters: {v: {line: gate}}\nrules: [{id: b, scope: scene, when: v.insid > 1}]",
            "`v.insid` is no number of the counter `v`; did you mean `inside`?",
        ),
        ("counters: {v: {line: gate}}\nrules: [{id: b, scope: scene, when: v > 1}]", "it has rightward, leftward"),
    ],
)
def test_mistakes(text: str, words: str) -> None:
    shapes = "zones: {door: [[0, 0], [1, 0], [1, 1]]}\nlines: {gate: {from: [0, 0], to: [1, 1]}}\n"
    rest = "" if "rules:" in text else "\nrules: [{id: a, when: score > 0}]"
    [problem] = examined_rules(f"{shapes}{text}{rest}\n", "r")[1]
    assert words in problem.text
