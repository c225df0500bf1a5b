"""The event as the outside sees it: CloudEvents 1.0 in JSON, one line each.

    {"specversion": "1.0", "id": ..., "source": "camgraph/lobby", "type": "camgraph.incident.start",
     "subject": "front", "time": "2026-01-01T12:00:00.000Z", "datacontenttype": "application/json",
     "dataschema": "urn:camgraph:event:1", "data": {"incident": ..., "phase": "start", "rule": {...}, ...}}

The models below are the format: events are built through them, and `event_schema` is made of them. Unknown values are
left out. The order of the keys is theirs, floats are rounded, and nothing in an event depends on when or how fast it
was made: the same frames give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from camgraph.pipeline.foreign_text import printable_json
from camgraph.pipeline.messages import LONGEST_BODY, Event, EventPhase, Stamp
from camgraph.pipeline.monitoring.camera_states import Change, LossEnd, LossOver
from camgraph.pipeline.monitoring.event_format import EventStatus, EventSummary, Origin
from camgraph.pipeline.stage import AwayState

SCHEMA = "urn:camgraph:event:1"
CAMERA_SCHEMA = "urn:camgraph:camera:1"
COUNTER_SCHEMA = "urn:camgraph:counter:1"
FOOTAGE_SCHEMA = "urn:camgraph:footage:1"
FOOTAGE_TYPES = "camgraph.footage."
"""How the types of events about pictures and clips begin."""
CAMERA_TYPES = "camgraph.camera."
"""How the types of events of cameras begin."""
EndReason = Literal[
    "condition", "unseen", "schedule", "switch", "reload", "end", "error", "removed", "stopped", "epoch", "lost"
]
Clock = Literal["ntp", "wall", "start_at", "metadata", "name", "file"]
Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", description="UTC, RFC 3339")]
Hex = Annotated[str, Field(pattern="^[0-9a-f]+$")]
Traceparent = Annotated[str, Field(pattern="^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$")]
TRACEPARENT = "The trace of the event, as W3C Trace Context; left out unless the graph has `tracing`"
Traced = Callable[[str], str | None]
"""The id of an event -> its `traceparent`."""


class Part(BaseModel):
    """Base of the parts of an event: only the fields that are written here."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Person(Part):
    """Someone whom the event is about, as seen in `frame`, or in `last_seen`."""

    track_id: int = Field(description="The same person in the same run and camera; never used again for another one")
    continues: int | None = Field(
        None,
        description="The track_id of an earlier track that was lost, if this one is likely the same person's: it began "
        "where that person would be by now",
    )
    bbox: tuple[float, float, float, float] = Field(description="x1, y1, x2, y2 in pixels of the frame")
    score: float = Field(description="How sure the detector is, 0 to 1")
    keypoints: list[float] = Field(description="x, y, confidence of one joint after the other, in pixels of the frame")


class RuleName(Part):
    """Which rule it was."""

    id: str = Field(description="Its `id` in the file of rules")
    hash: Hex = Field(
        description="A hash of the rule and of the zones and lines that it uses; it changes if one of them does"
    )
    about: str | None = Field(None, description="What it finds, in words for people")


class FrameName(Part):
    """A frame: for a start the one that decided, for an end the last one that was true."""

    epoch: int = Field(description="Grows with each new connection of a live camera, and with each round of a loop")
    seq: int = Field(description="The number of the frame within its epoch, from 0")
    pts: int | None = Field(None, description="In units of time_base; left out if the source has none")
    time_base: tuple[int, int] = Field(description="Numerator, denominator")
    width: int = Field(description="In pixels")
    height: int = Field(description="In pixels")
    clock: Clock | None = Field(
        None,
        description="Which clock the times come from. Live: the camera's (`ntp`) or this machine's (`wall`). Files: "
        "the date in the graph (`start_at`), in the metadata or in the name; `file`: no date is known, and times count "
        "from 1970",
    )


class Comparison(Part):
    """One part of the rule's condition and its measured value."""

    text: str = Field(description="The part as it stands in the rule, such as `lean > 60deg`")
    left: float | None = Field(None, description="The measured left side; left out if a joint was not seen well enough")
    right: float | None = Field(None, description="The measured right side, likewise")
    unit: Literal["px", "px/s", "s", "deg", "deg/s", "/s"] | None = Field(None, description="The unit of both sides")
    holds: bool | None = Field(
        None, description="Instead of left and right: whether this part was true; left out if that is unknown"
    )
    reported: dict[str, float | str | bool] | None = Field(
        None, description="The values by which a condition in Python explains its answer"
    )


class Evidence(Part):
    """Why the rule fired."""

    conditions: list[Comparison] = Field(
        description="The parts of the condition, with the values compared at the start"
    )
    true_s: float = Field(description="For how many seconds the condition had been judged true")
    visible: float = Field(description="The share of the frames with these people that could be judged, 0 to 1")


class ModelName(Part):
    """The model that found the people."""

    name: str = Field(description="The name of its file")
    sha256: Hex | None = Field(None, description="The hash of its file")
    provider: str | None = Field(None, description="The ONNX Runtime provider that really ran it, such as `cpu`")


class MergedIncident(Part):
    """One of several incidents that a sink has sent as one (its setting `merge`)."""

    incident: Hex = Field(description="The name of the incident")
    rule: str = Field(description="The `id` of the rule that fired")
    action: str = Field(description="The rule's `action`, or its id")


class IncidentData(Part):
    """An incident: who was seen doing what, where and when."""

    incident: Hex = Field(description="The name of the incident: the same for its start, updates and end")
    phase: EventPhase = Field(
        description="Which event of the incident this is; `single` is the only one of its incident"
    )
    rule: RuleName = Field(description="The rule that fired")
    action: str = Field(description="The rule's `action`, or its id")
    severity: Literal["info", "warning", "alarm"] = Field("warning", description="The rule's `severity`")
    schedules: list[str] | None = Field(
        None, description="Of the rule's `during`, those in whose time it began; left out if there is no time of day"
    )
    camera: str = Field(description="The camera's name in the graph")
    people: list[Person] = Field(
        description="The people whom the event is about, as seen in `frame`, or in `last_seen`"
    )
    everyone: list[int] | None = Field(
        None,
        description="With `merge`: the track ids of all people of the incident so far, seen in `frame` or not. With "
        "`scope: group`: those of the members of the group",
    )
    keypoints_format: str = Field(description="The order of the joints, such as coco-17")
    zones: list[str] = Field(description="Zones of the rule in which the feet of one of the people are")
    start_time: Time = Field(description="When the condition began to be true")
    end_time: Time | None = Field(None, description="When it was true for the last time; in the phase `end`")
    duration_s: float = Field(description="Seconds from start_time to end_time, or to this frame")
    reason: EndReason | None = Field(
        None,
        description="Why it ended. `condition`: no longer true. `unseen`: nobody was there to judge. `schedule`: the "
        "rule's time was over. `switch`: a switch of the rule was turned off. `reload`: the rule was changed or "
        "removed. `lost`: the process that judged it died, or the whole run: the next run of live cameras says so. "
        "The others: how the camera ended",
    )
    frame: FrameName
    last_seen: FrameName | None = Field(
        None,
        description="The frame that shows `people`, if `frame` shows none of them, for they are `lost` or `gone`. The "
        "picture of the incident is that of this frame",
    )
    heads: list[tuple[int, int, int, int]] | None = Field(
        None,
        description="The areas of `frame`, or of `last_seen`, that hold the heads of all people, whom the event is "
        "about or not: x1, y1, x2, y2. They are hidden in the picture. Left out if no stage `sink_footage` has "
        "`look: blurred_faces`",
    )
    snapshot: str | None = Field(
        None,
        description="The file that its picture will have, relative to the folder of the graph file; it is there when "
        "the event `camgraph.footage.ready` comes. Left out if no stage `sink_footage` reads these events",
    )
    clip: str | None = Field(None, description="The file that its clip will have, likewise")
    test: bool | None = Field(
        None, description="true: nothing has happened; `camgraph sinks test` sees whether events arrive"
    )
    merged: list[MergedIncident] | None = Field(
        None, description="The incidents that a sink with `merge` has sent as this one, the first 51 of them at most"
    )
    left_out: list[Literal["keypoints", "people", "evidence"]] | None = Field(
        None, description="The parts that a sink has left out because its receiver takes no event as large as this one"
    )
    evidence: Evidence | None = Field(None, description="The measured values that made the rule fire")
    model: ModelName | None = Field(None, description="The model that found the people")


class CloudEvent(Part):
    """One line of events.jsonl."""

    specversion: Literal["1.0"] = "1.0"
    id: Hex = Field(description="The name of this event, the same each time it is delivered: drop repetitions by it")
    source: str = Field(description="camgraph/ and the name of the graph")
    type: str = Field(pattern=r"^camgraph\.incident\.(start|update|end|single)$", description="The phase, spelt out")
    subject: str = Field(description="The camera")
    time: Time = Field(description="The time of the frame")
    traceparent: Traceparent | None = Field(None, description=TRACEPARENT)
    datacontenttype: Literal["application/json"] = "application/json"
    dataschema: Literal["urn:camgraph:event:1"] = "urn:camgraph:event:1"
    data: IncidentData = Field(description="The incident")


class FootageData(Part):
    """What became of the picture or the clip of an incident."""

    incident: Hex = Field(description="The incident that it shows")
    camera: str = Field(description="The camera's name in the graph")
    rule: str = Field(description="The `id` of the rule that fired")
    action: str = Field(description="The rule's `action`, or its id")
    severity: Literal["info", "warning", "alarm"] = Field(description="The rule's `severity`")
    kind: Literal["snapshot", "clip", "best"] = Field(
        description="Which of its files it is about. `best`: a better picture has taken the place of the first one, "
        "in the same file"
    )
    file: str | None = Field(None, description="The file, relative to the folder of the graph file, if it is there")
    bytes: int | None = Field(None, description="Its size")
    sha256: Hex | None = Field(None, description="Its hash")
    seconds: float | None = Field(None, description="The length of a clip")
    width: int | None = Field(None, description="In pixels")
    height: int | None = Field(None, description="In pixels")
    crops: list[str] | None = Field(None, description="The files of the people cut out of the picture, if wanted")
    why: str | None = Field(None, description="Why it is missing or shorter than wanted, in words for people")


class FootageEvent(Part):
    """A picture or clip is ready, or will never be."""

    specversion: Literal["1.0"] = "1.0"
    id: Hex = Field(description="The name of this event, the same each time it is delivered: drop repetitions by it")
    source: str = Field(description="camgraph/ and the name of the graph")
    type: Literal["camgraph.footage.ready", "camgraph.footage.missing"]
    subject: str = Field(description="The camera")
    time: Time = Field(description="The time of the incident's first event")
    datacontenttype: Literal["application/json"] = "application/json"
    dataschema: Literal["urn:camgraph:footage:1"] = "urn:camgraph:footage:1"
    data: FootageData


class LostData(Part):
    """A live camera is away, and was not before."""

    incident: Hex = Field(description="The same in the one event that ends it, `back` or `ended`")
    phase: Literal["start"]
    camera: str = Field(description="The camera's name in the graph")
    state: AwayState = Field(description="The state in the first moment of the loss")
    why: str = Field(description="The reason in words, for people; may be empty")


class BackData(Part):
    """The camera is live again."""

    incident: Hex = Field(description="The same as when it was lost")
    phase: Literal["end"]
    camera: str = Field(description="The camera's name in the graph")
    state: Literal["live"]
    why: str = Field(description="A remark in words, for people; may be empty")
    lost_s: float = Field(ge=0, description="For how many seconds it was away")


class EndedData(Part):
    """The run no longer waits for a camera that is away."""

    incident: Hex = Field(description="The same as when it was lost")
    phase: Literal["end"]
    camera: str = Field(description="The camera's name in the graph")
    reason: LossEnd = Field(
        description="`removed`: it was taken out of the run. `replaced`: it begins anew with other settings, as a new "
        "camera. `stopped`: the run was stopped. `end`, `error`: it ended by itself, or by an error that the run "
        "reports"
    )
    lost_s: float = Field(ge=0, description="For how many seconds it had been away")


class _CameraEvent(Part):
    specversion: Literal["1.0"]
    id: Hex = Field(description="The name of this event, the same each time it is delivered: drop repetitions by it")
    source: str = Field(description="camgraph/ and the name of the graph")
    subject: str = Field(description="The camera")
    time: Time = Field(description="When it was noticed, by the clock of this machine")
    datacontenttype: Literal["application/json"]
    dataschema: Literal["urn:camgraph:camera:1"]


class CameraLost(_CameraEvent):
    """A live camera that was not away before is now."""

    type: Literal["camgraph.camera.lost"]
    data: LostData


class CameraBack(_CameraEvent):
    """A camera that was away is live again."""

    type: Literal["camgraph.camera.back"]
    data: BackData


class CameraEnded(_CameraEvent):
    """Nobody waits any more for a camera that is away."""

    type: Literal["camgraph.camera.ended"]
    data: EndedData


CAMERA_EVENTS: TypeAdapter[CameraLost | CameraBack | CameraEnded] = TypeAdapter(
    Annotated[CameraLost | CameraBack | CameraEnded, Field(discriminator="type")]
)


class CounterNumbers(Part):
    """How many people went each way."""

    rightward: int | None = Field(None, description="Over the line to its right; of a line")
    leftward: int | None = Field(None, description="Over the line to its left; of a line")
    entered: int | None = Field(None, description="Into the zone; of a zone")
    left: int | None = Field(None, description="Out of the zone; of a zone")


class CounterData(Part):
    """The numbers of a counter, before the frame in which the report was due."""

    counter: str = Field(description="Its name in the file of rules")
    camera: str = Field(description="The camera's name in the graph")
    line: str | None = Field(None, description="The line that it counts at")
    zone: str | None = Field(None, description="The zone that it counts in")
    reason: Literal["report", "reset", "end"] = Field(
        description="`report`: the time of `report` has passed. `reset`: the counter begins at zero. `end`: the camera "
        "has ended"
    )
    start_time: Time = Field(
        description="When the period began: at the report before, or with the camera's first frame"
    )
    end_time: Time = Field(description="When it ended")
    inside: int = Field(description="The counter's `inside` at the end of the period")
    in_period: CounterNumbers = Field(description="How many in this period")
    since_reset: CounterNumbers = Field(description="How many since the counter was set to zero")


class CounterReport(Part):
    """A report of a counter that has `report`."""

    specversion: Literal["1.0"] = "1.0"
    id: Hex = Field(description="The name of this event, the same each time it is delivered: drop repetitions by it")
    source: str = Field(description="camgraph/ and the name of the graph")
    type: Literal["camgraph.counter.report"] = "camgraph.counter.report"
    subject: str = Field(description="The camera")
    time: Time = Field(description="The time of the frame")
    traceparent: Traceparent | None = Field(None, description=TRACEPARENT)
    datacontenttype: Literal["application/json"] = "application/json"
    dataschema: Literal["urn:camgraph:counter:1"] = "urn:camgraph:counter:1"
    data: CounterData = Field(description="The numbers")


def event_schema() -> dict[str, Any]:
    """The JSON Schema of an incident's events; `configs/event.schema.json` is this."""
    return _published(CloudEvent.model_json_schema(), SCHEMA, "camgraph event")


def camera_event_schema() -> dict[str, Any]:
    """The JSON Schema of a camera's events; `configs/camera_event.schema.json` is this."""
    return _published(CAMERA_EVENTS.json_schema(), CAMERA_SCHEMA, "camgraph camera event")


def counter_event_schema() -> dict[str, Any]:
    """The JSON Schema of a counter's reports; `configs/counter_event.schema.json` is this."""
    return _published(CounterReport.model_json_schema(), COUNTER_SCHEMA, "camgraph counter event")


def footage_event_schema() -> dict[str, Any]:
    """The JSON Schema of the events about pictures and clips; `configs/footage_event.schema.json` is this."""
    return _published(FootageEvent.model_json_schema(), FOOTAGE_SCHEMA, "camgraph footage event")


def _published(schema: dict[str, Any], name: str, title: str) -> dict[str, Any]:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": name, "title": title}
    return {**head, **{key: value for key, value in schema.items() if key != "title"}}


def schema_text(schema: dict[str, Any]) -> str:
    """A schema as it stands in its file."""
    return json.dumps(schema, indent=2) + "\n"


def digest(*parts: object) -> str:
    """32 hex digits that are the same for the same parts everywhere."""
    text = json.dumps(parts, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def incident_key(site: str, stamp: Stamp, rule: str, ids: Sequence[int], start_ns: int) -> tuple[object, ...]:
    """The values that identify an incident; their `digest` is its name."""
    return (site, stamp.camera, stamp.epoch, rule, list(ids), start_ns)


def utc(wall_ns: int) -> str:
    """UTC to the millisecond, cut off: RFC 3339."""
    seconds, rest = divmod(wall_ns, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest // 1_000_000:03d}Z"


def pixels(value: float) -> float:
    return _rounded(value, 2)


def share(value: float) -> float:
    return _rounded(value, 3)


def _rounded(value: float, digits: int) -> float:
    # + 0.0: no "-0.0"
    return round(float(value), digits) + 0.0


def person(
    track_id: int, box: NDArray[np.float32], score: float, keypoints: NDArray[np.float32], continues: int | None = None
) -> Person:
    """`box` (4,) xyxy and `keypoints` (K, 3) in pixels of the frame; a joint that is no number is one nobody saw."""
    joints = np.where(np.isfinite(keypoints).all(axis=1, keepdims=True), keypoints, 0.0)
    x1, y1, x2, y2 = (pixels(value) for value in box.tolist())
    flat = [
        share(value) if index % 3 == 2 else pixels(value) for index, value in enumerate(joints.reshape(-1).tolist())
    ]
    return Person(track_id=track_id, continues=continues, bbox=(x1, y1, x2, y2), score=share(score), keypoints=flat)


def _untraced(event_id: str) -> None:
    """Of a graph without `tracing`."""


def incident_event(
    stamp: Stamp,
    site: str,
    key: tuple[object, ...],
    data: IncidentData,
    *,
    time: str,
    updates: int,
    traced: Traced = _untraced,
) -> Event:
    """The message for `data`, made from the frame of `stamp`. `updates`: how many came before this one."""
    event_id = digest(*key, data.phase, updates)
    whole = CloudEvent(
        id=event_id,
        source=f"camgraph/{site}",
        type=f"camgraph.incident.{data.phase}",
        subject=stamp.camera,
        time=time,
        traceparent=traced(event_id),
        data=data,
    )
    return Event(stamp, event_id, data.incident, data.phase, _body(whole))


def counter_event(stamp: Stamp, site: str, data: CounterData, traced: Traced = _untraced) -> Event:
    """The message for the report of a counter, made at the frame of `stamp`."""
    key = (site, stamp.camera, stamp.epoch, data.counter, data.reason, stamp.time_ns)
    event_id = digest("counter", *key)
    whole = CounterReport(
        id=event_id,
        source=f"camgraph/{site}",
        subject=stamp.camera,
        time=utc(stamp.wall_ns),
        traceparent=traced(event_id),
        data=data,
    )
    return Event(stamp, event_id, event_id, "single", _body(whole))


def _body(event: CloudEvent | CounterReport | FootageEvent) -> bytes:
    plain = event.model_dump(mode="json", exclude_none=True)
    body = json.dumps(plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return printable_json(body).encode()


def footage_event(
    about: Mapping[str, Any], kind: Literal["snapshot", "clip", "best"], state: Mapping[str, Any]
) -> Event:
    """The message that a file of the incident is ready, or missing. `about`: the first event of the incident.

    `state`: values of `FootageData`, without those of the incident.
    """
    data = about["data"]
    event_id = digest("footage", data["incident"], kind)
    whole = FootageEvent(
        id=event_id,
        source=about["source"],
        type="camgraph.footage.ready" if state.get("file") else "camgraph.footage.missing",
        subject=about["subject"],
        time=about["time"],
        data=FootageData(
            incident=data["incident"],
            camera=data["camera"],
            rule=data["rule"]["id"],
            action=data["action"],
            severity=data.get("severity", "warning"),
            kind=kind,
            **state,
        ),
    )
    stamp = Stamp(data["camera"], 0, 0, 0, 0, 0)
    return Event(stamp, event_id, event_id, "single", _body(whole))


class CloudEvents:
    """Our events as the pipeline asks for them (`pipeline.monitoring.event_format.EventFormat`)."""

    def why_invalid(self, body: bytes) -> str:
        """The mistake in a body that is no JSON object; stages of others may put into it whatever they like."""
        try:
            value = json.loads(body.decode("utf-8"), parse_constant=_refuse)
        except (ValueError, RecursionError):
            return "its body must be JSON in UTF-8"
        return "" if isinstance(value, dict) else "its body must be a JSON object"

    def summary(self, body: bytes) -> EventSummary:
        """Summarise a body as far as it has our form; of others, `camera` and `action` at its top are understood."""
        event = _object(body)
        data = _data_of(event)
        counter = data.get("counter") if event.get("dataschema") == COUNTER_SCHEMA else None
        action = _text(counter or data.get("action") or event.get("action") or event.get("type")) or "event"
        kind = _text(event.get("type"))
        is_footage = kind.startswith(FOOTAGE_TYPES)
        if is_footage:
            action += f": {_text(data.get('kind'))} {kind.removeprefix(FOOTAGE_TYPES)}"
        camera = _text(data.get("camera") or event.get("camera") or event.get("subject"))
        people = data.get("people")
        known = [one.get("track_id") for one in people if isinstance(one, dict)] if isinstance(people, list) else []
        return EventSummary(
            camera=camera,
            action=action,
            begins=counter is None and not is_footage and data.get("phase") not in ("update", "end"),
            shown=EventStatus(
                time=_text(event.get("time")),
                camera=camera,
                action=action,
                phase=_text(data.get("phase") or (data.get("reason", "") if counter else "")),
                people=tuple([one for one in known if isinstance(one, int) and abs(one) < _NO_TRACK][:_MOST_SHOWN]),
            ),
        )

    def lost_end(self, event_id: str, last: bytes) -> bytes:
        """The last event of an incident, as its end: `reason` is `lost`, and nothing is measured for that."""
        event = _object(last)
        data = {**_data_of(event), "phase": "end", "reason": "lost"}
        data.pop("evidence", None)
        end = {**event, "id": event_id, "type": _text(event.get("type")).rpartition(".")[0] + ".end", "data": data}
        try:
            line = _line(end)
        except RecursionError:
            line = b""
        return line if 0 < len(line) <= LONGEST_BODY else _line({**_small(end), "data": _small(data)})

    def stage_restarted(self, origin: Origin, *, stage: str, camera: str, reason: str) -> bytes:
        """`camgraph.stage.restarted`: a stage has lost its state of a camera."""
        data = {"stage": stage, "camera": camera, "reason": reason, "lost": "state"}
        return _line({**_head(origin, "camgraph.stage.restarted", camera), "data": data})

    def camera_changed(self, origin: Origin, incident: str, change: Change | LossOver) -> bytes:
        """A `CameraLost`, `CameraBack` or `CameraEnded`."""
        name, phase, more = _camera_change(change)
        data = {"incident": incident, "phase": phase, "camera": change.camera, **more}
        form = {"datacontenttype": "application/json", "dataschema": CAMERA_SCHEMA}
        return _line({**_head(origin, CAMERA_TYPES + name, change.camera), **form, "data": data})


_MOST_SHOWN = 200
"""Letters of a text, and people: the body of a third party's event may hold anything."""
_NO_TRACK = 1 << 63


def _text(value: object) -> str:
    """As the run counts and shows it; "" for what is no text and no number."""
    return str(value)[:_MOST_SHOWN] if isinstance(value, str | int | float) else ""


def _small(values: Mapping[str, Any]) -> dict[str, Any]:
    """The short texts and numbers among these values, also one level down."""
    plain = {name: value for name, value in values.items() if len(name) <= _MOST_SHOWN}
    short = {name: value for name, value in plain.items() if isinstance(value, dict) or _is_short(value)}
    return {
        name: {key: one for key, one in list(value.items())[:_MOST_SHOWN] if len(key) <= _MOST_SHOWN and _is_short(one)}
        if isinstance(value, dict)
        else value
        for name, value in list(short.items())[:_MOST_SHOWN]
    }


def _is_short(value: object) -> bool:
    return value is None or (isinstance(value, str | int | float) and len(str(value)) <= _MOST_SHOWN)


def _refuse(constant: str) -> Any:
    """NaN and the infinities are none of JSON's, though Python's reader takes them."""
    raise ValueError(constant)


def _object(body: bytes) -> dict[str, Any]:
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _data_of(event: dict[str, Any]) -> dict[str, Any]:
    data = event.get("data")
    return data if isinstance(data, dict) else {}


def _head(origin: Origin, kind: str, camera: str) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": origin.event_id,
        "source": f"camgraph/{origin.graph}",
        "type": kind,
        "subject": camera,
        "time": utc(origin.wall_ns),
    }


def _camera_change(change: Change | LossOver) -> tuple[str, str, dict[str, Any]]:
    """The last word of its type, its phase, and the rest of its data."""
    if isinstance(change, LossOver):
        return "ended", "end", {"reason": change.reason, "lost_s": change.lost_s}
    how = {"state": change.state, "why": change.why}
    return ("lost", "start", how) if change.lost_s is None else ("back", "end", {**how, "lost_s": change.lost_s})


def _line(event: dict[str, Any]) -> bytes:
    return printable_json(json.dumps(event, separators=(",", ":"), ensure_ascii=False)).encode()
