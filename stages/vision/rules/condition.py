"""A condition's tree as two Python functions: is it surely true or surely false, and which values made it so.

Only this module's own words go into the source that is compiled: names of joints become indices, numbers their repr.
Each condition is written twice, as the text that holds when it is surely true and the one that holds when it is surely
false (see `people` for how NaN makes a third answer of that):

    left_wrist.y < nose.y - 0.1h     true: k[19] < (k[1] - (0.1 * p.h))     false: k[19] >= (k[1] - (0.1 * p.h))
    not C                            true: false of C                       false: true of C
    C and D                          true: both are true                    false: one of the two is false
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from stages.vision.rules import people
from stages.vision.rules.expression import (
    Arithmetic,
    Call,
    Comparison,
    ExpressionError,
    Inside,
    Junction,
    Name,
    Negative,
    Node,
    Not,
    Number,
    parse,
)
from stages.vision.rules.kinds import MEASURES, UNITS, Kind, KindError, added, compared, divided, multiplied
from stages.vision.rules.vocabulary import FUNCTIONS, SCALES, Measure, PersonWords, Place, suggestion

Scope = Literal["person", "pair", "scene"]

_PARAMETERS: dict[Scope, str] = {"person": "k, p, g", "pair": "ka, pa, kb, pb, g", "scene": "s, g"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_GLOBALS: dict[str, Any] = {
    "__builtins__": {},
    "abs": abs,
    "hypot": math.hypot,
    **{name: getattr(people, name) for name in ("torso", "lean", "angle", "ratio", "low", "high")},
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition.

    `judge` gives True, False or None (unknown); `values` gives for each of `parts` (text, kind) the two sides of the
    comparison, or a truth. Both take the arguments of the scope: person (joints, Person, Surroundings),
    pair (joints, Person, joints, Person, Surroundings), scene (Scene, Surroundings).
    """

    judge: Callable[..., bool | None]
    values: Callable[..., tuple[Any, ...]]
    parts: tuple[tuple[str, Kind], ...]
    zones: frozenset[str]
    lines: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Truth:
    """Python text that holds when a condition is surely true, and when it is surely false."""

    true: str
    false: str


Part = TypeVar("Part")
Result = TypeVar("Result")
_Value = Measure | Place | _Truth


def compile_condition(text: str, scope: Scope, *, zones: Collection[str], lines: Collection[str]) -> Condition:
    """Raises ExpressionError if the text means nothing; `zones` and `lines` are the names that it may use.

    The error has all the mistakes of a text that can be taken apart: of one that cannot, only the first.
    """
    return _compiled(text, scope, frozenset(zones), frozenset(lines))


@functools.lru_cache(maxsize=2048)
def _compiled(text: str, scope: Scope, zones: frozenset[str], lines: frozenset[str]) -> Condition:
    tree = parse(text)
    writer = _Writer(text, scope, zones, lines)
    truth = writer.truth(tree)
    head = f"lambda {_PARAMETERS[scope]}: "
    judge = _function(head + f"True if {truth.true} else (False if {truth.false} else None)")
    values = _function(head + f"({''.join(f'{code}, ' for code in writer.values)})")
    return Condition(judge, values, tuple(writer.parts), frozenset(writer.zones), frozenset(writer.lines))


def _function(source: str) -> Callable[..., Any]:
    try:
        # The source is written by this module alone, from a tree of known names and numbers.
        return eval(compile(source, "<condition>", "eval"), dict(_GLOBALS))  # type: ignore[no-any-return]  # noqa: S307
    except (SyntaxError, RecursionError, MemoryError):
        raise ExpressionError(0, "the condition is nested too deeply: make two rules of it") from None


class _Mistakes:
    """The mistakes of several parts of a condition; each part is read even if others are wrong."""

    def __init__(self) -> None:
        self._found: list[ExpressionError] = []

    def of(self, read: Callable[[Part], Result], part: Part) -> Result | None:
        """The tree of a part; None after a mistake, which is kept."""
        try:
            return read(part)
        except ExpressionError as error:
            self._found += error.all
            return None

    def complain(self) -> None:
        """Raise the mistakes, if there are any."""
        if self._found:
            first, *others = sorted(self._found, key=lambda error: error.at)
            first.others = others
            raise first


def _each(read: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    """The tree of each part. Raises ExpressionError with the mistakes of all of them."""
    mistakes = _Mistakes()
    results = [mistakes.of(read, part) for part in parts]
    mistakes.complain()
    return [result for result in results if result is not None]


class _Writer:
    """Writes Python for a tree, and records the names that it uses."""

    def __init__(self, text: str, scope: Scope, zones: Collection[str], lines: Collection[str]) -> None:
        self.parts: list[tuple[str, Kind]] = []
        self.values: list[str] = []
        self.zones: set[str] = set()
        self.lines: set[str] = set()
        self._text = text
        self._scope: Scope = scope
        self._known = {"zone": zones, "line": lines}
        self._words = PersonWords()

    # ---- truths

    def truth(self, node: Node) -> _Truth:
        if isinstance(node, Junction):
            return self._junction(node)
        if isinstance(node, Not):
            inner = self.truth(node.operand)
            return _Truth(inner.false, inner.true)
        if isinstance(node, Comparison):
            return self._comparison(node)
        if isinstance(node, Inside):
            return self._inside(node)
        if isinstance(node, Call) and node.function in ("crosses", "enters", "leaves"):
            return self._step(node)
        value = self._value(node)
        what = value.kind.value if isinstance(value, Measure) else Kind.POINT.value
        raise ExpressionError(node.begin, f"`{self._slice(node)}` is {what}: expected a comparison, such as {_EXAMPLE}")

    def _junction(self, node: Junction) -> _Truth:
        truths = _each(self.truth, node.operands)
        other = "or" if node.operator == "and" else "and"
        true = f" {node.operator} ".join(truth.true for truth in truths)
        false = f" {other} ".join(truth.false for truth in truths)
        return _Truth(f"({true})", f"({false})")

    def _comparison(self, node: Comparison) -> _Truth:
        mistakes = _Mistakes()
        measures = [mistakes.of(self._measure, operand) for operand in node.operands]

        def step(i: int) -> _Truth | None:
            left, right = measures[i], measures[i + 1]
            return self._compared(node, i, left, right) if left and right else None

        truths = [truth for i in range(len(node.operators)) if (truth := mistakes.of(step, i))]
        mistakes.complain()
        return _Truth(
            f"({' and '.join(truth.true for truth in truths)})", f"({' or '.join(truth.false for truth in truths)})"
        )

    def _compared(self, node: Comparison, i: int, left: Measure, right: Measure) -> _Truth:
        try:
            compared(left.kind, right.kind)
        except KindError as error:
            raise ExpressionError(node.operands[i].begin, f"`{self._pair(node, i)}`: {error}") from None
        self._note(self._pair(node, i), left.kind, f"({left.code}, {right.code})")
        return _compare(node.operators[i], left.code, right.code)

    def _inside(self, node: Inside) -> _Truth:
        if node.point is None:
            if self._scope != "person":
                raise ExpressionError(node.begin, f"whose feet? {_WHOSE[self._scope]}")
            point = self._words.point("feet", "k", "p")
        else:
            found = self._value(node.point)
            if not isinstance(found, Place):
                text = self._slice(node.point)
                raise ExpressionError(
                    node.point.begin, f"`{text}` is no point: expected one such as feet or left_wrist"
                )
            point = found
        name = self._named("zone", node.zone)
        code = f"g.zones[{name!r}]({point.x}, {point.y})"
        self._note(self._slice(node), Kind.TRUTH, code)
        return _Truth(code, f"({point.x} == {point.x} and {point.y} == {point.y} and not {code})")

    def _step(self, node: Call) -> _Truth:
        """crosses(line), crosses(line, rightward | leftward), enters(zone), leaves(zone)."""
        if self._scope != "person":
            raise ExpressionError(node.begin, f"`{node.function}` is about one person: use it with `scope: person`")
        if node.function == "crosses":
            code = self._crosses(node)
        else:
            name = self._named("zone", self._only_name(node, "zone"))
            code = f"p.entered.get({name!r}) == {1 if node.function == 'enters' else -1}"
        self._note(self._slice(node), Kind.TRUTH, code)
        return _Truth(f"({code})", f"(not {code})")

    def _crosses(self, node: Call) -> str:
        if len(node.arguments) != 2:
            line = self._named("line", self._only_name(node, "line"))
            return f"p.crossed.get({line!r}, 0) != 0"
        line_node, way = node.arguments
        line = self._named("line", self._name(line_node, node, "line"))
        word = way.text if isinstance(way, Name) else self._slice(way)
        if word not in ("rightward", "leftward"):
            hint = suggestion(word, ("rightward", "leftward"))
            raise ExpressionError(way.begin, f"`{word}` is no direction: expected rightward or leftward{hint}")
        return f"p.crossed.get({line!r}, 0) == {1 if word == 'rightward' else -1}"

    def _only_name(self, node: Call, what: str) -> Name:
        if len(node.arguments) != 1:
            raise ExpressionError(
                node.begin, f"{node.function}(...) takes the name of a {what}, as in {_CALLS[node.function]}"
            )
        return self._name(node.arguments[0], node, what)

    def _name(self, argument: Node, call: Call, what: str) -> Name:
        if not isinstance(argument, Name):
            raise ExpressionError(
                argument.begin, f"{call.function}(...) takes the name of a {what}, as in {_CALLS[call.function]}"
            )
        return argument

    def _named(self, what: Literal["zone", "line"], name: Name) -> str:
        """The name of a known zone or line, noted as used."""
        known = self._known[what]
        if name.text not in known:
            listed = suggestion(name.text, known) or (f"; known: {', '.join(sorted(known))}" if known else _none(what))
            raise ExpressionError(name.begin, f"there is no {what} `{name.text}`{listed}")
        (self.zones if what == "zone" else self.lines).add(name.text)
        return name.text

    # ---- values

    def _measure(self, node: Node) -> Measure:
        value = self._value(node)
        if isinstance(value, Place):
            text = self._slice(node)
            raise ExpressionError(node.begin, f"`{text}` is a point: write {text}.x, {text}.y or distance({text}, ...)")
        if isinstance(value, _Truth):
            raise ExpressionError(node.begin, f"`{self._slice(node)}` is a condition: expected a number or a place")
        return value

    def _value(self, node: Node) -> _Value:
        if isinstance(node, Number):
            return self._number(node)
        if isinstance(node, Name):
            return self._look_up(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Negative):
            return self._negative(node)
        if isinstance(node, Arithmetic):
            return self._arithmetic(node)
        return self.truth(node)

    def _number(self, node: Number) -> Measure:
        if not node.unit:
            return Measure(Kind.NUMBER, repr(node.value))
        kind = UNITS.get(node.unit)
        if kind is None:
            listed = suggestion(node.unit, UNITS) or f"; known: {', '.join(UNITS)}"
            raise ExpressionError(node.begin, f"`{self._slice(node)}`: there is no unit `{node.unit}`{listed}")
        scale = SCALES[self._scope].get(node.unit)
        if scale is None:
            text = f"`{self._slice(node)}` is measured on one person, and a scene has none: use fw, fh or px"
            raise ExpressionError(node.begin, text)
        return Measure(kind, f"({node.value!r} * {scale})")

    def _look_up(self, node: Name) -> _Value:
        try:
            return self._words.look_up(node.parts, self._scope)
        except KeyError as error:
            if node.text in self._known["zone"]:
                raise ExpressionError(node.begin, f"`{node.text}` is a zone: write `in {node.text}`") from None
            if node.text in self._known["line"]:
                raise ExpressionError(node.begin, f"`{node.text}` is a line: write crosses({node.text})") from None
            raise ExpressionError(node.begin, str(error.args[0])) from None

    def _negative(self, node: Negative) -> Measure:
        inner = self._measure(node.operand)
        if inner.kind in (Kind.X, Kind.Y):
            raise ExpressionError(node.begin, f"`{self._slice(node)}`: {inner.kind.value} has no negative")
        return Measure(inner.kind, f"(-{inner.code})")

    def _arithmetic(self, node: Arithmetic) -> Measure:
        left, right = _each(self._measure, (node.left, node.right))
        try:
            kind = _RESULTS[node.operator](left.kind, right.kind)
        except KindError as error:
            raise ExpressionError(node.begin, f"`{self._slice(node)}`: {error}") from None
        if node.operator == "/":
            return Measure(kind, f"ratio({left.code}, {right.code})")
        return Measure(kind, f"({left.code} {node.operator} {right.code})")

    def _call(self, node: Call) -> _Value:
        if node.function in ("crosses", "enters", "leaves"):
            return self.truth(node)
        if node.function in ("distance", "angle"):
            return self._of_points(node)
        if node.function in ("abs", "min", "max"):
            return self._of_measures(node)
        raise ExpressionError(
            node.begin,
            f"there is no function `{node.function}`"
            + (suggestion(node.function, FUNCTIONS) or f"; known: {', '.join(sorted(FUNCTIONS))}"),
        )

    def _of_points(self, node: Call) -> Measure:
        count, kind = FUNCTIONS[node.function]
        places = _each(self._value, node.arguments)
        points = [place for place in places if isinstance(place, Place)]
        if len(points) != count or len(places) != count:
            example = _CALLS[node.function]
            raise ExpressionError(node.begin, f"{node.function}(...) takes {count} points, as in {example}")
        if node.function == "distance":
            one, other = points
            return Measure(kind, f"hypot({one.x} - {other.x}, {one.y} - {other.y})")
        return Measure(kind, f"angle({', '.join(f'({point.x}, {point.y})' for point in points)})")

    def _of_measures(self, node: Call) -> Measure:
        measures = _each(self._measure, node.arguments)
        if len(measures) != 1 if node.function == "abs" else len(measures) < 2:
            how_many = "one value" if node.function == "abs" else "two values or more"
            raise ExpressionError(node.begin, f"{node.function}(...) takes {how_many}")
        for argument, measure in zip(node.arguments, measures, strict=True):
            if measure.kind != measures[0].kind and not {measure.kind, measures[0].kind} <= _COMMON_LENGTHS:
                text = f"{node.function}(...) compares {measures[0].kind.value} with {measure.kind.value}"
                raise ExpressionError(argument.begin, text)
        if node.function == "abs" and measures[0].kind in (Kind.X, Kind.Y):
            raise ExpressionError(node.begin, "abs(...) takes a difference, as in abs(left_wrist.x - nose.x)")
        code = {"abs": "abs", "min": "low", "max": "high"}[node.function]
        return Measure(measures[0].kind, f"{code}({', '.join(measure.code for measure in measures)})")

    # ---- words

    def _note(self, text: str, kind: Kind, code: str) -> None:
        self.parts.append((text, kind))
        self.values.append(code)

    def _slice(self, node: Node) -> str:
        return " ".join(self._text[node.begin : node.end].split())

    def _pair(self, node: Comparison, i: int) -> str:
        return f"{self._slice(node.operands[i])} {node.operators[i]} {self._slice(node.operands[i + 1])}"


def _compare(operator: str, left: str, right: str) -> _Truth:
    # NaN != NaN is true in Python, so that a plain != would call the unknown true.
    differs, same = f"({left} < {right} or {left} > {right})", f"{left} == {right}"
    if operator == "==":
        return _Truth(same, differs)
    if operator == "!=":
        return _Truth(differs, same)
    return _Truth(f"{left} {operator} {right}", f"{left} {_OPPOSITE[operator]} {right}")


def _none(what: str) -> str:
    return f": this file has no `{what}s`"


_EXAMPLE = "left_wrist.y < nose.y - 0.1h"
_WHOSE: dict[Scope, str] = {
    "pair": "write `a.feet in ...` or `b.feet in ...`",
    "scene": "write it under `who`",
    "person": "",
}
_CALLS = {
    "crosses": "crosses(gate) or crosses(gate, rightward)",
    "enters": "enters(door)",
    "leaves": "leaves(door)",
    "distance": "distance(left_wrist, nose)",
    "angle": "angle(left_shoulder, left_elbow, left_wrist)",
}
_RESULTS: dict[str, Callable[[Kind, Kind], Kind]] = {
    "+": lambda left, right: added("+", left, right),
    "-": lambda left, right: added("-", left, right),
    "*": multiplied,
    "/": divided,
}
_COMMON_LENGTHS = MEASURES & {Kind.LENGTH, Kind.FRAME_WIDTH, Kind.FRAME_HEIGHT, Kind.PIXELS}
