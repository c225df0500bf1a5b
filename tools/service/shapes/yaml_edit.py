"""Changes one value in the text of a YAML file and leaves all else as it is: comments, order, quotes.

The changed text is read again: if anything but that value differs, the change is refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml

from camgraph.pipeline.errors import UserError

_WAY_OUT = "change the file with an editor"


def with_value(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` (lists, mappings, texts, numbers) at this path of keys. Raises UserError."""
    node, depth = _deepest(text, path)
    if depth == len(path):
        begin, end = _span(node)
        changed = text[:begin] + _flow(value) + text[end:]
    else:
        changed = _with_entry(text, node, path[depth], _nested(path[depth + 1 :], value))
    return _checked(text, changed, path, value)


def without_value(text: str, path: Sequence[str]) -> str:
    """The text without the key at the end of this path. Raises UserError."""
    parent, depth = _deepest(text, path[:-1])
    found = None if depth < len(path) - 1 else _entry(parent, path[-1])
    if found is None:
        raise UserError(f"the file has no {'.'.join(path)}", error_id="file-not-editable")
    key, value = found
    if len(parent.value) == 1:
        begin, end = _span(parent)
        changed = text[:begin] + "{}" + text[end:]
    elif parent.flow_style:
        changed = _without_flow_entry(text, parent, key, value)
    else:
        begin = _line_begin(text, key.start_mark.index)
        changed = text[:begin] + text[_line_end(text, _span(value)[1]) :]
    return _checked(text, changed, path, None)


def _deepest(text: str, path: Sequence[str]) -> tuple[Any, int]:
    """The node that the first keys of `path` lead to, and how many of them do. Raises UserError."""
    try:
        # The composer in Python: its marks count characters.
        node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        raise UserError(f"the file is no YAML now: {_WAY_OUT}", error_id="file-not-editable") from None
    if not isinstance(node, yaml.MappingNode):
        raise UserError(f"the file has no keys: {_WAY_OUT}", error_id="file-not-editable")
    for depth, name in enumerate(path):
        found = _entry(node, name)
        if found is None or (not isinstance(found[1], yaml.MappingNode) and depth + 1 < len(path)):
            return _or_empty(node, found, depth)
        node = found[1]
    return node, len(path)


def _or_empty(node: Any, found: tuple[Any, Any] | None, depth: int) -> tuple[Any, int]:
    """`key:` without a value is a mapping without entries."""
    if found is None:
        return node, depth
    if isinstance(found[1], yaml.ScalarNode) and not found[1].value:
        return found[1], depth + 1
    raise UserError(f"`{found[0].value}` holds no keys: {_WAY_OUT}", error_id="file-not-editable")


def _entry(node: Any, name: str) -> tuple[Any, Any] | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next(((key, value) for key, value in node.value if key.value == name), None)


def _span(node: Any) -> tuple[int, int]:
    """Where it begins and ends. A block ends with its last value: PyYAML ends it at whatever comes next."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return node.start_mark.index, _span(last[1] if isinstance(last, tuple) else last)[1]
    return node.start_mark.index, node.end_mark.index


def _with_entry(text: str, node: Any, name: str, value: Any) -> str:
    entry = f"{_key(name)}: {_flow(value)}"
    if not isinstance(node, yaml.MappingNode):
        at = node.start_mark.index
        return f"{text[:at].rstrip(' ')} {{{entry}}}{text[at:]}"
    if node.flow_style:
        end = _span(node)[1]
        before = text[: end - 1].rstrip()
        comma = "" if not node.value else " " if before.endswith(",") else ", "
        return f"{before}{comma}{entry}{text[end - 1 :]}"
    indent = " " * node.start_mark.column
    at = _line_end(text, _span(node)[1])
    newline = "\r\n" if "\r\n" in text else "\n"
    before = "" if text[:at].endswith("\n") else newline
    return f"{text[:at]}{before}{indent}{entry}{newline}{text[at:]}"


def _without_flow_entry(text: str, parent: Any, key: Any, value: Any) -> str:
    """With the comma before it; of the first one, that behind it."""
    begin, end = key.start_mark.index, _span(value)[1]
    entries = [one.start_mark.index for one, _ in parent.value]
    place = entries.index(begin)
    if place:
        before = _span(parent.value[place - 1][1])[1]
        return text[:before] + text[end:]
    return text[:begin] + text[entries[1] :]


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)}: {_flow(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    """With quotes only if it must have them."""
    is_plain = name.replace("_", "").replace("-", "").isalnum() and yaml.safe_load(name) == name
    return name if is_plain else json.dumps(name, ensure_ascii=False)


def _line_begin(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    """Behind the end of the line, whose comment belongs to it."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _checked(text: str, changed: str, path: Sequence[str], value: Any) -> str:
    try:
        wanted = _read(text)
    except (yaml.YAMLError, RecursionError, TypeError, ValueError):  # dates as keys, an alias within itself
        raise UserError(f"the file has parts that JSON cannot hold: {_WAY_OUT}", error_id="file-not-editable") from None
    place: Any = wanted
    for name in path[:-1]:
        if not isinstance(place.get(name), dict):
            place[name] = {}
        place = place[name]
    if value is None:
        place.pop(path[-1], None)
    else:
        place[path[-1]] = json.loads(json.dumps(value))
    try:
        is_right = _read(changed) == wanted
    except (yaml.YAMLError, RecursionError, TypeError, ValueError):
        is_right = False
    if not is_right:
        raise UserError(
            f"{'.'.join(path)} cannot be changed alone, because of the way it is written: {_WAY_OUT}",
            error_id="file-not-editable",
        )
    return changed


def _read(text: str) -> Any:
    """Its values. Where an alias stands, there is a copy: changing one would change the other."""
    return json.loads(json.dumps(yaml.safe_load(text), default=str))
