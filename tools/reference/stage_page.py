"""The stages of camgraph and their settings, from the classes that the graph's check reads."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from pipeline.graph.schema_walk import schema_of
from pipeline.registry import find_stage, stage_names
from pipeline.stage import Source
from tools.commands.stage_commands import about, flow, is_added_by_itself
from tools.reference.markdown import sentence, table
from tools.reference.schema import HEAD, setting_rows


def stage_page() -> Iterator[str]:
    yield "# Reference: stages"
    yield ""
    yield "Every stage that camgraph brings, the messages that it takes and makes, and its settings: the keys under"
    yield "`with`. `camgraph stages NAME` shows the same for any installed stage, also of other packages."
    for name in stage_names("camgraph"):
        if not is_added_by_itself(name):
            yield from _stage(name)


def _stage(name: str) -> Iterator[str]:
    kind = find_stage(name)
    yield from ("", f"## {name}", "", sentence(about(kind)), "", f"`{flow(kind)}`")
    yield from _settings("", kind.settings_type)
    if issubclass(kind, Source):
        yield from _settings("The settings of each camera, under `cameras` and `camera_defaults`:", kind.camera_type)


def _settings(title: str, model: type[BaseModel]) -> Iterator[str]:
    schema = schema_of(model)
    rows = list(setting_rows(schema, schema))
    yield ""
    if not rows:
        yield "It has no settings under `with`."
        return
    if title:
        yield from (title, "")
    yield from table(HEAD, rows)
