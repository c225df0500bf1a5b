"""The parameters of templates: which values they take, and the text with the values put in.

in {zone} and age > {stay} + {zone: door, stay: 2min} --filled--> in door and age > 2min
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from camgraph.pipeline.system.names import nfc
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.rules.language.kinds import UNITS, Kind, instead_of, meant_time
from camgraph.stages.rules.rule_file import (
    PLACEHOLDER,
    ParameterDefinition,
    ParameterKind,
    ParameterValue,
    duration_ns,
    is_word,
)

_LITERAL = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?P<unit>[A-Za-z]*(?:/s)?)")
_NUMBER_AND_UNIT = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(?P<unit>[A-Za-z%\u00b0]*(?:/[sh])?)")
_LENGTHS = (Kind.LENGTH, Kind.FRAME_WIDTH, Kind.FRAME_HEIGHT, Kind.PIXELS)
_OF_UNIT: Mapping[str, ParameterKind] = {
    "": "number",
    "min": "time",
    **{unit: "length" for unit, kind in UNITS.items() if kind in _LENGTHS},
    **{unit: "time" for unit, kind in UNITS.items() if kind == Kind.TIME},
    **{unit: "angle" for unit, kind in UNITS.items() if kind == Kind.ANGLE},
    **{unit: "speed" for unit, kind in UNITS.items() if kind == Kind.SPEED},
    "/s": "rate",
}
_EXPECTED: Mapping[ParameterKind, str] = {
    "time": "a time such as 2s, 500ms or 1min",
    "length": "a length such as 0.3h or 0.2bl",
    "angle": "an angle such as 60deg",
    "speed": "a speed such as 0.5h/s",
    "rate": "a rate such as 2/s",
    "number": "a bare number",
    "zone": "the name of a zone",
    "line": "the name of a line",
    "name": "a name such as left_wrist",
    "condition": "a condition",
    "switch": "true or false",
}
_STAND_INS: Mapping[ParameterKind, str] = {
    "time": "1s",
    "length": "1h",
    "angle": "90deg",
    "speed": "1h/s",
    "rate": "1/s",
    "number": "1",
    "zone": "a_zone_of_the_rule",
    "line": "a_line_of_the_rule",
    "name": "nose",
    "condition": "score > 0",
    "switch": "true",
}
_SWITCHED: Mapping[str, str] = {"true": "(1 > 0)", "false": "(1 < 0)"}


def kind_of(parameter: ParameterDefinition) -> ParameterKind:
    """The kind of its values: as declared, or that of the default."""
    if parameter.kind is not None:
        return parameter.kind
    if isinstance(parameter.default, bool):
        return "switch"
    text = written(parameter.default)
    return _kind_of_literal(text) or ("name" if is_word(text) else "condition")


def _kind_of_literal(text: str) -> ParameterKind | None:
    found = _LITERAL.fullmatch(text)
    return _OF_UNIT.get(found["unit"]) if found else None


def written(value: ParameterValue | None) -> str:
    """A value as a condition has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return nfc(value.strip()) if isinstance(value, str) else repr(value)


def wrong_value(
    kind: ParameterKind, value: ParameterValue, zones: Collection[str], lines: Collection[str]
) -> str | None:
    """In words, why a parameter of this kind does not take the value; None if it does."""
    text = written(value)
    if kind in ("zone", "line"):
        known = zones if kind == "zone" else lines
        if text in known:
            return None
        listed = f"; known: {', '.join(sorted(known))}" if known else f": this file has no `{kind}s`"
        return f"there is no {kind} `{text[:40]}`{did_you_mean(text, known) or listed}"
    if kind == "condition":
        return None if _closes(text) else f"expected a condition with as many `(` as `)`, got {value!r:.60}"
    if (kind == "switch" and text in _SWITCHED) or (kind == "name" and all(map(is_word, text.split(".")))):
        return None
    if kind == "switch" or kind != _kind_of_literal(text):
        return f"expected {_EXPECTED[kind]}, got {value!r:.60}{_guess(kind, text)}"
    return _wrong_time(text) if kind == "time" else None


def _guess(kind: ParameterKind, text: str) -> str:
    """`; did you mean `0.3h/s`?` for a speed of `0.3h`, and what to write instead of metres, or nothing."""
    found = _NUMBER_AND_UNIT.fullmatch(text)
    if not found:
        return ""
    if kind == "speed" and _OF_UNIT.get(f"{found['unit']}/s") == kind:
        return f"; did you mean `{found['number']}{found['unit']}/s`?"
    if kind == "time" and (meant := meant_time(found["number"], found["unit"])):
        return f"; did you mean `{meant}`?"
    return "" if found["unit"] in ("", *UNITS) else instead_of(float(found["number"]), found["unit"])


def _wrong_time(text: str) -> str | None:
    try:
        duration_ns(text)
    except ValueError as error:
        return str(error)
    return None


def _closes(text: str) -> bool:
    """Whether no parenthesis reaches out of a text: it is put into another one, between parentheses."""
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0


def stand_in(parameter: ParameterDefinition) -> str:
    """A value for checking a template by itself."""
    return _STAND_INS[kind_of(parameter)] if parameter.default is None else written(parameter.default)


SOME_ZONE, SOME_LINE = _STAND_INS["zone"], _STAND_INS["line"]


@dataclass(frozen=True, slots=True)
class Span:
    """A value in a filled text, the place of its parameter in the text of the template, and its name."""

    begin: int
    end: int
    raw_begin: int
    raw_end: int
    name: str


@dataclass(frozen=True, slots=True)
class Filled:
    """A text with the values of parameters in it."""

    text: str
    spans: tuple[Span, ...] = ()

    def parameter_at(self, offset: int) -> tuple[str, int] | None:
        """The parameter whose value stands there, and the offset in its value."""
        found = next((span for span in self.spans if span.begin <= offset < span.end), None)
        return (found.name, offset - found.begin) if found else None

    def raw(self, offset: int) -> int:
        """An offset in this text as one in the text of the template."""
        shift = 0
        for span in self.spans:
            if offset < span.begin:
                break
            if offset < span.end:
                return span.raw_begin
            shift = span.raw_end - span.end
        return offset + shift


def filled(text: str, values: Mapping[str, tuple[ParameterKind, str]]) -> Filled:
    """A condition with its parameters put in: name -> kind and value. Unknown ones stay as they are."""
    pieces: list[str] = []
    spans: list[Span] = []
    at = length = 0
    for found in PLACEHOLDER.finditer(text):
        if found[1] not in values:
            continue
        value = _in_condition(*values[found[1]])
        before = text[at : found.start()]
        begin = length + len(before)
        spans.append(Span(begin, begin + len(value), found.start(), found.end(), found[1]))
        pieces += [before, value]
        length, at = begin + len(value), found.end()
    return Filled("".join([*pieces, text[at:]]), tuple(spans))


def _in_condition(kind: ParameterKind, value: str) -> str:
    if kind == "switch":
        return _SWITCHED[value]
    return f"({value})" if kind == "condition" else value


def put_in(value: object, fill: Callable[[str], str]) -> object:
    """The value of a key with its parameters put in, if it is a text."""
    return fill(value) if isinstance(value, str) else value
