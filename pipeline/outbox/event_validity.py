"""What an event must be, so that every sink can take it: looked at before it is committed, for then it stays.

An event that a sink cannot write or a database cannot hold would be handed out, or tried again, for ever.
"""

from __future__ import annotations

from pipeline.items import Item
from pipeline.messages import Event
from pipeline.monitoring.event_format import event_format

LONGEST_ID = 128
_PHASES = ("start", "update", "end", "single")
_MOST_NS = 1 << 62


def why_invalid(item: Item) -> str:
    """What is wrong with the event in `item`, in one of a few fixed sentences; "" where nothing is."""
    event = item.payload
    assert isinstance(event, Event)
    if not _is_name(event.id):
        return f"its id must be 1 to {LONGEST_ID} printable characters without spaces"
    if not _is_name(event.incident):
        return f"its incident must be 1 to {LONGEST_ID} printable characters without spaces"
    if event.phase not in _PHASES:
        return f"its phase must be one of {', '.join(_PHASES)}"
    if event.stamp.camera != item.camera:
        return "its stamp must be of the camera that it was made of"
    if type(event.stamp.time_ns) is not int or not -_MOST_NS < event.stamp.time_ns < _MOST_NS:
        return "the time of its stamp must be a whole number of nanoseconds, less than 2**62"
    return _why_no_line(event.body)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable() and " " not in value


def _why_no_line(body: object) -> str:
    if not isinstance(body, bytes):
        return "its body must be bytes"
    if b"\n" in body or b"\r" in body:
        return "its body must be one line"
    return event_format().why_invalid(body)
