"""Conditions: from their text, by way of terms, to functions that judge people."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from camgraph.stages.rules.language.code_cell import AskedFunction, Functions
from camgraph.stages.rules.language.counters import Of
from camgraph.stages.rules.language.emission import PARAMETERS, Writer, functions_of
from camgraph.stages.rules.language.kinds import Kind
from camgraph.stages.rules.language.meaning import Known, Reader
from camgraph.stages.rules.language.needs import at_most_ns
from camgraph.stages.rules.language.people import LOST_AFTER_NS
from camgraph.stages.rules.language.terms import Cell, Truth
from camgraph.stages.rules.language.vocabulary import Scope


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """A compiled condition.

    `judge` gives True, False or None (unknown); `values` gives for each of `parts` (text, kind) the two sides of the
    comparison, or a truth (None: unknown). Both take the arguments of the scope: person (joints, Person, Surroundings),
    pair (joints, Person, joints, Person, Surroundings), scene (Scene, Surroundings). With `cells`, `judge` also takes
    the list of their values, and `values` that list, the cells and the clock. `truth`: its meaning.
    """

    judge: Callable[..., bool | None]
    values: Callable[..., tuple[tuple[float, float] | bool | None, ...]]
    parts: tuple[tuple[str, Kind], ...]
    scope: Scope
    truth: Truth
    cells: tuple[Cell, ...]
    zones: frozenset[str]
    lines: frozenset[str]
    rules: frozenset[str]
    """The rules whose incidents it asks about."""
    labels: frozenset[str]
    """The classes of classifiers that it asks about."""
    about_lost: bool
    """Whether it is also judged of people who are no longer seen."""
    asks_network: bool
    """Whether it asks what people look like."""
    never: tuple[str, ...]
    """In words, its comparisons that can never be true."""

    @property
    def at_most_ns(self) -> float:
        """It is true for no longer than this at a time."""
        return at_most_ns(self.truth)

    @property
    def temporal(self) -> bool:
        """Whether it looks back in time."""
        return bool(self.cells) or self.about_lost

    @property
    def functions(self) -> dict[str, str]:
        """The functions in Python that it asks, each with the hash of its code."""
        asked: list[AskedFunction] = [cell.times[0] for cell in self.cells if cell.kind == "Code"]
        return {function.name: function.hash for function in asked}


def compile_condition(
    text: str,
    scope: Scope,
    *,
    zones: Collection[str],
    lines: Collection[str],
    words: Mapping[str, str] | None = None,
    rules: Collection[str] | None = None,
    lost_after_ns: int = LOST_AFTER_NS,
    counters: Mapping[str, tuple[Of, str]] | None = None,
    functions: Functions | None = None,
    actions: Collection[str] = (),
) -> Condition:
    """Raises ExpressionError if the text means nothing; `zones` and `lines` are the names that it may use.

    `words` are names with a definition of their own: a condition, a value or a point, in this language. In a pair a
    word stands behind `a.` or `b.`, and its definition is about that person.

    `counters`: those that conditions about a scene may ask, and of which line or zone each is.

    `functions`: conditions in Python that packages bring.

    `rules`: those that `running(...)` may name, None for any. `actions`: what rules may `use`; no condition, so whoever
    names one here is told what to write. `lost_after_ns`: who is unseen for longer is `lost`.

    The error has all the mistakes of a text that can be taken apart: of one that cannot, only the first. A mistake in
    the definition of a word names that word, and its place is the one in the definition.
    """
    known = Known(
        frozenset(zones),
        frozenset(lines),
        tuple(sorted((words or {}).items())),
        None if rules is None else frozenset(rules),
        tuple(sorted((counters or {}).items())),
        functions,
        frozenset(actions),
    )
    return _compiled(text, scope, known, lost_after_ns)


@functools.lru_cache(maxsize=2048)
def _compiled(text: str, scope: Scope, known: Known, lost_after_ns: int) -> Condition:
    reader = Reader(text, scope, known, lost_after_ns)
    truth = reader.whole()
    writer = Writer(reader.cells)
    parameters = ", ".join(PARAMETERS[scope])
    memory, all_memory = (", m", ", m, c, t") if reader.cells else ("", "")
    # What functions in Python report is kept even if the parts around them are told as one word.
    parts = [*reader.parts, *((text, Kind.REPORTED) for text in reader.reports.values())]
    told = [*reader.values, *((report,) for report in reader.reports)]
    values = "".join(f"({', '.join(map(writer.value, value))}), " for value in told)
    judge = [f"def judge({parameters}{memory}):", f"    return {writer.value(truth)}"]
    functions = functions_of([*judge, f"def values({parameters}{all_memory}):", f"    return ({values})"])
    return Condition(
        functions["judge"],
        functions["values"],
        tuple(parts),
        scope,
        truth,
        tuple(reader.cells),
        frozenset(reader.zones),
        frozenset(reader.lines),
        frozenset(reader.rules),
        frozenset(reader.labels),
        reader.about_lost,
        reader.asks_network,
        tuple(dict.fromkeys(reader.never)),
    )
