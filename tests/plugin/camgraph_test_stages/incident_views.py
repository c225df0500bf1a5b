"""Events of incidents as sinks see them, at given seconds after noon."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import stamp
from camgraph.stages.sinks.delivery.event_view import EventView, view_of

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def incident(name: str, phase: Any, *, at_s: float = 0.0, rule: str = "fall", **data: Any) -> EventView:
    """An event of the incident `name`: `incident("a", "start", at_s=3, rule="fall", camera="room3")`."""
    at = (NOON + timedelta(seconds=at_s)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    facts = {"camera": "cam", "action": rule, "severity": "warning", "start_time": at, **data}
    body = {
        "specversion": "1.0",
        "id": f"{name}-{phase}-{at_s:g}",
        "source": "camgraph/test",
        "type": f"camgraph.incident.{phase}",
        "subject": facts["camera"],
        "time": at,
        "datacontenttype": "application/json",
        "data": {**facts, "rule": {"id": rule, "hash": "0"}, "incident": name, "phase": phase},
    }
    event = Event(stamp(0, facts["camera"]), str(body["id"]), name, phase, json.dumps(body).encode())
    return view_of(event)


def event(number: int, **data: Any) -> Event:
    """An event of an incident of its own, so many seconds after noon."""
    return incident(f"{number:04x}", "single", at_s=number, **data).event
