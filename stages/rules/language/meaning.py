"""Reads the tree of a condition as terms (`terms.py`): looks names up, checks kinds, and tells every mistake."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from camgraph.stages.rules.conditions import Parameter
from camgraph.stages.rules.language import terms
from camgraph.stages.rules.language.code_cell import AskedFunction, Functions
from camgraph.stages.rules.language.counters import FIELDS, Of
from camgraph.stages.rules.language.expression import (
    UNSEEN_WORDS,
    Arithmetic,
    Call,
    Comparison,
    ExpressionError,
    Inside,
    Junction,
    Lasts,
    LostWhile,
    Name,
    Negative,
    Node,
    Not,
    Number,
    Was,
    parse,
)
from camgraph.stages.rules.language.expression import Sequence as SequenceNode
from camgraph.stages.rules.language.functions import FUNCTIONS
from camgraph.stages.rules.language.kinds import (
    EXACT_UNITS,
    MEASURES,
    PER_SECOND,
    UNITS,
    Kind,
    KindError,
    added,
    compared,
    divided,
    instead_of,
    meant_time,
    multiplied,
    other_unit,
)
from camgraph.stages.rules.language.needs import ONE_FRAME_NS, at_most_ns, of_whom
from camgraph.stages.rules.language.people import LOST_NS, PAIRED
from camgraph.stages.rules.language.ranges import is_constant, never_true
from camgraph.stages.rules.language.terms import Cell, Recalled, Report, Term, Truth, Whose
from camgraph.stages.rules.language.vocabulary import (
    Measure,
    Place,
    Scope,
    look_up,
    nearest_of,
    scale_of,
    sides_hint,
    suggestion,
)
from camgraph.stages.vision.posture import CLASSES
from camgraph.stages.vision.skeleton import COCO_17

MAX_EXPANDED = 20_000
"""Characters of the definitions of all words that a condition uses."""
_LISTED = 10
"""So many names are listed at most."""
MAX_CELLS = 32
"""Parts of a condition that look back in time."""
LONGEST_NS = 600_000_000_000
"""A window may be so long."""

Part = TypeVar("Part")
Result = TypeVar("Result")
_Value = Measure | Place | Truth


@dataclass(frozen=True, slots=True)
class Known:
    """The names that a condition may use. `words`: (name, definition); `rules`: None for any."""

    zones: frozenset[str]
    lines: frozenset[str]
    words: tuple[tuple[str, str], ...]
    rules: frozenset[str] | None
    counters: tuple[tuple[str, tuple[Of, str]], ...] = ()
    functions: Functions | None = None
    actions: frozenset[str] = frozenset()


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
            first, *others = sorted(self._found, key=lambda error: (error.used_at, error.at))
            first.others = others
            raise first


def _each(read: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    """The tree of each part. Raises ExpressionError with the mistakes of all of them."""
    mistakes = _Mistakes()
    results = [mistakes.of(read, part) for part in parts]
    mistakes.complain()
    return [result for result in results if result is not None]


@dataclass(frozen=True, slots=True)
class _Reading:
    """The text that is being read: the condition's, or the definition of a word.

    `owner`: in a pair, the one of the two whom the definition of a word is about. `side`: inside `either` or `both`,
    the side of joints that have none. `words`: those whose definitions are being read, the outermost first.
    """

    text: str
    owner: Whose = ""
    side: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Definition:
    """The value of a word. `expanded`: the characters of all definitions in it. `sides`: how often it used the side."""

    value: _Value
    expanded: int
    sides: int


class Reader:
    """Reads the tree of a text as terms, checks their kinds, and keeps what the evidence of the condition tells.

    `parts`: (text, kind) of each part to tell, and `values`, the terms of its value: the two sides of a comparison, or
    one. `cells`: in the order in which they are stepped. `zones` and so on: the names that are used. `never`:
    comparisons that can never be true, in words.
    """

    def __init__(self, text: str, scope: Scope, known: Known, lost_after_ns: int) -> None:
        self.parts: list[tuple[str, Kind]] = []
        self.values: list[tuple[Term, ...]] = []
        self.cells: dict[Cell, int] = {}
        self.zones: set[str] = set()
        self.lines: set[str] = set()
        self.rules: set[str] = set()
        self.labels: set[str] = set()
        self.about_lost = self.asks_network = False
        self.never: list[str] = []
        self.reports: dict[Report, str] = {}
        """What a function in Python reports -> the text of its call."""
        self._window: Number | None = None
        self._reading = _Reading(text)
        self._whole_scope: Scope = scope
        self._known: Mapping[str, frozenset[str]] = {"zone": known.zones, "line": known.lines}
        self._known_rules, self._actions = known.rules, known.actions
        self._counters = dict(known.counters)
        self._functions = known.functions
        self._lost_after_ns = lost_after_ns
        self._words = dict(known.words)
        self._expanded = 0
        self._sides_used = 0
        self._definitions: dict[tuple[str, str, str, Number | None], _Definition] = {}
        """Word, owner, side and window -> what was read of the word when the reader first met it."""
        self._wrong: dict[tuple[str, str, str, Number | None], tuple[ExpressionError, int]] = {}
        """The mistakes in a definition, and the characters that were read of it: it is not read again at each use."""

    @property
    def _scope(self) -> Scope:
        """The definition of a word is about one person."""
        return "person" if self._reading.owner else self._whole_scope

    @property
    def _whose(self) -> Whose:
        """Of a pair, whom a condition about one person is about."""
        return self._reading.owner

    # ---- truths

    def whole(self) -> Truth:
        """The meaning of the text. Raises ExpressionError with all mistakes that can be told."""
        return self.truth(parse(self._reading.text))

    def truth(self, node: Node) -> Truth:
        if isinstance(node, Junction):
            return self._junction(node)
        if isinstance(node, Not):
            return terms.Not(self.truth(node.operand))
        if isinstance(node, Comparison):
            return self._comparison(node)
        if isinstance(node, Inside):
            return self._inside(node)
        if isinstance(node, LostWhile):
            return self._lost_while(node)
        value = self._looking_back(node) if isinstance(node, Lasts | Was | SequenceNode) else self._value(node)
        if isinstance(value, Truth):
            return value
        what = value.kind.value if isinstance(value, Measure) else Kind.POINT.value
        raise ExpressionError(node.begin, f"`{self._slice(node)}` is {what}: expected a comparison, such as {_EXAMPLE}")

    def _junction(self, node: Junction) -> Truth:
        truths = _each(self.truth, node.operands)
        if node.operator == "and" and self.about_lost and {"lost", "seen"} <= set(map(of_whom, truths)):
            self._note_lost_and_seen(node, truths)
        return terms.Junction(node.operator, tuple(truths))

    def _note_lost_and_seen(self, node: Junction, truths: Sequence[Truth]) -> None:
        """`lost and in door` is never true: where the lost are now, nobody knows."""
        operands = list(zip(node.operands, truths, strict=True))
        lost = next(operand for operand, truth in operands if of_whom(truth) == "lost")
        seen = [operand for operand, truth in operands if of_whom(truth) == "seen"]
        text = " and ".join(f"({self._slice(one)})" if isinstance(one, Junction) else self._slice(one) for one in seen)
        behind = f"({text})" if len(seen) > 1 or isinstance(seen[0], Lasts) else text
        word = self._slice(lost) if isinstance(lost, Name) else "lost"
        self.never.append(
            f"`{self._slice(node)}` is never true: `{text}` is unknown of somebody who is not seen; write "
            f"`{word} while {behind}`, which asks about the moment in which they were last seen"
        )

    def _comparison(self, node: Comparison) -> Truth:
        mistakes = _Mistakes()
        window, self._window = self._window, node.window
        measures = [None if isinstance(one, Number) else mistakes.of(self._measure, one) for one in node.operands]
        kinds = {measure.kind for measure in measures if measure}
        for i, operand in enumerate(node.operands):
            if isinstance(operand, Number):
                measures[i] = mistakes.of(lambda number: self._number_beside(number, kinds), operand)
        self._window = window

        for i in range(len(node.operators)):
            left, right = measures[i], measures[i + 1]
            if left and right:
                mistakes.of(functools.partial(self._compare, node, left=left, right=right), i)
        mistakes.complain()
        return terms.Comparison(node.operators, tuple(measure.term for measure in measures if measure))

    def _compare(self, node: Comparison, i: int, left: Measure, right: Measure) -> None:
        """Check two of a chain of operands, and note their values."""
        try:
            compared(left.kind, right.kind)
        except KindError as error:
            text = f"`{self._pair(node, i)}`: {error}{_other_unit(node, i, left.kind, right.kind)}"
            raise ExpressionError(node.operands[i].begin, text) from None
        if why := never_true(node, i):
            value = next(operand for operand in node.operands[i : i + 2] if not is_constant(operand))
            self.never.append(f"`{self._pair(node, i)}` is never true: `{self._slice(value)}` {why}")
        if not (is_constant(node.operands[i]) and is_constant(node.operands[i + 1])):
            self._note(self._pair(node, i), left.kind, left.term, right.term)

    def _looking_back(self, node: Lasts | Was | SequenceNode) -> Truth:
        """A truth with memory."""
        if isinstance(node, SequenceNode):
            return self._sequence(node)
        if isinstance(node, Was):
            with self._untold():
                operand = self.truth(node.operand)
            return self._remembered(node, "Was", (self._time_ns(node.time),), operand)
        operand = self.truth(node.operand)
        return self._remembered(node, "Lasting", (self._lasting_ns(operand, node.time),), operand)

    def _remembered(self, node: Node, kind: str, times: tuple[Any, ...], *inputs: Term) -> Truth:
        """The truth that a cell tells, noted for the evidence."""
        value = self._cell(node, kind, times, *inputs)
        self._note(self._slice(node), Kind.TRUTH, value)
        return terms.Told(value)

    def _lasting_ns(self, truth: Truth, time: Number) -> int:
        """The time of `C for 2s`. Raises ExpressionError if C is never true for so long."""
        time_ns, longest_ns = self._time_ns(time), at_most_ns(truth)
        if time_ns >= longest_ns:
            raise ExpressionError(time.begin, never_so_long(self._slice(time), longest_ns))
        return time_ns

    def _sequence(self, node: SequenceNode) -> Truth:
        operands = [step.operand.operand if isinstance(step.operand, Lasts) else step.operand for step in node.steps]
        with self._untold():
            truths = _each(self.truth, operands)
        limits = tuple(self._time_ns(step.limit) if step.limit else None for step in node.steps)
        lasting = tuple(
            self._lasting_ns(truth, step.operand.time) if isinstance(step.operand, Lasts) else 0
            for step, truth in zip(node.steps, truths, strict=True)
        )
        value = self._cell(node, "Sequence", (limits, lasting), *truths)
        self._note(self._slice(node), Kind.TRUTH, value)
        for i, step in enumerate(node.steps):
            self._note(f"step {i + 1}: {self._slice(step)}", Kind.AGO, terms.Report(value.cell, i))
        return terms.Told(value)

    def _unseen(self, node: Node, word: str) -> Truth:
        """`lost` and `gone`."""
        if self._whole_scope != "person":
            raise ExpressionError(node.begin, f"`{word}` is about one person: use it with `scope: person`")
        after_ns = self._lost_after_ns
        if after_ns >= LOST_NS:
            text = (
                f"`{word}` is never true: `lost_after` is {after_ns / 1e9:g}s, and who has been unseen for "
                f"{LOST_NS // 10**9}s is forgotten; write a shorter `lost_after`"
            )
            raise ExpressionError(node.begin, text)
        self.about_lost = True
        truth = terms.Unseen(word, after_ns)
        self._note(word, Kind.TRUTH, truth)
        return truth

    def _lost_while(self, node: LostWhile) -> Truth:
        """`lost while C`, `gone while C`: C was true when they were last seen."""
        with self._untold():
            lost, inner = self._unseen(node, node.word), self.truth(node.operand)
        last = self._cell(node, "LastSeen", (), inner, terms.Fact("p", "lost_ns"))
        truth = terms.Junction("and", (lost, terms.Told(last)))
        self._note(self._slice(node), Kind.TRUTH, truth)
        return truth

    @contextmanager
    def _untold(self) -> Iterator[None]:
        """The evidence tells a part as one, and not the parts that are read here."""
        noted = len(self.parts)
        yield
        del self.parts[noted:], self.values[noted:]

    def _running(self, node: Call) -> Truth:
        """running(rule): of the same person, pair or scene, or of one that they are part of."""
        named = node.arguments[0]
        if not isinstance(named, Name):
            raise _call_of(node)
        name = named.text
        if self._known_rules is not None and name not in self._known_rules:
            guess = suggestion(name, self._known_rules) or f"; known: {', '.join(sorted(self._known_rules)[:_LISTED])}"
            raise ExpressionError(named.begin, f"there is no rule `{name}`{guess}")
        self.rules.add(name)
        people: dict[Scope, tuple[Whose, ...]] = {"person": (self._whose,), "pair": ("a", "b"), "scene": ()}
        return self._told(node, terms.Running(name, people[self._scope]))

    def _told(self, node: Node, value: Term, text: str = "") -> Truth:
        """The truth that a value tells, noted for the evidence."""
        self._note(text or self._slice(node), Kind.TRUTH, value)
        return terms.Told(value)

    def _label(self, node: Call) -> Measure:
        """label(walking): the score of a class of a classifier."""
        name = self._class(node).text
        self.labels.add(name)
        return Measure(Kind.NUMBER, terms.Fact(f"p{self._whose}", "labels", (name,)))

    def _looks_like(self, node: Call) -> Measure:
        """looks_like(fall): the score of a class of the network that comes with camgraph."""
        named = self._class(node)
        if named.text not in CLASSES:
            guess = suggestion(named.text, CLASSES) or f"; known: {', '.join(CLASSES)}"
            raise ExpressionError(named.begin, f"`looks_like` knows no class `{named.text}`{guess}")
        self.asks_network = True
        return Measure(Kind.NUMBER, terms.Fact(f"p{self._whose}", "score_of", (named.text,)))

    def _class(self, node: Call) -> Name:
        """The only argument of a function that compares one person with a class."""
        if self._scope != "person":
            text = "is about one person: use it with `scope: person`, or in a word: a.word of a pair"
            raise ExpressionError(node.begin, f"`{node.function}(...)` {text}")
        if len(node.arguments) != 1 or not isinstance(node.arguments[0], Name):
            raise _call_of(node)
        return node.arguments[0]

    def _cell(self, node: Node, kind: str, times: tuple[Any, ...], *inputs: Term) -> Recalled:
        """The present value of a cell; equal cells are one."""
        cell = Cell(kind, times, inputs)
        if cell not in self.cells:
            if len(self.cells) == MAX_CELLS:
                text = f"more than {MAX_CELLS} parts of the condition look back in time: make two rules of it"
                raise ExpressionError(node.begin, text)
            self.cells[cell] = len(self.cells)
        return Recalled(cell)

    def _time_ns(self, node: Node) -> int:
        """A window or a time limit."""
        text = self._slice(node)
        if not isinstance(node, Number) or UNITS.get(node.unit) is not Kind.TIME:
            meant = meant_time(f"{node.value:g}", node.unit) if isinstance(node, Number) else ""
            guess = f"; did you mean `{meant}`?" if meant else ""
            raise ExpressionError(node.begin, f"`{text}` is no time: expected one such as 2s or 500ms{guess}")
        time_ns = round(node.value * EXACT_UNITS[node.unit] * 1e9)
        if not 1_000_000 <= time_ns <= LONGEST_NS:
            raise ExpressionError(
                node.begin, f"expected a time from 1ms to {LONGEST_NS // 60_000_000_000}min, got `{text}`"
            )
        return time_ns

    def _inside(self, node: Inside) -> Truth:
        if node.point is None:
            if self._scope != "person":
                raise ExpressionError(node.begin, f"whose feet? {_WHOSE[self._scope]}")
            return self._feet_inside(node, self._whose)
        found = self._value(node.point)
        if isinstance(node.point, Name) and node.point.parts[-1] == "feet" and "feet" not in self._words:
            return self._feet_inside(node, self._owner_of(node.point))
        if not isinstance(found, Place):
            text = self._slice(node.point)
            if isinstance(found, Truth):
                between = self._reading.text[node.point.end : node.zone.begin].split()
                meant = f"`{text} and {' '.join(between)} {node.zone.text}`"
                raise ExpressionError(node.point.begin, f"`{text}` is a condition, and no point: did you mean {meant}?")
            raise ExpressionError(node.point.begin, f"`{text}` is no point: expected one such as feet or left_wrist")
        name = self._named("zone", node.zone)
        body = self._owner_of(node.point) if found.of_body else None
        return self._told(node, terms.InZone(name, found.x, found.y, body), self._inside_text(node))

    def _feet_inside(self, node: Inside, whose: Whose) -> Truth:
        """The judge knows of everybody in which zones their feet are."""
        fact = terms.Fact(f"p{whose}", "inside", (self._named("zone", node.zone),))
        return self._told(node, fact, self._inside_text(node))

    def _inside_text(self, node: Inside) -> str:
        """Without the `not` of `feet not in bed`, for the value that stands beside it is that of `feet in bed`."""
        return f"{self._slice(node.point)} in {self._slice(node.zone)}" if node.point else self._slice(node)

    def _step(self, node: Call) -> Truth:
        """crosses(line), crosses(line, rightward | leftward), enters(zone), leaves(zone)."""
        if self._scope != "person":
            raise ExpressionError(node.begin, f"`{node.function}` is about one person: use it with `scope: person`")
        p = f"p{self._whose}"
        if node.function == "crosses":
            line, ways = self._crosses(node)
            truth = terms.Step(terms.Fact(p, "crossed", (line,)), ways)
        else:
            zone = self._named("zone", self._only_name(node, "zone"))
            truth = terms.Step(terms.Fact(p, "entered", (zone,)), (1,) if node.function == "enters" else (-1,))
        self._note(self._slice(node), Kind.TRUTH, truth)
        return truth

    def _crosses(self, node: Call) -> tuple[str, tuple[int, ...]]:
        """The line, and the ways over it that count: 1 rightward, -1 leftward."""
        if len(node.arguments) != 2:
            return self._named("line", self._only_name(node, "line")), (-1, 1)
        line_node, way = node.arguments
        line = self._named("line", self._name(line_node, node, "line"))
        word = way.text if isinstance(way, Name) else self._slice(way)
        if word not in ("rightward", "leftward"):
            hint = suggestion(word, ("rightward", "leftward"))
            raise ExpressionError(way.begin, f"`{word}` is no direction: expected rightward or leftward{hint}")
        return line, ((1,) if word == "rightward" else (-1,))

    def _only_name(self, node: Call, what: str) -> Name:
        if len(node.arguments) != 1:
            raise ExpressionError(
                node.begin, f"{node.function}(...) takes the name of a {what}, as in {_example(node)}"
            )
        return self._name(node.arguments[0], node, what)

    def _name(self, argument: Node, call: Call, what: str) -> Name:
        if not isinstance(argument, Name):
            raise ExpressionError(
                argument.begin, f"{call.function}(...) takes the name of a {what}, as in {_example(call)}"
            )
        return argument

    def _named(self, what: Literal["zone", "line"], name: Name) -> str:
        """The name of a known zone or line, noted as used."""
        known = self._known[what]
        if name.text not in known:
            listed = suggestion(name.text, known) or (f"; known: {', '.join(sorted(known))}" if known else _none(what))
            error = ExpressionError(name.begin, f"there is no {what} `{name.text}`{listed}")
            error.unknown = what
            raise error
        (self.zones if what == "zone" else self.lines).add(name.text)
        return name.text

    # ---- values

    def _measure(self, node: Node) -> Measure:
        value = self._value(node)
        if isinstance(value, Place):
            text = self._slice(node)
            raise ExpressionError(node.begin, f"`{text}` is a point: write {text}.x, {text}.y or distance({text}, ...)")
        if isinstance(value, Truth):
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

    def _number_beside(self, node: Number, others: Collection[Kind]) -> Measure:
        """A number that is compared with values of other kinds: beside a time, the `m` of `2m` means minutes."""
        if (
            node.unit in ("", *UNITS)
            or Kind.TIME not in others
            or not (meant := meant_time(f"{node.value:g}", node.unit))
        ):
            return self._number(node)
        text = f"`{self._slice(node)}`: there is no unit `{node.unit}`; did you mean `{meant}`?"
        raise ExpressionError(node.begin, text)

    def _number(self, node: Number) -> Measure:
        if not node.unit:
            return Measure(Kind.NUMBER, terms.Constant(node.value))
        kind = UNITS.get(node.unit)
        if kind is None:
            hint = instead_of(node.value, node.unit) or suggestion(node.unit, UNITS)
            listed = hint or f"; known: {', '.join(UNITS)}"
            raise ExpressionError(node.begin, f"`{self._slice(node)}`: there is no unit `{node.unit}`{listed}")
        scale = scale_of(node.unit, self._scope, self._whose)
        if scale is None:
            text = f"`{self._slice(node)}` is measured on one person, and a scene has none: use fw, fh or px"
            raise ExpressionError(node.begin, text)
        return Measure(kind, terms.Arithmetic("*", terms.Constant(node.value), scale))

    def _look_up(self, node: Name) -> _Value:
        if node.text in UNSEEN_WORDS:
            return self._unseen(node, node.text)
        word, owner = self._word(node)
        if word:
            return self._defined(node, word, owner)
        if len(node.parts) > 1 and node.parts[-1] in {"x", "y"}:
            point = Name(node.begin, node.end, node.parts[:-1])
            word, owner = self._word(point)
            if word:
                return self._coordinate(self._defined(node, word, owner), point, node.parts[-1])
        if node.parts[0] in self._counters:
            return self._counted(node)
        parts = tuple(map(self._sided, node.parts))
        try:
            return look_up(parts, self._scope, self._whose)
        except KeyError as error:
            is_person = self._scope == "pair" and node.text in {"a", "b"}
            if node.text in self._known["zone"] and not is_person:
                raise ExpressionError(node.begin, f"`{node.text}` is a zone: write `in {node.text}`") from None
            if self._functions and node.text in self._functions.names():
                text = f"`{node.text}` is a condition in Python: write {node.text}(), with its values between"
                raise ExpressionError(node.begin, text) from None
            if node.text in self._known["line"] and not is_person:
                raise ExpressionError(node.begin, f"`{node.text}` is a line: write crosses({node.text})") from None
            if node.text in (self._known_rules or ()) and not is_person:
                raise ExpressionError(node.begin, f"`{node.text}` is a rule: write running({node.text})") from None
            if node.text in self._actions:
                text = (
                    f"`{node.text}` is an action: write `use: {node.text}` in place of `when`, or in a rule of its "
                    f"own, and running(ID) of that rule here"
                )
                raise ExpressionError(node.begin, text) from None
            if self._reading.words and parts[0] in {"a", "b"}:
                text = f"a word is about one person, and knows no `{parts[0]}`: write `{node.text}` in the rule itself"
                raise ExpressionError(node.begin, text) from None
            text = self._mistyped(node.text) or str(error.args[0])
            raise ExpressionError(node.begin, text) from None

    def _mistyped(self, text: str) -> str:
        """The message for a name that is nearly a word or an action, and nearer to it than to anything of a person."""
        near = nearest_of(text, [*self._words, *self._actions])
        if not near:
            return ""
        use = "" if near in self._words else f" That is an action: write `use: {near}` in place of `when`."
        return f"`{text}` is not known; did you mean `{near}`?{use}"

    def _counted(self, node: Name) -> Measure:
        """A number of a counter."""
        name, (kind, shape) = node.parts[0], self._counters[node.parts[0]]
        if self._scope != "scene":
            text = f"`{node.text}` is about the whole camera: it is known only under `when`, with `scope: scene`"
            raise ExpressionError(node.begin, text)
        fields = FIELDS[kind]
        if len(node.parts) != 2 or node.parts[1] not in fields:
            guess = suggestion(node.parts[-1], fields) or f": it has {', '.join(fields)}"
            raise ExpressionError(node.begin, f"`{node.text}` is no number of the counter `{name}`{guess}")
        (self.zones if kind == "zone" else self.lines).add(shape)
        return Measure(Kind.NUMBER, terms.Fact("g", "counters", (name, fields[node.parts[1]])))

    def _sided(self, name: str) -> str:
        """Inside `either` and `both`: `wrist` is that of the side, `other_wrist` that of the other one."""
        side, joint = self._reading.side, name.removeprefix("other_")
        if not side or joint not in PAIRED:
            return name
        self._sides_used += 1
        return f"{side if name == joint else _OTHER_SIDE[side]}_{joint}"

    def _coordinate(self, value: _Value, node: Name, part: str) -> Measure:
        if not isinstance(value, Place):
            raise ExpressionError(node.begin, f"`{node.text}` is no point, so it has no `{part}`")
        return Measure(Kind.X, value.x) if part == "x" else Measure(Kind.Y, value.y)

    def _word(self, node: Name) -> tuple[str, Whose]:
        """The word that a name is, and in a pair the one of the two whom it is about; "" for none."""
        last = node.parts[-1]
        if last not in self._words:
            return "", ""
        if len(node.parts) == 1:
            if self._scope == "pair":
                raise ExpressionError(
                    node.begin, f"`{last}` of whom? the two people of a pair are a and b: a.{last} or b.{last}"
                )
            return last, self._reading.owner
        if len(node.parts) == 2 and self._scope == "pair" and node.parts[0] in {"a", "b"}:
            return last, self._owner_of(node)
        return "", ""

    def _defined(self, node: Name, word: str, owner: Whose) -> _Value:
        """The value of a word: that of its definition. Raises ExpressionError with the mistakes there."""
        before = self._reading
        if word in before.words:
            circle = " -> ".join([*before.words[before.words.index(word) :], word])
            wrong = ExpressionError(node.begin, f"`{word}` is defined by itself: {circle}")
            wrong.is_circle = True
            raise wrong
        key = (word, owner, before.side, self._window)
        expanded, sides, noted = self._expanded, self._sides_used, len(self.parts)
        if key in self._wrong:
            wrong, characters = self._wrong[key]
            self._expand(node, characters)
            raise wrong.used_again(node.begin)
        known = self._definitions.get(key)
        self._expand(node, known.expanded if known else len(self._words[word]))
        if known:
            self._sides_used += known.sides
            value = known.value
        else:
            try:
                value = self._definition(node, word, owner)
            except ExpressionError as error:
                if not any(one.is_circle for one in error.all):
                    self._wrong[key] = error.used_again(node.begin), self._expanded - expanded
                raise
            if isinstance(value, Truth) or len(self.parts) == noted:
                self._definitions[key] = _Definition(value, self._expanded - expanded, self._sides_used - sides)
        if isinstance(value, Truth):
            del self.parts[noted:], self.values[noted:]
            self._note(self._slice(node), Kind.TRUTH, value)
        return value

    def _expand(self, node: Name, characters: int) -> None:
        self._expanded += characters
        if self._expanded > MAX_EXPANDED:
            text = f"the definitions of the words are more than {MAX_EXPANDED} characters together: use fewer of them"
            raise ExpressionError(node.begin, text)

    def _definition(self, node: Name, word: str, owner: Whose) -> _Value:
        before = self._reading
        self._reading = _Reading(self._words[word], owner, before.side, (*before.words, word))
        try:
            return self._value(parse(self._words[word]))
        except ExpressionError as error:
            for one in error.all:
                one.word = one.word or word
                one.used_at = node.begin
            raise
        finally:
            self._reading = before

    def _negative(self, node: Negative) -> Measure:
        inner = self._measure(node.operand)
        if inner.kind in (Kind.X, Kind.Y):
            raise ExpressionError(node.begin, f"`{self._slice(node)}`: {inner.kind.value} has no negative")
        return Measure(inner.kind, terms.Negative(inner.term))

    def _arithmetic(self, node: Arithmetic) -> Measure:
        left, right = _each(self._measure, (node.left, node.right))
        try:
            kind = _RESULTS[node.operator](left.kind, right.kind)
        except KindError as error:
            raise ExpressionError(node.begin, f"`{self._slice(node)}`: {error}") from None
        if node.operator == "/":
            return Measure(kind, terms.Call("ratio", (left.term, right.term)))
        return Measure(kind, terms.Arithmetic(node.operator, left.term, right.term))

    def _call(self, node: Call) -> _Value:
        function = FUNCTIONS.get(node.function)
        if function:
            if function.arguments and not function.arguments[0] <= len(node.arguments) <= function.arguments[1]:
                raise _call_of(node)
            return _READINGS[function.reading](self, node)
        if asked := self._function(node):
            return self._in_python(node, asked)
        known = [*FUNCTIONS, *(self._functions.names() if self._functions else ())]
        raise ExpressionError(
            node.begin,
            f"there is no function `{node.function}`"
            + (
                sides_hint(node.function)
                or suggestion(node.function, known)
                or f"; known: {', '.join(sorted(known))}; packages that are installed can bring others"
            ),
        )

    def _function(self, node: Call) -> AskedFunction | None:
        try:
            return self._functions.find(node.function) if self._functions else None
        except LookupError as error:
            raise ExpressionError(node.begin, str(error.args[0])) from None

    def _in_python(self, node: Call, function: AskedFunction) -> Truth | Measure:
        """A function of somebody's past."""
        if self._scope != "person":
            text = f"`{node.function}` is about one person: use it with `scope: person`"
            if self._scope == "pair":
                text += f", or define a word by it, such as `word: {node.function}(...)`, and write a.word"
            raise ExpressionError(node.begin, text)
        parameters = function.declared.parameters
        required = sum(one.required for one in parameters)
        if not required <= len(node.arguments) <= len(parameters):
            raise ExpressionError(node.begin, f"expected {_usage(function)}")
        pairs = list(zip(parameters, node.arguments, strict=False))
        given = _each(lambda pair: self._given(function, *pair), pairs)
        gives = function.declared.gives
        owner = self._whose
        known = (terms.Argument(f"k{owner}"), terms.Argument(f"p{owner}"), terms.Argument("g"))
        value = self._cell(node, "Code", (function,), *known, *given)
        self.reports.setdefault(terms.Report(value.cell), self._slice(node))
        return Measure(_KIND_OF[gives], value) if gives != "truth" else self._told(node, value)

    def _given(self, function: AskedFunction, parameter: Parameter, node: Node) -> Term:
        """The value of a parameter."""
        text = self._slice(node)
        if parameter.kind in ("joint", "word"):
            choices = COCO_17 if parameter.kind == "joint" else parameter.choices
            word = self._sided(text) if parameter.kind == "joint" else text
            if word not in choices:
                guess = suggestion(word, choices) or f": expected one of {', '.join(choices)}"
                raise ExpressionError(node.begin, f"`{text}` cannot be `{parameter.name}` of {function.name}{guess}")
            return terms.Constant(word)
        kind, measure = _KIND_OF[parameter.kind], self._inner_measure(node)
        if measure.kind != kind and not {measure.kind, kind} <= _COMMON_LENGTHS:
            problem = f"`{text}` is {measure.kind.value}, and `{parameter.name}` of {function.name} is {kind.value}"
            raise ExpressionError(node.begin, problem)
        return measure.term

    def _points(self, node: Call, count: int) -> list[Place]:
        """The arguments of a function that takes so many points."""
        places = _each(self._value, node.arguments)
        points = [place for place in places if isinstance(place, Place)]
        if len(points) != count or len(places) != count:
            raise ExpressionError(node.begin, f"{node.function}(...) takes {count} points, as in {_example(node)}")
        return points

    def _distance(self, node: Call) -> Measure:
        one, other = self._points(node, 2)
        across, down = terms.Arithmetic("-", one.x, other.x), terms.Arithmetic("-", one.y, other.y)
        return Measure(Kind.LENGTH, terms.Call("hypot", (across, down)))

    def _angle(self, node: Call) -> Measure:
        points = self._points(node, 3)
        return Measure(Kind.ANGLE, terms.Call("angle", tuple((point.x, point.y) for point in points)))

    def _along_the_body(self, node: Call) -> Measure:
        """above(p, q), beside(p, q): in a pair along the body of the one whose point p is."""
        one, other = ((point.x, point.y) for point in self._points(node, 2))
        body = terms.Argument(f"k{self._owner_of(node.arguments[0])}")
        return Measure(Kind.LENGTH, terms.Call(node.function, (body, one, other)))

    def _owner_of(self, node: Node) -> Whose:
        """Of a pair, the one whose point it is."""
        if self._scope == "pair" and isinstance(node, Name):
            return "a" if node.parts[0] == "a" else "b"
        return self._whose

    def _beyond(self, node: Call) -> Truth:
        """beyond(joint), beyond(joint, side)."""
        name, *sides = node.arguments or (node,)
        if not isinstance(name, Name) or len(sides) > 1:
            raise _call_of(node)
        self._value(name)
        joint = self._sided(name.parts[-1])
        if joint not in COCO_17:
            raise ExpressionError(name.begin, f"`{name.text}` is no joint: expected one, as in {_example(node)}")
        side = sides[0].text if sides and isinstance(sides[0], Name) else ""
        if sides and side not in _BORDERS:
            text = f"`{self._slice(sides[0])}` is no side of the picture: expected {', '.join(_BORDERS)}"
            raise ExpressionError(sides[0].begin, text)
        owner = self._owner_of(name)
        known = (terms.Argument(f"k{owner}"), terms.Argument(f"p{owner}"), terms.Argument("g"))
        where = (terms.Constant(COCO_17.index(joint)), terms.Constant(side))
        return self._told(node, terms.Call("beyond", (*known, *where)))

    def _of_both_sides(self, node: Call) -> Truth:
        """either(C), both(C): C of the left and C of the right."""
        before, used = self._reading, self._sides_used
        if before.side:
            raise ExpressionError(node.begin, "`either` and `both` do not stand inside each other")
        truths = []
        try:
            for side in ("left", "right"):
                self._reading = dataclasses.replace(before, side=side)
                truths.append(self.truth(node.arguments[0]))
        finally:
            self._reading = before
        if self._sides_used == used:
            text = (
                f"{node.function}(...) is about joints without a side, such as wrist or knee, and there is none in "
                f"`{self._slice(node.arguments[0])}`"
            )
            raise ExpressionError(node.begin, text)
        return terms.Sides("or" if node.function == "either" else "and", tuple(truths))

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
        return Measure(measures[0].kind, terms.Call(code, tuple(measure.term for measure in measures)))

    # ---- values with memory

    def _time_of(self, node: Call) -> Measure:
        """since(C), total(C, 60s)."""
        with self._untold():
            truth = self.truth(node.arguments[0])
        times = tuple(self._time_ns(argument) for argument in node.arguments[1:])
        return Measure(Kind.TIME, self._cell(node, FUNCTIONS[node.function].cell, times, truth))

    def _dwell(self, node: Call) -> Measure:
        """dwell(zone), dwell(zone, 5s), dwell(point, zone), dwell(point, zone, 5s)."""
        *places, last = node.arguments or (node,)
        time_ns = self._time_ns(last) if isinstance(last, Number) else _DWELL_NS
        names = places if isinstance(last, Number) else [*places, last]
        if not 1 <= len(names) <= 2 or not isinstance(names[-1], Name):
            raise _call_of(node)
        with self._untold():
            truth = self._inside(Inside(node.begin, node.end, names[0] if len(names) > 1 else None, names[-1]))
        return Measure(Kind.TIME, self._cell(node, "Dwell", (time_ns,), truth))

    def _window_ns(self, node: Call, place: int = 1) -> int:
        """The window of a function: its argument, or else that of the comparison, or else the usual one."""
        if len(node.arguments) > place:
            return self._time_ns(node.arguments[place])
        if self._window:
            return self._time_ns(self._window)
        usual_ns = FUNCTIONS[node.function].usual_ns
        if not usual_ns:
            raise ExpressionError(node.begin, f"over which time? expected {_example(node)}")
        return usual_ns

    def _over_a_window(self, node: Call) -> Measure:
        """drop(x, 1s), usual(x, 10s) and so on: of one value."""
        window_ns = self._window_ns(node)
        inner = self._inner_measure(node.arguments[0])
        function = FUNCTIONS[node.function]
        kind, more = inner.kind, function.more
        if node.function in ("lowest", "highest") and kind == Kind.Y:
            place = {"lowest": "greatest", "highest": "least"}[node.function]
            text = (
                f"`{node.function}` of a y could mean the number or the place: y grows downwards; write "
                f"{place}(...) for the {node.function} place in the picture"
            )
            raise ExpressionError(node.begin, text)
        if node.function in ("drop", "rise"):
            # The y of something that falls grows.
            more = (1 if (node.function == "rise") != (kind == Kind.Y) else -1,)
        if node.function in ("drop", "rise", "change") and kind in (Kind.X, Kind.Y):
            kind = Kind.LENGTH
        elif node.function == "velocity":
            kind = PER_SECOND.get(Kind.LENGTH if kind in (Kind.X, Kind.Y) else kind, Kind.TRUTH)
            if kind == Kind.TRUTH:
                raise ExpressionError(node.begin, f"velocity(...) of {inner.kind.value} means nothing here")
        return Measure(kind, self._cell(node, function.cell, (window_ns, *more), inner.term))

    def _swings(self, node: Call) -> Measure:
        """swings(value), swings(value, amplitude), swings(value, amplitude, 2s)."""
        inner = self._inner_measure(node.arguments[0])
        kind = Kind.LENGTH if inner.kind in (Kind.X, Kind.Y) else inner.kind
        if len(node.arguments) > 1:
            amplitude = self._inner_measure(node.arguments[1])
            if amplitude.kind != kind and not {amplitude.kind, kind} <= _COMMON_LENGTHS:
                text = f"how far each way? expected {kind.value}, got {amplitude.kind.value}"
                raise ExpressionError(node.arguments[1].begin, text)
            size: Term = amplitude.term
        elif kind == Kind.ANGLE:
            size = terms.Constant(_USUAL_SWING_DEG)
        else:
            body = scale_of("bl", self._scope, self._whose)
            if kind not in _COMMON_LENGTHS or not body:
                raise ExpressionError(node.begin, f"how far each way? expected {_example(node)}")
            size = terms.Arithmetic("*", terms.Constant(_USUAL_SWING_BL), body)
        window_ns = self._window_ns(node, 2)
        return Measure(Kind.RATE, self._cell(node, "Swings", (window_ns,), inner.term, size))

    def _inner_measure(self, node: Node) -> Measure:
        """A value inside a part with memory."""
        window, self._window = self._window, None
        try:
            return self._measure(node)
        finally:
            self._window = window

    def _speed(self, node: Call) -> Measure:
        """speed(point), speed(point, 0.3s)."""
        point = self._value(node.arguments[0]) if 1 <= len(node.arguments) <= 2 else None
        if not isinstance(point, Place):
            raise ExpressionError(node.begin, f"expected a point, as in {_example(node)}")
        window_ns = self._window_ns(node)
        return Measure(Kind.SPEED, self._cell(node, "Speed", (window_ns,), point.x, point.y))

    # ---- words

    def _note(self, text: str, kind: Kind, *value: Term) -> None:
        if self._reading.side:
            text = f"{text} ({self._reading.side})"
        self.parts.append((text, kind))
        self.values.append(value)

    def _slice(self, node: Node) -> str:
        """The text of a node. It begins and ends within the parentheses of its parts, so those are looked for."""
        text, begin, end = self._reading.text, node.begin, node.end
        for _ in range(_unopened(text[begin:end])):
            begin = text.rindex("(", 0, begin)
        for _ in range(_unclosed(text[begin:end])):
            end = text.index(")", end) + 1
        return " ".join(text[begin:end].split())

    def _pair(self, node: Comparison, i: int) -> str:
        return f"{self._slice(node.operands[i])} {node.operators[i]} {self._slice(node.operands[i + 1])}"


def _unopened(text: str) -> int:
    """How many of its `)` have no `(` before them."""
    if ")" not in text:
        return 0
    depth = least = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        least = min(least, depth)
    return -least


def _unclosed(text: str) -> int:
    """How many of its `(` have no `)` behind them, if none of its `)` is unopened."""
    return text.count("(") - text.count(")")


def _other_unit(node: Comparison, i: int, left: Kind, right: Kind) -> str:
    for number, wanted in ((node.operands[i], right), (node.operands[i + 1], left)):
        if isinstance(number, Number):
            return other_unit(number.value, number.unit, wanted)
    return ""


def _example(node: Call) -> str:
    """How the function is called."""
    return FUNCTIONS[node.function].example


def _call_of(node: Call) -> ExpressionError:
    """The mistake in a call that is not as the function's."""
    return ExpressionError(node.begin, f"expected {_example(node)}")


def _usage(function: AskedFunction) -> str:
    """limps(least, over): those that may be left out stand in brackets."""
    named = [one.name if one.required else f"[{one.name}]" for one in function.declared.parameters]
    kinds = ", ".join(f"`{one.name}` is {_KINDS_IN_WORDS[one.kind]}" for one in function.declared.parameters)
    return f"{function.name}({', '.join(named)})" + (f", where {kinds}" if kinds else ", which takes no values")


def never_so_long(time: str, at_most_ns: float) -> str:
    """The message about a time for which a condition that is true of the lost, or in one frame, can never last."""
    if at_most_ns <= ONE_FRAME_NS:
        return (
            f"{time} never pass: `enters`, `leaves` and `crosses` are true in one frame alone; to ask for somebody who "
            "came in and stayed, write `in ZONE` or `dwell(ZONE) > 5s`; else remove the time"
        )
    return (
        f"{time} never pass: `lost` and `gone` are true for less than {at_most_ns / 1e9:g}s at a time, from "
        f"`lost_after` until somebody has been unseen for {LOST_NS // 10**9}s; write a shorter time"
    )


def _none(what: str) -> str:
    return f": this file has no `{what}s`"


_KIND_OF = {
    "number": Kind.NUMBER,
    "time": Kind.TIME,
    "length": Kind.LENGTH,
    "angle": Kind.ANGLE,
    "rate": Kind.RATE,
}
_KINDS_IN_WORDS = {
    **{name: kind.value for name, kind in _KIND_OF.items()},
    "joint": "a joint",
    "word": "a word",
}
_EXAMPLE = "left_wrist.y < nose.y - 0.1h"
_WHOSE: dict[Scope, str] = {
    "pair": "write `a.feet in ...` or `b.feet in ...`",
    "scene": "write it under `who`",
    "person": "",
}
_USUAL_SWING_BL, _USUAL_SWING_DEG = 0.25, 20.0
_BORDERS = ("top", "bottom", "left", "right")
_OTHER_SIDE = {"left": "right", "right": "left"}
_DWELL_NS = 2_000_000_000
"""Leaving a zone for so long does not end a stay."""
_RESULTS: dict[str, Callable[[Kind, Kind], Kind]] = {
    "+": lambda left, right: added("+", left, right),
    "-": lambda left, right: added("-", left, right),
    "*": multiplied,
    "/": divided,
}
_COMMON_LENGTHS = MEASURES & {Kind.LENGTH, Kind.FRAME_WIDTH, Kind.FRAME_HEIGHT, Kind.PIXELS}
_READINGS: dict[str, Callable[[Reader, Call], _Value]] = {
    "step": Reader._step,
    "distance": Reader._distance,
    "angle": Reader._angle,
    "measures": Reader._of_measures,
    "along the body": Reader._along_the_body,
    "both sides": Reader._of_both_sides,
    "beyond": Reader._beyond,
    "running": Reader._running,
    "label": Reader._label,
    "looks": Reader._looks_like,
    "time": Reader._time_of,
    "dwell": Reader._dwell,
    "over a window": Reader._over_a_window,
    "swings": Reader._swings,
    "speed": Reader._speed,
}
"""How the arguments of a function are read, by `Function.reading`."""
