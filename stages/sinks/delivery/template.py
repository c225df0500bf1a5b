"""Texts for people, made from an event: `{action} on {camera} at {time}`.

Only these names are known, and nothing else is done with the text: no attribute, no format, no code. A value that an
event does not have is left out. `{{` and `}}` are braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from camgraph.pipeline.foreign_text import printable
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.sinks.delivery import event_words
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.measured_words import reasons
from camgraph.stages.video.dates import zone_of

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_MOST_VALUE = 1000
"""Letters of one value."""


def _time(view: EventView, zone: str) -> datetime:
    return datetime.fromtimestamp(view.wall_ns / 1e9, zone_of(zone))


def _zone_name(view: EventView, zone: str) -> str:
    """As people call it at that time of the year: CET or CEST."""
    name = f"{_time(view, zone):%Z}"
    return f"UTC{name}" if name[:1] in "+-" else name  # some zones have no name, only +04


VALUES: Mapping[str, Callable[[EventView, str], str]] = {
    "what": lambda view, _: event_words.what(view),
    "notice": lambda view, _: event_words.notice(view),
    "action": lambda view, _: view.action.replace("_", " "),
    "camera": lambda view, _: view.camera,
    "rule": lambda view, _: view.rule,
    "about": lambda view, _: view.about,
    "severity": lambda view, _: view.severity,
    "phase": lambda view, _: view.phase,
    "time": lambda view, zone: f"{_time(view, zone):%H:%M:%S}",
    "date": lambda view, zone: f"{_time(view, zone):%Y-%m-%d}",
    "time_zone": _zone_name,
    "people": lambda view, _: str(len(_list(view, "people"))),
    "zones": lambda view, _: ", ".join(map(str, _list(view, "zones"))),
    "duration": lambda view, _: f"{view.data['duration_s']:g} s" if _is_number(view.data.get("duration_s")) else "",
    "why": lambda view, _: _why(view),
    "snapshot": lambda view, _: str(view.data.get("snapshot", "")),
    "clip": lambda view, _: str(view.data.get("clip", "")),
    "incident": lambda view, _: view.incident,
    "id": lambda view, _: view.event.own_id,
    "source": lambda view, _: str(view.body.get("source", "")),
}
"""Name -> its value in the time zone of that name."""
EXPLAINED = ", ".join(f"{{{name}}}" for name in VALUES)


def _list(view: EventView, key: str) -> list[Any]:
    value = view.data.get(key)
    return value if isinstance(value, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _why(view: EventView) -> str:
    """What was measured of an incident, in plain words, or the reason that an event of a camera or picture gives."""
    evidence = view.data.get("evidence")
    conditions = evidence.get("conditions", []) if isinstance(evidence, dict) else []
    measured = "; ".join(reasons(one for one in conditions if isinstance(one, dict)))
    return measured or str(view.data.get("why") or event_words.reason(view.data.get("reason")))


def checked(text: str) -> str:
    """The text, if `filled` takes it. Raises ValueError for a name that nobody knows, or a lone brace."""
    for part in _PART.finditer(text):
        name = part[1]
        if part[0] in ("{", "}"):
            raise ValueError(f"a lone {part[0]} at letter {part.start() + 1}: write {part[0] * 2} for the brace itself")
        if name is not None and name not in VALUES:
            raise ValueError(f"there is no {{{name[:40]}}}{did_you_mean(name, VALUES)}; there are {EXPLAINED}")
    return text


TemplateText = Annotated[str, Field(max_length=10_000), AfterValidator(checked)]
"""A text that `filled` takes."""


def filled(text: str, view: EventView, time_zone: str, escape: Callable[[str], str] = str) -> str:
    """The text with the event's values. `escape` makes a value fit for where the text goes, such as HTML.

    Unprintable letters of values are escaped, since an event may hold text of strangers.
    """

    def value(part: re.Match[str]) -> str:
        if part[1] is None:
            return part[0][0]
        return escape(printable(VALUES[part[1]](view, time_zone))[:_MOST_VALUE])

    return _PART.sub(value, text)


def filled_lines(text: str, view: EventView, time_zone: str) -> str:
    """As `filled`, without the lines in which an event has none of the values."""
    lines = (line for line in text.splitlines() if _has_value(line, view, time_zone))
    return "\n".join(filled(line, view, time_zone) for line in lines)


def _has_value(line: str, view: EventView, time_zone: str) -> bool:
    names = [part[1] for part in _PART.finditer(line) if part[1] is not None]
    return not names or any(VALUES[name](view, time_zone) for name in names)


def one_line(text: str) -> str:
    """For a title: a line break in it could begin another header of a mail."""
    return " ".join(text.split())
