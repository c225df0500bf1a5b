"""An incident as a row of a table, for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from camgraph.pipeline.foreign_text import printable
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.template import filled, one_line
from camgraph.stages.video.dates import zone_of

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins with one of these is a formula to a spreadsheet, which may read files or call programs."""
_MOST = 500
"""Letters of a cell."""


def _moment(text: object, zone: str) -> str:
    """As spreadsheets know it as a time: `2026-11-23 12:00:01`. "" if it is none."""
    try:
        return f"{datetime.fromisoformat(str(text)).astimezone(zone_of(zone)):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError):
        return ""


def _start(view: EventView, zone: str) -> str:
    return _moment(view.data.get("start_time") or view.body.get("time"), zone)


def _end(view: EventView, zone: str) -> str:
    """Of an incident of one moment, its start."""
    return _moment(view.data.get("end_time"), zone) or (
        _start(view, zone) if view.phase == "single" else _after(view, zone)
    )


def _after(view: EventView, zone: str) -> str:
    """The start and the duration, if an event has no end of its own, as a merged one."""
    try:
        start = datetime.fromisoformat(str(view.data.get("start_time")))
        return _moment((start + timedelta(seconds=float(view.data["duration_s"]))).isoformat(), zone)
    except (ValueError, KeyError, TypeError, OverflowError):
        return _moment(view.body.get("time"), zone)


def _number(name: str) -> Callable[[EventView, str], str]:
    def value(view: EventView, _: str) -> str:
        number = view.data.get(name)
        return f"{number:g}" if isinstance(number, int | float) and not isinstance(number, bool) else ""

    return value


def _text(name: str) -> Callable[[EventView, str], str]:
    return lambda view, zone: filled(f"{{{name}}}", view, zone)


COLUMNS: Mapping[str, Callable[[EventView, str], str]] = {
    "start": _start,
    "end": _end,
    "duration_s": _number("duration_s"),
    "camera": _text("camera"),
    "action": _text("action"),
    "rule": _text("rule"),
    "severity": _text("severity"),
    "people": _text("people"),
    "zones": _text("zones"),
    "why": _text("why"),
    "reason": lambda view, _: printable(str(view.data.get("reason", ""))),
    "snapshot": _text("snapshot"),
    "clip": _text("clip"),
    "incident": _text("incident"),
    "id": _text("id"),
}
"""Name of a column -> its value, with times of the zone of that name."""


def safe_cell(text: str) -> str:
    """One line that no spreadsheet takes for a formula: an apostrophe in front makes it text."""
    cell = one_line(text)[:_MOST]
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def row_of(view: EventView, time_zone: str) -> list[str]:
    return [safe_cell(value(view, time_zone)) for value in COLUMNS.values()]


def as_line(cells: Sequence[str], delimiter: str) -> str:
    """With quotes where they are needed, and the end of the line."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerow(cells)
    return out.getvalue()
