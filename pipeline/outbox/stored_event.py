"""An event in the file of the outbox, with a checksum.

SQLite notices damage to the structure of a file, and no damage to values. Without the checksum, sinks would get events
that a disk has changed. Rows of older versions have the checksum 0: then only the form of the event is checked.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from camgraph.pipeline.messages import EVENT_PHASES, LONGEST_BODY, own_id
from camgraph.pipeline.monitoring.event_format import event_format
from camgraph.pipeline.system.sqlite_file import Damaged

_HEAD = "e.id, e.camera, e.incident, e.phase, e.epoch, e.seq, e.time_ns, e.checksum"
_NO_BLOB = "WHEN typeof(e.body) != 'blob' THEN 0"
"""A damaged body is read as 0, a body that is left out as NULL."""
WHOLE = f"{_HEAD}, CASE {_NO_BLOB} ELSE e.body END"
"""The columns of `events e` for `read_event`."""
TO_SEND = f"{_HEAD}, CASE {_NO_BLOB} WHEN length(e.body) <= {LONGEST_BODY} THEN e.body END"
"""As `WHOLE`, without bodies that are too large to be sent: a hundred such bodies would not fit into memory."""
_TYPES = [str, str, str, str, int, int, int, int]


class StoredEvent(NamedTuple):
    """`stored`: the id in the file (`pipeline.outbox.event_file`). `body`: None if the body is too large to be sent."""

    stored: str
    camera: str
    incident: str
    phase: Any
    epoch: int
    seq: int
    time_ns: int
    body: bytes | None


def checksum(facts: Sequence[object], body: bytes) -> int:
    """The checksum of an event with the facts id, camera, incident, phase, epoch, seq, time; never 0.

    `facts` has the id in the file. A requeued event has the checksum of the original event.
    """
    facts = " ".join(map(str, (own_id(str(facts[0])), *facts[1:])))
    return zlib.crc32(body, zlib.crc32(facts.encode(errors="surrogatepass"))) or 1


def read_event(values: Sequence[Any]) -> StoredEvent:
    """The event in a row of `WHOLE` or `TO_SEND`. Raises Damaged if the row is not as it was written."""
    *head, body = values
    if list(map(type, head)) != _TYPES or head[3] not in EVENT_PHASES:
        raise Damaged("an event lacks its facts")
    known = head[-1]
    event = StoredEvent._make((*head[:-1], body))
    if body is None:
        return event
    if type(body) is not bytes:
        raise Damaged("an event has no body")
    if known and known != checksum(event[:-1], body):
        raise Damaged("an event is not as it was written")
    if not known and event_format().why_invalid(body):
        raise Damaged("an event is no event any more")
    return event
