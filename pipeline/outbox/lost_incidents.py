"""Ends the incidents that a stage had open when its process died, or the whole run.

    start  update ── the process dies ── end, reason: lost
                                    └─ a late start, update or end: nothing stays open after it

Each event carries the incarnation of its process, so incidents of the next process are not affected. The table
`incidents` has those of this run; one that is over is forgotten with its end. The next run of live cameras ends those
that a run has left there, by a power cut for example; files are judged again from their beginning.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import Event, Stamp
from camgraph.pipeline.monitoring.event_format import event_format
from camgraph.pipeline.outbox.stored_event import TO_SEND, read_event
from camgraph.pipeline.system.sqlite_file import Damaged

_NOTE = """
INSERT INTO incidents VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (incident) DO UPDATE
SET row = excluded.row, over = excluded.over, incarnation = max(incarnation, excluded.incarnation) WHERE NOT over
"""
_OPEN = f"""
SELECT i.incident, {TO_SEND} FROM incidents i JOIN events e ON e.row = i.row
WHERE i.producer = ? AND i.camera = ? AND i.incarnation <= ? AND NOT i.over ORDER BY i.row
"""  # noqa: S608 - made of constants
_LEFT_OPEN = f"""
SELECT i.producer, i.camera, i.incarnation, i.incident, {TO_SEND}
FROM incidents i JOIN events e ON e.row = i.row WHERE NOT i.over ORDER BY i.row
"""  # noqa: S608 - made of constants
_ENDED = "SELECT 1 FROM incidents WHERE incident = ? AND over"
_LAST = "SELECT row FROM incidents WHERE incident = ? AND NOT over"
_LARGEST_SEQ = 1 << 53


class LostIncidents:
    """The dead incarnations of the stages, and the incidents that they have left open in the database of the outbox."""

    def __init__(self) -> None:
        self._dead: dict[tuple[str, str], int] = {}

    def note(self, producer: str, camera: str, incarnation: int) -> None:
        """This incarnation of the stage is dead, and so are the earlier ones."""
        known = self._dead.get((producer, camera), 0)
        self._dead[producer, camera] = max(known, incarnation)

    def is_late(self, item: Item) -> bool:
        """True for an event of a process that is dead."""
        return item.incarnation <= self._dead.get((item.sender, item.camera), 0)

    def is_over(self, db: sqlite3.Connection, item: Item) -> bool:
        """True for a late event of an incident that has ended already: it must not be committed."""
        event = item.payload
        assert isinstance(event, Event)
        return event.phase != "single" and self.is_late(item) and bool(db.execute(_ENDED, (event.incident,)).fetchone())

    def inserted(self, db: sqlite3.Connection, item: Item, row: int) -> int:
        """This event is in the file now; returns the row that was the last of its incident until then, 0 for none."""
        event = item.payload
        assert isinstance(event, Event)
        if event.phase == "single":
            return 0
        before = db.execute(_LAST, (event.incident,)).fetchone()
        db.execute(_NOTE, (event.incident, item.sender, item.camera, item.incarnation, row, event.phase == "end"))
        if before and type(before[0]) is not int:
            raise Damaged("the last event of an incident has no number")
        return before[0] if before else 0

    def ends(self, db: sqlite3.Connection, producer: str, camera: str) -> Iterator[Item]:
        """Return ends for the incidents that the dead processes of a stage have left open."""
        dead = self._dead.get((producer, camera), 0)
        for row in db.execute(_OPEN, (producer, camera, dead)).fetchall():
            yield replace(_lost_end(camera, row[0], row[1:]), sender=producer, incarnation=dead)


def left_open(db: sqlite3.Connection, producers: Collection[str]) -> list[Item]:
    """The ends of the incidents that these stages of an earlier run have left open. Raises sqlite3.Error."""
    rows = db.execute(_LEFT_OPEN).fetchall()
    return [
        replace(_lost_end(camera, incident, stored), sender=producer, incarnation=incarnation)
        for producer, camera, incarnation, incident, *stored in rows
        if producer in producers
    ]


def _lost_end(camera: str, incident: str, stored: Sequence[object]) -> Item:
    """The end of an incident, made from its last event. Raises Damaged if that is not as it was written."""
    last = read_event(stored)
    if (last.camera, last.incident) != (camera, incident):
        raise Damaged("an incident has the event of another one")
    event_id = hashlib.sha256(f"{incident} end lost".encode()).hexdigest()[:32]
    stamp = Stamp(camera, last.epoch, min(last.seq, _LARGEST_SEQ), last.time_ns, 0, 0)
    end = event_format().lost_end(event_id, last.body or b"{}")
    return Item(camera, Key(last.epoch, last.seq, 0), Event(stamp, event_id, incident, "end", end))
