"""Turns pydantic's errors into plain words with a place in the file."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails, ValidationError

from camgraph.pipeline.graph.definition import CAMERA_NAME_ERROR, StageEntry
from camgraph.pipeline.graph.report import Report, dotted
from camgraph.pipeline.graph.schema_walk import Schema, described, lists_texts, schema_of
from camgraph.pipeline.graph.yaml_reader import Path, holds_secret
from camgraph.pipeline.stage import Definition
from camgraph.pipeline.system.names import (
    A_CAMERA_NAME,
    A_NAME,
    MAX_NAME,
    NAME_PATTERN,
    nearest_camera_name,
    nearest_name,
)
from camgraph.pipeline.system.spelling import did_you_mean, did_you_mean_key, nearest

_MAX_SHOWN = 60
_EXPECTED: Mapping[str, str] = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "path_type": "a path",
    "dict_type": "`key: value` lines",
    "model_type": "`key: value` lines",
    "model_attributes_type": "`key: value` lines",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "none_required": "nothing",
    "string_too_short": "{min_length} or more characters",
    "string_too_long": "{max_length} characters or fewer",
    "string_pattern_mismatch": "text that matches {pattern}",
    "too_short": "{min_length} or more items",
    "too_long": "{max_length} items or fewer",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "less than {lt}",
    "less_than_equal": "{le} or less",
    "multiple_of": "a multiple of {multiple_of}",
    "literal_error": "one of {expected}",
    "enum": "one of {expected}",
    CAMERA_NAME_ERROR: A_CAMERA_NAME,
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid"),
        "a date and time such as 2026-11-22T10:44:39+01:00",
    ),
}


@dataclass(frozen=True, slots=True)
class ValidationProblem:
    """One error: its place in the data, and the alternatives of a union (if any) that led pydantic there."""

    error: ErrorDetails
    path: Path
    union: Path | None
    branch: str

    @property
    def kind(self) -> str:
        return self.error["type"]

    @property
    def key(self) -> str:
        """The last part of pydantic's own path."""
        return str(self.error["loc"][-1]) if self.error["loc"] else ""

    @property
    def about(self) -> Path:
        """The path of the wrong value, or of a missing one."""
        return (*self.path, self.error["loc"][-1]) if self.kind == "missing" else self.path

    @property
    def words(self) -> frozenset[str]:
        """The words of the message."""
        return frozenset(re.findall(r"\w+", self.error["msg"]))

    def named(self, value: Any) -> list[str]:
        """The keys of a mapping, which this is about as a whole, that the message names: they do not go together."""
        return sorted(self.words.intersection(value)) if self.kind == "value_error" and isinstance(value, dict) else []


Origin = Callable[[Path], Path]
"""From a path in the validated data to its path in the file."""


def explain(
    error: ValidationError,
    model: type[BaseModel],
    data: Any,
    report: Report,
    origin: Origin,
    *,
    follows: Callable[[ValidationProblem], bool] = lambda _: False,
) -> list[ValidationProblem]:
    """Add all of pydantic's errors to the report, each with its place, and return them.

    `follows`: whether an error only follows from one that has been reported, so that it need not be.
    """
    reporter = _Reporter(data, schema_of(model), report, origin, _hint_at_key(model))
    found = [_locate(data, details) for details in error.errors(include_url=False)]
    short = {one.path[:-1] for one in found if one.path}
    remaining = [one for one in found if not (one.kind == "too_short" and one.path in short) and not follows(one)]
    for group in _groups(remaining):
        reporter.report_group(group)
    return found


def _hint_at_key(model: type[BaseModel]) -> Callable[[Any, Path], str]:
    return model.hint_at_key if issubclass(model, Definition) else lambda _data, _path: ""


def plainly(error: ValidationError, data: Any) -> str:
    """Describe pydantic's first error, for values that are in no file."""
    first = _locate(data, error.errors(include_url=False)[0])
    return f"{dotted(first.path)}: expected {_expected(first)}, got {shown(_value_at(data, first.path))}"


def _locate(data: Any, error: ErrorDetails) -> ValidationProblem:
    path: Path = ()
    union: Path | None = None
    branch = ""
    current: Any = data
    for index, part in enumerate(error["loc"]):
        last = index == len(error["loc"]) - 1
        if _holds(current, part):
            current = current[part]
            path = (*path, part)
        elif union is None and part != "[key]" and not (last and error["type"] == "missing"):
            union, branch = path, str(part)
    return ValidationProblem(error, path, union, branch)


def _holds(value: Any, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value


def _groups(found: Iterable[ValidationProblem]) -> list[list[ValidationProblem]]:
    """Group errors: of the alternatives of one union, keep those of the one that got furthest."""
    unions: dict[Path, list[ValidationProblem]] = defaultdict(list)
    groups: list[list[ValidationProblem]] = []
    for one in found:
        if one.union is None:
            groups.append([one])
        else:
            unions[one.union].append(one)
    for members in unions.values():
        if len({member.branch for member in members}) == 1:
            groups += [[member] for member in members]
            continue
        deepest = max(len(member.path) for member in members)
        groups.append([member for member in members if len(member.path) == deepest])
    return groups


@dataclass(frozen=True, slots=True)
class _Reporter:
    """Words for the errors of one piece of data."""

    data: Any
    schema: Schema
    report: Report
    origin: Origin
    hint_at_key: Callable[[Any, Path], str]

    def report_group(self, group: list[ValidationProblem]) -> None:
        first = group[0]
        place = self.origin(first.path)
        if self.report.covers(place) and first.kind != "extra_forbidden":
            return
        if self.report.is_full:
            self.report.count(self.origin(first.about))
            return
        name = dotted(place)
        at = f"{name}: " if name else ""
        if first.kind == "extra_forbidden":
            text = f"{dotted(place[:-1]) or 'the graph'}: {_key_of_stage(place) or self._unknown(first)}"
            self.report.add(place, text, at_key=True, error_id="key-unknown")
        elif first.kind == "missing":
            about = (*place, first.error["loc"][-1])
            text = f"{at}{self._missing(first)}"
            self.report.add(place, text, at_key=True, about=about, error_id="setting-missing")
        elif first.kind in ("value_error", "assertion_error"):
            text = str(first.error.get("ctx", {}).get("error", first.error["msg"]))
            is_key = first.key == "[key]"
            named = first.named(_value_at(self.data, first.path))
            whole = (*place, named[0]) if named else None
            message = f"{dotted(place[:-1])}: {text}" if is_key else f"{at}{text}"
            self.report.add(place, message, at_key=is_key, about=whole, error_id="setting-value")
        elif first.key == "[key]":
            written, expected = str(first.path[-1]), _expected(first)
            nearest = {A_NAME: nearest_name, A_CAMERA_NAME: nearest_camera_name}.get(expected)
            near = nearest(written) if nearest and len(written) <= MAX_NAME else ""
            guess = f"; did you mean `{near}`?" if near else ""
            text = f"{dotted(place[:-1])}: expected {expected}, got `{_short(written)}`{guess}"
            kind = "name-not-allowed" if nearest else "key-unknown"
            self.report.add(place, text, at_key=True, error_id=kind)
        else:
            self.report.add(place, f"{at}{self._wrong(group, place)}", error_id="setting-value")

    def _unknown(self, found: ValidationProblem) -> str:
        if hint := self.hint_at_key(self.data, found.path):
            return f"unknown key `{found.key}`{hint}"
        # By pydantic's own path if a short form was expanded before.
        known = described(self.schema, found.path[:-1]) or described(self.schema, found.error["loc"][:-1])
        guess = _unquoted(found, self.data) or did_you_mean_key(found.key, known)
        listed = f"; known: {', '.join(sorted(known))}" if known else "; it takes none"
        return f"unknown key `{found.key}`{guess or listed}{self._under_with(found, known)}"

    def _under_with(self, found: ValidationProblem, known: Collection[str]) -> str:
        """The hint for a setting that stands beside `use` instead of under `with`; "" if a key was surely mistyped."""
        beside = _value_at(self.data, found.path[:-1])
        if "with" not in known or not isinstance(beside, dict) or not isinstance(beside.get("use"), str):
            return ""
        near = nearest(found.key, known)
        if near and (sorted(near[0]) == sorted(found.key) or SequenceMatcher(None, found.key, near[0]).ratio() > _SURE):
            return ""
        return f" (a setting of `{beside['use']:.40}` stands under `with`)"

    def _missing(self, found: ValidationProblem) -> str:
        if isinstance(found.error["loc"][-1], int):
            return "too few items"
        words = described(self.schema, found.path).get(found.key, "")
        return f"`{found.key}` is missing{f': {words}' if words else ''}"

    def _wrong(self, group: list[ValidationProblem], place: Path) -> str:
        value = _value_at(self.data, group[0].path)
        wanted = list(dict.fromkeys(_expected(one) for one in group))
        if holds_secret(place) and isinstance(value, str | int | float) and not isinstance(value, bool):
            got = f"{len(value)} characters" if isinstance(value, str) else "a number"
            quotes = "; write it in quotes" if wanted == ["text"] and got == "a number" else ""
            return f"expected {' or '.join(wanted)}, got {got} (it is not shown){quotes}"
        got = shown(self.report.source.shown(place, value))
        return f"expected {' or '.join(wanted)}, got {got}{_hint(group, value) or self._as_list(group, place, value)}"

    def _as_list(self, group: list[ValidationProblem], place: Path, value: Any) -> str:
        """How to write a single text where several may stand."""
        wants_list = {one.kind for one in group} == {"list_type"} and isinstance(value, str)
        return (
            f"; write [{_short(self.report.source.shown(place, value))}]"
            if wants_list and lists_texts(self.schema, group[0].path)
            else ""
        )


_OF_A_STAGE = {field.alias or name for name, field in StageEntry.model_fields.items()}


def _key_of_stage(place: Path) -> str:
    """What is wrong with a key of a stage among its settings, such as `batch` below `with`; "" for other keys."""
    if len(place) != _LEVEL_OF_SETTINGS or (place[0], place[2]) != ("stages", "with") or place[-1] not in _OF_A_STAGE:
        return ""
    return f"`{place[-1]}` is no setting: it stands beside `use`, not under `with`"


_LEVEL_OF_SETTINGS = 4
_SURE = 0.75
_OF_A_KEY = re.compile(r"[\w.*<-]+")


def _unquoted(found: ValidationProblem, data: Any) -> str:
    """How to write a text whose end YAML has read as a key: `{when: distance(a.feet, b.feet) < 1h}`."""
    if _OF_A_KEY.fullmatch(found.key) or not found.key.strip():
        return ""
    return f"; {_QUOTES}" if _value_at(data, found.path) is None else f"; if it belongs to a text, {_QUOTES}"


_QUOTES = "write the whole text in quotes: without them YAML ends it at a `,` or `: `, and reads {...} as `key: value`"


def _expected(found: ValidationProblem) -> str:
    context = found.error.get("ctx", {})
    if context.get("pattern") == NAME_PATTERN or (found.kind, context.get("max_length")) == (
        "string_too_long",
        MAX_NAME,
    ):
        return A_NAME
    if context.get("min_length") == 1 and found.kind == "string_too_short":
        return "text"
    if found.kind in ("literal_error", "enum") and len(_words(found)) == 1:
        return str(context["expected"])
    if found.kind in _EXPECTED:
        return _EXPECTED[found.kind].format(**{key: _rounded(value) for key, value in context.items()})
    message = found.error["msg"]
    return f"something else ({message[:1].lower()}{message[1:]})" if found.kind != "from_shape" else message


def _rounded(bound: Any) -> Any:
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def _hint(group: list[ValidationProblem], value: Any) -> str:
    kinds = {one.kind for one in group}
    if kinds & {"literal_error", "enum"} and isinstance(value, str):
        known = [word.strip("' ") for one in group for word in _words(one)]
        return did_you_mean(value, known)
    if "string_type" in kinds and isinstance(value, dict):
        braces = len(value) == 1 and None in value.values()
        return "; a text that begins with { stands in quotes" if braces else f"; {_QUOTES}"
    if kinds == {"string_type"} and isinstance(value, int | float) and not isinstance(value, bool):
        return f'; write "{value}" with quotes'
    return ""


def _words(found: ValidationProblem) -> list[str]:
    return str(found.error.get("ctx", {}).get("expected", "")).replace(" or ", ", ").split(", ")


def _value_at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def shown(value: Any) -> str:
    """A value as a message shows it: short, and as the file would write it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "`key: value` lines"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return _short(repr(value))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
