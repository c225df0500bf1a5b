from __future__ import annotations

import json
from typing import Any

import pytest
from camgraph_test_stages.incident_views import incident

from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import stamp
from camgraph.stages.sinks.delivery.event_view import EventView, view_of
from camgraph.stages.sinks.delivery.event_words import notice, span, what
from camgraph.stages.sinks.delivery.template import filled
from camgraph.stages.sinks.delivery.trial_event import trial_event


def view(name: str, **data: Any) -> EventView:
    schema = {"dataschema": "urn:camgraph:counter:1"} if name.startswith("counter") else {}
    body = {"type": f"camgraph.{name}", **schema, "data": {"camera": "door", **data}}
    return view_of(Event(stamp(0, "door"), "1", "", "single", json.dumps(body).encode()))


PERIOD = {"entered": 12, "left": 10}


@pytest.mark.parametrize(
    ("event", "title", "told"),
    [
        (incident("a", "start", rule="lying_down", camera="room-3"), "Lying down on room-3", ""),
        (incident("a", "single", camera="room-3"), "Fall on room-3", ""),
        (incident("a", "update", duration_s=9.0), "Fall on cam goes on", ""),
        (incident("a", "end", duration_s=200.2), "Fall on cam is over", "It lasted 3 min 20 s."),
        (
            incident("a", "end", duration_s=8.0, reason="unseen"),
            "Fall on cam is over",
            "The people were seen for 8 s, then went out of sight: how the incident ended is not known.",
        ),
        (view_of(trial_event("ward", "room-3", 1)), "Test on room-3", "This is a test: nothing has happened."),
        (
            view("camera.lost", phase="start", state="lost", why="x"),
            "Camera door is lost",
            "Until it is back, nothing that happens there is noticed.",
        ),
        (view("camera.back", phase="end", state="live", lost_s=7.4), "Camera door is back", "It was away for 7 s."),
        (
            view("camera.ended", phase="end", reason="removed", lost_s=3600),
            "Camera door is no longer waited for",
            "It was away for 1 h.",
        ),
        (view("footage.ready", kind="snapshot", action="fall", file="a.jpg"), "Picture of fall on door is ready", ""),
        (
            view("footage.ready", kind="best", action="fall", file="a.jpg"),
            "Better picture of fall on door is ready",
            "",
        ),
        (view("footage.missing", kind="clip", action="fall", why="x"), "There is no clip of fall on door", ""),
        (
            view("counter.report", counter="in_hall", in_period=PERIOD, inside=2),
            "In hall on door: 12 entered, 10 left",
            "2 inside at the end.",
        ),
        (view("stage.restarted"), "Camgraph.stage.restarted on door", ""),
        (view_of(Event(stamp(), "1", "", "single", b'{"data": {"in_period": 3}}')), "Event on cam", ""),
    ],
)
def test_each_kind_of_event_has_words(event: EventView, title: str, told: str) -> None:
    assert (what(event), notice(event)) == (title, told)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.4, "0 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (7500, "2 h 5 min"),
        (None, ""),
        (True, ""),
        (-1, ""),
        ("x", ""),
    ],
)
def test_spans(seconds: object, told: str) -> None:
    assert span(seconds) == told


def test_reasons_are_words() -> None:
    assert filled("{why}", incident("a", "end", reason="unseen"), "UTC") == "out of sight, so how it ended is not known"
    assert filled("{why}", view("camera.lost", phase="start", why="no answer"), "UTC") == "no answer"


@pytest.mark.parametrize(
    ("zone", "name"),
    [("Europe/Berlin", "13:00:00 CET"), ("UTC", "12:00:00 UTC"), ("+01:00", "13:00:00 UTC+01:00"),
     ("Asia/Dubai", "16:00:00 UTC+04")],
)  # fmt: skip
def test_times_have_their_zone(zone: str, name: str) -> None:
    assert filled("{time} {time_zone}", incident("a", "start"), zone) == name
