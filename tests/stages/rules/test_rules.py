"""The stage that judges: the events of people who are handed in, and what they depend on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
import structlog
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from pydantic import ValidationError

from camgraph.pipeline.errors import BadItem, GraphError
from camgraph.pipeline.graph import parse_graph, plan_of
from camgraph.pipeline.graph.remarks import remarks_on
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import Clock, End, Event
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.supervision.fleet import Fleet
from camgraph.pipeline.supervision.membership import Membership
from camgraph.pipeline.supervision.requests import Requests
from camgraph.pipeline.system.run_folder import RunFolder
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages import testing
from camgraph.stages.events import CloudEvent, IncidentData
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.rules import Rules, RulesSettings

ZONES = {"door": [[0.25, 0], [0.5, 0], [0.5, 1], [0.25, 1]]}
IN_DOOR = {"rules": [{"id": "in_door", "when": "in door", "hold": "0.2s"}], "zones": ZONES}
Person = tuple[int, float, float]
"""Id, and where the feet are, in a frame of 400 x 300. Everybody is 20 x 60 pixels."""


def tracks(seq: int, people: Sequence[Person] = (), camera: str = "cam", *, epoch: int = 0) -> Tracks:
    boxes = np.array([[x - 10, y - 60, x + 10, y] for _, x, y in people], np.float32).reshape(-1, 4)
    n = len(boxes)
    keypoints = np.dstack([np.tile(boxes[:, None, :2], (1, 17, 1)), np.full((n, 17, 1), 0.9, np.float32)])
    known = {track: box for (track, *_), box in zip(people, boxes, strict=True)}
    return testing.tracks(known, seq, camera, epoch=epoch, frame_size=(400, 300), keypoints=keypoints)


def coming_in() -> list[Tracks]:
    """One person walks through the door."""
    return [tracks(i, [(7, 60.0 + 10 * i, 200.0)]) for i in range(20)]


def data_of(outputs: Sequence[Any]) -> list[IncidentData]:
    """The data of events, all of which must be as the schema says, and as their messages say."""
    result = []
    for event in outputs:
        assert isinstance(event, Event)
        whole = CloudEvent.model_validate_json(event.body)
        assert (whole.id, whole.data.incident, whole.data.phase) == (event.id, event.incident, event.phase)
        assert (whole.subject, whole.type) == (event.stamp.camera, f"camgraph.incident.{event.phase}")
        result.append(whole.data)
    return result


def run(rules: dict[str, Any], items: Sequence[Tracks], folder: Path, **options: Any) -> list[IncidentData]:
    with opened(Rules, rules, folder=folder) as stage:
        return data_of(feed(stage, items, **options))


def test_start_and_end_of_an_incident(tmp_path: Path) -> None:
    start, end = run(IN_DOOR, coming_in(), tmp_path)
    assert (start.phase, end.phase) == ("start", "end")
    assert start.incident == end.incident
    assert (start.action, start.camera, start.zones) == ("in_door", "cam", ["door"])
    assert start.start_time == end.start_time == "1970-01-01T00:00:00.400Z"
    assert (end.end_time, end.duration_s, end.reason) == ("1970-01-01T00:00:01.300Z", 0.9, "condition")
    assert (start.frame.seq, end.frame.seq) == (4, 13)
    assert (start.people[0].track_id, start.people[0].bbox) == (7, (90.0, 140.0, 110.0, 200.0))
    assert start.evidence is not None
    assert start.evidence.conditions[0].model_dump(exclude_none=True) == {"text": "in door", "holds": True}


def test_events_tell_where_all_heads_are_if_asked(tmp_path: Path) -> None:
    """Of the person of the event, of a bystander, and of one who was lost half a second ago, but not of one long gone.

    At the end, those of the frame that the event shows.
    """
    others = [[(1, 380.0, 290.0)], [(2, 340.0, 290.0)], [(3, 300.0, 290.0)]]
    items = [tracks(i, [(7, 60.0 + 10 * i, 200.0), *others[(i >= 1) + (i >= 10)]]) for i in range(20)]
    assert [one.heads for one in run(IN_DOOR, items, tmp_path)] == [None, None]
    start, end = run({**IN_DOOR, "heads": True}, items, tmp_path)
    assert start.frame.seq == 4
    assert end.frame.seq == 13
    assert [[_foot(area) for area in one.heads or []] for one in (start, end)] == [[100, 380, 340], [190, 340, 300]]


def test_heads_of_people_without_a_track_are_told_too(tmp_path: Path) -> None:
    """Such as a person who has just come in, whom the tracker does not follow yet."""
    items = [replace(one, **others(390.0 - 5 * one.stamp.seq)) for one in coming_in()]
    start, end = run({**IN_DOOR, "heads": True}, items, tmp_path)
    assert [[_foot(area) for area in one.heads or []] for one in (start, end)] == [[100, 370], [190, 325]]
    assert all(0 <= x1 < x2 <= 400 and 0 <= y1 < y2 <= 300 for x1, y1, x2, y2 in [*start.heads, *end.heads])


def others(x: float) -> dict[str, Any]:
    found = tracks(0, [(1, x, 290.0)])
    return {"other_boxes": found.boxes, "other_keypoints": found.keypoints}


def _foot(area: tuple[int, int, int, int]) -> int:
    """Where somebody stands: the joints of these people are at the left upper corner of their boxes, 10 pixels away."""
    return round((area[0] + area[2]) / 2) + 10


def test_events_say_what_their_rule_is_about(tmp_path: Path) -> None:
    templates = {"t": {"about": "Somebody is at the door.", "when": "in door"}}
    rules = [
        {"use": "t"},
        {"id": "own", "use": "t", "about": "Wake the porter."},
        {"id": "plain", "when": "in door"},
        {"id": "library", "use": "enters_zone", "with": {"zone": "door"}},
    ]
    found = run({**IN_DOOR, "templates": templates, "rules": rules}, coming_in(), tmp_path)
    assert {one.rule.id: one.rule.about for one in found} == {
        "t": "Somebody is at the door.",
        "own": "Wake the porter.",
        "plain": None,
        "library": "Somebody comes into a zone from outside it.",
    }


def test_a_rule_that_is_told_in_other_words_is_the_same(tmp_path: Path) -> None:
    [one, *_] = run(IN_DOOR, coming_in(), tmp_path)
    rule = {**IN_DOOR["rules"][0], "about": "Wake the porter."}
    [other, *_] = run({**IN_DOOR, "rules": [rule]}, coming_in(), tmp_path)
    assert one.rule.hash == other.rule.hash


def leaning(seq: int, lean_deg: float) -> Tracks:
    """Somebody at the right border, all of whose joints are on a line that leans outwards."""
    at = np.radians(lean_deg)
    item = tracks(seq, [(7, 380.0, 200.0)])
    heights = np.array([58.0, *[58.0] * 4, *[50.0] * 2, *[40.0] * 4, *[30.0] * 2, *[15.0] * 2, *[0.0] * 2])
    places = np.stack([380 + heights * np.sin(at), 200 - heights * np.cos(at)], 1)
    keypoints = np.concatenate([places, np.full((17, 1), 0.9)], 1)[None].astype(np.float32)
    return replace(item, keypoints=keypoints)


@pytest.mark.parametrize(
    ("lenses", "leans"),
    [
        ({}, True),
        ({"tilt": "45deg", "fov": "90deg"}, False),
        ({"cam": {"tilt": "45deg", "fov": "90deg"}}, False),
        ({"*": {"tilt": "45deg", "fov": "90deg"}, "cam": {"tilt": "0deg", "fov": "90deg"}}, True),
        ("learn", True),  # nobody has walked yet
    ],
)
def test_with_a_lens_up_follows_the_place_in_the_picture(tmp_path: Path, lenses: Any, leans: bool) -> None:
    """At the border of a camera that looks down by 45 degrees, who stands leans outwards."""
    rules = {"rules": [{"id": "leaning", "when": "lean > 30deg"}], "lenses": lenses}
    found = run(rules, [leaning(seq, 40.0) for seq in range(10)], tmp_path)
    assert bool(found) == leans
    if found:
        assert found[0].people[0].keypoints[:2] == pytest.approx([380 + 58 * np.sin(np.radians(40)), 155.57], abs=0.1)


def test_a_lens_is_learnt_from_people_who_walk(tmp_path: Path) -> None:
    rules = {"rules": [{"id": "leaning", "when": "lean > 30deg", "once": True}], "lenses": "learn"}
    walk = []
    for seq in range(200):
        x = 250.0 + 140.0 * abs(seq % 50 - 25) / 25
        item = leaning(0, float(np.degrees(np.arctan((x - 200) / 190))))
        shift = np.array([x - 380, 0, x - 380, 0], np.float32)
        keypoints = item.keypoints + np.array([x - 380, 0, 0], np.float32)
        walk.append(replace(item, stamp=stamp(seq, "cam"), boxes=item.boxes + shift, keypoints=keypoints))
    after = [replace(leaning(seq, 40.0), ids=np.array([8])) for seq in range(200, 210)]
    assert [one.people[0].track_id for one in run(rules, [*walk, *after], tmp_path)] == [7], "at first it was level"
    assert [one.people[0].track_id for one in run({**rules, "lenses": {}}, [*walk, *after], tmp_path)][-1] == 8


def test_a_lens_of_a_camera_that_nobody_has_is_a_mistake(tmp_path: Path) -> None:
    settings = RulesSettings.model_validate({"rules": [{"use": "fall"}], "lenses": {"frnt": "learn"}})
    [(path, text)] = Rules.check_cameras(settings, tmp_path, {"front": None})
    assert path == ("lenses", "frnt")
    assert "did you mean `front`" in text


@pytest.mark.parametrize(
    ("lenses", "why"),
    [
        ({"tilt": "45deg"}, "fov"),
        ({"tilt": "80deg", "fov": "90deg"}, "from 0deg to 70deg"),
        ({"tilt": 45, "fov": "90deg"}, "an angle such as 35deg"),
        ({"front": "learnt"}, "learn"),
    ],
)
def test_mistakes_of_lenses(lenses: Any, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        RulesSettings.model_validate({"rules": [{"use": "fall"}], "lenses": lenses})


def test_evidence_is_what_was_measured(tmp_path: Path) -> None:
    rules = {
        "rules": [{"id": "up", "when": "nose.y < 0.5h + 180px - 0.1fh and speed < 9h/s or age > 9s", "for": "0.1s"}]
    }
    [start, _] = run(rules, [tracks(i, [(7, 100.0, 200.0)]) for i in range(7)], tmp_path, end=True)
    assert start.evidence is not None
    nose, speed, age = (part.model_dump(exclude_none=True) for part in start.evidence.conditions)
    assert nose == {"text": "nose.y < 0.5h + 180px - 0.1fh", "left": 140.0, "right": 180.0, "unit": "px"}
    assert speed == {"text": "speed < 9h/s", "left": 0.0, "right": 540.0, "unit": "px/s"}
    assert age == {"text": "age > 9s", "left": 0.5, "right": 9.0, "unit": "s"}
    assert start.evidence.true_s == 0.1


def test_a_joint_that_nobody_saw_has_no_value(tmp_path: Path) -> None:
    item = tracks(0, [(7, 150.0, 200.0)])
    item.keypoints[:, 9, 2] = 0.1
    rules = {**IN_DOOR, "rules": [{"id": "a", "when": "in door or left_wrist.y < 5px"}]}
    [start] = run(rules, [item], tmp_path)
    assert start.evidence is not None
    assert start.evidence.conditions[1].model_dump(exclude_none=True) == {
        "text": "left_wrist.y < 5px", "right": 5.0, "unit": "px",
    }  # fmt: skip


def test_told_once(tmp_path: Path) -> None:
    rules = {**IN_DOOR, "rules": [{"id": "a", "when": "in door", "once": True, "update": "0.1s"}]}
    [single] = run(rules, [tracks(i, [(7, 150.0, 200.0)]) for i in range(9)], tmp_path, end=True)
    assert (single.phase, single.reason, single.end_time) == ("single", None, None)


NIGHT = {
    "schedules": {"night": {"from": "21:00", "to": "06:00"}, "cleaning": {"from": "21:01", "to": "21:02"}},
    "time_zone": "Europe/Berlin",
    "zones": ZONES,
}


def at_night(item: Tracks, begin: str, clock: Clock = "ntp") -> Tracks:
    """The frame at this time of day and as many seconds later as its stream time says."""
    wall_ns = int(datetime.fromisoformat(begin).timestamp()) * 10**9 + item.stamp.time_ns
    return replace(item, stamp=item.stamp._replace(wall_ns=wall_ns, clock=clock))


def someone_from(begin: str, rule: dict[str, Any], folder: Path, **options: Any) -> list[IncidentData]:
    """The events of somebody who is in the door for six seconds."""
    rules = {**NIGHT, "rules": [{"id": "a", "when": "in door", **rule}]}
    return run(rules, [at_night(tracks(i, [(7, 150.0, 200.0)]), begin, **options) for i in range(60)], folder, end=True)


def test_a_rule_for_the_night_begins_and_ends_with_it(tmp_path: Path) -> None:
    start, end = someone_from("2026-11-22T20:59:57+01:00", {"during": "night", "for": "1s"}, tmp_path)
    assert (start.start_time, start.schedules, start.severity) == ("2026-11-22T20:00:00.000Z", ["night"], "warning")
    assert (end.end_time, end.reason) == ("2026-11-22T20:00:02.900Z", "end")
    start, end = someone_from("2026-11-22T05:59:57+01:00", {"during": "night", "severity": "alarm"}, tmp_path)
    assert (end.end_time, end.reason, end.severity) == ("2026-11-22T04:59:59.900Z", "schedule", "alarm")
    assert someone_from("2026-11-22T12:00:00+01:00", {"during": "night"}, tmp_path) == []


def test_a_rule_that_rests_in_the_time_of_another_schedule(tmp_path: Path) -> None:
    rule = {"during": ["night"], "not_during": ["cleaning"], "hold": "0s"}
    incidents = someone_from("2026-11-22T21:00:57+01:00", rule, tmp_path)
    assert [(data.phase, data.reason) for data in incidents] == [("start", None), ("end", "schedule")]
    incidents = someone_from("2026-11-22T21:01:57+01:00", rule, tmp_path)
    assert [(data.phase, data.start_time) for data in incidents] == [
        ("start", "2026-11-22T20:02:00.000Z"),
        ("end", "2026-11-22T20:02:00.000Z"),
    ]


def test_a_file_without_a_date_has_no_time_of_day(tmp_path: Path) -> None:
    """Its frames count from 1970: all rules are judged, so that they can be tried."""
    for rule in ({"during": "night"}, {"not_during": "night"}):
        start, end = someone_from("1970-01-01T12:00:00+01:00", rule, tmp_path, clock="file")
        assert (start.schedules, end.reason) == (None, "end")


def photograph(seq: int, people: Sequence[Person] = ()) -> Tracks:
    item = tracks(seq, people)
    return replace(item, stamp=item.stamp._replace(alone=True))


def test_each_incident_in_a_photograph_is_a_single_one(tmp_path: Path) -> None:
    items = [photograph(0, [(1, 150.0, 200.0)]), photograph(1, [(2, 150.0, 200.0)]), photograph(2, [(3, 10.0, 200.0)])]
    incidents = run(IN_DOOR, items, tmp_path, end=True)
    assert [(data.phase, data.people[0].track_id, data.frame.seq, data.duration_s) for data in incidents] == [
        ("single", 1, 0, 0.0),
        ("single", 2, 1, 0.0),
    ]
    assert len({data.incident for data in incidents}) == 2


def test_what_takes_time_is_never_true_of_photographs(tmp_path: Path) -> None:
    """The same person at the same place, with the same id even: nothing goes on from one to the next."""
    rules = [
        {"id": "long", "when": "score > 0", "for": "1s"},
        {"id": "fast", "when": "speed >= 0h/s"},
        {"id": "old", "when": "age >= 1s"},
    ]
    assert run({"rules": rules}, [photograph(10 * i, [(1, 150.0, 200.0)]) for i in range(10)], tmp_path) == []


def test_a_refused_camera_name_is_never_suggested(tmp_path: Path) -> None:
    """It counts as the name that is suggested for it, as which it will come back."""
    rules = "[{id: a, when: score > 0, cameras: [Zimmer 3, Zimmer-3, Zimmer-4]}]"
    text = f"""
version: 1
cameras:
  Zimmer 3: {{url: room.mp4}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture}}
  infer: {{use: infer, from: prepare, with: {{model: pose.onnx}}}}
  people: {{use: decode, from: infer}}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{rules: {rules}}}}}
"""
    with pytest.raises(GraphError) as caught:
        parse_graph(text, "g.yaml", base_folder=tmp_path, environ={})
    reported = [str(problem) for problem in caught.value.problems if "Zimmer" in str(problem)]
    assert [line.partition("; ")[2].partition(" (")[0] for line in reported] == ["did you mean `Zimmer-3`?"] * 3, (
        reported
    )


def test_check_says_which_rules_photographs_cannot_fulfil(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        "version: 1\nrules:\n"
        "  - {id: long, when: score > 0.5, for: 2s}\n"
        "  - {id: fast, when: speed > 1h/s}\n"
        "  - {id: seen, when: score > 0.5}\n"
        "  - {id: elsewhere, when: score > 0.5, for: 2s, cameras: [film]}\n"
    )
    from_file = RulesSettings(file="rules.yaml")
    assert list(Rules.remarks_alone(from_file, tmp_path, ["photos"])) == [
        "the rule long cannot be true of photos: it asks for `for: 2s`, and photographs are judged one by one",
        "the rule fast asks for `speed`, and nothing moves in the photographs of photos",
    ]


def test_check_says_on_which_rules_nobody_should_rely(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        "version: 1\n"
        "templates:\n"
        "  limps: {when: speed > 1h/s, caution: tried on one person}\n"
        "  kicking: {when: speed > 1h/s}\n"
        "rules: [{use: limps}, {id: hits, use: punching}, {use: kicking}, {use: lying}, {use: jumping, caution: ''}]\n"
    )
    remarks = list(Rules.remarks(RulesSettings(file="rules.yaml"), tmp_path, {"front": None}))
    cautions = [one for one in remarks if "rely" in one]
    assert cautions[0].endswith("do not rely on the rule limps: tried on one person")
    assert "do not rely on the rule hits: all 7 that it told" in cautions[1]
    assert len(cautions) == 2


def test_a_rule_says_how_many_frames_it_needs(tmp_path: Path) -> None:
    own = {"id": "blinks", "when": "score > 0.5", "least_fps": 20, "cameras": ["front"]}
    rules = RulesSettings.model_validate({"rules": [{"use": "waving"}, {"use": "hands_up"}, own]})
    assert list(Rules.remarks_on_rates(rules, tmp_path, {"front": 5.0, "side": 7.5, "door": 25.0})) == [
        "the rule waving needs 8 frames a second, or it misses most: front brings 5",
        "the rule blinks needs 20 frames a second, or it misses most: front brings 5",
    ]


def test_the_log_warns_of_a_camera_with_too_few_frames(tmp_path: Path) -> None:
    rules = {"rules": [{"use": "waving"}, {"use": "pointing"}]}
    with structlog.testing.capture_logs() as logs:
        run(rules, [tracks(i, epoch=i // 110) for i in range(220)], tmp_path)
    [warning] = [line for line in logs if line["event"] == "too_few_frames"]
    assert warning["what"] == "the rule pointing needs 12 frames a second, or it misses most: cam brings 10"


def test_too_few_frames_for_a_rule_are_a_trouble(tmp_path: Path) -> None:
    """Of the camera, so that nobody trusts a rule that cannot see."""
    with opened(Rules, {"rules": [{"use": "waving"}]}, folder=tmp_path) as stage:
        troubles = stage.context.troubles
        feed(stage, [tracks(i * 4) for i in range(60)])
        assert troubles["cam"] == "the rule waving needs 8 frames a second, or it misses most: cam brings 2.5"
        feed(stage, [tracks(240 + i) for i in range(160)])
        assert troubles == {}
        feed(stage, [tracks(400 + i * 4) for i in range(60)])
        assert "cam" in troubles
        feed(stage, [tracks(1, epoch=1)])
        assert troubles == {}, "another epoch begins anew"


def test_updates_have_ids_of_their_own(tmp_path: Path) -> None:
    rules = {**IN_DOOR, "rules": [{"id": "a", "when": "in door", "update": "0.2s"}]}
    with opened(Rules, rules, folder=tmp_path) as stage:
        events = feed(stage, [tracks(i, [(7, 150.0, 200.0)]) for i in range(7)], end=True)
    assert [event.phase for event in events] == ["start", "update", "update", "update", "end"]
    assert len({event.id for event in events}) == 5
    assert len({event.incident for event in events}) == 1


@pytest.mark.parametrize("reason", ["end", "error", "stopped"])
def test_the_end_of_a_camera_ends_its_incidents(tmp_path: Path, reason: Any) -> None:
    with opened(Rules, IN_DOOR, folder=tmp_path) as stage:
        feed(stage, [tracks(0, [(7, 150.0, 200.0)]), tracks(1)])
        [end] = data_of(list(stage.finish("cam", End(stamp(1), reason))))
        assert (end.phase, end.reason, end.frame.seq) == ("end", reason, 0)
        assert list(stage.finish("cam", End(stamp(1)))) == []


def test_a_new_epoch_ends_them_too_and_forgets(tmp_path: Path) -> None:
    items = [tracks(0, [(7, 150.0, 200.0)]), tracks(50, [(7, 150.0, 200.0)], epoch=1)]
    with opened(Rules, IN_DOOR, folder=tmp_path) as stage:
        events = feed(stage, items)
    start, end, again = data_of(events)
    assert [event.stamp.epoch for event in events] == [0, 1, 1]
    assert (end.phase, end.reason, end.frame.epoch) == ("end", "epoch", 0)
    times = [CloudEvent.model_validate_json(event.body).time for event in events if isinstance(event, Event)]
    assert times[0] == times[1] < times[2], "not when the camera came back"
    assert again.phase == "start"
    assert again.incident != start.incident


def test_model_and_clock_are_told_where_they_are_known(tmp_path: Path) -> None:
    known = {"model": {"name": "movenet", "sha256": "0" * 64, "provider": "cpu"}, "clocks": {"cam": "file"}}
    [start] = run({**IN_DOOR, **known}, [tracks(0, [(7, 150.0, 200.0)])], tmp_path)
    assert start.model is not None
    assert start.model.provider == "cpu"
    assert start.frame.clock == "file"


@pytest.mark.parametrize(
    ("message", "written", "expected"),
    [("ntp", {}, "ntp"), ("", {}, None), ("wall", {"cam": "ntp"}, "ntp"), ("wall", {"other": "ntp"}, "wall")],
)
def test_clocks_setting_overrides_frame_clock(
    tmp_path: Path, message: str, written: dict[str, str], expected: str | None
) -> None:
    item = tracks(0, [(7, 150.0, 200.0)])
    item = replace(item, stamp=item.stamp._replace(clock=message))
    [start] = run({**IN_DOOR, "clocks": written}, [item], tmp_path)
    assert start.frame.clock == expected


def test_outbox_end_of_lost_incident_matches_schema(tmp_path: Path) -> None:
    with opened(Rules, IN_DOOR, folder=tmp_path) as stage:
        [start] = feed(stage, [tracks(0, [(7, 150.0, 200.0)])])
    settings = {"path": str(tmp_path / "outbox.sqlite"), "sinks": {"log": []}}
    with opened(Outbox, settings, folder=tmp_path, stage="outbox") as outbox:
        assert isinstance(outbox, Outbox)
        outbox.accept([Item("cam", Key(0, 0, 0), start, "actions")])
        outbox.end_lost("actions", ["cam"], 1)
        begun, ended = data_of([event for _, event in outbox.pull("log", 9)])
    assert (ended.incident, ended.phase, ended.reason) == (begun.incident, "end", "lost")
    assert ended.people == begun.people


def test_rules_of_a_file_are_those_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(json.dumps(IN_DOOR))
    items = [tracks(i, [(7, 60.0 + 10 * i, 200.0)]) for i in range(20)]
    assert run({"file": "rules.yaml"}, items, tmp_path) == run(IN_DOOR, items, tmp_path)


def test_a_bad_item_leaves_nothing_behind(tmp_path: Path) -> None:
    bad = tracks(1, [(7, 150.0, 200.0)])
    bad.boxes[0, 0] = np.inf
    with opened(Rules, IN_DOOR, folder=tmp_path) as stage:
        with pytest.raises(BadItem, match="nonfinite"):
            list(stage.process([tracks(0, [(7, 150.0, 200.0)]), bad]))
        assert len(feed(stage, [tracks(0, [(7, 150.0, 200.0)])])) == 1


def test_other_skeletons_are_judged_by_their_boxes(tmp_path: Path) -> None:
    odd = replace(tracks(0, [(7, 150.0, 200.0)]), keypoints=np.ones((1, 0, 3), np.float32), skeleton="none")
    rules = {**IN_DOOR, "rules": [{"id": "a", "when": "in door"}, {"id": "b", "when": "nose.y > 0px"}]}
    [start] = run(rules, [odd], tmp_path)
    assert (start.rule.id, start.keypoints_format, start.people[0].keypoints) == ("a", "none", [])


def test_a_file_that_is_named_as_rules_is_told_where_it_belongs() -> None:
    with pytest.raises(ValidationError, match=r"for a file, write `file: ward\.yaml`"):
        RulesSettings.model_validate({"rules": "ward.yaml"})


def test_mistakes_are_found_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("rules:\n  - {id: a, when: in dor}\n")
    with pytest.raises(GraphError, match=r"rules\.yaml:2:22: rules\[0\]\.when: there is no zone `dor`"):
        list(Rules.check(Rules.settings_type.model_validate({"file": "rules.yaml"}), tmp_path))
    inline = Rules.settings_type.model_validate({"rules": [{"id": "a", "when": "in dor"}]})
    [(path, text)] = Rules.check(inline, tmp_path)
    assert path == ("rules", 0, "when")
    assert "there is no zone `dor`" in text
    with pytest.raises(ValidationError, match="expected either"):
        Rules.settings_type.model_validate({})
    (tmp_path / "rules.yaml").write_text("rules:\n  - {id: a, when: score > 0.1}\n")
    both = Rules.settings_type.model_validate({"file": "rules.yaml", **IN_DOOR})
    assert sorted(path for path, _ in Rules.check(both, tmp_path)) == [("rules",), ("zones",)]


GRAPH = """\
version: 1
cameras: {front: {url: clip.mp4}}
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: capture}
  infer: {use: infer, from: prepare, with: {model: model.onnx}}
  people: {use: decode_yolo_pose, from: infer}
  tracks: {use: track, from: people}
  one: {use: rules, from: tracks, with: {file: rules.yaml}}
  other:
    use: rules
    from: tracks
    with:
      rules:
        - {id: a, when: nose.y < 1px}
        - {id: b, when: in dor}
  log: {use: sink_jsonl, from: [one, other], with: {path: events.jsonl}}
"""


def test_a_graph_tells_the_mistakes_of_its_rules_at_their_places(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("rules:\n  - {id: a, when: in dor}\n  - {id: b, wen: in dor}\n")
    with pytest.raises(GraphError) as caught:
        parse_graph(GRAPH, "graph.yaml", base_folder=tmp_path)
    reported = [str(problem) for problem in caught.value.problems]
    for begin in (f"{tmp_path}/rules.yaml:2:22: ", f"{tmp_path}/rules.yaml:3:5: ", f"{tmp_path}/rules.yaml:3:13: "):
        assert any(line.startswith(begin) for line in reported), (begin, reported)
    assert any(line.startswith("graph.yaml:16:25: stages.other.with.rules[1].when: ") for line in reported), reported


def test_rules_for_unknown_cameras_are_mistakes(graph: str, tmp_path: Path) -> None:
    rules = "rules:\n  - {id: a, when: score > 0.5, cameras: [frnt]}\n"
    (tmp_path / "rules.yaml").write_text(rules)
    with pytest.raises(GraphError, match=r"rules\.yaml:2:42: .* no camera .* `frnt`; did you mean `front`\?") as caught:
        parse_graph(graph, "graph.yaml", base_folder=tmp_path)
    assert len(caught.value.problems) == 1
    # The run has this camera besides those of the file: it was added by command.
    assert parse_graph(graph, "graph.yaml", base_folder=tmp_path, further=["frnt"])
    inline = graph.replace(
        "{file: rules.yaml}", "{rules: [{id: a, when: score > 0.5, cameras: [frnt]}], clocks: {fron: ntp}}"
    )
    with pytest.raises(GraphError) as caught:
        parse_graph(inline, "graph.yaml", base_folder=tmp_path)
    assert [str(problem).split(": ")[1] for problem in caught.value.problems] == [
        "stages.one.with.rules[0].cameras[0]",
        "stages.one.with.clocks.fron",
    ]


def test_a_camera_that_is_added_to_a_run_fits_its_rules(
    graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "rules.yaml").write_text(
        "zones: {all: [[0, 0], [600, 0], [600, 300]]}\n"
        "other_cameras: [room-3]\n"
        "rules:\n  - {id: a, when: in all, cameras: [front, room-3]}\n"
    )
    plan = plan_of(parse_graph(graph, "graph.yaml", base_folder=tmp_path, name=f"rules{os.getpid()}"))
    # Whatever the file says meanwhile: the run goes by its rules of the start.
    (tmp_path / "rules.yaml").write_text("rules: []\n")
    folder = RunFolder(plan.graph)
    run = Mock()
    members = Membership(plan, Fleet(plan, folder, run), structlog.get_logger())
    requests = Requests(run, members, structlog.get_logger())

    def add(camera: str, size: list[int]) -> dict[str, Any]:
        return requests.answer({"op": "add", "camera": camera, "values": {"url": "clip.mp4"}, "size": size})

    try:
        assert "lies outside of the frames of `room-3`, which are 320 x 240" in add("room-3", [320, 240])["error"]
        assert add("room-3", [640, 480])["remarks"] == []
        assert add("room3", [640, 480])["remarks"] == ["one: no rule is for the camera room3; did you mean `room-3`?"]
    finally:
        folder.close()


def test_a_camera_is_added_after_one_with_own_zones_went(
    graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    corners = [[0, 0], [1, 0], [1, 1]]
    zones = {"door": {"front": corners, "*": corners}}
    rules = [{"id": "a", "when": "in door"}, {"id": "b", "when": "score > 0.5", "cameras": ["front"]}]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"zones": zones, "rules": rules}))
    two = graph.replace("{front: {url: clip.mp4}}", "{front: {url: clip.mp4}, yard: {url: clip.mp4}}")
    plan = plan_of(parse_graph(two, "graph.yaml", base_folder=tmp_path, name=f"gone{os.getpid()}"))
    folder = RunFolder(plan.graph)
    run = Mock()
    requests = Requests(run, Membership(plan, Fleet(plan, folder, run), structlog.get_logger()), structlog.get_logger())

    def ask(op: str, camera: str, **more: Any) -> dict[str, Any]:
        return requests.answer({"op": op, "camera": camera, **more})

    try:
        assert ask("remove", "front") == {"ok": True}
        assert ask("add", "hall", values={"url": "clip.mp4"}, size=[640, 480]) == {"ok": True, "remarks": []}
    finally:
        folder.close()


def test_a_zone_outside_of_live_frames_is_warned_of(tmp_path: Path) -> None:
    zones = {"door": {"cam": [[0, 0], [5000, 0], [5000, 5000]]}}
    rules = {"zones": zones, "rules": [{"id": "a", "when": "in door"}]}
    with structlog.testing.capture_logs() as logs:
        run(rules, [tracks(0, [(1, 100, 200)]), tracks(1, [(1, 100, 200)])], tmp_path)
    [warning] = [line for line in logs if line["event"] == "outside_of_frame"]
    assert warning["what"].startswith("zones.door.cam[1]: (5000, 0) lies outside of the frames of `cam`")


def test_check_says_which_rules_need_more_frames_than_max_fps(graph: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("version: 1\nrules: [{use: waving}, {use: lying}]\n")
    few = graph.replace("{url: clip.mp4}", "{url: 'rtsp://127.0.0.1/x', max_fps: 3}")
    remarks = list(remarks_on(parse_graph(few, "graph.yaml", base_folder=tmp_path)))
    assert "one: the rule waving needs 8 frames a second, or it misses most: front brings 3" in remarks
    assert not any("frames a second" in one for one in remarks_on(parse_graph(graph, "g.yaml", base_folder=tmp_path)))


def filled(graph: str, folder: Path) -> Any:
    """The settings of the stage `one`, as its process gets them."""
    (folder / "rules.yaml").write_text(json.dumps(IN_DOOR))
    plan = plan_of(parse_graph(graph, "graph.yaml", base_folder=folder))
    [stage] = [stage for process in plan.processes for stage in process.stages if stage.name == "one"]
    return Rules.settings_type.model_validate(dict(stage.settings))


@pytest.fixture
def graph(tmp_path: Path) -> str:
    """A rules stage behind a model that exists."""
    output_shape = [1, 56, 84]
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("RandomUniform", [], ["said"], shape=output_shape)],
            "looks like YOLO-pose",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 64, 64])],
            [helper.make_tensor_value_info("said", TensorProto.FLOAT, output_shape)],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(model, str(tmp_path / "model.onnx"))
    (tmp_path / "clip.mp4").touch()
    return GRAPH[: GRAPH.index("  other:")] + "  log: {use: sink_null, from: one}\n"


def test_what_events_say_of_the_model_follows_from_the_graph(graph: str, tmp_path: Path) -> None:
    found = filled(graph, tmp_path)
    digest = hashlib.sha256((tmp_path / "model.onnx").read_bytes()).hexdigest()
    assert found.model.model_dump() == {"name": "model.onnx", "sha256": digest, "provider": "cpu"}
    assert found.clocks == {}


def test_restart_keeps_the_rules_of_the_run(graph: str, tmp_path: Path) -> None:
    found = filled(graph, tmp_path)
    (tmp_path / "rules.yaml").write_text("rules: [{id: other, when: in nowhere")
    with opened(Rules, found.model_dump(by_alias=True, exclude_unset=True), folder=tmp_path) as stage:
        assert [ready.definition.id for ready in stage._rules.of_camera("front")] == ["in_door"]


@pytest.mark.parametrize("processes", ["separate", "compact", "one"])
def test_it_is_the_same_however_the_graph_is_placed(graph: str, tmp_path: Path, processes: str) -> None:
    assert filled(f"processes: {processes}\n{graph}", tmp_path) == filled(graph, tmp_path)


def test_of_several_providers_none_is_claimed_to_run(graph: str, tmp_path: Path) -> None:
    several = graph.replace("{model: model.onnx}", "{model: model.onnx, providers: [cuda, cpu]}")
    assert filled(several, tmp_path).model.provider is None


def test_model_is_unnamed_if_there_are_several(graph: str, tmp_path: Path) -> None:
    two = graph.replace("from: infer}", "from: [infer, second]}").replace(
        "  people:", "  second: {use: infer, from: prepare, with: {model: model.onnx}}\n  people:"
    )
    assert filled(two, tmp_path).model is None


def test_what_somebody_wrote_stays(graph: str, tmp_path: Path) -> None:
    own = graph.replace("{file: rules.yaml}", "{file: rules.yaml, model: {name: mine}, clocks: {front: ntp}}")
    found = filled(own, tmp_path)
    assert (found.model.model_dump(exclude_none=True), found.clocks) == ({"name": "mine"}, {"front": "ntp"})


MANY = {
    "zones": ZONES,
    "lines": {"gate": {"from": [0.4, 0], "to": [0.4, 1]}},
    "rules": [
        {"id": "in_door", "when": "in door", "for": "0.2s"},
        {"id": "gate", "when": "crosses(gate)", "once": True},
        {"id": "pair", "scope": "pair", "when": "distance(a.feet, b.feet) < 0.8h", "cooldown": "0.3s"},
        {"id": "crowd", "scope": "scene", "when": "count >= 2", "who": "not in door", "update": "0.2s"},
        {"id": "missed", "scope": "scene", "when": "count >= 1", "who": "lost or gone", "lost_after": "0.3s"},
    ],
}
people = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 400).map(float)), max_size=4, unique_by=lambda p: p[0])
stories = st.lists(people, max_size=14)


@settings(max_examples=60)
@given(stories, stories, st.integers(1, 9), st.data())
def test_a_camera_knows_only_itself(tmp_path_factory: Any, one: Any, other: Any, batch: int, data: Any) -> None:
    """Byte for byte: whatever the batches are, and whatever another camera sees in between."""
    folder = tmp_path_factory.getbasetemp()
    mine = [tracks(i, [(t, x, 200.0) for t, x in frame], "a") for i, frame in enumerate(one)]
    theirs = [tracks(i, [(t, x, 200.0) for t, x in frame], "b") for i, frame in enumerate(other)]
    turns = data.draw(st.permutations([*"a" * len(mine), *"b" * len(theirs)]))
    queues = {"a": iter(mine), "b": iter(theirs)}
    mixed = [next(queues[camera]) for camera in turns]
    with opened(Rules, MANY, folder=folder, cameras=("a", "b")) as stage:
        together = [event.body for event in feed(stage, mixed, batch=batch, end=True) if event.stamp.camera == "a"]
    with opened(Rules, MANY, folder=folder, cameras=("a",)) as stage:
        alone = feed(stage, mine, end=True)
    assert together == [event.body for event in alone]
    data_of(alone)
    assert len({event.id for event in alone}) == len(alone)
    for incident in {event.incident for event in alone}:
        phases = [event.phase for event in alone if event.incident == incident]
        assert phases == ["single"] or (phases[0], phases[-1]) == ("start", "end")
        assert set(phases[1:-1]) <= {"update"}


@pytest.mark.parametrize("when", ["nose.y > 0.5fh", "distance(nose, hips) > 1h", "usual(nose.y, 2s) > 1px"])
def test_a_value_without_end_is_left_out(tmp_path: Path, when: str) -> None:
    items = [tracks(i, [(7, 150.0, 200.0)]) for i in range(3)]
    for item in items:
        item.keypoints[0, 0, :2] = np.inf
    [start] = run({"rules": [{"id": "a", "when": when}]}, items, tmp_path)
    assert start.evidence is not None
    assert [(one.left, one.right is None) for one in start.evidence.conditions] == [(None, False)]


def test_what_is_told_once_is_forgotten_without_a_viewer(tmp_path: Path) -> None:
    once = {"rules": [{"id": "there", "when": "score > 0", "once": True}]}
    with opened(Rules, once, folder=tmp_path) as stage:
        feed(stage, [tracks(i, [(i, 150.0, 200.0)]) for i in range(60)])
        assert len(stage._cameras["cam"].firing._known) == 20


def test_an_event_says_whom_a_new_track_goes_on(tmp_path: Path) -> None:
    story = [tracks(i, [(7, 150, 200), (8, 120, 200)]) for i in range(6)]
    for item in story:
        item.continues[:] = (3, 0)
    with opened(Rules, IN_DOOR, folder=tmp_path) as stage:
        events = data_of(feed(stage, story))
    assert {(one.people[0].track_id, one.people[0].continues) for one in events} == {(7, 3), (8, None)}


def test_an_event_says_whom_somebody_lost_went_on(tmp_path: Path) -> None:
    story = [tracks(i, [(7, 150, 200), (8, 120, 200)] if i < 6 else []) for i in range(20)]
    for item in story[:6]:
        item.continues[:] = (3, 0)
    events = run({"rules": [{"id": "a", "when": "lost"}]}, story, tmp_path)
    assert [(one.people[0].track_id, one.people[0].continues) for one in events] == [(7, 3), (8, None)]


def test_a_text_of_rules_in_the_graph_is_refused(tmp_path: Path) -> None:
    """It would be judged under the name of the file, which a variable may give."""
    graph = """
    version: 1
    name: site
    cameras: {front: {url: clip.mp4}}
    stages:
      capture: {use: capture}
      tracks: {use: track, from: capture}
      actions: {use: rules, from: tracks, with: {file: "${NAME}", text: "[1e9"}}
    """
    with pytest.raises(GraphError) as caught:
        parse_graph(graph, "graph.yaml", base_folder=tmp_path, environ={"NAME": "hunter2"})
    assert "stages.actions.with.text: it is filled in by itself" in str(caught.value)
    assert "hunter2" not in str(caught.value)
