"""The meaning of a condition as a tree of terms: numbers, and truths, about people.

A term is typed and complete: names are joints and facts, words are their definitions, units are lengths in pixels. The
tree stands between the text of a condition and the Python that judges:

    text       left_wrist.y < nose.y - 0.1h
    term       Comparison(("<",), (Joint("", 19), Arithmetic("-", Joint("", 1), Arithmetic("*", ...))))
    Python     k[19] < (k[1] - (0.1 * p.h))

`meaning.py` reads terms from the tree of the text and checks them, `needs.py` says what terms need, and `emission.py`
writes them as Python. Equal terms have equal values in every frame, so equal cells of several rules are one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Whose = Literal["", "a", "b"]
"""The one of a pair, "" for the only person."""


@dataclass(frozen=True, slots=True)
class Term:
    """A number, or a truth: True, False or unknown."""

    @property
    def within(self) -> tuple[Term, ...]:
        """The terms that it is made of. The inputs of a cell are not among them: a cell is stepped before."""
        return ()


# ---- values: numbers, truths that are told as True, False or None, and what functions take


@dataclass(frozen=True, slots=True)
class Constant(Term):
    """A number, or a word that a function takes."""

    value: float | str


@dataclass(frozen=True, slots=True)
class Argument(Term):
    """All that is known under a name of a function's parameter: `k`, the joints; `p`, the Person; `g`, the frame."""

    name: str


@dataclass(frozen=True, slots=True)
class Joint(Term):
    """A number of somebody's joints, by its place."""

    whose: Whose
    place: int


@dataclass(frozen=True, slots=True)
class Fact(Term):
    """A fact about a Person, the scene or the frame, known by its name, such as `p.speed`; some have keys."""

    of: str
    name: str
    keys: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Arithmetic(Term):
    """`+ - * /` of two numbers; the right one of `/` is never 0."""

    operator: str
    left: Term
    right: Term

    @property
    def within(self) -> tuple[Term, ...]:
        return self.left, self.right


@dataclass(frozen=True, slots=True)
class Negative(Term):
    operand: Term

    @property
    def within(self) -> tuple[Term, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Call(Term):
    """A function of `people`, `abs` or `hypot`. An argument that is a tuple is a point."""

    function: str
    arguments: tuple[Term | tuple[Term, Term], ...]

    @property
    def within(self) -> tuple[Term, ...]:
        return tuple(term for one in self.arguments for term in (one if isinstance(one, tuple) else (one,)))


@dataclass(frozen=True, slots=True)
class InZone(Term):
    """Whether a point is in a zone. `body`: whose the point is, if it is of the upright body; None: of the box."""

    zone: str
    x: Term
    y: Term
    body: Whose | None

    @property
    def within(self) -> tuple[Term, ...]:
        return self.x, self.y


@dataclass(frozen=True, slots=True)
class Running(Term):
    """Whether a rule has a running incident of these people, or of a group with them."""

    rule: str
    people: tuple[Whose, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A part that looks back in time: the row of `cells.CELLS` by its name, its times, and what it is stepped with."""

    kind: str
    times: tuple[Any, ...]
    inputs: tuple[Term, ...]
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Cells stand in each other, and are looked up for everybody who comes.
        object.__setattr__(self, "_hash", hash((self.kind, self.times, self.inputs)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Recalled(Term):
    """The present value of a cell."""

    cell: Cell


@dataclass(frozen=True, slots=True)
class Report(Term):
    """More about the present value of a cell, for the evidence: how long ago a step was; None: what a function reports.

    A time has a second value, NaN, as those of comparisons have.
    """

    cell: Cell
    step: int | None = None


# ---- truths


@dataclass(frozen=True, slots=True)
class Truth(Term):
    """Surely true, surely false, or unknown."""


@dataclass(frozen=True, slots=True)
class Told(Truth):
    """A truth that a value tells."""

    value: Term

    @property
    def within(self) -> tuple[Term, ...]:
        return (self.value,)


@dataclass(frozen=True, slots=True)
class Comparison(Truth):
    """`operands[i] operators[i] operands[i + 1]`; all of these hold. With an operand that is NaN it is unknown."""

    operators: tuple[str, ...]
    operands: tuple[Term, ...]

    @property
    def within(self) -> tuple[Term, ...]:
        return self.operands


@dataclass(frozen=True, slots=True)
class Not(Truth):
    operand: Truth

    @property
    def within(self) -> tuple[Term, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Junction(Truth):
    """`and` or `or` of two or more."""

    operator: str
    operands: tuple[Truth, ...]

    @property
    def within(self) -> tuple[Term, ...]:
        return self.operands


@dataclass(frozen=True, slots=True)
class Sides(Junction):
    """`or` or `and` of a truth of the left side, and the same of the right one."""


@dataclass(frozen=True, slots=True)
class Step(Truth):
    """Somebody's step over a line or a zone's border goes one of these ways: 1, -1, or none, 0."""

    fact: Fact
    ways: tuple[int, ...]

    @property
    def within(self) -> tuple[Term, ...]:
        return (self.fact,)


@dataclass(frozen=True, slots=True)
class Unseen(Truth):
    """Somebody is lost, or gone: unseen for so long or longer."""

    word: str
    after_ns: int


def walk(*terms: Term) -> Iterator[Term]:
    """Terms and all that they are made of, each object once; not the inputs of cells."""
    waiting, met = list(terms), set(map(id, terms))
    while waiting:
        term = waiting.pop()
        yield term
        for one in term.within:
            if id(one) not in met:  # words that stand at many places are one object
                met.add(id(one))
                waiting.append(one)
