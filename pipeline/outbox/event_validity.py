"""Checks an event before it is committed: every sink must be able to take it.

A sink would retry for ever an event that it cannot write, or that a database cannot store.
"""

from __future__ import annotations

from camgraph.pipeline.items import Item
from camgraph.pipeline.messages import EVENT_PHASES, LONGEST_BODY, Event
from camgraph.pipeline.monitoring.event_format import event_format

LONGEST_ID = 128
_MOST_NS = 1 << 62


def why_invalid(item: Item) -> str:
    """Return the mistake in the event in `item`, as one of a few fixed sentences; "" if there is none."""
    event = item.payload
    assert isinstance(event, Event)
    if event.stamp.camera != item.camera:
        return "its stamp must have the camera of its item"
    return why_unfit(event)


def why_unfit(event: Event) -> str:
    """As `why_invalid`, for an event of any camera."""
    if not _is_name(event.id):
        return f"its id must be 1 to {LONGEST_ID} printable characters without spaces"
    if type(event.stamp.camera) is not str:
        return "its stamp must have the name of a camera"
    if not _is_name(event.incident):
        return f"its incident must be 1 to {LONGEST_ID} printable characters without spaces"
    if event.phase not in EVENT_PHASES:
        return f"its phase must be one of {', '.join(EVENT_PHASES)}"
    if type(event.stamp.time_ns) is not int or not -_MOST_NS < event.stamp.time_ns < _MOST_NS:
        return "the time of its stamp must be a whole number of nanoseconds, less than 2**62"
    return _why_no_line(event.body)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable() and " " not in value


def _why_no_line(body: object) -> str:
    if not isinstance(body, bytes):
        return "its body must be bytes"
    if len(body) > LONGEST_BODY:
        return f"its body must have at most {LONGEST_BODY:,} bytes"
    if b"\n" in body or b"\r" in body:
        return "its body must be one line"
    return event_format().why_invalid(body)
