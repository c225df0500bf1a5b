"""Parses the text of a condition into a tree. Nothing of it is ever run: the tree holds only nodes of this grammar.

or          = and {"or" and}
and         = not {"and" not}
not         = "not" not | comparison
comparison  = ["in" NAME]                               the person's feet are in a zone
            | sum [["not"] "in" NAME]                   a point is in a zone
            | sum {("<" | "<=" | ">" | ">=" | "==" | "!=") sum}
sum         = product {("+" | "-") product}
product     = sign {("*" | "/") sign}
sign        = ["-"] (NUMBER [UNIT] | NAME {"." NAME} | NAME "(" [or {"," or}] ")" | "(" or ")")
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_CHARACTERS = 2000
MAX_TOKENS = 200
MAX_DEPTH = 40
MAX_NUMBER = 1e6
_SHOWN = 40

KEYWORDS = frozenset({"and", "or", "not", "in"})
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*|\.\d+)(?P<unit>[A-Za-z%]+(?:/s\b)?)?"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign><=|>=|==|!=|[-+*/<>(),.]))",
    re.ASCII,  # other scripts have digits too, and nobody would see which number was meant
)


class ExpressionError(ValueError):
    """A condition that means nothing. `at` is the place in its text, from 0; `others` are the mistakes behind it."""

    def __init__(self, at: int, text: str) -> None:
        super().__init__(text)
        self.at = at
        self.others: list[ExpressionError] = []

    @property
    def all(self) -> list[ExpressionError]:
        """This mistake and the others, in the order of the text."""
        return [self, *self.others]


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
    """`operands[i] operators[i] operands[i + 1]`; all of these must hold."""

    operators: tuple[str, ...]
    operands: tuple[Node, ...]


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
class _Token:
    kind: str
    text: str
    begin: int
    end: int
    unit: str = ""


def parse(text: str) -> Node:
    """The tree of a condition. Raises ExpressionError."""
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(0, f"{len(text)} characters: at most {MAX_CHARACTERS} are accepted; make two rules of it")
    return _Parser(_tokens(text)).whole()


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if not found:
            begin = at + len(text[at:]) - len(text[at:].lstrip())
            raise _no_token(text[begin:], begin, tokens)
        kind = next(kind for kind in ("number", "name", "sign") if found[kind])
        word = found[kind]
        known_as = word if kind == "sign" or word in KEYWORDS else kind
        tokens.append(_Token(known_as, word, found.start(kind), found.end(), found["unit"] or ""))
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
    if wrong in "\"'":
        hint = ": names of zones and lines stand without quotes"
    return ExpressionError(at, f"`{wrong}` is not part of a condition{hint}")


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        if self._peek.kind == "end":
            raise ExpressionError(0, "the condition is empty: expected one such as `left_wrist.y < nose.y`")
        tree = self._or()
        if self._peek.kind != "end":
            raise self._unexpected("the end, `and`, `or` or an operator")
        return tree

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
        got = "the condition ends here" if token.kind == "end" else f"got `{token.text}{token.unit}`"
        return ExpressionError(token.begin, f"expected {what}, {got}")

    def _or(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(self._peek.begin, f"more than {MAX_DEPTH} levels of parentheses")
        operands = [self._and()]
        while self._take("or"):
            operands.append(self._and())
        self._depth -= 1
        return _joined("or", operands)

    def _and(self) -> Node:
        operands = [self._not()]
        while self._take("and"):
            operands.append(self._not())
        return _joined("and", operands)

    def _not(self) -> Node:
        negations = []
        while token := self._take("not"):
            negations.append(token)
        tree = self._comparison()
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
            return left
        return Comparison(left.begin, operands[-1].end, tuple(operators), tuple(operands))

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
            tree = self._or()
            self._need(")", f"`)` for the `(` at character {token.begin + 1}")
            return tree
        raise self._unexpected("a name, a number or `(`")

    def _call(self, name: _Token) -> Call:
        arguments: list[Node] = []
        while self._peek.kind != ")":
            arguments.append(self._or())
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


def _joined(operator: str, operands: list[Node]) -> Node:
    if len(operands) == 1:
        return operands[0]
    return Junction(operands[0].begin, operands[-1].end, operator, tuple(operands))


def _number(token: _Token) -> Number:
    value = float(token.text)
    if value > MAX_NUMBER:
        raise ExpressionError(token.begin, f"{token.text[:_SHOWN]} is too large: expected at most {MAX_NUMBER:g}")
    return Number(token.begin, token.end, value, token.unit)
