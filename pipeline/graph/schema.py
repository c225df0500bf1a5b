"""The JSON Schema of graph files, for editors, from the same definitions that the check uses.

The schema covers the checks that need no other stages or files: keys, types and bounds, the settings of each stage by
its `use`, and the cameras by the graph's source. `${NAME}` may stand for a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel

from camgraph.pipeline.graph.definition import GraphFile
from camgraph.pipeline.registry import AnyStage, find_stage, stage_names
from camgraph.pipeline.stage import Source

Schema = dict[str, Any]

_VARIABLE = r"\$\{"
_NUMBERS = ("integer", "number", "boolean")


def graph_schema(uses: Iterable[str] | None = None) -> Schema:
    """The schema with the settings of these stages; by default of all that are installed.

    Raises EnvironmentProblem if one of them cannot be loaded.
    """
    names = sorted(uses if uses is not None else stage_names())
    found = {name: find_stage(name) for name in names}
    kinds = {name: kind for name, kind in found.items() if issubclass(kind, Source) or not kind.added_by_itself}
    schema = GraphFile.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    _add_settings(definitions, kinds)
    schema["allOf"] = list(_camera_rules(definitions, kinds))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "camgraph graph",
        **_with_variables({key: value for key, value in schema.items() if key != "title"}),
    }


def _add_settings(definitions: Schema, kinds: dict[str, AnyStage]) -> None:
    stage = definitions["StageEntry"]
    stage["properties"]["use"]["anyOf"] = [{"enum": list(kinds)}, {"type": "string"}]
    stage["allOf"] = [
        {
            "if": {"properties": {"use": {"const": name}}, "required": ["use"]},
            "then": {"properties": {"with": _settings(name, kind.settings_type, definitions)}},
        }
        for name, kind in kinds.items()
    ]


def _settings(name: str, model: type[BaseModel], definitions: Schema, *, partial: bool = False) -> Schema:
    """Add the model's schema, with its parts, under a name of the stage, and return a reference to it."""
    own = model.model_json_schema(by_alias=True, ref_template=f"#/$defs/{name}.{{model}}")
    for other, schema in own.pop("$defs", {}).items():
        definitions[f"{name}.{other}"] = schema
    if partial:
        own.pop("required", None)
    if "required" not in own:
        own["type"] = ["object", "null"]
    key = f"{name}.{model.__name__}{'.partial' if partial else ''}"
    definitions[key] = own
    return {"$ref": f"#/$defs/{key}"}


def _camera_rules(definitions: Schema, kinds: dict[str, AnyStage]) -> Iterator[Schema]:
    """Give cameras the settings of this source if a stage uses it. Defaults may supply settings that a camera lacks."""
    for name, kind in kinds.items():
        if not issubclass(kind, Source):
            continue
        camera = _settings(name, kind.camera_type, definitions, partial=True)
        other = {"not": {"properties": {"use": {"const": name}}, "required": ["use"]}}
        yield {
            "if": {"properties": {"stages": {"not": {"additionalProperties": other}}}, "required": ["stages"]},
            "then": {"properties": {"cameras": {"additionalProperties": camera}, "camera_defaults": camera}},
        }


def _with_variables(part: Any) -> Any:
    """Allow a variable in place of every number and switch."""
    if isinstance(part, list):
        return [_with_variables(item) for item in part]
    if not isinstance(part, dict):
        return part
    changed = {key: _with_variables(value) for key, value in part.items()}
    if isinstance(changed.get("type"), str) and changed["type"] in _NUMBERS and "const" not in changed:
        changed |= {"type": [changed["type"], "string"], "pattern": _VARIABLE}
    return changed
