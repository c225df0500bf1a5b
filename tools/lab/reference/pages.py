"""All reference pages: the name of each file, and the words around the definitions that it shows."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from camgraph.pipeline import errors
from camgraph.pipeline.graph.definition import GraphFile
from camgraph.pipeline.graph.schema_walk import schema_of
from camgraph.pipeline.registry import find_stage, stage_names
from camgraph.pipeline.stage import Source
from camgraph.stages.events import camera_event_schema, counter_event_schema, event_schema, footage_event_schema
from camgraph.tools.commands.explaining.kinds import topics
from camgraph.tools.commands.health_check import EXIT_OF
from camgraph.tools.commands.stage_commands import about, flow, is_added_by_itself
from camgraph.tools.lab.reference.command_page import command_page
from camgraph.tools.lab.reference.counter_page import counter_page
from camgraph.tools.lab.reference.markdown import code, sentence, table
from camgraph.tools.lab.reference.schema import HEAD, Schema, setting_rows, value_of

FOLDER = "docs/reference"
_WRITTEN_BY = "<!-- Written by `make reference` from the definitions in the code: edit those, not this page. -->\n"


def pages() -> Mapping[str, str]:
    """File name -> text of every reference page."""
    writers = {
        "graph_keys.md": graph_page,
        "stages.md": stage_page,
        "commands.md": command_page,
        "events.md": event_page,
        "counters.md": counter_page,
        "exit_status.md": exit_status_page,
        "errors.md": error_page,
    }
    return {name: _with_head("\n".join(write()) + "\n") for name, write in writers.items()}


def outdated(folder: Path) -> list[str]:
    """The pages of `folder` that differ from the definitions or are missing, and files that no definition writes."""
    expected = pages()
    there = {path.name: path.read_text("utf-8") for path in folder.glob("*.md")}
    return sorted(name for name in expected.keys() | there.keys() if expected.get(name) != there.get(name))


def _with_head(text: str) -> str:
    """The title stays the first line, since `camgraph help` lists pages by it."""
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{_WRITTEN_BY}{rest}"


# ---- the keys of a graph file, from the definitions that check it

_SECTIONS = (
    ("At the top", "GraphFile", "The keys of the file itself."),
    ("A stage", "StageEntry", "The keys of each entry of `stages`."),
    ("The outbox", "OutboxEntry", "The keys of `outbox`: [the outbox](../outbox.md) explains them."),
    ("Tracing", "TracingEntry", "The keys of `tracing`: [traces](../traces.md) explains them."),
    ("A batch", "BatchEntry", "The keys of `batch` of a stage."),
    (
        "An edge",
        "EdgeEntry",
        "The long form of a name under `from`: `from: {stage: capture, depth: 8, policy: block}`. Few graphs need it.",
    ),
)


def graph_page() -> Iterator[str]:
    schema = GraphFile.model_json_schema(by_alias=True)
    yield "# Reference: graph keys"
    yield ""
    yield "Every key of a graph file. [The graph file](../graph.md) explains how they work together. The settings of a"
    yield "camera are those of its source: see [`capture`](stages.md#capture). `camgraph schema` prints all of this for"
    yield "editors."
    for title, name, text in _SECTIONS:
        yield from ("", f"## {title}", "", text, "")
        part = schema if name == "GraphFile" else schema["$defs"][name]
        yield from table(HEAD, setting_rows(schema, _without_sections(part)))


def _without_sections(part: dict[str, Any]) -> dict[str, Any]:
    """Without what stands in sections of its own: `batch` and `from` are explained there."""
    fields = dict(part.get("properties", {}))
    shapes = {
        "from": {"type": "stage, list of stages, or port -> stage"},
        "batch": {"type": "settings, see below"},
        "cameras": {"type": "name -> settings"},
        "stages": {"type": "name -> stage"},
        "outbox": {"type": "settings, see below"},
        "tracing": {"type": "settings, see below"},
    }
    for key, shape in shapes.items():
        if key in fields:
            fields[key] = {"description": fields[key].get("description", ""), **shape}
    return {**part, "properties": fields}


# ---- the stages of camgraph and their settings, from the classes that the graph's check reads


def stage_page() -> Iterator[str]:
    yield "# Reference: stages"
    yield ""
    yield "Every stage that camgraph brings, the messages that it takes and makes, and its settings: the keys under"
    yield "`with`. `camgraph stages NAME` shows the same for any installed stage, also of other packages."
    for name in stage_names("camgraph"):
        if not is_added_by_itself(name):
            yield from _stage_section(name)


def _stage_section(name: str) -> Iterator[str]:
    kind = find_stage(name)
    yield from ("", f"## {name}", "", sentence(about(kind)), "", f"`{flow(kind)}`")
    yield from _setting_tables("", kind.settings_type)
    if issubclass(kind, Source):
        yield from _setting_tables(
            "The settings of each camera, under `cameras` and `camera_defaults`:", kind.camera_type
        )


def _setting_tables(title: str, model: type[BaseModel]) -> Iterator[str]:
    schema = schema_of(model)
    rows = list(setting_rows(schema, schema))
    yield ""
    if not rows:
        yield "It has no settings under `with`."
        return
    if title:
        yield from (title, "")
    yield from table(HEAD, rows)


# ---- the keys of events, from the models that their JSON Schemas are made of

_EVENT_HEAD = ("key", "value", "always", "meaning")


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
    yield from table(_EVENT_HEAD, _event_rows(incidents, incidents))
    yield from ("", "## Cameras", "")
    yield "A live camera is lost, and its loss ends. JSON Schema:"
    yield "[`configs/camera_event.schema.json`](../../configs/camera_event.schema.json)."
    for name in ("CameraLost", "CameraBack", "CameraEnded"):
        part = cameras["$defs"][name]
        yield from ("", f"### {part['properties']['type']['const']}", "")
        yield sentence(cameras["$defs"][part["properties"]["data"]["$ref"].rpartition("/")[2]]["description"])
        yield ""
        yield from table(_EVENT_HEAD, _event_rows(cameras, part))
    counters = counter_event_schema()
    yield from ("", "## Counters", "")
    yield "`camgraph.counter.report`: the numbers of a [counter](../rules.md#counters) that has `report`. JSON Schema:"
    yield "[`configs/counter_event.schema.json`](../../configs/counter_event.schema.json)."
    yield ""
    yield from table(_EVENT_HEAD, _event_rows(counters, counters))
    yield from ("", "## Pictures and clips", "")
    yield "`camgraph.footage.ready` and `.missing`: what became of a picture or clip of an incident"
    yield "([Pictures and clips](../footage.md)). JSON Schema:"
    yield "[`configs/footage_event.schema.json`](../../configs/footage_event.schema.json)."
    yield ""
    footage = footage_event_schema()
    yield from table(_EVENT_HEAD, _event_rows(footage, footage))
    yield from ("", "## Stages", "")
    yield "`camgraph.stage.restarted` says that the process of a stage died, and that the stage began anew for a"
    yield "camera. It has the outer keys. Its `data` holds `stage`, `camera`, `reason`, and `lost`, which is `state`."


def _event_rows(root: Schema, part: Schema, under: str = "") -> Iterator[tuple[str, str, str, str]]:
    for key, field in part.get("properties", {}).items():
        below, many = _model_below(root, field)
        about = field.get("description") or (below or {}).get("description", "")
        value = ("list of mappings" if many else "mapping") if below else value_of(root, field)
        always = "yes" if key in part.get("required", ()) or field.get("default") is not None else ""
        yield code(f"{under}{key}"), value, always, sentence(about)
        if below:
            yield from _event_rows(root, below, f"{under}{key}{'[]' if many else ''}.")


def _model_below(root: Schema, field: Schema) -> tuple[dict[str, Any] | None, bool]:
    """The definition behind a field, and whether the field is a list of it."""
    for branch in [field, *field.get("anyOf", ())]:
        item = branch.get("items", {})
        for reference, many in ((branch, False), (item, True)):
            found = root.get("$defs", {}).get(str(reference.get("$ref", "")).rpartition("/")[2], {})
            if "properties" in found:
                return found, many
    return None, False


# ---- exit statuses, and the errors that stand for them

_MEANINGS = {
    errors.EXIT_DONE: "All is done. A run has processed its cameras to their end, or was stopped and drained.",
    errors.EXIT_GAVE_UP: "Something was given up, and the last lines name it: a camera that failed, frames that were "
    "dropped although the graph does not allow it, a stage that lost its memory.",
    errors.EXIT_USER: "Your mistake: the command line, the graph, the rules, or a file that the graph names.",
    errors.EXIT_ENVIRONMENT: "The machine lacks something, or did not take something for 30 seconds: memory, a "
    "library, a disk, a receiver. Events that were not delivered are kept for the next run of that name.",
    errors.EXIT_SIGINT: "You pressed Ctrl-C, and the run was drained. A second Ctrl-C ends it at once.",
}
_HEALTH = {
    "healthy": "Frames of every camera went through lately, and nothing is in trouble.",
    "degraded": "A camera brings no frames, a stage or process is in trouble, or the run is starting or stopping.",
    "down": "No camera has frames that go through, or the run does not answer.",
    "unknown": "There is no such run, there are several and `--name` is missing, or the run cannot be asked.",
}


def exit_status_page() -> Iterator[str]:
    yield "# Reference: exit statuses and errors"
    yield ""
    yield "The exit statuses of all commands. [How a run ends](../graph.md#how-a-run-ends) has the details of a run."
    yield ""
    yield from table(("status", "meaning"), ((code(str(status)), text) for status, text in _MEANINGS.items()))
    yield from ("", "## camgraph status --check", "")
    yield "This command speaks the language of monitors (Nagios plugins) instead:"
    yield ""
    yield from table(
        ("status", "word", "meaning"), ((code(str(n)), code(word), _HEALTH[word]) for word, n in EXIT_OF.items())
    )
    yield from ("", "## Errors", "")
    yield "Messages of errors are made for you to act on. If you write a stage or use camgraph from Python, these are"
    yield "the classes of `camgraph.pipeline.errors`:"
    yield ""
    yield from table(("class", "is a", "exit status", "meaning"), _error_classes(errors.CamgraphError))


def _error_classes(top: type[errors.CamgraphError]) -> Iterator[tuple[str, str, str, str]]:
    about = (inspect.getdoc(top) or "").partition("\n\n")[0]
    yield code(top.__name__), code(top.__bases__[0].__name__), code(str(top.exit_status)), sentence(about)
    for below in top.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from _error_classes(below)


# ---- every kind of mistake, by its id


def error_page() -> Iterator[str]:
    yield "# Reference: error ids"
    yield ""
    yield "On a terminal, the last line of an error names its kind: `more: camgraph explain shared-memory`. Messages"
    yield "may become clearer from version to version; ids stay. Logs in JSON (`--json-logs`) have them as `error_id`,"
    yield "errors of the service's API as `id`, and in Python they are the `error_id` of an exception. If it is about"
    yield "several mistakes in a file, `error_ids` names the kinds of all."
    for topic, members in topics().items():
        yield from ("", f"## {topic}")
        for kind in members:
            yield from ("", f"### {kind.id}", "", kind.about, "", kind.why, "")
            yield from (f"- {one}" for one in kind.do)
