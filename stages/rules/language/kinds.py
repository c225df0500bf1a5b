"""The kinds of values in a condition, and the operations on them.

A position is a place in the frame, a length is a distance, and the two never mix: `nose.y < 0.5` has no answer,
`nose.y < 0.5fh` has. Units of the frame serve as both: `0.5fh` is half the frame's height, and the line half-way down.

    position - position of the same axis = length       length / time = speed
    position + length                    = position     number * length = length, as for all but positions
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Kind(Enum):
    """The value is how messages call it."""

    NUMBER = "a bare number"
    X = "a position from the left"
    Y = "a position from the top"
    LENGTH = "a length"
    FRAME_WIDTH = "a part of the frame's width"
    FRAME_HEIGHT = "a part of the frame's height"
    PIXELS = "a number of pixels"
    TIME = "a time"
    SPEED = "a speed"
    ANGLE = "an angle"
    TURN = "a speed of turning"
    RATE = "a rate"
    AGO = "a time ago"
    POINT = "a point"
    TRUTH = "a condition"
    REPORTED = "values that a condition in Python reports"


UNITS: dict[str, Kind] = {
    "h": Kind.LENGTH,
    "bl": Kind.LENGTH,
    "bh": Kind.LENGTH,
    "fw": Kind.FRAME_WIDTH,
    "fh": Kind.FRAME_HEIGHT,
    "px": Kind.PIXELS,
    "s": Kind.TIME,
    "ms": Kind.TIME,
    "min": Kind.TIME,
    "h/s": Kind.SPEED,
    "bl/s": Kind.SPEED,
    "bh/s": Kind.SPEED,
    "px/s": Kind.SPEED,
    "deg": Kind.ANGLE,
    "deg/s": Kind.TURN,
    "/s": Kind.RATE,
}

EXACT_UNITS = {
    **{"px": 1.0, "px/s": 1.0},
    **{"s": 1.0, "ms": 0.001, "min": 60.0, "deg": 1.0, "deg/s": 1.0, "/s": 1.0},
}
"""How much one of a unit is in pixels, seconds or degrees, where it is the same of every body and frame."""

MEANT_UNITS = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("degree", "degrees", "\u00b0"), "deg"),
    **dict.fromkeys(("pixel", "pixels"), "px"),
}
"""Usual spellings -> ours."""
_IN_MINUTES = {
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 60),
    **dict.fromkeys(("d", "day", "days"), 24 * 60),
}


def meant_time(number: str, word: str) -> str:
    """`2min` for 2 and `minutes`, `120min` for 2 and `hours` or `h`, `2s` for 2; "" for words of other units."""
    if not word:
        return f"{number}s"
    if word in _IN_MINUTES:
        return f"{float(number) * _IN_MINUTES[word]:g}min"
    unit = MEANT_UNITS.get(word, word)
    return f"{number}{unit}" if UNITS.get(unit) is Kind.TIME else ""


def meant(number: str, word: str) -> str:
    """`2deg` for 2 and `degrees`, and a time as in `meant_time`, but `h` is a height; "" for an unknown word."""
    unit = word if word in UNITS else MEANT_UNITS.get(word)
    return f"{number}{unit}" if unit else meant_time(number, word)


_METRES = {
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1.0),
    **dict.fromkeys(("cm", "centimetre", "centimetres", "centimeter", "centimeters"), 0.01),
    **dict.fromkeys(("ft", "foot", "feet"), 0.305),
    **dict.fromkeys(("inch", "inches"), 0.0254),
    "mm": 0.001,
    "km": 1000.0,
}
_METRES_A_SECOND = {
    **dict.fromkeys(("km/h", "kmh", "kph", "kmph"), 1 / 3.6),
    **{"m/s": 1.0, "cm/s": 0.01, "mm/s": 0.001, "ft/s": 0.305, "mph": 0.447},
}
FOREIGN_UNITS = ("\u00b0", "%", *_METRES, *_METRES_A_SECOND)
"""Units that are told from ours even if a space stands before them."""
_USUAL_HEIGHT_M = 1.7


def heights_for(value: float, unit: str) -> str:
    """The hint at heights of a body for a length in metres or the like; "" for other units."""
    return _in_heights(value, unit, _METRES, "h")


def _in_heights(value: float, unit: str, units: Mapping[str, float], ours: str) -> str:
    if unit not in units:
        return ""
    heights = float(f"{value * units[unit] / _USUAL_HEIGHT_M:.2g}")
    return f"; a picture has no metres: of somebody {_USUAL_HEIGHT_M:g} m tall this is `{heights:g}{ours}`"


def instead_of(value: float, unit: str) -> str:
    """What to write instead of a number with a unit that there is not, such as metres; "" if that is not known."""
    if unit == "%":
        return f"; write `{value / 100:g}`, and of the frame `{value / 100:g}fw` or `{value / 100:g}fh`"
    if told := heights_for(value, unit) or _in_heights(value, unit, _METRES_A_SECOND, "h/s"):
        return f"{told} (minutes are `{value:g}min`)" if unit == "m" else told
    ours = meant(f"{value:g}", unit)
    return f"; did you mean `{ours}`?" if ours else ""


def other_unit(value: float, unit: str, wanted: Kind) -> str:
    """What somebody meant who compared a number of this unit with a value of another kind, such as `speed > 0.3h`."""
    if unit == "h" and wanted == Kind.TIME:
        return f": `h` is the height of a body; for hours write `{meant_time(f'{value:g}', unit)}`"
    if not unit:
        return ""
    other = unit.removesuffix("/s") if unit.endswith("/s") else f"{unit}/s"
    return f": did you mean `{value:g}{other}`?" if UNITS.get(other) is wanted else ""


_LENGTHS = frozenset({Kind.LENGTH, Kind.FRAME_WIDTH, Kind.FRAME_HEIGHT, Kind.PIXELS})
_PLACES = {Kind.X: {Kind.FRAME_WIDTH, Kind.PIXELS}, Kind.Y: {Kind.FRAME_HEIGHT, Kind.PIXELS}}
_AMOUNTS = _LENGTHS | {Kind.NUMBER, Kind.TIME, Kind.SPEED, Kind.ANGLE, Kind.TURN, Kind.RATE}
MEASURES = _AMOUNTS | frozenset(_PLACES)

PER_SECOND = {
    **dict.fromkeys(_LENGTHS, Kind.SPEED),
    Kind.ANGLE: Kind.TURN,
    Kind.NUMBER: Kind.RATE,
}
"""The kind of a value's change in a second."""

_EXAMPLES = {
    Kind.LENGTH: "0.1h (of the person's height) or 0.2bl (of the torso)",
    Kind.TIME: "2s or 500ms",
    Kind.SPEED: "0.5h/s (heights a second)",
    Kind.ANGLE: "90deg",
    Kind.TURN: "90deg/s",
    Kind.RATE: "2/s (so many a second)",
    Kind.X: "0.5fw (half the frame's width from the left) or a length from another position, as in nose.x + 0.1h",
    Kind.Y: "0.5fh (half the frame's height from the top) or a length from another position, as in nose.y - 0.1h",
}


class KindError(ValueError):
    """Values that cannot be combined; the text names those that can."""


def compared(left: Kind, right: Kind) -> None:
    """Raises KindError if the two cannot be compared."""
    same = left == right and left in MEASURES
    if same or {left, right} <= _LENGTHS or right in _PLACES.get(left, ()) or left in _PLACES.get(right, ()):
        return
    raise KindError(f"{left.value} cannot be compared with {right.value}{_way_out(left, right)}")


def added(operator: str, left: Kind, right: Kind) -> Kind:
    """The kind of left + right or left - right."""
    if left in _PLACES and right in _LENGTHS:
        return left
    if operator == "-" and left == right and left in _PLACES:
        return Kind.LENGTH
    if operator == "+" and right in _PLACES and left in _LENGTHS:
        return right
    if left == right and left in _AMOUNTS:
        return left
    if {left, right} <= _LENGTHS:
        return _sum_of_lengths(left, right)
    word = "added to" if operator == "+" else "subtracted from"
    raise KindError(f"{right.value} cannot be {word} {left.value}{_way_out(left, right)}")


def _sum_of_lengths(left: Kind, right: Kind) -> Kind:
    """`0.5fh - 0.1h` is still a line in the frame: a unit of the frame stays one after any addition."""
    places = {left, right} - {Kind.LENGTH, Kind.PIXELS}
    if places:
        return places.pop() if len(places) == 1 else Kind.LENGTH
    return Kind.PIXELS


def multiplied(left: Kind, right: Kind) -> Kind:
    """The kind of left * right."""
    if left == Kind.NUMBER and right in _AMOUNTS:
        return right
    if right == Kind.NUMBER and left in _AMOUNTS:
        return left
    raise KindError(f"{left.value} cannot be multiplied by {right.value}: one of the two must be a bare number")


def divided(left: Kind, right: Kind) -> Kind:
    """The kind of left / right."""
    if right == Kind.NUMBER and left in _AMOUNTS:
        return left
    if (left == right and left in _AMOUNTS) or {left, right} <= _LENGTHS:
        return Kind.NUMBER
    if right == Kind.TIME and left in PER_SECOND:
        return PER_SECOND[left]
    raise KindError(f"{left.value} cannot be divided by {right.value}")


def _way_out(left: Kind, right: Kind) -> str:
    if Kind.NUMBER in (left, right):
        other = left if right == Kind.NUMBER else right
        example = _EXAMPLES.get(Kind.LENGTH if other in _LENGTHS else other)
        return f": give the number a unit, such as {example}" if example else ""
    if {left, right} == {Kind.X, Kind.Y}:
        return ": compare x with x and y with y"
    if {left, right} & set(_PLACES) and {left, right} & _LENGTHS:
        return ": subtract another position first, as in nose.y - left_wrist.y, or use fw with x and fh with y"
    if Kind.POINT in (left, right):
        return ": write .x or .y behind the point, or distance(one, other)"
    return ""
