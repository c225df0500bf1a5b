"""Events in words for people who do not know camgraph: `{what}` and `{notice}` of texts.

Fall on room-3                      This is a test: nothing has happened.
Fall on room-3 is over              It lasted 3 min 20 s.
Camera room-3 is lost               Until it is back, nothing that happens there is noticed.
Camera room-3 is back               It was away for 3 min 20 s.
Clip of fall on room-3 is ready
Visitors on door: 12 entered, 10 left       2 inside at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from camgraph.stages.events import CAMERA_TYPES
from camgraph.stages.sinks.delivery.event_view import EventView

_PHASES = {"update": " goes on", "end": " is over"}
_CAMERAS = {"lost": "is lost", "back": "is back", "ended": "is no longer waited for"}
_FILES = {"snapshot": "picture", "best": "better picture", "clip": "clip"}
_COUNTED = {"rightward": "to the right", "leftward": "to the left", "entered": "entered", "left": "left"}
_REASONS: Mapping[str, str] = {
    "condition": "it was seen no longer",
    "unseen": "out of sight, so how it ended is not known",
    "schedule": "the rule's time was over",
    "switch": "the rule was switched off",
    "reload": "the rule was changed or removed",
    "removed": "the camera was removed",
    "replaced": "the camera has got other settings",
    "stopped": "camgraph was stopped",
    "end": "the camera or its video ended",
    "error": "the camera ended with an error",
    "epoch": "the camera began anew",
    "lost": "the program that watched it died",
}


def what(view: EventView) -> str:
    """What has happened, and where: the words of a title."""
    words = _WHAT.get(view.kind, _other)(view)
    return words[:1].upper() + words[1:]


def notice(view: EventView) -> str:
    """A sentence that the reader should know beside it; "" if there is none."""
    data = view.data
    if data.get("test") is True:
        return "This is a test: nothing has happened."
    if view.kind == "camera" and view.phase == "start":
        return "Until it is back, nothing that happens there is noticed."
    if view.kind == "camera":
        away = span(data.get("lost_s"))
        return f"It was away for {away}." if away else ""
    if view.kind == "counter":
        return f"{data['inside']} inside at the end." if _is_number(data.get("inside")) else ""
    return _length(data) if view.kind == "incident" and view.phase == "end" else ""


def _length(end: Mapping[str, Any]) -> str:
    """How long an incident took, by its end."""
    if end.get("reason") == "lost":
        return "Nobody saw its end: the program that watched it died."
    lasted = span(end.get("duration_s"))
    if lasted and end.get("reason") == "unseen":
        return f"The people were seen for {lasted}, then went out of sight: how the incident ended is not known."
    return f"It lasted {lasted}." if lasted else ""


def reason(code: object) -> str:
    """Why an incident, or the wait for a camera, has ended."""
    return _REASONS.get(str(code), str(code or ""))


def span(seconds: object) -> str:
    """`7 s`, `3 min 20 s`, `2 h 5 min`; "" for anything but a number of seconds."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < 1e12:
        return ""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, part = divmod(minutes, 60)
    if hours:
        return f"{hours} h {part} min" if part else f"{hours} h"
    return (f"{minutes} min {rest} s" if rest else f"{minutes} min") if minutes else f"{whole} s"


def _incident(view: EventView) -> str:
    return f"{_action(view)} on {view.camera}{_PHASES.get(view.phase, '')}"


def _camera(view: EventView) -> str:
    name = str(view.body.get("type", "")).removeprefix(CAMERA_TYPES)
    return f"camera {view.camera} {_CAMERAS.get(name, name)}"


def _footage(view: EventView) -> str:
    file = f"{_FILES.get(str(view.data.get('kind')), 'file')} of {_action(view)} on {view.camera}"
    return f"{file} is ready" if view.data.get("file") else f"there is no {file}"


def _counter(view: EventView) -> str:
    numbers: Any = view.data.get("in_period")
    counted = numbers if isinstance(numbers, dict) else {}
    counts = (f"{counted[key]} {words}" for key, words in _COUNTED.items() if _is_number(counted.get(key)))
    return f"{_action(view)} on {view.camera}: {', '.join(counts)}"


def _other(view: EventView) -> str:
    return f"{_action(view) or view.body.get('type', 'event')}" + (f" on {view.camera}" if view.camera else "")


_WHAT = {"incident": _incident, "camera": _camera, "footage": _footage, "counter": _counter}


def _action(view: EventView) -> str:
    return view.action.replace("_", " ")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
