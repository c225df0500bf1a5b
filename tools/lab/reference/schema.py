"""Rows of a table from a JSON Schema: a key, what it may be, its default, its description."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from camgraph.tools.lab.reference.markdown import code, sentence

Schema = dict[str, Any]
HEAD = ("key", "value", "default", "meaning")
_LIMITS = (
    ("minimum", "at least"),
    ("exclusiveMinimum", "above"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "below"),
)


def setting_rows(root: Schema, part: Schema, under: str = "") -> Iterator[tuple[str, str, str, str]]:
    """A row for each property of `part`; properties of a setting that is a mapping follow it, as `outer.inner`."""
    for key, field in part.get("properties", {}).items():
        required = key in part.get("required", ())
        below = below_of(root, field)
        yield (
            code(f"{under}{key}"),
            "settings" if below else value_of(root, field),
            "required" if required else _default(field),
            sentence(field.get("description", "")),
        )
        if below:
            yield from setting_rows(root, below, f"{under}{key}.")


def below_of(root: Schema, field: Schema) -> Schema | None:
    """The definition that a field refers to if that has properties of its own, also as one of its alternatives."""
    for branch in [field, *field.get("anyOf", ())]:
        found = _resolved(root, branch)
        if "properties" in found:
            return found
    return None


def value_of(root: Schema, field: Schema) -> str:
    """Type and bounds in a few words. Null is left out: the default says what nothing means."""
    branches = field.get("anyOf") or field.get("oneOf") or [field]
    words = [_kind(root, _resolved(root, branch)) for branch in branches if branch.get("type") != "null"]
    return " or ".join(dict.fromkeys(words))


def _resolved(root: Schema, field: Schema) -> Schema:
    name = str(field.get("$ref", "")).rpartition("/")[2]
    found: Schema = root.get("$defs", {}).get(name, field)
    return found


def _kind(root: Schema, branch: Schema) -> str:
    if "enum" in branch or "const" in branch:
        return ", ".join(code(str(value)) for value in branch.get("enum", [branch.get("const")]))
    if "anyOf" in branch or "oneOf" in branch:
        return value_of(root, branch)
    kind = branch.get("type")
    if kind == "array":
        return _list(root, branch)
    if kind == "object":
        values = branch.get("additionalProperties")
        return f"name -> {value_of(root, values)}" if isinstance(values, dict) else "mapping"
    if "minimum" in branch and "maximum" in branch:
        return f"{kind}, {branch['minimum']} to {branch['maximum']}"
    return ", ".join([kind or "any value", *(f"{sign} {branch[word]}" for word, sign in _LIMITS if word in branch)])


def _list(root: Schema, branch: Schema) -> str:
    fixed = branch.get("prefixItems")
    if fixed:
        return f"list of {len(fixed)}: {', '.join(value_of(root, item) for item in fixed)}"
    items = branch.get("items")
    return f"list of {value_of(root, items)}" if items else "list"


def _default(field: Schema) -> str:
    if field.get("default") is None:
        return ""
    return code(json.dumps(field["default"], ensure_ascii=False))
