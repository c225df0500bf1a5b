"""Finds the part of a JSON Schema that describes a path: for suggestions, and for descriptions of a key."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

from camgraph.pipeline.graph.yaml_reader import Path

Schema = dict[str, Any]


@functools.cache
def schema_of(model: type[BaseModel]) -> Schema:
    """The model's JSON Schema by the names in the file; empty if one of its types has none."""
    try:
        return model.model_json_schema(by_alias=True)
    except PydanticInvalidForJsonSchema:
        return {}


def described(schema: Schema, path: Path) -> dict[str, str]:
    """The keys that a mapping at `path` may have, with their descriptions."""
    keys: dict[str, str] = {}
    for part in _at(schema, path):
        keys.update({key: str(value.get("description", "")) for key, value in part.get("properties", {}).items()})
    return keys


def lists_texts(schema: Schema, path: Path) -> bool:
    """Whether a list at `path` may have texts in it."""
    return any(part.get("type") == "string" for part in _at(schema, (*path, 0)))


def _at(root: Schema, path: Path) -> list[Schema]:
    current = list(_branches(root, root))
    for key in path:
        current = [branch for part in current for below in _below(part, key) for branch in _branches(root, below)]
    return current


def _branches(root: Schema, part: Schema) -> Iterator[Schema]:
    """The part itself and all of its alternatives, references followed."""
    if "$ref" in part:
        yield from _branches(root, root["$defs"][part["$ref"].rpartition("/")[2]])
    yield part
    for word in ("anyOf", "oneOf", "allOf"):
        for branch in part.get(word, ()):
            yield from _branches(root, branch)


def _below(part: Schema, key: str | int) -> Iterator[Schema]:
    if isinstance(key, int):
        items = part.get("prefixItems", [])
        below = items[key] if key < len(items) else part.get("items")
    else:
        below = part.get("properties", {}).get(key, part.get("additionalProperties"))
        yield from part.get("patternProperties", {}).values()
    if isinstance(below, dict):
        yield below
