"""The keys of a graph file, from the definitions that check it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.graph.definition import GraphFile
from tools.reference.markdown import table
from tools.reference.schema import HEAD, setting_rows

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
    for title, name, about in _SECTIONS:
        yield from ("", f"## {title}", "", about, "")
        part = schema if name == "GraphFile" else schema["$defs"][name]
        yield from table(HEAD, setting_rows(schema, _flat(part)))


def _flat(part: dict[str, Any]) -> dict[str, Any]:
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
