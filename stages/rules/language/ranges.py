"""The ranges of values, and comparisons that can never be true: `score > 5`, `lean > 400deg`, `age < 0s`."""

from __future__ import annotations

import math

from camgraph.stages.rules.language.expression import Call, Comparison, Name, Negative, Node, Number
from camgraph.stages.rules.language.functions import ANY, DEGREES, FUNCTIONS, POSITIVE, SHARE, Range
from camgraph.stages.rules.language.kinds import EXACT_UNITS

_NAMES: dict[str, Range] = {
    "score": SHARE,
    "lean": DEGREES,
    **dict.fromkeys(("age", "speed", "torso", "body_height", "box.width", "box.height", "count", "people"), POSITIVE),
}
_EXACT = {"": 1.0, **EXACT_UNITS}
_UNITS = {"lean": "deg", "angle": "deg"}


def never_true(node: Comparison, i: int) -> str:
    """Why `operands[i] operators[i] operands[i + 1]` is never true; "" if it can be."""
    left, right, operator = node.operands[i], node.operands[i + 1], node.operators[i]
    for value, constant, sign in ((left, right, operator), (right, left, _TURNED[operator])):
        if is_constant(constant) and not is_constant(value):
            found = _range_of(value)
            if _cannot(found, sign, _range_of(constant)):
                return _in_words(value, found)
    return ""


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _cannot(value: Range, operator: str, constant: Range) -> bool:
    (low, high), (least, most) = value, constant
    return {
        ">": high <= least,
        ">=": high < least,
        "<": low >= most,
        "<=": low > most,
        "==": high < least or low > most,
        "!=": False,
    }[operator]


def _in_words(value: Node, found: Range) -> str:
    low, high = found
    name = value.parts[-1] if isinstance(value, Name) else value.function if isinstance(value, Call) else ""
    return f"is from {low:g} to {high:g}{_UNITS.get(name, '')}" if math.isfinite(high) else f"is never below {low:g}"


def is_constant(node: Node) -> bool:
    return isinstance(node, Number) or (isinstance(node, Negative) and isinstance(node.operand, Number))


def _range_of(node: Node) -> Range:
    if isinstance(node, Number):
        return _of_number(node)
    if isinstance(node, Negative):
        low, high = _range_of(node.operand)
        return -high, -low
    if isinstance(node, Name):
        return _of_name(node)
    return _of_call(node) if isinstance(node, Call) else ANY


def _of_number(node: Number) -> Range:
    """Of a unit that is measured on the body, only whether it is 0 or more."""
    if node.unit in _EXACT:
        return node.value * _EXACT[node.unit], node.value * _EXACT[node.unit]
    return POSITIVE if node.value else (0.0, 0.0)


def _of_name(node: Name) -> Range:
    parts = node.parts[1:] if node.parts[0] in ("a", "b") else node.parts
    if len(parts) == 2 and parts[1] == "c":
        return SHARE
    return _NAMES.get(".".join(parts), ANY)


def _of_call(node: Call) -> Range:
    function = FUNCTIONS.get(node.function)
    if function and function.range:
        return function.range
    return _range_of(node.arguments[0]) if function and node.arguments else ANY
