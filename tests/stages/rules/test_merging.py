"""Incidents of several people as one, through the stage that judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.stages.rules.test_rules import ZONES, data_of, photograph, run, tracks

from camgraph.pipeline.testing import feed, opened
from camgraph.stages.events import IncidentData
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.rule_set import examined_rules
from camgraph.stages.rules.rules import Rules, RulesSettings

IN, OUT = 150.0, 10.0


def incidents_of(
    folder: Path, people: dict[int, list[tuple[int, int]]], frames: int, **rule: Any
) -> list[IncidentData]:
    """`people`: id -> the frames, from and up to, in which they are in the door."""
    rules = {"zones": ZONES, "rules": [{"id": "a", "when": "in door", "hold": "0s", "merge": "1s", **rule}]}

    def place(spans: list[tuple[int, int]], seq: int) -> float:
        return IN if any(begin <= seq < end for begin, end in spans) else OUT

    items = [tracks(seq, [(i, place(spans, seq), 200.0) for i, spans in people.items()]) for seq in range(frames)]
    return run(rules, items, folder, end=True)


def short(found: list[IncidentData]) -> list[tuple[str, int, list[int], list[int] | None, str | None]]:
    """Phase, frame, people, everyone, and the reason of an end."""
    return [
        (data.phase, data.frame.seq, [one.track_id for one in data.people], data.everyone, data.reason)
        for data in found
    ]


def test_who_comes_while_it_runs_or_soon_after_joins(tmp_path: Path) -> None:
    found = incidents_of(tmp_path, {1: [(2, 6)], 2: [(4, 8)], 3: [(15, 17)], 4: [(40, 42)]}, 60)
    assert short(found) == [
        ("start", 2, [1], [1], None),
        ("update", 4, [1, 2], [1, 2], None),
        ("update", 15, [3], [1, 2, 3], None),
        ("end", 16, [3], [1, 2, 3], "condition"),
        ("start", 40, [4], [4], None),
        ("end", 41, [4], [4], "condition"),
    ]
    assert len({data.incident for data in found}) == 2
    assert found[3].start_time == found[0].start_time == "1970-01-01T00:00:00.200Z"
    assert (found[3].end_time, found[3].duration_s) == ("1970-01-01T00:00:01.600Z", 1.4)


def test_who_begins_in_the_same_frame_is_in_the_start(tmp_path: Path) -> None:
    assert short(incidents_of(tmp_path, {2: [(3, 9)], 5: [(3, 5)]}, 30)) == [
        ("start", 3, [2, 5], [2, 5], None),
        ("end", 8, [2], [2, 5], "condition"),
    ]
    [single] = incidents_of(tmp_path, {2: [(3, 9)], 5: [(3, 5), (7, 12)]}, 30, once=True)
    assert short([single]) == [("single", 3, [2, 5], [2, 5], None)]


def test_one_who_goes_and_comes_again_goes_on_with_it(tmp_path: Path) -> None:
    found = short(incidents_of(tmp_path, {1: [(2, 4), (9, 11), (14, 40)]}, 45))
    assert [phase for phase, *_ in found] == ["start", "update", "update", "end"]


def test_the_camera_ends_while_others_could_still_join(tmp_path: Path) -> None:
    found = incidents_of(tmp_path, {1: [(2, 6)], 2: [(4, 8)]}, 10)
    assert short(found)[-1] == ("end", 7, [2], [1, 2], "condition")
    found = incidents_of(tmp_path, {1: [(2, 6)], 2: [(4, 20)]}, 10)
    assert short(found)[-1] == ("end", 9, [2], [1, 2], "end")


def test_updates_are_those_of_one(tmp_path: Path) -> None:
    found = incidents_of(tmp_path, {1: [(2, 20)], 2: [(2, 20)]}, 40, update="0.5s")
    assert [(data.phase, data.frame.seq) for data in found] == [
        *[("start", 2), ("update", 7), ("update", 12), ("update", 17)],
        ("end", 19),
    ]


def test_updates_go_on_while_the_first_only_holds(tmp_path: Path) -> None:
    """The first is away from frame 8 on; the other one's own updates come three frames after theirs."""
    found = incidents_of(tmp_path, {1: [(2, 8), (30, 40)], 2: [(5, 40)]}, 40, update="0.5s", hold="9s")
    updates = [data.frame.seq for data in found if data.phase == "update"]
    assert updates == [5, 7, 15, 20, 25, 30, 35]


def test_pairs(tmp_path: Path) -> None:
    rule = {"scope": "pair", "when": "a.feet in door and b.feet in door"}
    found = incidents_of(tmp_path, {1: [(2, 9)], 2: [(2, 9)], 3: [(5, 9)]}, 30, **rule)
    assert short(found)[:2] == [("start", 2, [1, 2], [1, 2], None), ("update", 5, [1, 2, 3], [1, 2, 3], None)]


def test_photographs_are_by_themselves(tmp_path: Path) -> None:
    rules = {"zones": ZONES, "rules": [{"id": "a", "when": "in door", "merge": "1min"}]}
    items = [photograph(seq, [(1, IN, 200.0), (2, IN, 200.0)]) for seq in range(2)]
    assert [(phase, people) for phase, _, people, *_ in short(run(rules, items, tmp_path))] == [("single", [1, 2])] * 2


def test_without_merge_each_has_their_own(tmp_path: Path) -> None:
    found = incidents_of(tmp_path, {1: [(2, 6)], 2: [(4, 8)]}, 30, merge=None)
    assert len({data.incident for data in found}) == 2
    assert all(data.everyone is None for data in found)


@pytest.mark.parametrize("scope", ["scene"])
def test_a_scene_has_nothing_to_merge(scope: str) -> None:
    text = f"rules: [{{id: a, scope: {scope}, when: count > 1, merge: 1s}}]\n"
    [problem] = examined_rules(text, "r")[1]
    assert "`merge` needs `scope: person` or `scope: pair`" in problem.text


def phases(found: list[IncidentData]) -> list[tuple[str, int, str | None]]:
    return [(data.phase, data.frame.seq, data.reason) for data in found]


@pytest.mark.parametrize(("again", "joins"), [(15, True), (16, False)])
def test_the_last_moment_to_join(tmp_path: Path, again: int, joins: bool) -> None:
    """The first is in the door up to frame 5; `merge` is 1 s, which are 10 frames."""
    found = incidents_of(tmp_path, {1: [(2, 6)], 2: [(again, 20)]}, 40)
    assert [data.phase for data in found] == [
        "start",
        "update" if joins else "end",
        *([] if joins else ["start"]),
        "end",
    ]


def test_who_joins_does_so_when_their_own_incident_starts(tmp_path: Path) -> None:
    """`for` comes first: who came while it ran, but was there for too short a time, begins another one."""
    together = incidents_of(tmp_path, {1: [(2, 12)], 2: [(8, 22)]}, 50, **{"for": "0.8s"})
    assert phases(together) == [("start", 10, None), ("update", 16, None), ("end", 21, "condition")]
    late = incidents_of(tmp_path, {1: [(2, 12)], 2: [(11, 40)]}, 50, **{"for": "1.5s", "merge": "0.2s"})
    assert [data.people[0].track_id for data in late if data.phase == "start"] == [2]
    apart = incidents_of(tmp_path, {1: [(2, 12)], 2: [(8, 40)]}, 60, **{"for": "0.8s", "merge": "0.2s"})
    assert phases(apart)[:2] == [("start", 10, None), ("end", 11, "condition")]


def test_a_hold_that_is_longer_than_merge_counts(tmp_path: Path) -> None:
    found = incidents_of(tmp_path, {1: [(2, 6)], 2: [(17, 20)]}, 60, hold="1.5s")
    assert phases(found) == [("start", 2, None), ("update", 17, None), ("end", 19, "condition")]


def test_who_rests_after_an_incident_joins_none(tmp_path: Path) -> None:
    found = incidents_of(tmp_path, {1: [(2, 6), (10, 14)], 2: [(9, 12)]}, 60, cooldown="2s")
    assert short(found) == [
        ("start", 2, [1], [1], None),
        ("update", 9, [2], [1, 2], None),
        ("end", 11, [2], [1, 2], "condition"),
    ]


def rules_with(**rule: Any) -> dict[str, Any]:
    return {"zones": ZONES, "rules": [{"id": "a", "when": "in door", "hold": "0s", "merge": "1s", **rule}]}


def in_door(first: int, last: int, *ids: int) -> list[Tracks]:
    return [tracks(seq, [(track_id, IN, 200.0) for track_id in ids]) for seq in range(first, last)]


@pytest.mark.parametrize(
    ("other", "phases_after"),
    [
        ({}, [("update", "a", None), ("end", "a", "end")]),
        ({"merge": "3s"}, [("end", "a", "unseen"), ("start", "a", None), ("end", "a", "end")]),
    ],
)
def test_a_reload_while_others_could_still_join(
    tmp_path: Path, other: dict[str, Any], phases_after: list[tuple[str, str, str | None]]
) -> None:
    """An unchanged rule goes on; of a changed one the incident ends with the reason that its last person had."""
    more = {"id": "b", "when": "score > 9"}
    with opened(Rules, rules_with(), folder=tmp_path) as stage:
        assert [data.phase for data in data_of(feed(stage, [*in_door(0, 4, 1), *in_door(4, 6)]))] == ["start"]
        changed = rules_with(**other)
        stage.change_settings(RulesSettings.model_validate({**changed, "rules": [*changed["rules"], more]}))
        found = data_of(feed(stage, in_door(6, 9, 2), end=True))
    assert [(data.phase, data.action, data.reason) for data in found] == phases_after


def test_a_reload_ends_a_running_one_of_a_changed_rule(tmp_path: Path) -> None:
    with opened(Rules, rules_with(), folder=tmp_path) as stage:
        feed(stage, in_door(0, 4, 1, 2))
        stage.change_settings(RulesSettings.model_validate(rules_with(merge="3s")))
        found = data_of(feed(stage, in_door(4, 5, 1, 2)))
    assert [(data.phase, data.reason, data.everyone) for data in found] == [
        ("end", "reload", [1, 2]),
        ("start", None, [1, 2]),
    ]


def test_a_switch_ends_it_at_once(tmp_path: Path) -> None:
    given = {**rules_with(**{"while": "armed"}), "switches": {"armed": True}}
    with opened(Rules, given, folder=tmp_path) as stage:
        feed(stage, in_door(0, 4, 1, 2))
        stage.context.switches = {"armed": False}
        [end] = data_of(feed(stage, in_door(4, 6, 1, 2)))
    assert (end.phase, end.reason, end.everyone, end.frame.seq) == ("end", "switch", [1, 2], 3)
    with opened(Rules, given, folder=tmp_path) as stage:  # the last person has gone, and others could still join
        feed(stage, [*in_door(0, 4, 1), *in_door(4, 6)])
        stage.context.switches = {"armed": False}
        [end] = data_of(feed(stage, in_door(6, 8, 2)))
    assert (end.phase, end.reason, end.everyone, end.frame.seq) == ("end", "unseen", [1], 3)


def test_after_a_restart_others_begin_another_one(tmp_path: Path) -> None:
    """The outbox ends the first one (`lost`), which has an id of its own."""
    incidents = []
    for first in (0, 4):
        with opened(Rules, rules_with(), folder=tmp_path) as stage:
            [start] = data_of(feed(stage, in_door(first, first + 4, 1)))
            incidents.append((start.phase, start.incident))
    assert [phase for phase, _ in incidents] == ["start", "start"]
    assert len(set(incidents)) == 2


def test_each_who_is_in_it_now_is_shown_as_such(tmp_path: Path) -> None:
    rules = {"zones": ZONES, "rules": [{"id": "a", "when": "in door", "hold": "0s", "merge": "1s"}]}
    places = {1: [IN] * 6 + [OUT] * 2, 2: [OUT] * 3 + [IN] * 5}
    shown = []
    with opened(Rules, rules, folder=tmp_path) as stage:
        for seq in range(8):
            feed(stage, [tracks(seq, [(i, places[i][seq], 200.0) for i in places])])
            camera = stage._cameras["cam"]
            shown.append([one.ids for one in camera.firing.now(camera.last.time_ns)])
    assert shown == [[(1,)]] * 3 + [[(1,), (2,)]] * 3 + [[(2,)]] * 2
