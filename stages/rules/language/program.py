"""All conditions about the same people as one Python function, with the cells that they share.

A camera may have hundreds of rules, and few of them are true of anybody at a time. So one call asks all conditions
about everybody at once, and says which of them are surely true of whom. Only for those, and for incidents that are
under way, anything else is done. Equal parts with memory are one cell, however many conditions have them:

    rule 1   in door for 5s and lean > 60deg     m[0] and k[35] > 60.0
    rule 2   in door for 5s                      m[0]
    rule 3   speed > 1h/s                        p.speed > (1.0 * p.h)

    def hits(subjects, memories, numbers):
        found = {}
        for subject, memory, [k35], in zip(subjects, memories, *numbers):
            p, g = subject.known
            m = memory.values
            if (m[0] and k35 > 60.0): found.setdefault(0, []).append(subject)
            ...
        return found

    def step(subjects, memories, numbers, t):
        for subject, memory, [k35], in zip(subjects, memories, *numbers):
            p, g = subject.known
            m, c = memory.values, memory.steps
            m[0] = c[0](t, True if p.inside['door'] else ...)
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.rules.language.cells import CELLS
from camgraph.stages.rules.language.condition import Condition
from camgraph.stages.rules.language.crowd import Numbers, Subject
from camgraph.stages.rules.language.emission import PARAMETERS, Writer, functions_of
from camgraph.stages.rules.language.needs import costly
from camgraph.stages.rules.language.people import Clock
from camgraph.stages.rules.language.terms import Argument, Cell, Joint, Term, walk

Key = tuple[int, Cell]
"""A cell with the gap of its rule: equal for cells that always have equal values."""


@dataclass(slots=True)
class Memory:
    """The cells of a program for one person, pair or scene, and their present values.

    Behind the values stands for each cell whether its last frame was not quiet (`memory.CellKind.quiet`).
    """

    values: list[Any]
    cells: dict[Key, Any]
    steps: list[Callable[..., Any]]
    stepped_ns: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Conditions of one scope, and of one floor of confidence.

    `hits` returns, for the place of each condition that is surely true of somebody, of whom. `step` gives the cells the
    present frame. Both take the subjects and, in the same order, their memories, which programs without cells do not
    look at, and the numbers of their joints at `reads` (`numbers_of`). `places`: of each condition, the places of its
    own cells among all.
    """

    hits: Callable[[Iterable[Subject], Iterable[Memory], Numbers], dict[int, list[Subject]]]
    step: Callable[[Iterable[Subject], Iterable[Memory], Numbers, Clock], None] | None
    reads: NDArray[np.intp] | None
    """The places in somebody's row of joints that it looks at; None: all, because a function does."""
    cells: tuple[Key, ...]
    places: tuple[tuple[int, ...], ...]

    def new_memory(self, inherited: dict[Key, Any] | None = None) -> Memory:
        """The memory of somebody new; with cells of the same keys that were stepped by another program."""
        known = inherited or {}
        cells = {key: known.get(key) or CELLS[key[1].kind].make(key[0], *key[1].times) for key in self.cells}
        values = [CELLS[cell.kind].unknown(cell.times) for _, cell in self.cells]
        return Memory([*values, *[True] * len(values)], cells, [cell.step for cell in cells.values()])

    def of_one(self, place: int, memory: Memory) -> tuple[list[Any], list[Any]]:
        """The values and the cells of one condition, as its own functions take them."""
        cells = list(memory.cells.values())
        return [memory.values[i] for i in self.places[place]], [cells[i] for i in self.places[place]]


@functools.lru_cache(maxsize=256)
def program_of(conditions: tuple[tuple[Condition, int], ...]) -> Program:
    """The program of one or more conditions of the same scope, each with the `gap` of its rule in nanoseconds."""
    cells: list[Key] = []
    by_gap: dict[int, dict[Cell, int]] = {}
    places = []
    for condition, gap_ns in conditions:
        own = by_gap.setdefault(gap_ns, {})
        for cell in condition.cells:
            if cell not in own:
                own[cell] = len(cells)
                cells.append((gap_ns, cell))
        places.append(tuple(own[cell] for cell in condition.cells))

    def writers(named: Mapping[Term, str]) -> dict[int, Writer]:
        return {gap_ns: Writer(own, flat=True, named=named) for gap_ns, own in by_gap.items()}

    parameters, truths = PARAMETERS[conditions[0][0].scope], [condition.truth for condition, _ in conditions]
    loop = _Loop.of(parameters, [*truths, *(term for _, cell in cells for term in cell.inputs)])
    first, once = _computed_once([truth] for truth in truths)
    of_gap = writers(once)
    texts = [of_gap[gap_ns].true(condition.truth) for condition, gap_ns in conditions]
    asked = [f"if {text}: found.setdefault({n}, []).append(subject)" for n, text in enumerate(texts)]
    lines = loop.over([*first, *asked], "m = memory.values" if cells else "")
    source = ["def hits(subjects, memories, numbers):", "    found = {}", *lines, "    return found"]
    if cells:
        first, once = _computed_once(terms for _, cell in cells for terms in _texts(cell))
        of_gap = writers(once)
        steps = [line for gap_ns, cell in cells for line in _step(of_gap[gap_ns], cell, len(cells))]
        lines = loop.over([*first, *steps], "m, c = memory.values, memory.steps")
        source += ["def step(subjects, memories, numbers, t):", *lines]
    functions = functions_of(source)
    reads = None if loop.all_joints else np.array(loop.reads, np.intp)
    return Program(functions["hits"], functions.get("step"), reads, tuple(cells), tuple(places))


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop over everybody, in which each number of their joints at `reads` has a name: k35 for k[35].

    `all_joints`: somebody's joints are given to functions as well.
    """

    names: Sequence[str]
    reads: Sequence[int]
    all_joints: bool

    @classmethod
    def of(cls, parameters: Sequence[str], terms: Iterable[Term]) -> Self:
        """The loop that these terms, of a condition's `parameters`, need."""
        found = list(walk(*terms))
        reads = {one.place for one in found if isinstance(one, Joint)}
        return cls(parameters, sorted(reads), any(isinstance(one, Argument) and one.name[0] == "k" for one in found))

    def over(self, lines: Iterable[str], memory: str) -> list[str]:
        """These lines for each subject, behind one that takes what they need of the memory."""
        joints = [name for name in self.names if name.startswith("k")]
        known = ", ".join(name for name in self.names if name not in joints)
        numbers = [f"[{', '.join(f'{name}{place}' for place in self.reads)}]" for name in joints if self.reads]
        each = ["subject", *(["memory"] if memory else []), *(joints if self.all_joints else numbers)]
        of = ["subjects", *(["memories"] if memory else []), "*numbers"]
        head = [f"{known} = subject.known", *([memory] if memory else [])]
        if self.all_joints:
            head += [f"{name}{place} = {name}[{place}]" for name in joints for place in self.reads]
        return [
            f"    for {', '.join(each)}, in zip({', '.join(of)}):",
            *(f"        {line}" for line in (*head, *lines)),
        ]


def _step(writer: Writer, cell: Cell, cells: int) -> Iterator[str]:
    """Lines that step a cell in frames that may change something."""
    place = writer.cells[cell]
    inputs, quiet, awake = ", ".join(map(writer.value, cell.inputs)), writer.quiet(cell), cells + place
    if not quiet:
        yield f"m[{place}] = c[{place}](t, {inputs})"
        return
    falses = ", ".join(["False"] * len(cell.inputs))
    yield f"if {quiet}:"
    yield f"    if m[{awake}]: m[{place}] = c[{place}](t, {falses}); m[{awake}] = False"
    yield f"else: m[{place}] = c[{place}](t, {inputs}); m[{awake}] = True"


def _texts(cell: Cell) -> Iterator[Sequence[Term]]:
    """The terms of each text that stands in the lines of a cell's step."""
    yield from ([one] for one in cell.inputs)
    if CELLS[cell.kind].quiet:
        yield cell.inputs


def _computed_once(texts: Iterable[Sequence[Term]]) -> tuple[list[str], dict[Term, str]]:
    """Lines that compute the costly values which stand in several texts, and their names."""
    counts = Counter(value for terms in texts for value in costly(*terms))
    names = {value: f"v{i}" for i, value in enumerate(value for value, count in counts.items() if count > 1)}
    writer = Writer({}, flat=True)
    return [f"{name} = {writer.value(value)}" for value, name in names.items()], names
