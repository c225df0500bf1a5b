from __future__ import annotations

import re
from typing import Any

import pytest
from camgraph_test_stages.incident_views import incident
from pydantic import TypeAdapter, ValidationError

from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import stamp
from camgraph.stages.sinks.delivery.event_view import view_of
from camgraph.stages.sinks.delivery.selection import Filter, Filters, Selection, names_nobody_has


def selection(only: Any = None, never: Any = None, zone: str = "UTC") -> Selection:
    parse = TypeAdapter(Filters).validate_python
    return Selection(only and parse(only), never and parse(never), zone)


@pytest.mark.parametrize(
    ("only", "fits"),
    [
        ({"rule": "fall"}, True),
        ({"rule": ["lying", "fal*"]}, True),
        ({"rule": "Fall"}, False),
        ({"camera": "room?"}, True),
        ({"camera": "room"}, False),
        ({"severity": "warning"}, True),
        ({"severity": "alarm"}, False),
        ({"phase": ["start", "single"]}, True),
        ({"phase": "end"}, False),
        ({"kind": "incident", "action": "falls"}, True),
        ({"kind": "camera"}, False),
        ({"rule": "fall", "camera": "hall"}, False),
        ([{"rule": "lying"}, {"camera": "room3"}], True),
    ],
)
def test_all_keys_of_one_filter_must_fit(only: Any, fits: bool) -> None:
    view = incident("a", "start", camera="room3", rule="fall", action="falls")
    assert selection(only).fits(view) is fits
    assert selection(None, only).fits(view) is not fits


def test_times_of_day_are_those_of_the_event_in_the_zone() -> None:
    at_noon_utc = incident("a", "start")
    during = {"during": {"from": "13:00", "to": "13:30"}}
    assert selection(during, zone="Europe/Berlin").fits(at_noon_utc)
    assert not selection(during).fits(at_noon_utc)


def test_events_of_other_kinds() -> None:
    lost = view_of(Event(stamp(), "1", "", "start", b'{"type": "camgraph.camera.lost", "data": {"camera": "front"}}'))
    foreign = view_of(Event(stamp(), "2", "", "single", b'{"hello": [1]}'))
    assert (lost.kind, lost.camera, foreign.kind, foreign.camera) == ("camera", "front", "other", "cam")
    assert selection({"kind": "camera"}).fits(lost)
    assert not selection({"severity": "info"}).fits(foreign)


def test_a_picture_that_is_ready_is_no_incident_of_one_moment() -> None:
    body = b'{"type": "camgraph.footage.ready", "data": {"rule": "fall", "action": "fall"}}'
    ready = view_of(Event(stamp(), "1", "", "single", body))
    assert selection({"rule": "fall"}).fits(ready)
    assert not selection({"phase": ["start", "single"]}).fits(ready)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({}, "at least one of kind, camera"),
        ({"severity": "alert"}, "info"),
        ({"rule": []}, "at least 1 item"),
        ({"during": {"from": "8:00", "to": "9:00"}}, "06:30"),
    ],
)
def test_mistakes(wrong: Any, told: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(told)):
        Filter.model_validate(wrong)


def test_names_that_nobody_has() -> None:
    assert names_nobody_has(["room*", "rom3"], ["room3", "hall"]) == [
        "'rom3' fits none of room3, hall; did you mean `room3`?"
    ]
    assert names_nobody_has(None, ["room3"]) == []
