"""YAML as plain values, each with its place, so that every later complaint can point at a line and a column.

YAML has traps that PyYAML falls into silently; here each is a problem with a place: a key that stands twice, `on` and
`yes` read as booleans, `10:30` read as 630, `0640` read as octal, an alias that contains itself or grows without bound.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from pipeline.errors import GraphError, Problem
from pipeline.graph.variables import substitute
from pipeline.redaction import redact_urls

Path = tuple[str | int, ...]

MAX_CHARACTERS = 4 << 20
MAX_VALUES = 200_000
MAX_DEPTH = 64

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_NOT_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_MAX_DIGITS = 300
_LONG = 4


class Place(NamedTuple):
    """Line and column, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Source:
    """A YAML file as plain values (`data`: dict, list, str, int, float, bool, None) and where each of them stands.

    `problems` are those of the text itself; `broken` are their paths, so that a value that has been complained about
    is not complained about again. `secrets`: values that came from variables -> the `${NAME}` to show instead.
    """

    file: str
    data: Any
    problems: tuple[Problem, ...] = ()
    broken: frozenset[Path] = frozenset()
    secrets: Mapping[Path, Mapping[str, str]] = field(default_factory=dict, repr=False)
    values: Mapping[Path, Place] = field(default_factory=dict, repr=False)
    keys: Mapping[Path, Place] = field(default_factory=dict, repr=False)
    written: Mapping[Path, str] = field(default_factory=dict, repr=False)

    def position(self, path: Path) -> Place:
        """Where the value at `path` begins; of what is not there, where the nearest thing around it begins."""
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, Place(1, 1))

    def key_position(self, path: Path) -> Place:
        """Where the key of `path` stands; for items of lists, and what is not there, as `position`."""
        while path and path not in self.keys and path not in self.values:
            path = path[:-1]
        return self.keys.get(path) or self.position(path)

    def mapping(self, *path: str | int) -> Mapping[str, Any]:
        """What stands at `path`, if it is a mapping; else an empty one."""
        value = self.data
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def problem(self, path: Path, text: str, *, at_key: bool = False) -> Problem:
        """A problem with the value (or the key) at `path`."""
        place = self.key_position(path) if at_key else self.position(path)
        return Problem(self.file, *place, text)

    def shown(self, path: Path, value: Any) -> Any:
        """`value`, which stands at `path`, as it may be shown: variables by name, URLs without passwords."""
        return redact_urls(self.written.get(path, value)) if isinstance(value, str) else value

    def redact(self, path: Path, text: str) -> str:
        """`text`, a complaint about what stands at `path`, without secrets.

        Very short values are looked for only in the part of the file that the complaint is about; a 1 may be anywhere.
        """
        found = [
            (secret, name)
            for at, items in self.secrets.items()
            for secret, name in items.items()
            if len(secret) >= _LONG or at[:2] == path[:2]
        ]
        for secret, name in sorted(found, key=lambda item: -len(item[0])):
            text = text.replace(secret, name)
        return redact_urls(text)


def load(text: str, file: str, environ: Mapping[str, str] | None = None) -> Source:
    """Read YAML. `file` is its name in messages; with `environ`, `${NAME}` in strings is replaced.

    Raises GraphError where there is nothing to go on with: the text is not YAML, is empty, or is beyond all bounds.
    Everything else that is wrong is in `problems`.
    """
    text = text.removeprefix("\ufeff")
    _refuse_unreadable(text, file)
    try:
        _refuse_deep(text, file)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        raise GraphError([_syntax_problem(error, file)]) from None
    if root is None:
        raise GraphError([Problem(file, 1, 1, "the file is empty: expected `key: value` lines")])
    reader = _Reader(file, environ)
    data = reader.value(root, ())
    return Source(
        file,
        data,
        tuple(reader.problems),
        frozenset(reader.broken),
        reader.secrets,
        reader.values,
        reader.keys,
        reader.written,
    )


def _refuse_unreadable(text: str, file: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise GraphError([Problem(file, 0, 0, f"{len(text)} characters: at most {MAX_CHARACTERS} are accepted")])
    bad = _NOT_TEXT.search(text)
    if bad:
        line = text.count("\n", 0, bad.start()) + 1
        column = bad.start() - text.rfind("\n", 0, bad.start())
        what = f"the character U+{ord(bad[0]):04X} is not text: expected a YAML file in UTF-8"
        raise GraphError([Problem(file, line, column, what)])


def _refuse_deep(text: str, file: str) -> None:
    """libyaml's composer calls itself for every level, and a deep file would end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            place = _place(event)
            raise GraphError([Problem(file, *place, f"more than {MAX_DEPTH} levels deep: expected a flatter file")])


def _syntax_problem(error: yaml.MarkedYAMLError, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    what = f"{error.context}, {error.problem}" if error.context else f"{error.problem}"
    return Problem(file, line, column, f"not YAML: {what}{_hint(error.problem or '')}")


def _hint(problem: str) -> str:
    if "mapping values are not allowed" in problem:
        return "; put text that holds `: ` in quotes, and see that the lines above are indented alike"
    if "cannot start any token" in problem:
        return "; indent with spaces, not tabs, and put text that starts with @, ` or % in quotes"
    if "another document" in problem:
        return "; one file holds one document: remove the `---`"
    return ""


def _place(node: Any) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)


class _Reader:
    """Turns composed nodes into plain values and notes where they stand."""

    def __init__(self, file: str, environ: Mapping[str, str] | None) -> None:
        self.problems: list[Problem] = []
        self.broken: set[Path] = set()
        self.values: dict[Path, Place] = {}
        self.keys: dict[Path, Place] = {}
        self.written: dict[Path, str] = {}
        self.secrets: dict[Path, dict[str, str]] = defaultdict(dict)
        self._file = file
        self._environ = environ
        self._around: list[yaml.Node] = []
        self._read = 0

    def _complain(self, node: yaml.Node, path: Path, text: str) -> None:
        self.broken.add(path)
        self.problems.append(Problem(self._file, *_place(node), text))

    def value(self, node: yaml.Node, path: Path) -> Any:
        self._count(node)
        self.values[path] = _place(node)
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
            text = f"more than {MAX_VALUES} values, aliases counted as often as they are used: expected a smaller file"
            raise GraphError([*self.problems, Problem(self._file, *_place(node), text)])

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
                text = f"the key `{key}` stands twice, first in line {first}: remove one of them"
                self.problems.append(Problem(self._file, *_place(key_node), text))
            elif key is not None:
                self.keys[(*path, key)] = _place(key_node)
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
                self.keys[(*path, key)] = _place(key_node)
                data[key] = self.value(value_node, (*path, key))
        self._around.pop()

    def _key(self, node: yaml.Node, path: Path) -> str | None:
        if not isinstance(node, yaml.ScalarNode) or node.tag == _TAG + "null":
            self._complain(node, path, "a key must be a name, got a list, a mapping or nothing")
            return None
        key = str(node.value)
        if node.tag == _TAG + "bool":
            self._complain(node, (*path, key), f'the key `{key}` is a boolean in YAML: write "{key}" with quotes')
        return key

    # ---- scalars

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        text = str(node.value)
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
            self._complain(node, path, problem)
        if result.secrets:
            self.secrets[path].update(result.secrets)
            self.written[path] = text
        return result.text

    def _bool(self, node: yaml.ScalarNode, text: str, path: Path) -> bool:
        if text.lower() not in ("true", "false"):
            self._complain(
                node, path, f'`{text}` is a boolean to some readers of YAML: write true, false, or "{text}" in quotes'
            )
        return text.lower() in ("true", "yes", "on")

    def _number(self, node: yaml.ScalarNode, text: str, kind: str, path: Path) -> int | float | str:
        bare = text.replace("_", "")
        if ":" in text:
            self._complain(node, path, f'`{text}` is a number to base 60 in YAML: write "{text}" with quotes')
        elif kind == "int" and _OCTAL.fullmatch(text):
            octal = int(bare, 8)
            self._complain(node, path, f'`{text}` is octal in YAML: write {octal} for the number, "{text}" for text')
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
