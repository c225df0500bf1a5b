"""Parses the text of a condition into a tree. Nothing of it is ever run: the tree holds only nodes of this grammar.

whole       = or | "first" or {"then" or ["within" TIME ["for" TIME]]}          a sequence
or          = and {"or" and}
and         = lasting {"and" lasting}
lasting     = not ["for" TIME]
not         = "not" not | "was" not "within" TIME | comparison
comparison  = ["in" NAME]                               the person's feet are in a zone
            | sum [["not"] "in" NAME]                   a point is in a zone
            | sum {("<" | "<=" | ">" | ">=" | "==" | "!=") sum} ["within" TIME]
            | ("lost" | "gone") ["while" not]
sum         = product {("+" | "-") product}
product     = sign {("*" | "/") sign}
sign        = ["-"] (NUMBER [UNIT] | NAME {"." NAME} | NAME "(" [whole {"," whole}] ")" | "(" whole ")")
              | "running" "(" ID ")"

`first`, `then`, `was`, `within`, `for` and `while` are words only where no name can stand, so a zone may have such a
name. After a comparison `within` is the window of a function in it that has none, such as `drop(hips.y)`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise

from camgraph.stages.rules.language.functions import FUNCTIONS
from camgraph.stages.rules.language.kinds import FOREIGN_UNITS, UNITS, meant

MAX_CHARACTERS = 2000
MAX_TOKENS = 200
MAX_DEPTH = 40
MAX_NUMBER = 1e6
_SHOWN = 40

KEYWORDS = frozenset({"and", "or", "not", "in"})
GRAMMAR_WORDS = KEYWORDS | {"first", "then", "was", "within", "for", "while"}
"""Names that no word may have that is defined in a file."""
UNSEEN_WORDS = ("lost", "gone")
"""True of somebody who is no longer seen: within the picture, or because they left it."""
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})

_RUNNING = re.compile(r"\s*([^\s(),]+)\s*(?=\))")
"""The id of a rule, behind `running(`: letters of any script, digits, `_` and `-`."""
_MARKS = "".join(letter for letter in map(chr, range(0x300, 0x3100)) if unicodedata.category(letter)[0] == "M")
"""Signs above, below and behind letters, of which the scripts of India and decomposed letters are made."""
NAME_OF_ANY_SCRIPT = rf"[^\W\d][\w{_MARKS}]*"
_FOREIGN = "|".join(r"\s*/\s*".join(map(re.escape, unit.split("/"))) for unit in sorted(FOREIGN_UNITS, key=len)[::-1])
_TOKEN = re.compile(
    # Numbers have digits of ASCII: of other scripts, nobody would see which number was meant.
    r"\s*(?:(?P<number>[0-9]+\.?[0-9]*|\.[0-9]+)"
    # No name stands behind a number, so that metres may stand apart from it, and get a message about metres.
    rf"(?P<unit>\s*(?:{_FOREIGN})(?!\w)|[A-Za-z]+(?:/[sh]\b)?|/s\b)?"
    rf"|(?P<name>{NAME_OF_ANY_SCRIPT})|(?P<sign><=|>=|==|!=|[-+*/<>(),.]))"
)


class ExpressionError(ValueError):
    """A condition that means nothing. `at` is the place in its text, from 0; `others` are the mistakes behind it.

    With a `word`, `at` is the place in the definition of that word, and `used_at` the place of the word in the
    condition.
    """

    def __init__(self, at: int, text: str) -> None:
        super().__init__(text)
        self.at = at
        self.word = ""
        self.used_at = at
        self.unknown = ""
        """The kind of a name that there is not: zone or line."""
        self.is_circle = False
        """A word is defined by itself: told as of the word with which the circle was entered."""
        self.others: list[ExpressionError] = []

    @property
    def all(self) -> list[ExpressionError]:
        """This mistake and the others, in the order of the text."""
        return [self, *self.others]

    def used_again(self, at: int) -> ExpressionError:
        """The same mistakes in the definition of a word that is used at another place, too; each of them once."""
        different = {(one.word, one.at, str(one)): one.unknown for one in self.all}
        found = []
        for (word, place, text), unknown in different.items():
            found.append(ExpressionError(place, text))
            found[-1].word, found[-1].used_at, found[-1].unknown = word, at, unknown
        found[0].others = found[1:]
        return found[0]


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a condition, with the place in the text that it was read from."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Number(Node):
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Call(Node):
    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Negative(Node):
    operand: Node


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """`operands[i] operators[i] operands[i + 1]`; all of these must hold. `window`: of the functions without one."""

    operators: tuple[str, ...]
    operands: tuple[Node, ...]
    window: Number | None = None


@dataclass(frozen=True, slots=True)
class Inside(Node):
    """`point` (None: the feet) is in the zone."""

    point: Node | None
    zone: Name


@dataclass(frozen=True, slots=True)
class Not(Node):
    operand: Node


@dataclass(frozen=True, slots=True)
class Junction(Node):
    """`and` or `or` of two or more."""

    operator: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Lasts(Node):
    """`operand` has been true for `time`."""

    operand: Node
    time: Number


@dataclass(frozen=True, slots=True)
class Was(Node):
    """`operand` was true within the last `time`."""

    operand: Node
    time: Number


@dataclass(frozen=True, slots=True)
class LostWhile(Node):
    """Someone is lost, or gone, of whom `operand` was true when they were last seen."""

    word: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Step(Node):
    """A step of a sequence: within `limit` (None: any time) of the step before."""

    operand: Node
    limit: Number | None


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    """Two steps or more, one after the other. A step that is `Lasts` must last from then on."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    begin: int
    end: int
    unit: str = ""


@functools.lru_cache(maxsize=1024)  # conditions use the same words again and again
def parse(text: str) -> Node:
    """The tree of a condition. Raises ExpressionError."""
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(0, f"{len(text)} characters: at most {MAX_CHARACTERS} are accepted; make two rules of it")
    return _Parser(_tokens(text)).whole()


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        if [token.text for token in tokens[-2:]] == ["running", "("] and (rule := _RUNNING.match(text, at)):
            tokens.append(_Token("name", unicodedata.normalize("NFC", rule[1]), rule.start(1), rule.end(1)))
            at = rule.end()
            continue
        found = _TOKEN.match(text, at)
        if not found:
            begin = at + len(text[at:]) - len(text[at:].lstrip())
            raise _no_token(text[begin:], begin, tokens)
        kind = next(kind for kind in ("number", "name", "sign") if found[kind])
        word = unicodedata.normalize("NFC", found[kind])
        known_as = word if kind == "sign" or word in KEYWORDS else kind
        tokens.append(_Token(known_as, word, found.start(kind), found.end(), "".join((found["unit"] or "").split())))
        at = found.end()
        if len(tokens) > MAX_TOKENS:
            raise ExpressionError(at, f"more than {MAX_TOKENS} words and signs: make two rules of it")
    return [*tokens, _Token("end", "", end, end)]


_INSTEAD = {
    **{
        "=>": ">=",
        "=<": "<=",
        "=!": "!=",
        "\u2265": ">=",
        "\u2264": "<=",
        "\u2260": "!=",
        "\u2212": "-",
        "\u00d7": "*",
    },
    **{"&&": "and", "&": "and", "||": "or", "|": "or", "!": "not", "=": "=="},
}
"""Spellings of other languages and keyboards -> ours; a longer one stands before its beginning."""


def _no_token(rest: str, at: int, before: list[_Token]) -> ExpressionError:
    if rest[0] == "=" and before and before[-1].kind in ("<", ">"):
        return ExpressionError(before[-1].begin, f"`{before[-1].text}` and `=` stand apart: write `{before[-1].text}=`")
    wrong = next((wrong for wrong in _INSTEAD if rest.startswith(wrong)), rest[0])
    hint = f": write `{_INSTEAD[wrong]}`" if wrong in _INSTEAD else ""
    if wrong == ":":
        hint = ": the time of day has its place under `schedules`, which a rule names under `during`"
    if wrong in "\"'":
        hint = ": names of zones and lines stand without quotes"
    return ExpressionError(at, f"`{wrong}` is not part of a condition{hint}")


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0
        self._open_for: set[int] = set()
        """The ids of the nodes `C for 2s` that stand in no parentheses."""
        self._kept: list[Node] = []

    def whole(self) -> Node:
        if self._peek.kind == "end":
            raise ExpressionError(0, "the condition is empty: expected one such as `left_wrist.y < nose.y`")
        tree = self._sequence()
        if self._peek.kind != "end":
            raise self._not_the_end()
        return tree

    def _not_the_end(self) -> ExpressionError:
        token = self._peek
        if token.kind == "name" and token.text in _MISPLACED:
            return ExpressionError(token.begin, f"`{token.text}` has no place here: {_MISPLACED[token.text]}")
        return self._decimal_comma() or self._unexpected("the end, `and`, `or` or an operator")

    def _decimal_comma(self) -> ExpressionError | None:
        """The mistake of `1,5h`."""
        around = self._tokens[max(0, self._next - 1) : self._next + 2]
        if [one.kind for one in around] != ["number", self._peek.kind, "number"] or self._peek.text != ",":
            return None
        whole, _, rest = around
        if whole.unit or whole.end != rest.begin - 1:
            return None
        after = f"{rest.text}{rest.unit}"
        return ExpressionError(whole.begin, f"`{whole.text},{after}`: write `{whole.text}.{after}`, with a point")

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *kinds: str) -> _Token | None:
        token = self._peek
        if token.kind not in kinds:
            return None
        self._next += 1
        return token

    def _need(self, kind: str, what: str) -> _Token:
        token = self._take(kind)
        if token is None:
            raise self._unexpected(what)
        return token

    def _unexpected(self, what: str) -> ExpressionError:
        token = self._peek
        apart = self._unit_apart()
        if apart:
            return apart
        got = "the condition ends here" if token.kind == "end" else f"got `{token.text}{token.unit}`"
        return ExpressionError(token.begin, f"expected {what}, {got}")

    def _unit_apart(self) -> ExpressionError | None:
        """The mistake of `2 minutes`, whose unit stands apart from its number."""
        number, unit = next(
            (
                pair
                for pair in pairwise(self._tokens[max(0, self._next - 1) : self._next + 2])
                if pair[0].kind == "number" and not pair[0].unit and pair[1].kind == "name"
            ),
            (None, None),
        )
        if not number or not unit:
            return None
        word = f"{unit.text}/s" if self._is_a_second(unit) else unit.text
        ours = meant(number.text, word)
        if not ours:
            return None
        return ExpressionError(number.begin, f"`{number.text} {word}`: write `{ours}`, without a space")

    def _is_a_second(self, unit: _Token) -> bool:
        """Whether `/ s` follows, as in `3 h / s`."""
        at = self._tokens.index(unit) + 1
        return f"{unit.text}/s" in UNITS and [one.text for one in self._tokens[at : at + 2]] == ["/", "s"]

    def _word(self, text: str) -> _Token | None:
        """Take a word of the grammar that stands behind a condition."""
        token = self._peek
        if token.kind != "name" or token.text != text:
            return None
        self._next += 1
        return token

    def _opening(self, text: str) -> _Token | None:
        """Take a word of the grammar that stands before a condition; before anything else it is a name."""
        token, behind = self._peek, self._tokens[min(self._next + 1, len(self._tokens) - 1)]
        if token.kind != "name" or token.text != text or behind.kind not in ("name", "number", "(", "not", "in", "-"):
            return None
        self._next += 1
        return token

    def _time(self, word: str) -> Number:
        token = self._peek
        if token.kind != "number" or not token.unit:
            error = self._unexpected(f"a time such as 2s or 500ms after `{word}`")
            bare = token.kind == "number" and self._unit_apart() is None
            raise ExpressionError(error.at, f"{error}; did you mean `{token.text}s`?") if bare else error
        self._next += 1
        return _number(token)

    def _sequence(self) -> Node:
        first = self._opening("first")
        if not first:
            return self._or()
        operand = self._or()
        steps = [Step(operand.begin, operand.end, operand, None)]
        while self._word("then"):
            steps.append(self._step())
        if len(steps) == 1:
            if self._peek.text == "within":
                text = "the first step follows no other, so it has no `within`: expected `then` and a condition"
                raise ExpressionError(self._peek.begin, text)
            raise self._unexpected("`then` and a condition")
        return Sequence(first.begin, steps[-1].end, tuple(steps))

    def _step(self) -> Step:
        operand = self._or()
        limit = self._time("within") if self._word("within") else None
        if limit and (self._word("for")):
            time = self._time("for")
            operand = Lasts(operand.begin, time.end, operand, time)
        end = max(operand.end, limit.end if limit else 0)
        return Step(operand.begin, end, operand, limit)

    def _or(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(self._peek.begin, f"more than {MAX_DEPTH} levels of parentheses")
        operands = [self._and()]
        while self._take("or"):
            operands.append(self._and())
        self._depth -= 1
        return self._joined("or", operands)

    def _and(self) -> Node:
        operands = [self._lasting()]
        while self._take("and"):
            operands.append(self._lasting())
        return self._joined("and", operands)

    def _joined(self, operator: str, operands: list[Node]) -> Node:
        if len(operands) == 1:
            return operands[0]
        open_for = [id(operand) in self._open_for for operand in operands]
        if open_for[-1] and not all(open_for):
            last = operands[-1]
            assert isinstance(last, Lasts)
            text = (
                f"does `for` go with the last condition only, or with all before it? write `... {operator} (... for "
                f"...)` or `(... {operator} ...) for ...`"
            )
            raise ExpressionError(last.time.begin, text)
        return Junction(operands[0].begin, operands[-1].end, operator, tuple(operands))

    def _lasting(self) -> Node:
        operand = self._not()
        if not self._word("for"):
            return operand
        time = self._time("for")
        tree = Lasts(operand.begin, time.end, operand, time)
        self._open_for.add(id(tree))
        self._kept.append(tree)  # an id stays that of this node
        return tree

    def _was(self, word: _Token) -> Was:
        operand = self._not()
        if not self._word("within"):
            if isinstance(operand, Comparison) and operand.window:
                text = f"`within {operand.window.value:g}{operand.window.unit}` is the window of the comparison"
                raise ExpressionError(
                    operand.window.begin, f"{text}: put `(...)` around it, and `within` for `was` behind"
                )
            hint = " (several conditions stand in parentheses)" if self._peek.kind in ("and", "or") else ""
            raise self._unexpected(f"`within` and a time after `was ...`{hint}")
        time = self._time("within")
        return Was(word.begin, time.end, operand, time)

    def _not(self) -> Node:
        negations = []
        while token := self._take("not"):
            negations.append(token)
        was = self._opening("was")
        tree = self._was(was) if was else self._comparison()
        for token in reversed(negations):
            tree = Not(token.begin, tree.end, tree)
        return tree

    def _comparison(self) -> Node:
        word = self._take("in")
        if word:
            zone = self._zone()
            return Inside(word.begin, zone.end, None, zone)
        left = self._sum()
        if self._peek.kind in ("in", "not"):
            negated = self._take("not")
            self._need("in", "`in` and the name of a zone")
            zone = self._zone()
            inside = Inside(left.begin, zone.end, left, zone)
            return Not(left.begin, zone.end, inside) if negated else inside
        return self._chain(left)

    def _chain(self, left: Node) -> Node:
        operators, operands = [], [left]
        while token := self._take(*COMPARISONS):
            operators.append(token.text)
            operands.append(self._sum())
        if not operators:
            if isinstance(left, Name) and left.text in UNSEEN_WORDS and self._word("while"):
                operand = self._not()
                return LostWhile(left.begin, operand.end, left.text, operand)
            return left
        window, end = None, operands[-1].end
        if self._peek.text == "within" and any(map(_lacks_window, operands)) and self._word("within"):
            window = self._time("within")
            end = window.end
        return Comparison(left.begin, end, tuple(operators), tuple(operands), window)

    def _zone(self) -> Name:
        token = self._need("name", "the name of a zone after `in`")
        return Name(token.begin, token.end, (token.text,))

    def _sum(self) -> Node:
        tree = self._product()
        while token := self._take("+", "-"):
            right = self._product()
            tree = Arithmetic(tree.begin, right.end, token.text, tree, right)
        return tree

    def _product(self) -> Node:
        tree = self._sign()
        while token := self._take("*", "/"):
            right = self._sign()
            tree = Arithmetic(tree.begin, right.end, token.text, tree, right)
        return tree

    def _sign(self) -> Node:
        sign = self._take("-")
        tree = self._primary()
        return Negative(sign.begin, tree.end, tree) if sign else tree

    def _primary(self) -> Node:
        if token := self._take("number"):
            return _number(token)
        if token := self._take("name"):
            return self._call(token) if self._take("(") else self._dotted(token)
        if token := self._take("("):
            tree = self._sequence()
            self._need(")", f"`)` for the `(` at character {token.begin + 1}")
            self._open_for.discard(id(tree))
            return tree
        raise self._unexpected("a name, a number or `(`")

    def _call(self, name: _Token) -> Call:
        arguments: list[Node] = []
        while self._peek.kind != ")":
            arguments.append(self._sequence())
            if not self._take(","):
                break
        closing = self._need(")", f"`,` or `)` in `{name.text}(...)`")
        return Call(name.begin, closing.end, name.text, tuple(arguments))

    def _dotted(self, first: _Token) -> Name:
        parts, end = [first.text], first.end
        while self._take("."):
            token = self._need("name", f"a name after `{'.'.join(parts)}.`")
            parts.append(token.text)
            end = token.end
        return Name(first.begin, end, tuple(parts))


def _lacks_window(node: Node) -> bool:
    """Whether a function in a value has no window."""
    if isinstance(node, Call):
        place = FUNCTIONS[node.function].window_at if node.function in FUNCTIONS else 0
        return 0 < len(node.arguments) <= place or any(map(_lacks_window, node.arguments))
    if isinstance(node, Arithmetic):
        return _lacks_window(node.left) or _lacks_window(node.right)
    return isinstance(node, Negative) and _lacks_window(node.operand)


_MISPLACED = {
    "within": "it follows `was C`, `then C`, or a comparison with drop(...), rise(...), change(...), swings(...), "
    "velocity(...) or speed(...) that has no window yet",
    "then": "a sequence begins with `first`, as in `first A then B within 2s`",
    "for": "it follows a condition, once, as in `in door for 5s`",
    "while": "it follows `lost` or `gone`",
}


def _number(token: _Token) -> Number:
    value = float(token.text)
    if value > MAX_NUMBER:
        raise ExpressionError(token.begin, f"{token.text[:_SHOWN]} is too large: expected at most {MAX_NUMBER:g}")
    return Number(token.begin, token.end, value, token.unit)
