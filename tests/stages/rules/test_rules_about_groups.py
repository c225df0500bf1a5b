"""Rules with `scope: group`, through the stage that judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.stages.rules.test_rules import data_of, run, tracks

from camgraph.pipeline.testing import feed, opened
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.onlooker import Onlooker
from camgraph.stages.rules.rule_set import examined_rules, parse_rules
from camgraph.stages.rules.rules import Rules, RulesSettings

YARD = {"yard": [[0, 0], [0.6, 0], [0.6, 1], [0, 1]]}
GROUP = {"id": "group", "scope": "group", "near": "0.5h", "together": "1s", "hold": "0s"}
"""Everybody is 60 pixels tall: closer than 30 pixels is near."""


def rules(when: str = "count >= 3", **more: Any) -> dict[str, Any]:
    return {"zones": YARD, "rules": [{**GROUP, "when": when, **more}]}


def stand(first: int, last: int, *places: tuple[int, float]) -> list[Tracks]:
    return [tracks(seq, [(track, x, 200.0) for track, x in places]) for seq in range(first, last)]


THREE = [(3, 100.0), (1, 120.0), (2, 140.0)]


def test_a_group_that_stands_together_for_a_while(tmp_path: Path) -> None:
    alone = (9, 300.0)
    items = [*stand(0, 31, *THREE, alone), *stand(31, 60, (3, 20.0), *THREE[1:], alone)]
    start, end = run(rules(**{"for": "1s"}), items, tmp_path, end=True)
    assert (start.phase, start.frame.seq, start.start_time[-6:-1]) == ("start", 20, "1.000")
    assert [one.track_id for one in start.people] == start.everyone == [1, 2, 3]
    assert start.evidence is not None
    assert [(one.left, one.right) for one in start.evidence.conditions] == [(3.0, 3.0)]
    assert (end.reason, end.everyone, end.incident == start.incident) == ("condition", [1, 2, 3], True)


def test_two_groups_have_incidents_of_their_own(tmp_path: Path) -> None:
    items = stand(0, 20, (1, 20.0), (2, 40.0), (5, 300.0), (6, 320.0))
    found = run(rules("count >= 2"), items, tmp_path)
    assert [(data.phase, data.everyone) for data in found] == [("start", [5, 6]), ("start", [1, 2])]
    assert len({data.incident for data in found}) == 2


def test_who_counts_members(tmp_path: Path) -> None:
    """Two of the three are in the yard; `people` are all members."""
    items = stand(0, 20, (1, 220.0), (2, 235.0), (3, 250.0))
    [start] = run(rules("count == 2 and people == 3", who="in yard"), items, tmp_path)
    assert ([one.track_id for one in start.people], start.everyone) == ([1, 2], [1, 2, 3])


def test_a_group_goes_on_while_people_join_and_leave(tmp_path: Path) -> None:
    more = [*THREE, (4, 160.0)]
    items = [*stand(0, 15, *THREE), *stand(15, 40, *more), *stand(40, 60, *more[1:])]
    found = run(rules(update="2s"), items, tmp_path, end=True)
    assert [(data.phase, data.everyone) for data in found] == [
        ("start", [1, 2, 3]),
        ("update", [1, 2, 3, 4]),
        ("update", [1, 2, 4]),
        ("end", [1, 2, 4]),
    ]
    assert len({data.incident for data in found}) == 1


def test_running_is_about_the_members_of_a_group(tmp_path: Path) -> None:
    """Somebody joins and somebody leaves while it runs; another one is alone all the time."""
    alone = (9, 300.0)
    items = [*stand(0, 15, *THREE, (4, 240.0), alone), *stand(15, 35, *THREE, (4, 160.0), alone)]
    items += stand(35, 60, (3, 20.0), *THREE[1:], (4, 160.0), alone)
    found = run(asking("running(group)"), items, tmp_path)
    assert [(data.phase, data.people[0].track_id) for data in found if data.action == "in_it"] == [
        *[("start", 1), ("start", 2), ("start", 3)],
        *[("start", 4), ("end", 3)],
    ]
    pairs = run(asking("running(group)", scope="pair"), stand(0, 15, *THREE, alone), tmp_path)
    assert [data.action for data in pairs] == ["in_it"] * 3 + ["group"]


def asking(when: str, **more: Any) -> dict[str, Any]:
    first = rules()
    return {**first, "rules": [{"id": "in_it", "when": when, "hold": "0s", **more}, *first["rules"]]}


def test_a_reload_keeps_the_groups_of_unchanged_rules(tmp_path: Path) -> None:
    first = rules("count >= 3 for 1s")
    with opened(Rules, first, folder=tmp_path) as stage:
        assert feed(stage, stand(0, 16, *THREE)) == []
        other = {**first, "rules": [*first["rules"], {"id": "more", "when": "score > 9"}]}
        stage.change_settings(RulesSettings.model_validate(other))
        [start] = data_of(feed(stage, stand(16, 30, *THREE)))
    assert start.frame.seq == 20


def test_a_view_of_the_rules_shows_the_members() -> None:
    onlooker = Onlooker(parse_rules("rules: [{id: g, scope: group, when: count > 2, near: 0.5h, together: 1s}]", "r"))
    firing = [onlooker.judge(item).firing for item in stand(0, 12, *THREE)][-1]
    assert [(one.action, one.ids) for one in firing] == [("g", (1, 2, 3))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{id: a, scope: scene, when: count > 1, near: 1h}", "`near` needs `scope: group`, got `scope: scene`"),
        ("{id: a, when: score > 0, together: 1s}", "`together` needs `scope: group`, got `scope: person`"),
        ("{id: a, scope: group, when: count > 1, near: 2}", "expected a distance in heights of people, such as 0.8h"),
        (
            "{id: a, scope: group, when: count > 1, merge: 2s}",
            "`merge` needs `scope: person` or `scope: pair`: a group",
        ),
        ("{id: a, scope: group, when: lean > 60deg}", "a scene has no `lean`"),
        ("{id: a, scope: grop, when: count > 1}", "did you mean `group`?"),
    ],
)
def test_mistakes(text: str, words: str) -> None:
    [problem] = examined_rules(f"rules: [{text}]\n", "r")[1]
    assert words in problem.text
