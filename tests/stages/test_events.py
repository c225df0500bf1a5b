"""The format of events."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from camgraph.pipeline.messages import LONGEST_BODY
from camgraph.pipeline.monitoring.camera_states import Change
from camgraph.pipeline.monitoring.event_format import EventStatus
from camgraph.pipeline.monitoring.supervisor_events import SupervisorEvents
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.wire import pack
from camgraph.stages import events

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def data(**changes: object) -> events.IncidentData:
    box, joints = np.array([1.234, 2.345, 30.0, 60.0], np.float32), np.ones((17, 3), np.float32)
    whole: dict[str, object] = {
        "incident": "ab",
        "phase": "start",
        "rule": {"id": "r", "hash": "cd"},
        "action": "waves",
        "camera": "cam",
        "people": [events.person(3, box, 0.87654, joints)],
        "keypoints_format": "coco-17",
        "zones": [],
        "start_time": events.utc(0),
        "duration_s": 0.5,
        "frame": {"epoch": 0, "seq": 5, "pts": 5, "time_base": (1, 10), "width": 640, "height": 480},
    }
    return events.IncidentData.model_validate({**whole, **changes})


def body(**changes: object) -> bytes:
    event = events.incident_event(
        stamp(5), "lobby", ("lobby", "cam"), data(**changes), time=events.utc(10**9), updates=0
    )
    return event.body


def test_one_line_that_is_a_cloud_event() -> None:
    text = body()
    assert b"\n" not in text
    event = json.loads(text)
    assert list(event) == [
        *("specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data"),
    ]
    assert (event["source"], event["type"]) == ("camgraph/lobby", "camgraph.incident.start")
    assert event["time"] == "1970-01-01T00:00:01.000Z"
    assert events.CloudEvent.model_validate_json(text).data.people[0].track_id == 3


def test_same_input_same_bytes_and_other_input_another_id() -> None:
    assert body() == body()
    one, other = (json.loads(body(phase=phase))["id"] for phase in ("start", "end"))
    assert one != other


def test_what_is_not_known_is_left_out() -> None:
    assert not {"end_time", "reason", "evidence", "model"} & set(json.loads(body())["data"])


def test_floats_are_rounded() -> None:
    person = json.loads(body())["data"]["people"][0]
    assert (person["bbox"], person["score"]) == ([1.23, 2.35, 30.0, 60.0], 0.877)
    assert str(events.pixels(-0.001)) == "0.0"


def test_joints_that_are_no_numbers_are_joints_that_nobody_saw() -> None:
    joints = np.array([[1, 2, 0.5], [np.nan, 3, 0.7], [4, np.inf, 0.9]], np.float32)
    person = events.person(1, np.zeros(4, np.float32), 0.5, joints)
    assert person.keypoints == [1, 2, 0.5, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("wall_ns", "text"),
    [(0, "1970-01-01T00:00:00.000Z"), (1_999_999_999, "1970-01-01T00:00:01.999Z"), (-1, "1969-12-31T23:59:59.999Z")],
)
def test_times_are_cut_to_the_millisecond(wall_ns: int, text: str) -> None:
    assert events.utc(wall_ns) == text


def test_the_models_refuse_what_the_schema_refuses() -> None:
    with pytest.raises(ValidationError, match="extra"):
        data(mood="fine")
    with pytest.raises(ValidationError, match="start_time"):
        data(start_time="yesterday")


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("event", events.event_schema()),
        ("camera_event", events.camera_event_schema()),
        ("counter_event", events.counter_event_schema()),
    ],
)
def test_the_published_schemas_are_those_of_the_models(name: str, schema: dict[str, Any]) -> None:
    """Written by `python -c 'from camgraph.stages.events import *; print(end=schema_text(event_schema()))'`."""
    assert (CONFIGS / f"{name}.schema.json").read_text() == events.schema_text(schema)


@pytest.mark.parametrize("lost_s", [None, 2.5])
def test_the_events_of_cameras_are_what_their_schema_says(lost_s: float | None) -> None:
    sent: list[bytes] = []

    class Outbox:
        def send(self, op: str, **values: Any) -> bool:
            sent.append(values["body"])
            return True

    notices = SupervisorEvents("run", "lobby")
    state = "live" if lost_s else "gone"
    notices.camera("capture", Change("front", state, "", "live", 1.0, time.monotonic_ns(), loss=1, lost_s=lost_s))
    notices.send(Outbox(), 1.0)
    [body] = sent
    event = events.CAMERA_EVENTS.validate_json(body)
    assert (event.subject, event.data.state) == ("front", state)
    assert event.model_dump(mode="json") == json.loads(body)


def test_a_summary_has_what_is_counted_and_shown() -> None:
    data = {"camera": "front", "action": "fall", "phase": "update", "people": [{"track_id": 4}, {"track_id": "x"}, 7]}
    summary = events.CloudEvents().summary(json.dumps({"id": "1", "time": "now", "type": "t", "data": data}).encode())
    assert (summary.camera, summary.action, summary.begins) == ("front", "fall", False)
    assert summary.shown == EventStatus("now", "front", "fall", "update", (4,))


def test_events_of_other_forms_are_counted_under_their_camera() -> None:
    summary = events.CloudEvents().summary(b'{"id": "1", "camera": "front", "brightness": 3}')
    assert (summary.camera, summary.action, summary.begins) == ("front", "event", True)
    assert summary.shown.camera == "front"


@given(body=st.binary(max_size=50) | st.from_regex(rb'\{"(data|id|type)": [\[\]\{\}0-9"a]{0,9}\}', fullmatch=True))
def test_any_body_has_a_summary_and_a_lost_end(body: bytes) -> None:
    form = events.CloudEvents()
    assert isinstance(form.summary(body).camera, str)
    end = form.lost_end("7", body)
    assert form.why_invalid(end) == ""
    assert (json.loads(end)["id"], form.summary(end).begins) == ("7", False)


@pytest.mark.parametrize(
    "odd",
    [
        {"data": {"people": [{"track_id": 10**30}], "action": "a" * 10**6}},
        {"data": {"camera": {"a": 1}, "kind": "x" * 10**6}, "type": events.FOOTAGE_TYPES + "x", "time": "t" * 10**6},
        {"action": json.loads("[" * 900 + "]" * 900)},
    ],
)
def test_a_summary_is_small_enough_to_be_reported(odd: dict[str, Any]) -> None:
    summary = events.CloudEvents().summary(json.dumps(odd).encode())
    assert len(pack([summary.camera, summary.action, asdict(summary.shown)])) < 2000


@pytest.mark.parametrize("text", ["x" * 3_999_000, "ü" * 1_999_000])
def test_a_lost_end_is_no_larger_than_an_event_may_be(text: str) -> None:
    data = {"phase": "update", "incident": "i", "camera": "hall", "rule": {"id": "fall"}, "more": {text[:300]: 1}}
    last = json.dumps({"id": "1", "type": "camgraph.incident.update", "data": data, "text": text}, ensure_ascii=False)
    end = events.CloudEvents().lost_end("7", last.encode())
    assert len(end) <= LONGEST_BODY
    assert json.loads(end)["data"]["rule"] == {"id": "fall"}
    assert json.loads(end)["data"]["reason"] == "lost"


def test_a_lost_end_of_an_event_at_the_limit_is_cut_to_its_facts() -> None:
    data = {"phase": "update", "incident": "i", "camera": "hall", "rule": {"id": "fall"}}
    last = json.dumps({"id": "1", "type": "t.update", "data": data, "text": ""}, separators=(",", ":")).encode()
    last = last.replace(b'"text":""', b'"text":"%s"' % (b"x" * (LONGEST_BODY - len(last))))
    assert len(last) == LONGEST_BODY
    end = json.loads(events.CloudEvents().lost_end("7", last))
    assert end == {"id": "7", "type": "t.end", "data": {**data, "phase": "end", "reason": "lost"}}


def test_a_lost_end_keeps_the_incident_without_its_evidence() -> None:
    last = {"type": "camgraph.incident.start", "subject": "a", "data": {"phase": "start", "evidence": {}, "rule": 1}}
    end = json.loads(events.CloudEvents().lost_end("7", json.dumps(last).encode()))
    assert end == {
        "type": "camgraph.incident.end",
        "subject": "a",
        "id": "7",
        "data": {"phase": "end", "rule": 1, "reason": "lost"},
    }
