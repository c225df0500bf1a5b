"""Turns composed YAML nodes into plain values, records their places, and finds the traps.

YAML 1.1, which PyYAML speaks, reads some plain words as something else; see `yaml_source`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import yaml

from camgraph.pipeline.errors import GraphError, Problem
from camgraph.pipeline.graph.variables import substitute
from camgraph.pipeline.system.names import nfc
from camgraph.pipeline.system.redaction import HIDDEN, is_called_secret

Path = tuple[str | int, ...]

MAX_VALUES = 100_000
MAX_CHARACTERS = 4 << 20
MAX_DEPTH = 64

_TAG = "tag:yaml.org,2002:"
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_MAX_DIGITS = 300
_MOST_LINES = 8


class Place(NamedTuple):
    """Line and column, from 1."""

    line: int
    column: int


def place_of(node: Any) -> Place:
    """The place at which a node or an event of PyYAML begins."""
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)


def holds_secret(path: Path) -> bool:
    """Whether the value at `path` is a secret, by the name of its key: no message may show it."""
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    return is_called_secret(name.replace("-", "_").removesuffix("s"))


class Reader:
    """Turns composed nodes into plain values and records their places."""

    def __init__(self, file: str, environ: Mapping[str, str] | None) -> None:
        self.problems: list[Problem] = []
        self.broken: set[Path] = set()
        self.values: dict[Path, Place] = {}
        self.keys: dict[Path, Place] = {}
        self.written: dict[Path, str] = {}
        self.secrets: dict[Path, dict[str, str]] = defaultdict(dict)
        self.hidden: set[str] = set()
        self.remarks: dict[str, None] = {}
        self._file = file
        self._environ = environ
        self._reported: dict[str, tuple[int, list[int]]] = {}
        self._around: list[yaml.Node] = []
        self._read = 0
        self._characters = 0

    def _complain(self, node: yaml.Node, path: Path, text: str) -> None:
        self.broken.add(path)
        self.problems.append(Problem(self._file, *place_of(node), text, error_id="yaml-mistake"))

    def _lack(self, node: yaml.Node, path: Path, text: str) -> None:
        """Report one variable that is missing in several places, at the first, with the lines of the others."""
        self.broken.add(path)
        at, lines = self._reported.setdefault(text, (len(self.problems), []))
        if at == len(self.problems):
            self.problems.append(Problem(self._file, *place_of(node), text, error_id="variable-missing"))
            return
        lines.append(place_of(node)[0])
        self.problems[at] = replace(self.problems[at], text=f"{text}; {_also_in(lines)}")

    def value(self, node: yaml.Node, path: Path) -> Any:
        self._count(node)
        self.values[path] = place_of(node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node in self._around:
            return self._complain(node, path, "an anchor that contains its own alias has no end: remove the alias")
        if node.tag not in (_TAG + "map", _TAG + "seq"):
            self._complain(node, path, f"the tag {_short(node.tag)} is not supported: remove it")
        self._around.append(node)
        try:
            return self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._sequence(node, path)
        finally:
            self._around.pop()

    def _count(self, node: yaml.Node) -> None:
        self._read += 1
        if self._read > MAX_VALUES:
            raise self._beyond(node, f"more than {MAX_VALUES:,} values")
        if len(self._around) > MAX_DEPTH:
            raise self._beyond(node, f"more than {MAX_DEPTH} levels deep")

    def _beyond(self, node: yaml.Node, what: str) -> GraphError:
        text = f"{what}, aliases counted as often as they are used: expected a smaller file"
        return GraphError([*self.problems, Problem(self._file, *place_of(node), text, error_id="yaml-mistake")])

    # ---- collections

    def _sequence(self, node: yaml.Node, path: Path) -> list[Any]:
        return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                merged += _merged(value_node)
                continue
            key = self._key(key_node, path)
            if key in data:
                first = self.keys[(*path, key)].line
                text = f"the key `{key}` appears twice, first in line {first}: remove one of them"
                self.problems.append(Problem(self._file, *place_of(key_node), text, error_id="yaml-mistake"))
            elif key is not None:
                self.keys[(*path, key)] = place_of(key_node)
                data[key] = self.value(value_node, (*path, key))
        for other in merged:
            self._merge(other, path, data)
        return data

    def _merge(self, node: yaml.Node, path: Path, data: dict[str, Any]) -> None:
        """`<<`: take the keys of another mapping that this one does not have."""
        self._count(node)
        if not isinstance(node, yaml.MappingNode) or node in self._around:
            self._complain(node, path, "`<<` takes a mapping or a list of mappings: expected an alias such as *name")
            return
        self._around.append(node)
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                for other in _merged(value_node):
                    self._merge(other, path, data)
                continue
            key = self._key(key_node, path)
            if key is not None and key not in data:
                self.keys[(*path, key)] = place_of(key_node)
                data[key] = self.value(value_node, (*path, key))
        self._around.pop()

    def _key(self, node: yaml.Node, path: Path) -> str | None:
        if not isinstance(node, yaml.ScalarNode) or node.tag == _TAG + "null":
            self._complain(node, path, "a key must be a name, got a list, a mapping or nothing")
            return None
        key = nfc(str(node.value))  # keys are names: two spellings of one name are one key
        if node.tag == _TAG + "bool":
            self._complain(node, (*path, key), f'the key `{key}` is a boolean in YAML: write "{key}" with quotes')
        return key

    # ---- scalars

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        text = str(node.value)
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise self._beyond(node, f"more than {MAX_CHARACTERS:,} characters")
        kind = node.tag.removeprefix(_TAG)
        if kind == "str":
            return self._string(node, text, path)
        if kind == "bool":
            return self._bool(node, text, path)
        if kind in ("int", "float"):
            return self._number(node, text, kind, path)
        if kind == "null":
            return None
        if kind not in ("timestamp", "value", "merge"):
            self._complain(node, path, f"the tag {_short(node.tag)} is not supported: remove it")
        return text

    def _string(self, node: yaml.ScalarNode, text: str, path: Path) -> str:
        if self._environ is None or "${" not in text:
            return text
        result = substitute(text, self._environ)
        for problem in result.problems:
            self._lack(node, path, problem)
        self.hidden.update(result.hidden)
        self.remarks.update(dict.fromkeys(result.remarks))
        if result.secrets:
            self.secrets[path].update(result.secrets)
            self.written[path] = text
        return result.text

    def _bool(self, node: yaml.ScalarNode, text: str, path: Path) -> bool:
        quoted = HIDDEN if holds_secret(path) else text
        if text.lower() not in ("true", "false"):
            self._complain(
                node,
                path,
                f'`{quoted}` is a boolean to some readers of YAML: write true, false, or "{quoted}" in quotes',
            )
        return text.lower() in ("true", "yes", "on")

    def _number(self, node: yaml.ScalarNode, text: str, kind: str, path: Path) -> int | float | str:
        bare = text.replace("_", "")
        if ":" in text:
            shown_number = text if len(text) <= _MAX_DIGITS else f"{text[:_MAX_DIGITS]}..."
            shown_number = HIDDEN if holds_secret(path) else shown_number
            self._complain(
                node, path, f'`{shown_number}` is a number to base 60 in YAML: write "{shown_number}" with quotes'
            )
        elif kind == "int" and _OCTAL.fullmatch(text):
            meant = f'{int(bare, 8)} for the number, "{text}" for text'
            text_of_secret = f"`{HIDDEN}` is octal in YAML: write it in quotes"
            self._complain(
                node, path, text_of_secret if holds_secret(path) else f"`{text}` is octal in YAML: write {meant}"
            )
        elif len(bare) > _MAX_DIGITS:
            self._complain(node, path, f"a number of {len(bare)} digits: at most {_MAX_DIGITS} are accepted")
        else:
            return self._parsed(node, bare, kind, path)
        return text

    def _parsed(self, node: yaml.ScalarNode, bare: str, kind: str, path: Path) -> int | float | str:
        try:
            if kind == "int":
                return int(bare, 0)
            return float(bare.lower().replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError:
            self._complain(node, path, f"`{node.value}` is no number: remove the tag before it, or write a number")
            return str(node.value)


def _merged(node: yaml.Node) -> list[yaml.Node]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]


def _short(tag: str) -> str:
    return f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag


def _also_in(lines: Sequence[int]) -> str:
    different = list(dict.fromkeys(lines))
    more = f" and {len(different) - _MOST_LINES} more" if len(different) > _MOST_LINES else ""
    return f"also in line{'s' * (len(different) > 1)} {', '.join(map(str, different[:_MOST_LINES]))}{more}"
