"""The keys of events, from the models that their JSON Schemas are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stages.events import camera_event_schema, counter_event_schema, event_schema, footage_event_schema
from tools.reference.markdown import code, sentence, table
from tools.reference.schema import Schema, value_of

_HEAD = ("key", "value", "always", "meaning")


def event_page() -> Iterator[str]:
    incidents, cameras = event_schema(), camera_event_schema()
    yield "# Reference: events"
    yield ""
    yield "Every key of an event. An event is a [CloudEvents 1.0](https://cloudevents.io) object in JSON, on one line."
    yield "[The rule language](../rules.md#events) explains incidents. [Operations](../operations.md#events-of-cameras)"
    yield "has the events of cameras. *Always*: whether each event has the key; one that is not known is left out."
    yield from ("", "## Incidents", "")
    yield "`camgraph.incident.start`, `.update`, `.end` and `.single`: what people do. JSON Schema:"
    yield "[`configs/event.schema.json`](../../configs/event.schema.json)."
    yield ""
    yield from table(_HEAD, _rows(incidents, incidents))
    yield from ("", "## Cameras", "")
    yield "A live camera is lost, and its loss ends. JSON Schema:"
    yield "[`configs/camera_event.schema.json`](../../configs/camera_event.schema.json)."
    for name in ("CameraLost", "CameraBack", "CameraEnded"):
        part = cameras["$defs"][name]
        yield from ("", f"### {part['properties']['type']['const']}", "")
        yield sentence(cameras["$defs"][part["properties"]["data"]["$ref"].rpartition("/")[2]]["description"])
        yield ""
        yield from table(_HEAD, _rows(cameras, part))
    counters = counter_event_schema()
    yield from ("", "## Counters", "")
    yield "`camgraph.counter.report`: the numbers of a [counter](../rules.md#counters) that has `report`. JSON Schema:"
    yield "[`configs/counter_event.schema.json`](../../configs/counter_event.schema.json)."
    yield ""
    yield from table(_HEAD, _rows(counters, counters))
    yield from ("", "## Pictures and clips", "")
    yield "`camgraph.footage.ready` and `.missing`: what became of a picture or clip of an incident"
    yield "([Pictures and clips](../footage.md)). JSON Schema:"
    yield "[`configs/footage_event.schema.json`](../../configs/footage_event.schema.json)."
    yield ""
    footage = footage_event_schema()
    yield from table(_HEAD, _rows(footage, footage))
    yield from ("", "## Stages", "")
    yield "`camgraph.stage.restarted` says that the process of a stage died, and that the stage began anew for a"
    yield "camera. It has the outer keys. Its `data` holds `stage`, `camera`, `reason`, and `lost`, which is `state`."


def _rows(root: Schema, part: Schema, under: str = "") -> Iterator[tuple[str, str, str, str]]:
    for key, field in part.get("properties", {}).items():
        below, many = _below(root, field)
        about = field.get("description") or (below or {}).get("description", "")
        value = ("list of mappings" if many else "mapping") if below else value_of(root, field)
        always = "yes" if key in part.get("required", ()) or field.get("default") is not None else ""
        yield code(f"{under}{key}"), value, always, sentence(about)
        if below:
            yield from _rows(root, below, f"{under}{key}{'[]' if many else ''}.")


def _below(root: Schema, field: Schema) -> tuple[dict[str, Any] | None, bool]:
    """The definition behind a field, and whether the field is a list of it."""
    for branch in [field, *field.get("anyOf", ())]:
        item = branch.get("items", {})
        for reference, many in ((branch, False), (item, True)):
            found = root.get("$defs", {}).get(str(reference.get("$ref", "")).rpartition("/")[2], {})
            if "properties" in found:
                return found, many
    return None, False
