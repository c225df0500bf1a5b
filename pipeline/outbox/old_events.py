"""Keeps the file of the outbox bounded: of delivered events, only the last are kept, to recognise repeated ones.

Some events are kept however old they are:

- events that a sink has not acknowledged;
- the last event of an open incident: if its stage dies, the end is made from it;
- the end of an incident while an earlier event of it is kept; otherwise the incident would seem to be open.

If the disk is full, fewer of the last events are kept.
"""

from __future__ import annotations

import sqlite3

from pipeline.outbox.event_file import LEFT_OVER, checkpoint, transaction

_KEPT = 10_000
_EXAMINED = 8
"""How many old rows to look at for each new one: many may have to stay, and must not delay a commit."""
_AT_ONCE = 16
"""How many new rows (a part of `_KEPT`) there must be before old ones are looked at."""

_NEXT = """
SELECT max(row), count(*) FROM (
    SELECT row FROM events WHERE row > ? AND row < (SELECT max(row) FROM events) - ? ORDER BY row LIMIT ?
)
"""
_NEEDLESS = f"""
NOT EXISTS (SELECT 1 FROM pending p WHERE p.row = events.row)
AND CASE
    WHEN phase = 'single' OR incarnation = {LEFT_OVER} THEN 1
    WHEN phase = 'end'
    THEN NOT EXISTS (SELECT 1 FROM events e WHERE e.incident = events.incident AND e.row < events.row)
    ELSE EXISTS (SELECT 1 FROM events e WHERE e.incident = events.incident AND e.row > events.row)
END
"""  # noqa: S608 - made of constants
_FORGET = f"DELETE FROM events WHERE row > ? AND row <= ? AND {_NEEDLESS}"  # noqa: S608 - made of constants
_OLDEST = f"SELECT row FROM events WHERE row > ? AND {_NEEDLESS} ORDER BY row LIMIT ?"  # noqa: S608 - as above
_PIECE = 200
"""How many to delete in one transaction: its writes must fit into the reserve."""


def make_room(db: sqlite3.Connection, wanted_bytes: int) -> None:
    """Delete the oldest events that need not be kept, and give up to `wanted_bytes` back to the disk.

    Raises sqlite3.Error.
    """
    wanted = wanted_bytes // db.execute("PRAGMA page_size").fetchone()[0]
    row = 0
    checkpoint(db)
    while _unused_pages(db) < wanted:
        rows = db.execute(_OLDEST, (row, _PIECE)).fetchall()
        if not rows:
            break
        (row,) = rows[-1]
        with transaction(db):
            db.executemany("DELETE FROM events WHERE row = ?", rows)
        checkpoint(db)
    _shorten(db)


def _shorten(db: sqlite3.Connection) -> None:
    """Give the unused space of the file back to the disk; a file of an older version cannot do that."""
    unused, before = _unused_pages(db), -1
    while unused and unused != before:
        db.execute(f"PRAGMA incremental_vacuum({_PIECE})").fetchall()
        checkpoint(db)
        unused, before = _unused_pages(db), unused


def _unused_pages(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA freelist_count").fetchone()[0])


class OldEvents:
    """Goes through the old rows repeatedly, a few at a time. Call `forget` within each transaction."""

    def __init__(self) -> None:
        self._new = 0
        self._looked_at = 0

    def forget(self, db: sqlite3.Connection, new: int) -> None:
        """Delete some events that need not be kept; `new` events have been inserted since the last call."""
        self._new += new
        if self._new < max(1, _KEPT // _AT_ONCE):
            return
        most = _EXAMINED * self._new
        last, found = db.execute(_NEXT, (self._looked_at, _KEPT, most)).fetchone()
        if found:
            db.execute(_FORGET, (self._looked_at, last))
        self._looked_at = last if found == most else 0
        self._new = 0
