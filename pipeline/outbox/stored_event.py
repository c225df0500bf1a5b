"""An event as it stands in the file of the outbox, with a checksum.

SQLite notices damage to its own structure, and none to values: without the checksum, sinks would get what a disk has
made of an event. A row of an older version has the checksum 0; of its event, the form alone is checked.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from camgraph.pipeline.messages import EVENT_PHASES, LONGEST_BODY, own_id
from camgraph.pipeline.monitoring.event_format import event_format
from camgraph.pipeline.outbox.event_file import Broken

_HEAD = "e.id, e.camera, e.incident, e.phase, e.epoch, e.seq, e.time_ns, e.checksum"
_NO_BLOB = "WHEN typeof(e.body) != 'blob' THEN 0"
"""So a body that is damaged differs from one that is left out."""
WHOLE = f"{_HEAD}, CASE {_NO_BLOB} ELSE e.body END"
"""The columns of `events e` for `read_event`."""
TO_SEND = f"{_HEAD}, CASE {_NO_BLOB} WHEN length(e.body) <= {LONGEST_BODY} THEN e.body END"
"""As `WHOLE`, without a body that is too large to be sent: a hundred of them would not fit into the memory."""
_TYPES = [str, str, str, str, int, int, int, int]


class StoredEvent(NamedTuple):
    """`stored`: its id in the file, see `pipeline.outbox.event_file`. `body`: None if it is too large to be sent."""

    stored: str
    camera: str
    incident: str
    phase: Any
    epoch: int
    seq: int
    time_ns: int
    body: bytes | None


def checksum(facts: Sequence[object], body: bytes) -> int:
    """Of an event with these facts: id, camera, incident, phase, epoch, seq, time. 0 is for events without one.

    The id is the one in the file; a requeued event has the same checksum.
    """
    facts = " ".join(map(str, (own_id(str(facts[0])), *facts[1:])))
    return zlib.crc32(body, zlib.crc32(facts.encode(errors="surrogatepass"))) or 1


def read_event(values: Sequence[Any]) -> StoredEvent:
    """The event in a row of `WHOLE` or `TO_SEND`. Raises Broken if it is not as it was written."""
    *head, body = values
    if list(map(type, head)) != _TYPES or head[3] not in EVENT_PHASES:
        raise Broken("an event lacks its facts")
    known = head[-1]
    event = StoredEvent._make((*head[:-1], body))
    if body is None:
        return event
    if type(body) is not bytes:
        raise Broken("an event has no body")
    if known and known != checksum(event[:-1], body):
        raise Broken("an event is not as it was written")
    if not known and event_format().why_invalid(body):
        raise Broken("an event is no event any more")
    return event
