"""YAML as plain values, each with its place, so that every later mistake has a line and a column.

YAML has traps that PyYAML falls into silently; here each is a problem with a place: a key that appears twice, `on` and
`yes` read as booleans, `10:30` read as 630, `0640` read as octal, an alias that contains itself or grows without bound.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import yaml

from camgraph.pipeline.errors import GraphError, Problem
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.graph.yaml_reader import MAX_CHARACTERS, MAX_DEPTH, Path, Place, Reader, holds_secret, place_of
from camgraph.pipeline.system.redaction import HIDDEN, is_called_secret, redact_urls
from camgraph.pipeline.system.spelling import without_guess

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_LONG = 4
_CUT = 8
"""Letters of a value by which the rest of one that was cut off is found."""
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True)
class Source:
    """A YAML file as plain values (`data`: dict, list, str, int, float, bool, None) with the place of each.

    `problems` are those of the text itself; `broken` are their paths, so that no value is reported twice. `secrets`:
    values that came from variables -> the `${NAME}` to show instead.
    """

    file: str
    data: Any = field(repr=False)
    problems: tuple[Problem, ...] = ()
    broken: frozenset[Path] = frozenset()
    secrets: Mapping[Path, Mapping[str, str]] = field(default_factory=dict, repr=False)
    values: Mapping[Path, Place] = field(default_factory=dict, repr=False)
    keys: Mapping[Path, Place] = field(default_factory=dict, repr=False)
    written: Mapping[Path, str] = field(default_factory=dict, repr=False)
    hidden: frozenset[str] = field(default=frozenset(), repr=False)
    """Values to hide wherever they occur."""
    remarks: tuple[str, ...] = ()
    """On the files that values came from."""
    lines: Sequence[str] = field(default=(), repr=False)

    def position(self, path: Path) -> Place:
        """The start of the value at `path`; if it is missing, the start of the nearest container."""
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, Place(1, 1))

    def key_position(self, path: Path) -> Place:
        """The place of the key of `path`; for items of lists and missing values, as `position`."""
        while path and path not in self.keys and path not in self.values:
            path = path[:-1]
        return self.keys.get(path) or self.position(path)

    def mapping(self, *path: str | int) -> Mapping[str, Any]:
        """The mapping at `path`; an empty one if there is none."""
        value = self.data
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def problem(self, path: Path, text: str, *, at_key: bool = False, error_id: str = "graph-mistake") -> Problem:
        """A problem with the value (or the key) at `path`."""
        place = self.key_position(path) if at_key else self.position(path)
        problem = Problem(self.file, *place, text, error_id=error_id)
        return problem if holds_secret(path) else self.shown_in(problem)

    def shown_in(self, problem: Problem) -> Problem:
        """The problem with the line of the file, unless that holds a value that is to be hidden."""
        if problem.line in self._secret_lines:
            return problem  # a literal secret, whose key may stand on the line before
        return _shown_in(problem, self.lines, self._to_hide)

    @cached_property
    def _secret_lines(self) -> frozenset[int]:
        """The lines on which a secret value begins: asked for each problem, of which a graph may have thousands."""
        return frozenset(place.line for path, place in self.values.items() if holds_secret(path))

    @property
    def _to_hide(self) -> set[str]:
        values = {secret for items in self.secrets.values() for secret in items} | self.hidden
        return {value for value in values if len(value) >= _LONG}

    def shown(self, path: Path, value: Any) -> Any:
        """Return the `value` at `path` in a form that may be shown: variables by name, URLs without passwords."""
        return redact_urls(self.written.get(path, value)) if isinstance(value, str) else value

    def redact(self, path: Path, text: str) -> str:
        """Return `text`, a message about the value at `path`, without secrets.

        Very short values are hidden only in messages about their own part of the file; a 1 may be anywhere. Of a value
        that came from a variable, no suggestion is made, and no word of it is shown: any part of it may be secret.
        """
        found = [
            (secret, name)
            for at, items in self.secrets.items()
            for secret, name in items.items()
            if len(secret) >= _LONG or at[:2] == path[:2]
        ]
        for secret, name in sorted(found, key=lambda item: -len(item[0])):
            text = text.replace(secret, name)
        own = {
            secret: name
            for at, items in self.secrets.items()
            if at[: len(path)] == path
            for secret, name in items.items()
        }
        return redact_urls(_without_parts(without_guess(text), own) if own else text)


def _without_parts(text: str, secrets: Mapping[str, str]) -> str:
    """`text` without the words of these secrets, which a message may quote alone, and without what it cut off."""
    for secret, name in secrets.items():
        if len(secret) > _CUT:
            text = re.sub(re.escape(secret[:_CUT]) + r"\S*", name.replace("\\", r"\\"), text)
        for word in sorted(set(_WORD.findall(secret)), key=len, reverse=True):
            text = re.sub(rf"(?<![\w{{]){re.escape(word)}(?![\w}}])", HIDDEN, text)
    return text


def load(text: str, file: str, environ: Mapping[str, str] | None = None) -> Source:
    """Read YAML. `file` is its name in messages; with `environ`, `${NAME}` in strings is replaced.

    Raises GraphError if there is nothing to go on with: the text is not YAML, is empty, or is beyond all bounds. All
    other mistakes are in `problems`.
    """
    text = text.removeprefix("\ufeff")
    lines = lines_of(text)
    reader = Reader(file, environ)
    try:
        data = reader.value(_composed(text, file), ())
    except GraphError as error:
        raise GraphError([_shown_in(one, lines, reader.hidden) for one in error.problems]) from None
    source = Source(
        file,
        data,
        tuple(reader.problems),
        frozenset(reader.broken),
        reader.secrets,
        reader.values,
        reader.keys,
        reader.written,
        frozenset(reader.hidden),
        tuple(reader.remarks),
        lines,
    )
    return replace(source, problems=tuple(map(source.shown_in, source.problems)))


def _composed(text: str, file: str) -> yaml.Node:
    """The whole as nodes of PyYAML. Raises GraphError."""
    _refuse_unreadable(text, file)
    try:
        _refuse_deep(text, file)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, file, text) from None
    if root is None:
        raise _unreadable(file, Place(1, 1), "the file is empty: expected `key: value` lines")
    return root


def _shown_in(problem: Problem, lines: Sequence[str], hidden: Collection[str]) -> Problem:
    if not 0 < problem.line <= len(lines):
        return problem
    line = lines[problem.line - 1]
    if any(value in line for value in hidden):
        return problem
    return replace(problem, excerpt=excerpt(line, problem.column))


def _refuse_unreadable(text: str, file: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise _unreadable(file, Place(0, 0), f"{len(text)} characters: at most {MAX_CHARACTERS} are accepted")
    bad = _NOT_TEXT.search(text)
    if bad:
        line = text.count("\n", 0, bad.start()) + 1
        column = bad.start() - text.rfind("\n", 0, bad.start())
        what = f"the character U+{ord(bad[0]):04X} is not text: expected a YAML file in UTF-8"
        raise _unreadable(file, Place(line, column), what)


def _refuse_deep(text: str, file: str) -> None:
    """libyaml's composer calls itself for every level, and a deep file would end the process.

    Some versions of libyaml refuse a thousand levels themselves, while they look ahead; then PyYAML's own parser, which
    is slower, finds the place.
    """
    try:
        _refuse_deep_events(yaml.parse(text, Loader=_LOADER), file)
    except yaml.MarkedYAMLError as error:
        if _TOO_DEEP not in (error.problem or ""):
            raise
        _refuse_deep_events(yaml.parse(text, Loader=yaml.SafeLoader), file)


def _refuse_deep_events(events: Iterable[yaml.Event], file: str) -> None:
    depth = 0
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _unreadable(file, place_of(event), f"more than {MAX_DEPTH} levels deep: expected a flatter file")


def _unreadable(file: str, place: Place, text: str) -> GraphError:
    return GraphError([Problem(file, *place, text, error_id="yaml-mistake")])


def _syntax_error(error: yaml.MarkedYAMLError, file: str, text: str) -> GraphError:
    mark = error.problem_mark or error.context_mark
    place = Place(mark.line + 1, mark.column + 1) if mark else Place(0, 0)
    what = f"{error.context}, {error.problem}" if error.context else f"{error.problem}"
    return _unreadable(file, place, f"not YAML: {what}{_hint(error.problem or '', _behind(text, place))}")


def _behind(text: str, place: Place) -> str:
    """The text of a line from a place on."""
    lines = lines_of(text)
    return lines[place.line - 1][place.column - 1 :] if 0 < place.line <= len(lines) else ""


_TOO_DEEP = "maximum nesting depth"
_QUOTED = "put the whole of a text that begins with {, [, * or a quote in quotes"


def _hint(problem: str, behind: str) -> str:
    if "mapping values are not allowed" in problem:
        return "; put text that holds `: ` in quotes, and indent it like the lines above"
    if "cannot start any token" in problem:
        return "; indent with spaces, not tabs, and put text that starts with @, ` or %, or holds `: `, in quotes"
    if "expected comment or line break" in problem:
        return f"; {_QUOTED}"
    if "did not find expected" in problem:
        in_text = re.match(r":\s", behind)
        quoted = f"{_QUOTED}, and indent lines that belong together alike"
        return "; put text that holds `: ` in quotes" if in_text else f"; {quoted}"
    if "another document" in problem:
        return "; one file holds one document: remove the `---`"
    return ""


# ---- the line of a mistake, with a caret below it, as compilers show it

_WIDTH = 100
_BEFORE = 60
"""Of a long line, so many letters before the mistake are shown."""
_INDENT = "    "
_CUT_OFF = "..."
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_ABOUT_SECRETS = re.compile(
    "passw|passphrase|secret|token|credential|api_?key|private_?key|authorization|bearer ", re.IGNORECASE
)
_SECRETS = ("password", "passphrase", "secret", "token", "credentials", "api_key", "private_key")
_ALIKE = 0.75
_NEAR = 300
"""A whole line, of up to a million keys, would take too long."""
_KEY = re.compile(r"([\w-]{2,40})['\"]?\s*:")


def lines_of(text: str) -> list[str]:
    """The lines of a text as YAML counts them."""
    return _LINE_BREAK.split(text)


def excerpt(line: str, column: int) -> str:
    """Two lines: the line of the file, and a caret below its `column` (from 1); "" if the line may hold a secret.

    when: left_wrst.y < nose.y
          ^
    """
    near = line[max(0, column - _NEAR) : column + _NEAR]
    if redact_urls(line) != line or _ABOUT_SECRETS.search(line) or _has_key_like_secret(near):
        return ""
    before, behind = line[: column - 1], line[column - 1 :].rstrip()
    before = before.lstrip() if len(before.lstrip()) <= _BEFORE else _CUT_OFF + before[-_BEFORE:]
    if len(behind) > _WIDTH - len(before):
        behind = behind[: _WIDTH - len(before)] + _CUT_OFF
    before, behind = (shown(part.replace("\t", " ")) for part in (before, behind))
    return f"{_INDENT}{before}{behind}\n{_INDENT}{' ' * _columns(before)}^"


def _has_key_like_secret(text: str) -> bool:
    """Whether one of the keys is the name of a secret, or a mistyped one."""
    keys = _KEY.findall(text.lower())
    words = {word for key in keys for word in (key, *re.split("[_-]", key))}
    return any(is_called_secret(key.replace("-", "_")) for key in keys) or any(
        get_close_matches(word, _SECRETS, 1, _ALIKE) for word in words
    )


def _columns(text: str) -> int:
    """How many columns a terminal needs for a text."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
