"""Writes terms as Python, and makes functions of it.

Only this package's own words go into the source that is compiled: names of joints become places, numbers their repr. A
truth is written twice, as the text that holds when it is surely true and the one that holds when it is surely false
(see `people` for how NaN makes a third answer of that):

    left_wrist.y < nose.y - 0.1h     true: k[19] < (k[1] - (0.1 * p.h))     false: k[19] >= (k[1] - (0.1 * p.h))
    not C                            true: false of C                       false: true of C
    C and D                          true: both are true                    false: one of the two is false

The text reads the present values of cells (`memory`), which are stepped before:

    drop(hips.y, 0.8s) > 0.4bl       m[0] > (0.4 * k[34])       cell 0: Growth of k[47] over 0.8 s
    in door for 5s                   m[1]   /   m[1] is False   cell 1: Lasting 5 s of in door
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from camgraph.stages.rules.language import people
from camgraph.stages.rules.language.cells import CELLS
from camgraph.stages.rules.language.expression import ExpressionError
from camgraph.stages.rules.language.terms import (
    Argument,
    Arithmetic,
    Call,
    Cell,
    Comparison,
    Constant,
    Fact,
    InZone,
    Joint,
    Junction,
    Negative,
    Not,
    Recalled,
    Report,
    Running,
    Sides,
    Step,
    Term,
    Told,
    Truth,
    Unseen,
)
from camgraph.stages.rules.language.vocabulary import Scope

PARAMETERS: Mapping[Scope, tuple[str, ...]] = {
    "person": ("k", "p", "g"),
    "pair": ("ka", "pa", "kb", "pb", "g"),
    "scene": ("s", "g"),
}
"""The parameters of a condition: joints, Person, Surroundings; those of two people; Scene, Surroundings."""
_WITH_KEYS = {
    **dict.fromkeys(("inside", "entered", "crossed"), "{of}.{name}.get({keys[0]!r})"),
    "labels": "{of}.labels.get({keys[0]!r}, nan)",
    "score_of": "{of}.score_of({keys[0]!r})",
    "confidences": "{of}.confidences[{keys[0]!r}]",
    "counters": "{of}.counters[{keys[0]!r}].{keys[1]}",
}
"""The Python of facts that have keys."""
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_OTHER = {"and": "or", "or": "and"}
_GLOBALS: dict[str, Any] = {
    "__builtins__": {},
    "abs": abs,
    "hypot": math.hypot,
    "nan": math.nan,
    "zip": zip,
    **{name: getattr(people, name) for name in ("above", "beside", "beyond", "angle", "ratio", "low", "high")},
}


def functions_of(lines: Iterable[str]) -> Mapping[str, Callable[..., Any]]:
    """The functions of these lines of Python, by name. Raises ExpressionError if they are nested too deeply."""
    space = dict(_GLOBALS)
    try:
        # The source is written by this package alone, from a tree of known names and numbers.
        exec(compile("\n".join(lines), "<condition>", "exec"), space)  # noqa: S102
    except (SyntaxError, RecursionError, MemoryError):
        raise ExpressionError(0, "the condition is nested too deeply: make two rules of it") from None
    return space


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes terms.

    `cells`: where the value of each cell stands. `flat`: each number of the joints has a name, k35 for k[35]. `named`:
    the names of values that the lines before have computed.
    """

    cells: Mapping[Cell, int]
    flat: bool = False
    named: Mapping[Term, str] = field(default_factory=dict)
    _values: dict[int, str] = field(default_factory=dict)
    _true: dict[int, str] = field(default_factory=dict)
    _false: dict[int, str] = field(default_factory=dict)
    """Texts by the identity of their terms: each is written once."""

    def value(self, term: Term) -> str:
        """The value of a term: a number; a truth as True, False or None."""
        text = self._values.get(id(term))
        if text is None:
            if isinstance(term, Truth):
                text = f"(True if {self.true(term)} else (False if {self.false(term)} else None))"
            elif self.named and term in self.named:
                text = self.named[term]
            else:
                text = _VALUES[type(term)](self, term)
            self._values[id(term)] = text
        return text

    def true(self, truth: Truth) -> str:
        """The text that holds if the truth is surely true."""
        text = self._true.get(id(truth))
        if text is None:
            text = self._true[id(truth)] = _HOLDS[type(truth)](self, truth, True)
        return text

    def false(self, truth: Truth) -> str:
        """The text that holds if the truth is surely false."""
        text = self._false.get(id(truth))
        if text is None:
            text = self._false[id(truth)] = _HOLDS[type(truth)](self, truth, False)
        return text

    def quiet(self, cell: Cell) -> str:
        """The text that holds in a frame after which another such frame changes nothing; "" if there are none."""
        quiet = CELLS[cell.kind].quiet
        falses = [self.false(one) for one in cell.inputs if isinstance(one, Truth)] if quiet else []
        if quiet == "if 0":
            falses += [f"m[{self.cells[cell]}] == 0.0", "t.moved"]
        return " and ".join(falses)


# ---- values


def _constant(_: Writer, term: Constant) -> str:
    return repr(term.value)


def _argument(_: Writer, term: Argument) -> str:
    return term.name


def _joint(writer: Writer, term: Joint) -> str:
    return f"k{term.whose}{term.place}" if writer.flat else f"k{term.whose}[{term.place}]"


def _fact(_: Writer, term: Fact) -> str:
    return (
        _WITH_KEYS[term.name].format(of=term.of, name=term.name, keys=term.keys)
        if term.keys
        else f"{term.of}.{term.name}"
    )


def _arithmetic(writer: Writer, term: Arithmetic) -> str:
    return f"({writer.value(term.left)} {term.operator} {writer.value(term.right)})"


def _negative(writer: Writer, term: Negative) -> str:
    return f"(-{writer.value(term.operand)})"


def _call(writer: Writer, term: Call) -> str:
    written = [
        f"({', '.join(map(writer.value, one))})" if isinstance(one, tuple) else writer.value(one)
        for one in term.arguments
    ]
    return f"{term.function}({', '.join(written)})"


def _in_zone(writer: Writer, term: InZone) -> str:
    place = f"{writer.value(term.x)}, {writer.value(term.y)}"
    return f"g.zones[{term.zone!r}]({place if term.body is None else f'*p{term.body}.seen_at({place})'})"


def _running(_: Writer, term: Running) -> str:
    return f"g.runs({term.rule!r}, ({''.join(f'p{one}.id, ' for one in term.people)}))"


def _recalled(writer: Writer, term: Recalled) -> str:
    return f"m[{writer.cells[term.cell]}]"


def _report(writer: Writer, term: Report) -> str:
    cell = f"c[{writer.cells[term.cell]}]"
    return f"{cell}.reported" if term.step is None else f"({cell}.ago(t, {term.step}), nan)"


_VALUES: Mapping[type[Term], Callable[[Writer, Any], str]] = {
    Constant: _constant,
    Argument: _argument,
    Joint: _joint,
    Fact: _fact,
    Arithmetic: _arithmetic,
    Negative: _negative,
    Call: _call,
    InZone: _in_zone,
    Running: _running,
    Recalled: _recalled,
    Report: _report,
}


# ---- truths, if they hold surely, or if they surely do not


def _told(writer: Writer, truth: Told, sure: bool) -> str:
    value = writer.value(truth.value)
    if sure:
        return value
    if isinstance(truth.value, InZone):
        x, y = writer.value(truth.value.x), writer.value(truth.value.y)
        return f"({x} == {x} and {y} == {y} and not {value})"
    return f"(not {value})" if isinstance(truth.value, Running) else f"({value} is False)"


def _comparison(writer: Writer, truth: Comparison, sure: bool) -> str:
    values = list(map(writer.value, truth.operands))
    steps = [_compared(values[i], values[i + 1], one, sure) for i, one in enumerate(truth.operators)]
    return f"({(' and ' if sure else ' or ').join(steps)})"


def _compared(left: str, right: str, operator: str, sure: bool) -> str:
    if operator in ("==", "!="):
        # NaN != NaN is true in Python, so that a plain != would call the unknown true.
        same = (operator == "==") == sure
        return f"{left} == {right}" if same else f"({left} < {right} or {left} > {right})"
    return f"{left} {operator if sure else _OPPOSITE[operator]} {right}"


def _not(writer: Writer, truth: Not, sure: bool) -> str:
    return writer.false(truth.operand) if sure else writer.true(truth.operand)


def _junction(writer: Writer, truth: Junction, sure: bool) -> str:
    if sure:
        return f"({f' {truth.operator} '.join(map(writer.true, truth.operands))})"
    return f"({f' {_OTHER[truth.operator]} '.join(map(writer.false, truth.operands))})"


def _step(writer: Writer, truth: Step, sure: bool) -> str:
    ways = truth.ways if sure else tuple(sorted({-1, 0, 1}.difference(truth.ways)))
    return f"({writer.value(truth.fact)} in {ways})"


def _unseen(_: Writer, truth: Unseen, sure: bool) -> str:
    """Of somebody who left, nobody knows whether they would be lost."""
    least_ns = max(truth.after_ns, 1)  # 0 while they may be unseen by chance
    long, short = f"p.lost_ns >= {least_ns}", f"p.lost_ns < {least_ns}"
    if truth.word == "lost":
        return f"({long if sure else short} and not p.left_picture)"
    return f"({long} and p.left_picture)" if sure else f"({short} or {long} and not p.left_picture)"


_HOLDS: Mapping[type[Truth], Callable[[Writer, Any, bool], str]] = {
    Told: _told,
    Comparison: _comparison,
    Not: _not,
    Junction: _junction,
    Sides: _junction,
    Step: _step,
    Unseen: _unseen,
}
