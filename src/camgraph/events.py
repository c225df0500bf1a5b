"""Events for programs: a typed view of the line of JSON that every sink gets."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from camgraph.joints import Joint, joint
from camgraph.stages.events import CloudEvent
from camgraph.stages.sinks.handover.parcel import Parcel

Kind = Literal["incident", "camera", "counter", "other"]
_KINDS: dict[str, Kind] = {"incident": "incident", "camera": "camera", "counter": "counter"}
Phase = Literal["start", "update", "end", "single"]
_PHASES: dict[str, Phase] = {"start": "start", "update": "update", "end": "end"}


@dataclass(frozen=True, eq=False)
class EventPerson:
    """A person of an event, in the event's frame.

    `id`: the track id, the same as in `TrackedFrame`; so is `continues`, 0 if there is none. `box`: x1, y1, x2, y2 in
    pixels of the frame, x to the right, y down. `score` in [0, 1]. `keypoints` (K, 3) float64: x, y in pixels of the
    frame, confidence in [0, 1].
    """

    id: int
    box: tuple[float, float, float, float]
    score: float
    keypoints: NDArray[np.float64] = field(repr=False)
    continues: int = 0
    skeleton: str = "coco-17"

    def joint(self, name: str) -> Joint:
        """As `TrackedPerson.joint`."""
        return joint(self.keypoints, self.skeleton, name)


@dataclass(frozen=True, eq=False)
class Event:
    """Something that happened.

    `kind`: `incident` (a rule fired), `camera` (a camera was lost, came back, or is no longer wanted),
    `counter` (its report), or `other` (from a stage of another package). `action`: the action that the rule
    names; `lost`, `back` or `ended` for a camera; the name of a counter.
    `incident_id`: shared by the start, the updates and the end of one incident. `rule`: the rule's id, "" if there is
    none. `time`: the time of the frame, UTC. `duration_s`: the duration so far. `earlier_run`: True if an earlier run
    of the same name left the event unread. `raw`: the line of JSON that every sink gets (CloudEvents 1.0), without the
    newline.
    """

    id: str
    kind: Kind
    phase: Phase
    action: str
    camera: str
    time: datetime
    incident_id: str
    rule: str
    people: tuple[EventPerson, ...]
    duration_s: float
    earlier_run: bool
    raw: bytes = field(repr=False)

    def json(self) -> dict[str, Any]:
        """Return the whole event as plain values."""
        return dict(json.loads(self.raw))

    def incident(self) -> CloudEvent:
        """Return the whole event as a typed model. Raises pydantic.ValidationError if `kind` is not `incident`."""
        return CloudEvent.model_validate_json(self.raw)


def event_of(parcel: Parcel) -> Event:
    """Return the event in a parcel. Fields that a stage of another package leaves out are empty."""
    raw = bytes(parcel.values["body"])
    line: dict[str, Any] = json.loads(raw)
    data = line.get("data")
    data = data if isinstance(data, dict) else {}
    name = str(line.get("type", ""))
    rule = data.get("rule")
    return Event(
        id=str(line.get("id", "")),
        kind=_kind_of(name),
        phase=_PHASES.get(str(data.get("phase")), "single"),
        action=str(data.get("action") or data.get("counter") or name.rpartition(".")[2]),
        camera=str(data.get("camera") or line.get("subject") or parcel.values["camera"]),
        time=_time_of(str(line.get("time", ""))),
        incident_id=str(data.get("incident", "")),
        rule=str(rule.get("id", "")) if isinstance(rule, dict) else "",
        people=_people(data),
        duration_s=_seconds(data.get("duration_s")),
        earlier_run=str(parcel.values["id"]).startswith("before "),
        raw=raw,
    )


def _time_of(text: str) -> datetime:
    """The time of an event; 1970-01-01 if the text is empty or no time."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return datetime(1970, 1, 1, tzinfo=UTC)


def _kind_of(name: str) -> Kind:
    """By the type of an event, such as `camgraph.camera.lost`."""
    ours, _, rest = name.partition(".")
    return _KINDS.get(rest.partition(".")[0], "other") if ours == "camgraph" else "other"


def _people(data: dict[str, Any]) -> tuple[EventPerson, ...]:
    """The people of an event; none if a stage of another package writes people in another form."""
    try:
        return tuple(_person(one, str(data.get("keypoints_format", ""))) for one in data.get("people") or ())
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
        return ()


def _seconds(value: object) -> float:
    """The duration of an event; 0 for none, and for what is no number."""
    try:
        return float(value or 0.0)  # type: ignore[arg-type]  # of another form it raises
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _person(values: dict[str, Any], skeleton: str) -> EventPerson:
    x1, y1, x2, y2 = (float(value) for value in values["bbox"])
    keypoints = np.array(values.get("keypoints") or (), np.float64).reshape(-1, 3)
    return EventPerson(
        int(values["track_id"]),
        (x1, y1, x2, y2),
        float(values["score"]),
        keypoints,
        int(values.get("continues") or 0),
        skeleton,
    )
