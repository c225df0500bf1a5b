"""The parts of an incident's event that its picture and its clip are made of.

An event of somebody else's stage may have anything in these parts, or lack them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.messages import EVENT_PHASES

_HASH = re.compile("[0-9a-f]{8,64}")
_MOST_SHOWN = 80
_PEOPLE = (
    "a list of objects, each with track_id, bbox ([x1, y1, x2, y2]), score and keypoints (x, y and confidence of each "
    "joint, as many joints for all)"
)

Check = tuple[str, str, Any, bool]
"""The place of a part, its expected form, its value, and whether the value has the form."""


def why_unusable(body: Mapping[str, Any]) -> str:
    """The first part that is wrong, with its expected form; "" if a picture and a clip can be made of the event."""
    for place, expected, value, is_right in _checks(body):
        if not is_right:
            got = "nothing" if value is None else shown(json.dumps(value, ensure_ascii=False), _MOST_SHOWN)
            return f"{place}: expected {expected}, got {got}"
    return ""


def _checks(body: Mapping[str, Any]) -> Iterator[Check]:
    """Each check relies on the ones before it."""
    data = body.get("data")
    yield "data", "an object", data, isinstance(data, dict)
    assert isinstance(data, dict)
    incident, phase, time = data.get("incident"), data.get("phase"), data.get("start_time")
    yield "data.incident", "8 to 64 digits of 0-9 and a-f", incident, bool(_HASH.fullmatch(_text(incident)))
    yield "data.phase", f"one of {', '.join(EVENT_PHASES)}", phase, phase in EVENT_PHASES
    for name in ("camera", "action"):
        yield f"data.{name}", "a text", data.get(name), bool(_text(data.get(name)))
    yield "data.start_time", "a time such as 2026-11-23T21:03:11.000Z", time, _is_time(time)
    yield from _checks_of_frame("data.frame", data.get("frame"))
    if data.get("last_seen") is not None:
        yield from _checks_of_frame("data.last_seen", data["last_seen"])
    people, heads, duration_s = data.get("people") or [], data.get("heads") or [], data.get("duration_s") or 0
    yield "data.people", _PEOPLE, people, _are_people(people)
    yield "data.heads", "a list of [x1, y1, x2, y2]", heads, _are_boxes(heads)
    yield "data.duration_s", "a number", duration_s, _are_numbers([duration_s], 1)


def _checks_of_frame(place: str, frame: Any) -> Iterator[Check]:
    yield place, "an object with epoch, pts and time_base", frame, isinstance(frame, dict)
    size = [frame.get("width") or 0, frame.get("height") or 0]
    yield f"{place}.width and height", "numbers", size, _are_numbers(size, 2)
    pts, epoch, base = frame.get("pts"), frame.get("epoch"), frame.get("time_base")
    if pts is None:  # a camera may give its pictures no times: its events need no more than that
        return
    yield f"{place}.pts", "a whole number", pts, type(pts) is int
    yield f"{place}.epoch", "a whole number", epoch, type(epoch) is int
    yield f"{place}.time_base", "[numerator, denominator], such as [1, 90000]", base, _is_ratio(base)


def _is_ratio(value: Any) -> bool:
    match value:
        case [int(numerator), int(denominator)]:
            return numerator > 0 and denominator > 0
        case _:
            return False


def _are_people(people: Any) -> bool:
    return (
        isinstance(people, list)
        and all(isinstance(one, dict) and _is_person(one) for one in people)
        and len({len(one["keypoints"]) for one in people}) <= 1
    )


def _is_person(one: Mapping[str, Any]) -> bool:
    joints = one.get("keypoints")
    return (
        type(one.get("track_id")) is int
        and _are_numbers(one.get("bbox"), 4)
        and _are_numbers([one.get("score")], 1)
        and isinstance(joints, list)
        and len(joints) % 3 == 0
        and _are_numbers(joints, len(joints))
    )


def _are_boxes(values: Any) -> bool:
    return isinstance(values, list) and all(_are_numbers(one, 4) for one in values)


def _are_numbers(values: Any, count: int) -> bool:
    return isinstance(values, list) and len(values) == count and all(type(one) in (int, float) for one in values)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_time(value: Any) -> bool:
    try:
        datetime.fromisoformat(_text(value))
    except ValueError:
        return False
    return True
