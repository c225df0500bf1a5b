"""What terms need, and for how long and of whom a truth can hold: learnt from the tree, before Python is made of it."""

from __future__ import annotations

import math
from typing import Literal

from camgraph.stages.rules.language.memory import CELLS
from camgraph.stages.rules.language.people import LOST_NS
from camgraph.stages.rules.language.terms import (
    Argument,
    Call,
    Fact,
    Joint,
    Junction,
    Recalled,
    Running,
    Sides,
    Step,
    Term,
    Told,
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
