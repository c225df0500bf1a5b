from __future__ import annotations

import html
import json

import pytest
from camgraph_test_stages.incident_views import incident
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import stamp
from camgraph.stages.sinks.delivery import syslog_message
from camgraph.stages.sinks.delivery.event_view import EventView, view_of
from camgraph.stages.sinks.delivery.incident_rows import row_of
from camgraph.stages.sinks.delivery.template import VALUES, TemplateText, filled, one_line

EVIDENCE = {
    "conditions": [
        {"text": "lean > 60deg", "left": 74.1, "right": 60.0, "unit": "deg"},
        {"text": "in bed", "holds": False},
    ]
}


def test_values_of_an_incident() -> None:
    view = incident("a", "start", camera="room 3", action="lying_down", evidence=EVIDENCE, people=[{"track_id": 4}])
    text = "{action} on {camera} at {time} ({people}): {why}{zones}"
    assert filled(text, view, "Europe/Berlin") == (
        "lying down on room 3 at 13:00:00 (1): How far the body leans: 74°, and more than 60° is needed"
    )


def test_what_a_rule_is_about() -> None:
    view = incident("a", "start")
    about = {**view.data, "rule": {"id": "fall", "about": "Somebody fell."}}
    assert filled("{about}", EventView(view.event, {**view.body, "data": about}), "UTC") == "Somebody fell."
    assert filled("{about}", view, "UTC") == ""


def test_every_value_of_any_event_is_text() -> None:
    for body in (b"{}", b"[]", b'{"data": {"people": 3, "evidence": [], "duration_s": "x"}, "time": "x"}'):
        view = view_of(Event(stamp(), "1", "", "single", body))
        assert all(isinstance(value(view, "UTC"), str) for value in VALUES.values())


FAR_TIMES = ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00", "1601-01-01T00:00:00Z", "2262-05-01T00:00:00Z")
FAR_TIMES = (*FAR_TIMES, "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-14:00", "10000-01-01T00:00:00Z", "inf", "")


@pytest.mark.parametrize("time", FAR_TIMES)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+14:00", "-12:00"])
def test_far_times_of_other_programs_are_text(time: str, zone: str) -> None:
    data = {"start_time": time, "end_time": time, "duration_s": float("inf")}
    view = view_of(Event(stamp(), "1", "", "single", json.dumps({"time": time, "data": data}).encode()))
    assert all(isinstance(value(view, zone), str) for value in VALUES.values())
    assert all(isinstance(cell, str) for cell in row_of(view, zone))
    assert syslog_message.local(view, "text", facility="local0")
    assert syslog_message.rfc5424(view, "text", facility="local0", host="h", graph="g")


def test_values_are_escaped_and_the_text_is_not() -> None:
    view = incident("a", "start", camera="<script>\x1b[2J {rule}")
    assert filled("<b>{camera}</b> {{x}}", view, "UTC", html.escape) == "<b>&lt;script&gt;\\x1b[2J {rule}</b> {x}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{camra}", "did you mean `camera`"),
        ("{", "a lone {"),
        ("a }", "letter 3"),
        ("{camera.__class__}", "there is no"),
    ],
)
def test_mistakes(text: str, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        TypeAdapter(TemplateText).validate_python(text)


@given(text=st.text("{}ab\n", max_size=20))
def test_any_text_that_is_accepted_can_be_filled(text: str) -> None:
    view = view_of(Event(stamp(), "1", "", "single", b"{}"))
    try:
        TypeAdapter(TemplateText).validate_python(text)
    except ValidationError:
        return
    assert filled(text, view, "UTC") == text.replace("{{", "{").replace("}}", "}")


def test_a_title_is_one_line() -> None:
    assert one_line("fall\r\nBcc: x@example.org") == "fall Bcc: x@example.org"
