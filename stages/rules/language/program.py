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
import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.rules.language.condition import CellText, Condition, function_of
from camgraph.stages.rules.language.crowd import Numbers, Subject
from camgraph.stages.rules.language.memory import CELLS
from camgraph.stages.rules.language.people import Clock

_REFERENCE = re.compile(r"\bm\[(\d+)\]")
_JOINT, _ALL_JOINTS = re.compile(r"\b(k[ab]?)\[(\d+)\]"), re.compile(r"\bk[ab]?\b(?!\[)")
Key = str
"""Of a cell: equal for cells that always have equal values."""


@dataclass(slots=True)
class Memory:
    """The cells of a program for one person, pair or scene, and their present values.

    Behind the values stands for each cell whether its last frame was not quiet (`CellText.quiet`).
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
    cells: dict[Key, tuple[int, CellText]] = field(default_factory=dict)
    """Each with the gap of its rules."""
    places: tuple[tuple[int, ...], ...] = ()

    def new_memory(self, inherited: dict[Key, Any] | None = None) -> Memory:
        """The memory of somebody new; with cells of the same keys that were stepped by another program."""
        known = inherited or {}
        cells = {
            key: known.get(key) or CELLS[text.name](gap_ns, *text.times) for key, (gap_ns, text) in self.cells.items()
        }
        values = [None if text.truth else math.nan for _, text in self.cells.values()]
        return Memory([*values, *[True] * len(values)], cells, [cell.step for cell in cells.values()])

    def of_one(self, place: int, memory: Memory) -> tuple[list[Any], list[Any]]:
        """The values and the cells of one condition, as its own functions take them."""
        cells = list(memory.cells.values())
        return [memory.values[i] for i in self.places[place]], [cells[i] for i in self.places[place]]


@functools.lru_cache(maxsize=256)
def program_of(conditions: tuple[tuple[Condition, int], ...]) -> Program:
    """The program of one or more conditions of the same scope, each with the `gap` of its rule in nanoseconds."""
    cells: dict[Key, tuple[int, CellText]] = {}
    index: dict[Key, int] = {}
    places = []
    texts: list[str] = []
    for condition, gap_ns in conditions:
        keys = _keys(condition, gap_ns)
        for key, text in zip(keys, condition.cells, strict=True):
            if key not in index:
                index[key] = len(index)
                own = [index.get(inner, -1) for inner in keys]
                inputs, (quiet,) = _renumbered(text.inputs, own), _renumbered([text.quiet], own)
                cells[key] = (gap_ns, replace(text, inputs=inputs, quiet=quiet))
        own = [index[key] for key in keys]
        places.append(tuple(own))
        texts += _renumbered([condition.true], own)
    inside = [text for _, cell in cells.values() for text in (*cell.inputs, cell.quiet)]
    loop = _Loop.of(conditions[0][0].parameters, [*texts, *inside])
    first, texts = _computed_once(loop.named(texts))
    asked = [f"if {text}: found.setdefault({n}, []).append(subject)" for n, text in enumerate(texts)]
    lines = loop.over([*first, *asked], "m = memory.values" if cells else "")
    hits = function_of("hits", ["def hits(subjects, memories, numbers):", "    found = {}", *lines, "    return found"])
    step = None
    if cells:
        first, inside = _computed_once(loop.named(inside))
        steps = _steps([cell for _, cell in cells.values()], iter(inside))
        lines = loop.over([*first, *steps], "m, c = memory.values, memory.steps")
        step = function_of("step", ["def step(subjects, memories, numbers, t):", *lines])
    return Program(hits, step, None if loop.all_joints else np.array(loop.reads, np.intp), cells, tuple(places))


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop over everybody, in which each number of their joints at `reads` has a name: k35 for k[35].

    `all_joints`: somebody's joints are given to functions as well.
    """

    names: Sequence[str]
    reads: Sequence[int]
    all_joints: bool

    @classmethod
    def of(cls, parameters: str, texts: Sequence[str]) -> Self:
        """The loop that these texts, of a condition's `parameters`, need."""
        reads = {int(place) for text in texts for _, place in _JOINT.findall(text)}
        return cls(parameters.split(", "), sorted(reads), any(_ALL_JOINTS.search(text) for text in texts))

    def named(self, texts: Iterable[str]) -> list[str]:
        """The texts with the names of numbers."""
        return [_JOINT.sub(r"\1\2", text) for text in texts]

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


def _steps(cells: Sequence[CellText], texts: Iterator[str]) -> Iterator[str]:
    """Lines that step each cell in frames that may change something. `texts`: its inputs, and when it is quiet."""
    for i, cell in enumerate(cells):
        inputs, quiet, awake = ", ".join(islice(texts, len(cell.inputs))), next(texts), len(cells) + i
        if not quiet:
            yield f"m[{i}] = c[{i}](t, {inputs})"
            continue
        falses = ", ".join(["False"] * len(cell.inputs))
        yield f"if {quiet}:"
        yield f"    if m[{awake}]: m[{i}] = c[{i}](t, {falses}); m[{awake}] = False"
        yield f"else: m[{i}] = c[{i}](t, {inputs}); m[{awake}] = True"


def _computed_once(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Lines that compute the calls which stand in several texts, and the texts with their values instead.

    Those of cells' values are left where they are: inside a step, a cell may not have its present value yet.
    """
    counts = Counter(call for text in texts for call in set(_calls(text)) if not _REFERENCE.search(call))
    names = {call: f"v{i}" for i, call in enumerate(call for call, count in counts.items() if count > 1)}
    lines = [f"{name} = {call}" for call, name in names.items()]
    replaced = []
    for text in texts:
        for call in _calls(text):
            if call in names:
                text = text.replace(call, names[call])  # noqa: PLW2901
        replaced.append(text)
    return lines, replaced


def _calls(text: str) -> list[str]:
    """The calls of costly functions in a text, with their arguments; not those inside others."""
    found = []
    at = 0
    while call := _COSTLY.search(text, at):
        at, depth = call.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        found.append(text[call.start() : at])
    return found


_COSTLY = re.compile(r"\b(?:angle|above|beside|beyond|hypot|high|low|p[ab]?\.inside\.get)\(")


def _keys(condition: Condition, gap_ns: int) -> list[Key]:
    """The key of each cell of a condition: made of its text, with the keys of the cells inside it."""
    keys: list[Key] = []
    for cell in condition.cells:
        inputs = [_REFERENCE.sub(lambda found: keys[int(found[1])], text) for text in cell.inputs]
        keys.append(hashlib.sha256(repr((gap_ns, cell.name, cell.times, inputs)).encode()).hexdigest())
    return keys


def _renumbered(texts: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(_REFERENCE.sub(lambda found: f"m[{places[int(found[1])]}]", text) for text in texts)
