"""The facts by which sinks select, merge and describe an event, read from the body of the event.

Any JSON object is an event, because stages of other packages choose what they write. A missing fact is "".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from camgraph.pipeline.messages import Event
from camgraph.stages.events import CAMERA_TYPES, COUNTER_SCHEMA, FOOTAGE_TYPES

Kind = Literal["incident", "footage", "camera", "counter", "other"]
"""`camera`: lost, back. `footage`: a picture or clip is ready. `other`: about the run itself, or made by others."""
_INCIDENTS = "camgraph.incident."


@dataclass(frozen=True)
class EventView:
    """An event and its `body` as a plain object. `view_of` builds the view."""

    event: Event
    body: Mapping[str, Any]

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The event's `data`; empty if the event has none."""
        data = self.body.get("data")
        return data if isinstance(data, dict) else {}

    @cached_property
    def kind(self) -> Kind:
        name = self._text("type")
        if name.startswith(_INCIDENTS):
            return "incident"
        if name.startswith(FOOTAGE_TYPES):
            return "footage"
        if name.startswith(CAMERA_TYPES):
            return "camera"
        return "counter" if self._text("dataschema") == COUNTER_SCHEMA else "other"

    @property
    def camera(self) -> str:
        return str(self.data.get("camera") or self.event.stamp.camera)

    @property
    def rule(self) -> str:
        rule = self.data.get("rule")
        return str(rule.get("id", "") if isinstance(rule, dict) else rule or "")

    @property
    def about(self) -> str:
        """What the event's rule finds, in words for people."""
        rule = self.data.get("rule")
        return str(rule.get("about") or "") if isinstance(rule, dict) else ""

    @property
    def action(self) -> str:
        return str(self.data.get("action") or self.data.get("counter") or "")

    @property
    def severity(self) -> str:
        return str(self.data.get("severity") or "")

    @property
    def phase(self) -> str:
        """`start`, `update`, `end` or `single`; "" for events without phases: pictures that are ready, and counters."""
        of_others = self.event.phase if self.kind == "other" else ""
        return str(self.data.get("phase") or of_others)

    @property
    def incident(self) -> str:
        return str(self.data.get("incident") or self.event.incident)

    @cached_property
    def wall_ns(self) -> int:
        """The event's time, in nanoseconds since 1970; 0 if the event has none."""
        return _ns_of(self._text("time"))

    @cached_property
    def begun_ns(self) -> int:
        """When the incident began, in nanoseconds since 1970; without an incident, the event's own time."""
        return _ns_of(str(self.data.get("start_time", ""))) or self.wall_ns

    def _text(self, key: str) -> str:
        return str(self.body.get(key, ""))


def _ns_of(time: str) -> int:
    """A time in nanoseconds since 1970; 0 for a text that is no time, and for times beyond 64 bits."""
    try:
        at_ns = int(datetime.fromisoformat(time).timestamp() * 1000) * 1_000_000
    except (ValueError, OverflowError):
        return 0
    return at_ns if abs(at_ns) < 1 << 63 else 0


def view_of(event: Event) -> EventView:
    """Read the body of an event. A body that is no JSON object, which the outbox refuses, has no facts."""
    try:
        body = json.loads(event.body)
    except (ValueError, RecursionError):
        body = {}
    return EventView(event, body if isinstance(body, dict) else {})


def because(condition: Mapping[str, Any]) -> str:
    """One part of an incident's evidence, in the words of the rule: `lean > 60deg: 74.1 deg against 60 deg`."""
    text, unit = str(condition.get("text", "")), str(condition.get("unit", ""))
    if condition.get("holds") is not None:
        return f"{text}: {'true' if condition['holds'] else 'not true'}"
    if "left" not in condition and "right" not in condition:
        return f"{text}: not known"
    left, right = (_measured(condition.get(side), unit) for side in ("left", "right"))
    return f"{text}: {left} earlier" if text.startswith("step ") else f"{text}: {left} against {right}"


def _measured(value: Any, unit: str) -> str:
    return f"{value:g} {unit}".strip() if isinstance(value, int | float) else "?"
