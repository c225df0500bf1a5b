"""Ends the incidents that a stage had open when its process died.

    start  update ── the process dies ── end, reason: lost
                                    └─ a late start, update or end: nothing stays open after it

Each event carries the incarnation of its process, so incidents of the next process are not affected.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from dataclasses import replace

from pipeline.items import Item, Key
from pipeline.messages import Event, Stamp
from pipeline.monitoring.event_format import event_format
from pipeline.outbox.event_file import LEFT_OVER

_OPEN = f"""
SELECT incident, max(row), body, time_ns, epoch, seq FROM events
WHERE producer = ? AND camera = ? AND phase != 'single' AND incarnation != {LEFT_OVER}
GROUP BY incident HAVING sum(phase = 'end') = 0 AND sum(incarnation > ?) = 0
"""  # noqa: S608 - made of constants
_ENDED = f"SELECT 1 FROM events WHERE incident = ? AND phase = 'end' AND incarnation != {LEFT_OVER}"  # noqa: S608
_LAST = 1 << 53


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

    def ends(self, db: sqlite3.Connection, producer: str, camera: str) -> Iterator[Item]:
        """Return ends for the incidents that the dead processes of a stage have left open."""
        dead = self._dead.get((producer, camera), 0)
        for row in db.execute(_OPEN, (producer, camera, dead)).fetchall():
            yield replace(_lost_end(camera, row), sender=producer, incarnation=dead)


def _lost_end(camera: str, row: tuple[str, int, bytes, int, int, int]) -> Item:
    """The end of an incident, made from its last event."""
    incident, _, body, time_ns, epoch, seq = row
    event_id = hashlib.sha256(f"{incident} end lost".encode()).hexdigest()[:32]
    stamp = Stamp(camera, epoch, min(seq, _LAST), time_ns, 0, 0)
    end = event_format().lost_end(event_id, body)
    return Item(camera, Key(epoch, seq, 0), Event(stamp, event_id, incident, "end", end))
