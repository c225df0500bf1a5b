"""The values that made a rule fire, with their units, and in a few words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from camgraph.stages.rules.language.judge import Evidence

UNITS = {"x": "px", "y": "px", "length": "px", "frame_width": "px", "frame_height": "px", "pixels": "px",
         "speed": "px/s", "time": "s", "ago": "s", "angle": "deg", "turn": "deg/s", "rate": "/s"}  # fmt: skip
"""Of the values of a comparison, by its kind; numbers have none."""

_AS_WRITTEN = ("s", "deg", "deg/s", "/s", "")
"""In these a bound has the number that stands in the rule; lengths and speeds of `h` become pixels."""
_A_BOUND = re.compile(r"[<>=]\s*[0-9.]+[a-z/]*$")


def in_words(evidence: Iterable[Evidence]) -> str:
    """`left_wrist.y < nose.y (101, 133 px); age >= 1s (1.2 s); in lawn`: each part, and the values that it compared."""
    return "; ".join(map(_part, evidence))


def _part(part: Evidence) -> str:
    if isinstance(part.values, bool):
        return part.text if part.values else f"not: {part.text}"
    if part.values is None:
        return f"unknown: {part.text}"
    if isinstance(part.values, Mapping):
        return f"{part.text}: " + ", ".join(f"{name} {_reported(value)}" for name, value in part.values.items())
    left, right = map(_number, part.values)
    if part.kind == "ago":
        return f"{part.text} ({left} s ago)"
    unit = UNITS.get(part.kind, "")
    text = left if unit in _AS_WRITTEN and _A_BOUND.search(part.text) else f"{left}, {right}"
    return f"{part.text} ({text}{' ' + unit if unit else ''})"


def _reported(value: float | str | bool) -> str:
    return _number(value) if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else value


def _number(value: float) -> str:
    """Three digits are enough for the eye; `?` for unknown values."""
    if value != value:  # noqa: PLR0124 - NaN
        return "?"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
