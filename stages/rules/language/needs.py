"""What follows from the tree of a condition, before Python is made of it.

at_most_ns, of_whom   for how long, and of whom, a truth can hold
costly                the values that are worth being kept
without_joints        whether a truth can hold if only the boxes of people are known
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Literal, NamedTuple

from camgraph.stages.rules.language.cells import CELLS
from camgraph.stages.rules.language.people import LOST_NS, STATURE
from camgraph.stages.rules.language.terms import (
    Argument,
    Arithmetic,
    Call,
    Cell,
    Comparison,
    Constant,
    Fact,
    Joint,
    Junction,
    Not,
    Recalled,
    Running,
    Sides,
    Step,
    Term,
    Told,
    Truth,
    Unseen,
    walk,
)

ONE_FRAME_NS = 1
"""How long a truth holds that is of one frame alone."""
Whom = Literal["", "seen", "lost"]


def at_most_ns(truth: Term) -> float:
    """The truth holds for no longer than this at a time."""
    if isinstance(truth, Junction):
        return (max if truth.operator == "or" else min)(map(at_most_ns, truth.operands))
    if isinstance(truth, Step):
        return ONE_FRAME_NS
    if isinstance(truth, Unseen):
        return LOST_NS - truth.after_ns
    if isinstance(truth, Told) and isinstance(truth.value, Recalled):
        cell = truth.value.cell
        lasts_ns = CELLS[cell.kind].at_most_ns
        if lasts_ns:
            return lasts_ns(cell.times, [at_most_ns(one) for one in cell.inputs])
    return math.inf


def of_whom(truth: Term) -> Whom:
    """Of whom alone the truth can hold, if that is known: all that a frame itself says is unknown of the lost."""
    if isinstance(truth, Junction) and not isinstance(truth, Sides):
        whom = set(map(of_whom, truth.operands))
        if truth.operator == "and":
            return "lost" if "lost" in whom else "seen" if "seen" in whom else ""
        if len(whom) == 1:
            return whom.pop()
    if isinstance(truth, Unseen):
        return "lost"
    if isinstance(truth, Told) and isinstance(truth.value, Recalled):
        cell = truth.value.cell
        return of_whom(cell.inputs[0]) if CELLS[cell.kind].same_people else ""
    found = list(walk(truth))
    if any(isinstance(one, Recalled | Unseen | Running) for one in found):
        return ""
    return "seen" if any(map(_is_of_a_person, found)) else ""


def _is_of_a_person(term: Term) -> bool:
    return isinstance(term, Joint | Argument) or (isinstance(term, Fact) and term.of.startswith("p"))


_COSTLY = frozenset({"angle", "above", "beside", "beyond", "hypot", "high", "low"})


def _is_costly(term: Term) -> bool:
    return (isinstance(term, Call) and term.function in _COSTLY) or (isinstance(term, Fact) and term.name == "inside")


def costly(*terms: Term) -> set[Term]:
    """The costly values in terms; not those within others, nor those of cells, which may not have this frame yet."""
    found: set[Term] = set()
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        if not _is_costly(term):
            waiting += term.within
        elif term not in found and not any(isinstance(one, Recalled) for one in walk(term)):
            found.add(term)
    return found


class Chances(NamedTuple):
    """Whether a truth can be surely true, and surely false."""

    true: bool
    false: bool


_ANY, _NONE = Chances(true=True, false=True), Chances(true=False, false=False)


def without_joints(truth: Term) -> Chances:
    """The chances of a truth about people of whom the box alone is known. Functions in Python may have any answer."""
    match truth:
        case Junction():
            parts = [without_joints(one) for one in truth.operands]
            if truth.operator == "and":
                return Chances(all(one.true for one in parts), any(one.false for one in parts))
            return Chances(any(one.true for one in parts), all(one.false for one in parts))
        case Not():
            return Chances(*reversed(without_joints(truth.operand)))
        case Told(value=Recalled(cell=cell)):
            return _of_cell(cell)
        case Comparison(operators=(operator,), operands=(Recalled(cell=cell), limit)):
            number = _number(limit)
            # Moments in which the truth is unknown do not count, so its total is 0.
            if cell.kind == "Total" and number is not None and not without_joints(cell.inputs[0]).true:
                holds = _HOLDS[operator](0.0, number)
                return Chances(true=holds, false=not holds)
    return _ANY if _is_known(truth) else _NONE


_HOLDS: Mapping[str, Callable[[float, float], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}


def _number(term: Term) -> float | None:
    """The value of a constant with its unit, such as 0.2 * 1.0; None if it is none."""
    match term:
        case Constant(value=value):
            return None if isinstance(value, str) else value
        case Arithmetic(operator="*", left=Constant(value=value), right=Constant(value=unit)):
            return None if isinstance(value, str) or isinstance(unit, str) else value * unit
    return None


def _of_cell(cell: Cell) -> Chances:
    if cell.kind == "Code":
        return _ANY
    parts = [without_joints(one) if isinstance(one, Truth) else _ANY for one in cell.inputs]
    is_known = all(isinstance(one, Truth) or _is_known(one) for one in cell.inputs)
    return Chances(all(one.true for one in parts), any(one.false for one in parts)) if is_known else _NONE


def _is_known(term: Term) -> bool:
    """Whether a value follows from the boxes."""
    return all(map(_is_of_the_box, walk(term)))


def _is_of_the_box(term: Term) -> bool:
    match term:
        case Joint():
            return term.place == STATURE
        case Argument():
            return term.name != "k"
        case Fact():
            return term.name not in ("confidences", "score_of")
        case Recalled():
            return _of_cell(term.cell).true
    return True
