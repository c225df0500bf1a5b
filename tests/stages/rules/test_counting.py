"""Counters of lines and zones, as conditions about a scene ask them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.stages.rules.test_rules import ZONES, data_of, run, tracks

from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.events import COUNTER_SCHEMA, CounterData, CounterReport
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.counting import Counting
from camgraph.stages.rules.rule_file import RuleFile
from camgraph.stages.rules.rule_set import examined_rules
from camgraph.stages.rules.rules import Rules, RulesSettings
from camgraph.stages.video.dates import zone_of

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
        counting.begin_frame(file, stamp()._replace(wall_ns=wall_ns), dated=True)
        counter.forward += 1
        found.append(counter.forward)
    assert found == [1, 1, 2, 3, 4]


@pytest.mark.parametrize("wrong", ["2027-11-25T12:10", "2026-11-27T05:00", "2026-11-26T19:50"])
@pytest.mark.parametrize(("when", "due"), [({"reset": "00:00"}, "reset"), ({"report": "1h"}, "report")])
def test_a_clock_that_was_far_ahead_stops_no_counter(when: dict[str, str], due: str, wrong: str) -> None:
    """It was ahead, by a year or by hours, and is right from the second moment on."""
    shapes: dict[str, Any] = {"lines": LINE, "counters": {"v": {"line": "gate", "report": "reset", **when}}}
    file = RuleFile.model_validate(
        {**shapes, "time_zone": "Europe/Berlin", "rules": [{"id": "a", "when": "score > 0"}]}
    )
    counting = Counting()
    counting.of("cam", file)
    found = []
    for moment in (wrong, "2026-11-25T23:50", "2026-11-25T23:55", "2026-11-26T00:10", "2026-11-26T00:15"):
        wall_ns = int(datetime.fromisoformat(f"{moment}+01:00").timestamp()) * 10**9
        reports = counting.begin_frame(file, stamp()._replace(wall_ns=wall_ns), dated=True)
        assert all(one.begun_ns <= one.ended_ns for one in reports)
        found.append([one.due for one in reports])
    assert found == [[], [], [], [due], []]


def test_a_full_disk_costs_counts_and_no_events(tmp_path: Path) -> None:
    given = rules("visitors.rightward >= 1")
    with opened(Rules, given, folder=tmp_path) as stage:
        blocked = stage.context.state_folder / f"counters.{stage.context.worker}.new"
        blocked.mkdir()
        assert [data.phase for data in data_of(feed(stage, walk({1: "llrr"})))] == ["start"]
        [trouble] = stage.context.troubles.values()
        assert "would be lost" in trouble
        blocked.rmdir()
        feed(stage, walk({1: "r"}, 4))
        assert not any(stage.context.troubles.values())
    with opened(Rules, rules("visitors.rightward >= 2"), folder=tmp_path) as stage:
        assert len(feed(stage, walk({2: "llrr"}, 10))) == 1


def test_counters_that_a_reload_removes_are_shown_no_longer(tmp_path: Path) -> None:
    with opened(Rules, rules("visitors.rightward >= 2"), folder=tmp_path) as stage:
        feed(stage, walk({1: "llrr"}))
        assert set(stage.context.counters["cam"]) == {"visitors", "door_count"}
        stage.change_settings(RulesSettings.model_validate(rules("people > 0", counters={})))
        feed(stage, walk({1: "rr"}, 4))
        assert stage.context.counters["cam"] == {}


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


@pytest.mark.parametrize("when", ["visitors.rightward > 8", "people > 8"])
@pytest.mark.parametrize(("place", "crossed"), [(0.5, 1), (0.45, 0)])
def test_a_reload_loses_no_crossing_half_seen(tmp_path: Path, when: str, place: float, crossed: int) -> None:
    """Also if the only rule that asks for the counter has changed, or none does; a line drawn anew was not crossed."""
    lines = {"gate": {"from": [place, 1], "to": [place, 0]}}
    with opened(Rules, rules(when), folder=tmp_path) as stage:
        feed(stage, walk({1: "ll"}))
        stage.change_settings(RulesSettings.model_validate(rules(f"{when} + 1", lines=lines)))
        feed(stage, walk({1: "rr"}, 2))
        numbers = stage._counting.numbers("cam")
    assert (numbers["visitors"]["rightward"], numbers["door_count"]["left"]) == (crossed, 1)


def reports(outputs: Sequence[Any]) -> list[CounterData]:
    """The reports of counters among events, all of which must be as their schema says."""
    found = []
    for event in outputs:
        body = json.loads(event.body)
        if body["dataschema"] == COUNTER_SCHEMA:
            whole = CounterReport.model_validate(body)
            assert (whole.id, whole.subject, event.phase) == (event.id, event.stamp.camera, "single")
            found.append(whole.data)
    return found


def short(data: CounterData) -> tuple[str, str, str, dict[str, int], dict[str, int], int]:
    """Reason, beginning and end, the numbers of the period and since the reset, and `inside`."""
    numbers = [one.model_dump(exclude_none=True) for one in (data.in_period, data.since_reset)]
    return data.reason, data.start_time[11:19], data.end_time[11:19], *numbers, data.inside


def test_a_report_has_the_numbers_of_each_hour(tmp_path: Path) -> None:
    """A frame every 20 minutes from 21:30 on; reset at midnight, which is 22:00 of UTC in summer."""
    visitors = {"line": "gate", "report": "1h", "reset": "00:00"}
    given = rules("people > 9", counters={"visitors": visitors}, time_zone="Europe/Berlin")
    begin = int(datetime.fromisoformat("2026-08-24T19:30:00+00:00").timestamp()) * 10**9
    items = [
        replace(item, stamp=item.stamp._replace(wall_ns=begin + item.stamp.seq * 1200 * 10**9, clock="ntp"))
        for item in walk({1: "lrlrlrlrllll", 2: "lllllllrrrrr"})
    ]
    with opened(Rules, given, folder=tmp_path) as stage:
        found = reports(feed(stage, items, end=True))
    assert [short(data) for data in found] == [
        ("report", "19:30:00", "20:10:00", {"rightward": 1, "leftward": 0}, {"rightward": 1, "leftward": 0}, 1),
        ("report", "20:10:00", "21:10:00", {"rightward": 1, "leftward": 2}, {"rightward": 2, "leftward": 2}, 0),
        ("reset", "21:10:00", "22:10:00", {"rightward": 3, "leftward": 1}, {"rightward": 5, "leftward": 3}, 2),
        ("report", "22:10:00", "23:10:00", {"rightward": 0, "leftward": 1}, {"rightward": 0, "leftward": 1}, 0),
        ("end", "23:10:00", "23:10:00", {"rightward": 0, "leftward": 0}, {"rightward": 0, "leftward": 1}, 0),
    ]
    assert {(data.counter, data.line, data.camera) for data in found} == {("visitors", "gate", "cam")}


def test_a_file_without_a_date_has_periods_of_its_own_time(tmp_path: Path) -> None:
    given = rules("people > 9", counters={"in_door": {"zone": "door", "report": "1s"}})
    with opened(Rules, given, folder=tmp_path) as stage:
        found = reports(feed(stage, walk({1: "r" * 7 + "l" * 7}), end=True))
    assert [short(data) for data in found] == [
        ("report", "00:00:00", "00:00:01", {"entered": 1, "left": 0}, {"entered": 1, "left": 0}, 1),
        ("end", "00:00:01", "00:00:01", {"entered": 0, "left": 0}, {"entered": 1, "left": 0}, 1),
    ]


@pytest.mark.parametrize(
    ("report", "dated", "due"),
    [
        ("5h", True, ["25 05:00", "25 10:00", "25 15:00", "25 20:00", "26 00:00", "26 05:00", "26 10:00"]),
        ("5h", False, ["01 05:00", "01 10:00", "01 15:00", "01 20:00", "02 01:00", "02 06:00", "02 11:00"]),
        ("24h", True, ["26 00:00"]),
    ],
)
def test_periods_count_from_each_midnight(report: str, dated: bool, due: list[str]) -> None:
    """In a night in which clocks are put back, the hour that happens twice is of one period."""
    counters = {"v": {"line": "gate", "report": report}}
    rule = {"id": "a", "when": "score > 0"}
    file = RuleFile.model_validate({"lines": LINE, "counters": counters, "time_zone": "Europe/Berlin", "rules": [rule]})
    counting, found = Counting(), []
    counting.of("cam", file)
    zone = zone_of("Europe/Berlin" if dated else "UTC")
    begin = int(datetime(2026, 10, 25, tzinfo=zone).timestamp()) if dated else 0
    for moment in range(begin, begin + 36 * 3600, 1800):
        if counting.begin_frame(file, stamp()._replace(wall_ns=moment * 10**9), dated=dated):
            found.append(datetime.fromtimestamp(moment, zone).strftime("%d %H:%M"))
    assert found == due


def test_a_command_resets_once_also_over_a_death(tmp_path: Path) -> None:
    given = rules("people > 9", counters={"visitors": {"line": "gate", "report": "reset"}, "other": {"line": "gate"}})
    with opened(Rules, given, folder=tmp_path) as stage:
        assert feed(stage, walk({1: "llr"})) == []
        assert stage.context.counters["cam"]["visitors"] == {"rightward": 1, "leftward": 0, "inside": 1}
        stage.context.resets = {"visitors": {"cam": 3}, "other": {"elsewhere": 4}}
        [data] = reports(feed(stage, walk({1: "rl"}, 3)))
        assert (data.reason, data.since_reset.rightward, data.since_reset.leftward) == ("reset", 1, 0)
        numbers = stage.context.counters["cam"]
        assert (numbers["visitors"]["rightward"], numbers["other"]["rightward"]) == (0, 1)
    with opened(Rules, given, folder=tmp_path, resets={"visitors": {"cam": 3}}) as stage:
        assert feed(stage, walk({1: "llr"}, 5)) == []
        assert stage.context.counters["cam"]["visitors"] == {"rightward": 1, "leftward": 1, "inside": 1}
    with opened(Rules, given, folder=tmp_path, resets={"visitors": {"cam": 5}}) as stage:
        data, end = reports(feed(stage, walk({1: "rr"}, 8), end=True))
        assert (data.reason, data.since_reset.rightward, end.reason) == ("reset", 1, "end")
        assert stage.context.counters["cam"] == {}


def test_a_command_waits_for_a_frame_that_is_not_a_repeat(tmp_path: Path) -> None:
    """The events of a frame that a dead process has sent already are taken for repetitions."""
    given = rules("visitors.rightward > 0", counters={"visitors": {"line": "gate", "report": "reset"}})
    with opened(Rules, given, folder=tmp_path) as stage:
        assert len(feed(stage, walk({1: "llrr"}))) == 1
    with opened(Rules, given, folder=tmp_path, resets={"visitors": {"cam": 1}}) as stage:
        again = feed(stage, walk({1: "rr"}, 1))
        assert (reports(again), stage.context.counters["cam"]["visitors"]["rightward"]) == ([], 1)
        [data] = reports(feed(stage, walk({1: "r"}, 3)))
    assert (data.reason, data.since_reset.rightward) == ("reset", 1)


def test_counters_count_without_a_rule_that_asks(tmp_path: Path) -> None:
    rule = {"id": "a", "when": "score > 9", "cameras": ["elsewhere"]}
    with opened(Rules, rules("", rules=[rule]), folder=tmp_path) as stage:
        feed(stage, walk(WALK))
        counters = stage.context.counters["cam"]
    assert counters["visitors"] == {"rightward": 2, "leftward": 3, "inside": 0}
    assert counters["door_count"]["inside"] == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("counters: {v: {line: gate, report: 0.5s}}", "expected a time of at least 1s, such as 15min, or `reset`"),
        ("counters: {v: {line: gate, report: 36h}}", "expected at most 24h, or whole days, such as 48h, got '36h'"),
        ("counters: {v: {line: gate, report: 60}}", "expected a time with its unit, such as 60s, got 60"),
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
