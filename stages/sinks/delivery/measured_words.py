"""The values that decided about an incident, in the words of those who are alarmed: a guard, a nurse.

score > 0.3: 0.9 against 0.3         How sure the model is that it is a person: 90%, and more than 30% is needed
lean > 60deg: 74.1 deg against 60    How far the body leans: 74°, and more than 60° is needed
people > 10: 12 against 10           People in the picture: 12, and at least 11 are needed
in bed: true                         In bed: yes
step 2: lying and drop(...) > ...    Lying 3.1 s earlier
drop(shoulders.y, 1.3s) > ...        nothing: nobody could say it in a few words
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard

from camgraph.stages.sinks.delivery.event_words import span

_NAMES = {
    "score": "How sure the model is that it is a person",
    "lean": "How far the body leans",
    "age": "Seen for",
    "speed": "Speed",
    "box.height": "Height in the picture",
    "box.width": "Width in the picture",
    "torso": "Length of the upper body in the picture",
    "people": "People in the picture",
    "count": "People who fit",
}
_CALLS = {
    "dwell": "Time in {}",
    "count": "People who fit {}",
    "since": "Time since {}",
    "total": "Time of {}",
    "label": "How sure the model of actions is of {}",
    "looks_like": "How much it looks like {}",
    "distance": "Distance of {}",
    "angle": "Angle at {}",
    "speed": "Speed of {}",
}
_PLACES = {"in": "In {}", "not in": "Outside of {}"}
_MOMENTS = {"enters": "Came into {}", "leaves": "Left {}", "crosses": "Went over {}"}
_NEEDED = {
    "<": "less than {}",
    "<=": "at most {}",
    ">": "more than {}",
    ">=": "at least {}",
    "==": "exactly {}",
    "!=": "other than {}",
}
_HOLDS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_PIXELS = ("px", "px/s")
"""Nobody knows how much that is."""
_SHARES = ("score", "label", "looks_like")
_COUNTED = frozenset({"people", "count"})
_UNITS = {
    "deg": "°",
    "deg/s": "° a second",
    "s": " s",
    "/s": " times a second",
    "": "",
}
_COMPARED = re.compile(
    r"(?P<left>[\w.]+|(?P<call>\w+)\((?P<of>[^()]*)\)) (?P<sign><=|>=|==|!=|<|>) (?P<right>.+?)"
    r"(?: \((?P<side>left|right)\))?"
)
_PLACED = re.compile(r"((?P<point>(?!not )\w+) )?(?P<how>not in|in) (?P<zone>[^\s(),]+)")
_STEP = re.compile(r"step \d+: (?P<of>.+)")
_OF_SEQUENCE = re.compile(r"step \d+: |first ")
_LIMITS = re.compile(r"( (within|for) [\d.]+\w+)+$")
_NO_WORDS = re.compile(r"[<>=*+/]|\bthen\b|(^|\s)\(")
"""Of what only those can read who write rules: comparisons, sums, sequences, and parentheses that are no call's."""
_LONGEST = 1000
"""Letters of a text that is looked at."""
_NOW_S = 0.05
_MINUTES_S = 120.0
_MOST = 1e15
_MOMENT = re.compile(r"(?P<how>enters|leaves|crosses)\((?P<shape>[^\s(),]+)(, \w+)?\)")


def reasons(conditions: Iterable[Mapping[str, Any]]) -> list[str]:
    """The conditions of an incident's evidence in plain words, each once; none if one of them has no words.

    For then the rest would read as the cause, although it may only say what was excluded. A sequence is told by those
    of its steps that have words. What did not hold is no reason: the rule had another way to be true.
    """
    held = [condition for condition in conditions if _held(condition)]
    said = {str(condition.get("text", "")): measured_words(condition) for condition in held}
    if any(not words and not _OF_SEQUENCE.match(text) for text, words in said.items()):
        return []
    return [words for words in dict.fromkeys(said.values()) if words]


def _held(condition: Mapping[str, Any]) -> bool:
    text = str(condition.get("text", ""))
    if "left" not in condition and "right" not in condition:
        return condition.get("holds") is True or bool(_reported(condition))
    parts = _COMPARED.fullmatch(text)
    left, right = condition.get("left"), condition.get("right")
    return not parts or (_is_number(left) and _is_number(right) and _HOLDS[parts["sign"]](left, right))


def measured_words(condition: Mapping[str, Any]) -> str:
    """One condition of an incident's evidence (docs/rules.md, Events); "" if there are no plain words for it."""
    text = str(condition.get("text", ""))
    reported = _reported(condition)
    if len(text) > _LONGEST:
        return ""
    if step := _STEP.fullmatch(text):
        return _step(step["of"], condition.get("left"))
    if "left" in condition or "right" in condition:
        compared = _comparison(text, condition)
        return compared and compared + reported
    if _NO_WORDS.search(text):
        return ""
    if condition.get("holds") is None:
        return f"{_plain(text)}{reported}" if reported else f"{_plain(text)}: not known"
    return f"{_plain(text)}: {'yes' if condition['holds'] else 'no'}{reported}"


def _comparison(text: str, condition: Mapping[str, Any]) -> str:
    unit = str(condition.get("unit") or "")
    parts = _COMPARED.fullmatch(text)
    name = _name(parts) if parts else ""
    is_share = bool(parts) and (parts["left"] in _SHARES or parts["call"] in _SHARES)  # type: ignore[index]
    left, right = _values(condition, unit, is_share=is_share)
    if not parts or not name or unit in _PIXELS:
        return ""
    if needed := _people_needed(parts, condition.get("right")):
        return f"{name}: {left}, and {needed}"
    return f"{name}: {left}, and {_NEEDED[parts['sign']].format(right)} is needed"


def _step(text: str, ago_s: Any) -> str:
    """Of a sequence: its conditions that have words, and how long ago they came to be so."""
    every = _LIMITS.sub("", text).split(" and ")
    said = [clause for clause in every if not _NO_WORDS.search(clause)]
    if not said or (len(said) < len(every) and " or " in text) or not _is_number(ago_s) or ago_s < 0:
        return ""
    when = f"{_value(ago_s, 's', is_share=False)} earlier" if ago_s >= _NOW_S else "at that moment"
    return f"{_begun(' and '.join(_plain(clause, begun=False) for clause in said))} {when}"


def _people_needed(parts: re.Match[str], bound: Any) -> str:
    """People come in whole numbers: at least 1, not more than 0. "" for other values."""
    if _COUNTED.isdisjoint((parts["left"], parts["call"])) or not _is_whole(bound):
        return ""
    number = int(bound) + {">": 1, "<": -1}.get(parts["sign"], 0)
    sign = {">": ">=", "<": "<="}.get(parts["sign"], parts["sign"])
    if number <= 0 and sign in ("<=", "=="):
        return "there must be none"
    return f"{_NEEDED[sign].format(number)} {'is' if number == 1 else 'are'} needed"


def _is_whole(bound: Any) -> bool:
    return _is_number(bound) and bound == int(bound)


def _is_number(value: Any) -> TypeGuard[float]:
    """One that can be compared and shown: a stage of others may report an integer of a thousand digits."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST


def _name(parts: re.Match[str]) -> str:
    """ "" if there is none that says it."""
    if parts["call"]:
        words = _CALLS.get(parts["call"], "")
        if not parts["of"]:
            return words.partition(" {}")[0]
        points = parts["of"].split(", ")
        of = points[1] if parts["call"] == "angle" and len(points) > 1 else points[0]
        return words.format(_spaced(f"{parts['side']} {of}" if parts["side"] else of))
    return _NAMES.get(parts["left"], "")


def _plain(text: str, *, begun: bool = True) -> str:
    """`begun`: it begins with a capital."""
    words = _spaced(text)
    if (place := _PLACED.fullmatch(text)) and place["point"] in (None, "feet"):
        words = _PLACES[place["how"]].format(_spaced(place["zone"]))
    elif moment := _MOMENT.fullmatch(text):
        words = _MOMENTS[moment["how"]].format(_spaced(moment["shape"]))
    return _begun(words) if begun else words[:1].lower() + words[1:]


def _reported(condition: Mapping[str, Any]) -> str:
    reported = condition.get("reported")
    if not isinstance(reported, Mapping) or not reported:
        return ""
    values = (f"{_spaced(str(name))} {_value(one, '', is_share=False)}" for name, one in reported.items())
    return f" ({', '.join(values)})"


def _values(condition: Mapping[str, Any], unit: str, *, is_share: bool) -> tuple[str, str]:
    """What was measured, and the bound: with as many digits as it takes to tell them apart."""
    left, right = condition.get("left"), condition.get("right")
    for digits in range(4):
        said = (_value(left, unit, is_share=is_share, more=digits), _value(right, unit, is_share=is_share, more=digits))
        if said[0] != said[1] or left == right:
            break
    return said


def _value(value: Any, unit: str, *, is_share: bool, more: int = 0) -> str:
    """`more`: further digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if not _is_number(value):
        return "not known"
    if is_share and 0 <= value <= 1:
        return f"{100 * value:.{more}f}%"
    if unit == "s" and abs(value) >= _MINUTES_S and not more:
        return span(value)
    digits = f"{value:.{more}f}" if abs(value) >= 10 else f"{value:.{2 + more}g}"
    return f"{digits}{_UNITS.get(unit, f' {unit}')}"


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


def _spaced(name: str) -> str:
    return name.replace("_", " ")
