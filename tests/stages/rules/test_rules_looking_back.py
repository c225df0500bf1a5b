"""The events of rules that look back in time, as the stage sends them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stages.rules.test_rules import ZONES, Person, run, tracks

from camgraph.pipeline.errors import GraphError
from camgraph.stages.rules.evidence import in_words
from camgraph.stages.rules.language.judge import Evidence
from camgraph.stages.rules.onlooker import Onlooker
from camgraph.stages.rules.rule_set import parse_rules

AWAY: Person = (7, 50.0, 200.0)
INSIDE: Person = (7, 150.0, 200.0)
OTHER: Person = (9, 300.0, 200.0)


def rules(when: str, **keys: str) -> dict[str, object]:
    return {"rules": [{"id": "rule", "when": when, **keys}], "zones": ZONES}


def test_a_sequence_says_when_its_steps_were_done(tmp_path: Path) -> None:
    film = [[AWAY]] * 5 + [[INSIDE]] * 20
    one = rules("first not in door then in door within 1s then in door for 1s")
    start = run(one, [tracks(i, people) for i, people in enumerate(film)], tmp_path)[0]
    assert start.evidence is not None
    parts = {part.text: part.model_dump(exclude_none=True) for part in start.evidence.conditions}
    whole, *steps = parts.values()
    assert whole == {"text": "first not in door then in door within 1s then in door for 1s", "holds": True}
    assert [step["text"] for step in steps] == [
        "step 1: not in door",
        "step 2: in door within 1s",
        "step 3: in door for 1s",
    ]
    assert [(step["left"], step["unit"]) for step in steps] == [(1.2, "s"), (1.1, "s"), (0.0, "s")]
    assert start.start_time == "1970-01-01T00:00:01.600Z"


def test_values_over_a_window_stand_in_the_evidence(tmp_path: Path) -> None:
    film = [tracks(i, [(7, 50.0 + 10 * min(i, 10), 200.0)]) for i in range(20)]
    start = run(rules("change(feet.x, 1s) > 0.5h and since(not in door) > 0s"), film, tmp_path)[0]
    assert start.evidence is not None
    first, second = (part.model_dump(exclude_none=True) for part in start.evidence.conditions)
    assert first == {"text": "change(feet.x, 1s) > 0.5h", "left": 50.0, "right": 30.0, "unit": "px"}
    assert second == {"text": "since(not in door) > 0s", "left": 0.1, "right": 0.0, "unit": "s"}


def test_somebody_lost_is_shown_where_they_were_last_seen(tmp_path: Path) -> None:
    film = [[INSIDE]] * 10 + [[]] * 30 + [[INSIDE]] * 5
    one = rules("lost while in door", hold="0s")
    start, end = run(one, [tracks(i, people) for i, people in enumerate(film)], tmp_path)
    assert (start.people[0].track_id, start.people[0].bbox) == (7, (140.0, 140.0, 160.0, 200.0))
    assert (start.start_time, start.zones) == ("1970-01-01T00:00:01.900Z", ["door"])
    assert (end.end_time, end.reason, end.duration_s) == ("1970-01-01T00:00:03.900Z", "condition", 2.0)
    for event, seq in ((start, 19), (end, 39)):
        assert event.last_seen is not None
        assert (event.frame.seq, event.last_seen.seq) == (seq, 9), "the frame that shows them"
    assert run(rules("lost while in door", lost_after="5s"), [tracks(i, p) for i, p in enumerate(film)], tmp_path) == []


def test_the_lost_whom_a_scene_counts_are_shown_too(tmp_path: Path) -> None:
    film = [[INSIDE, OTHER]] * 10 + [[OTHER]] * 30 + [[INSIDE, OTHER]] * 5
    one = rules("count >= 1", scope="scene", who="lost while in door", hold="0s")
    start, end = run(one, [tracks(i, people) for i, people in enumerate(film)], tmp_path)
    assert [(person.track_id, person.bbox) for person in start.people] == [(7, (140.0, 140.0, 160.0, 200.0))]
    assert [person.track_id for person in end.people] == [7]
    assert start.last_seen is not None
    assert start.last_seen.seq == 9


def test_people_who_are_seen_are_shown_in_the_frame_that_decides(tmp_path: Path) -> None:
    """Also beside somebody who is lost; and hidden heads are those of the frame that shows people."""
    film = [[INSIDE, OTHER]] * 10 + [[OTHER]] * 30
    both = rules("count >= 2", scope="scene", who="lost or score > 0", hold="0s")
    start = run(both, [tracks(i, people) for i, people in enumerate(film)], tmp_path)[0]
    assert start.last_seen is None
    film = [[INSIDE]] * 10 + [[]] * 30
    one = {**rules("lost while in door", hold="0s"), "heads": True}
    start = run(one, [tracks(i, people) for i, people in enumerate(film)], tmp_path)[0]
    assert start.heads is not None
    assert [x1 <= 140 <= x2 for x1, _, x2, _ in start.heads] == [True]


def test_one_rule_after_another_on_the_screen() -> None:
    text = """\
rules:
  - {id: there, when: in door for 0.3s}
  - {id: turns, when: running(there) and velocity(feet.x) > 0px/s}
zones: {door: [[0.25, 0], [0.5, 0], [0.5, 1], [0.25, 1]]}
"""
    onlooker = Onlooker(parse_rules(text, "rules.yaml"))
    seen = [onlooker.judge(tracks(i, [(7, 120.0 + i, 200.0)])) for i in range(8)]
    assert [sorted(one.action for one in frame.firing) for frame in seen[2:4]] == [[], ["there", "turns"]]


UNTIL = {"id": "in", "when": "enters(door)", "until": "not in door for 0.5s", "hold": "0.2s"}


def spans(rule: dict[str, object], film: list[list[Person]], folder: Path) -> list[tuple[str, str, str | None]]:
    """Begin, end and reason of each incident of a film at 10 frames a second."""
    frames = [tracks(i, people) for i, people in enumerate(film)]
    ends = [one for one in run({"rules": [rule], "zones": ZONES}, frames, folder, end=True) if one.end_time]
    return [(one.start_time[17:-1], (one.end_time or "")[17:-1], one.reason) for one in ends]


def test_an_incident_goes_on_until_its_condition(tmp_path: Path) -> None:
    """`when` is true in one frame. Being out for less than `until` asks ends nothing, coming in begins nothing."""
    visit = [[AWAY]] * 3 + [[INSIDE]] * 20 + [[AWAY]] * 3 + [[INSIDE]] * 4 + [[AWAY]] * 20
    assert spans(UNTIL, [*visit, *visit], tmp_path) == [
        ("00.300", "03.400", "condition"),
        ("05.300", "08.400", "condition"),
    ]
    assert [end for _, end, _ in spans({**UNTIL, "until": "score > 0"}, visit, tmp_path)] == ["00.300", "02.600"]


def test_an_incident_ends_if_nobody_is_seen_any_more(tmp_path: Path) -> None:
    film = [[AWAY]] * 3 + [[INSIDE]] * 20 + [[]] * 20
    assert spans({**UNTIL, "gap": "0s"}, film, tmp_path) == [("00.300", "02.200", "unseen")]


def test_an_incident_goes_on_while_until_is_unknown(tmp_path: Path) -> None:
    """Nobody of `run` has joints."""
    film = [[AWAY]] * 3 + [[INSIDE]] * 30
    assert spans({**UNTIL, "until": "nose.y > feet.y"}, film, tmp_path) == [("00.300", "03.200", "end")]


def test_until_of_a_scene_and_of_two_people(tmp_path: Path) -> None:
    film = [[INSIDE, OTHER]] * 5 + [[INSIDE]] * 10 + [[OTHER]] * 10
    scene = {"id": "two", "scope": "scene", "who": "in door", "when": "people > 1", "until": "count == 0", "hold": "0s"}
    assert spans(scene, film, tmp_path) == [("00.000", "01.400", "condition")]
    close = [[INSIDE, (9, 160.0, 200.0)]] * 3 + [[INSIDE, (9, 200.0, 200.0)]] * 5 + [[INSIDE, OTHER]] * 5
    pair = {"id": "two", "scope": "pair", "when": "distance(a.feet, b.feet) < 0.5h", "hold": "0s"}
    assert spans({**pair, "until": "distance(a.feet, b.feet) > 2h"}, close, tmp_path) == [
        ("00.000", "00.700", "condition")
    ]


@pytest.mark.parametrize("name", ["first", "within", "lost", "wrist", "other_knee", "drop"])
def test_words_of_the_grammar_cannot_be_defined(name: str) -> None:
    with pytest.raises(GraphError, match="is a word of the language: choose another name"):
        parse_rules(f"define: {{{name}: lean > 3deg}}\nrules: [{{id: a, when: in door}}]", "rules.yaml")


def test_evidence_in_a_few_words() -> None:
    parts = [
        Evidence("step 1: upright", "ago", (1.25, float("nan"))),
        Evidence("swings(lean) > 2/s", "rate", (2.5, 2.0)),
    ]
    assert in_words(parts) == "step 1: upright (1.25 s ago); swings(lean) > 2/s (2.5 /s)"
