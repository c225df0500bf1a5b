"""Keeps the file of the outbox bounded: of delivered events, only the last are kept, to recognise repeated ones.

    row 1 ....... swept ................ last row
     only needed rows    | the last 10,000: all rows

An event is needed while a sink has not acknowledged it, or while it is the last one of an open incident: if its stage
dies, the end is made from it. Each row is looked at once when it leaves the last 10,000, and again when it may have
become needless: so the cost of a commit does not depend on how much waits. All rows of earlier runs may go at once.

If the disk is full, fewer of the last events are kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from camgraph.pipeline.outbox.event_file import last_row, run_row
from camgraph.pipeline.system.sqlite_file import Damaged, checkpoint, transaction

_KEPT = 10_000
_EXAMINED = 8
"""How many rows to look at for each new one at most: after a long wait there are many, and no commit must be late."""
_AT_ONCE = 16
"""How many new rows (a part of `_KEPT`) there must be before old ones are looked at."""

_NEEDLESS = """
NOT EXISTS (SELECT 1 FROM readers r CROSS JOIN pending p ON p.sink = r.sink AND p.row = events.row)
AND NOT EXISTS (SELECT 1 FROM incidents i WHERE i.incident = events.incident AND i.row = events.row AND NOT i.over)
"""
_FORGET = f"DELETE FROM events WHERE row > ? AND row <= ? AND {_NEEDLESS}"  # noqa: S608 - made of constants
_FORGET_ONE = f"DELETE FROM events WHERE row = ? AND row <= ? AND {_NEEDLESS}"  # noqa: S608 - made of constants
_FORGET_ENDS = """
DELETE FROM incidents WHERE over AND incident IN (
    SELECT incident FROM events WHERE row > ? AND row <= ? AND phase = 'end'
    AND row >= (SELECT first_row FROM run WHERE one = 1) AND incarnation != -1
)
"""
_OLDEST = f"SELECT row FROM events WHERE row > ? AND {_NEEDLESS} ORDER BY row LIMIT ?"  # noqa: S608 - as above
_PIECE = 200
"""How many to delete in one transaction: its writes must fit into the reserve."""
_SHRINK_PAGES = 1000
"""How much of a file with much unused space is given back at once: 4 MB."""
_UNUSED_SHARE = 4
_MUCH_UNUSED = 16 << 20


def make_room(db: sqlite3.Connection, wanted_bytes: int) -> None:
    """Delete the oldest events that need not be kept, and give up to `wanted_bytes` back to the disk.

    Raises sqlite3.Error.
    """
    wanted = wanted_bytes // _page_size(db)
    checkpoint(db)
    row = run_row(db).swept
    while _unused_pages(db) < wanted:
        row = forget_oldest(db, row)
        if not row:
            break
        checkpoint(db)
    _shorten(db)


def forget_oldest(db: sqlite3.Connection, row: int) -> int:
    """Delete some of the needless events after this row, even if they are among the last; returns the row of the last
    one, 0 if there was none. Raises sqlite3.Error.
    """
    rows = db.execute(_OLDEST, (row, _PIECE)).fetchall()
    if rows and not row < rows[0][0] <= rows[-1][0]:
        raise Damaged("the list of events is not in order")
    if rows:
        with transaction(db):
            db.executemany("DELETE FROM events WHERE row = ?", rows)
    return int(rows[-1][0]) if rows else 0


def _shorten(db: sqlite3.Connection) -> None:
    """Give the unused space of the file back to the disk; a file of an older version cannot do that."""
    unused, before = _unused_pages(db), -1
    while unused and unused != before:
        db.execute(f"PRAGMA incremental_vacuum({_PIECE})").fetchall()
        checkpoint(db)
        unused, before = _unused_pages(db), unused


def shrink(db: sqlite3.Connection) -> None:
    """Give a piece of the unused space back, if a backlog has left much of it. Raises sqlite3.Error."""
    unused = _unused_pages(db)
    if unused * _page_size(db) > _MUCH_UNUSED and unused * _UNUSED_SHARE > _pages(db):
        db.execute(f"PRAGMA incremental_vacuum({_SHRINK_PAGES})").fetchall()


def used_bytes(db: sqlite3.Connection) -> int:
    """How much of the file is in use. Raises sqlite3.Error."""
    return (_pages(db) - _unused_pages(db)) * _page_size(db)


def _pages(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA page_count").fetchone()[0])


def _unused_pages(db: sqlite3.Connection) -> int:
    """Raises Damaged for a number that damage has made: by it, the file could be taken for one that is too large."""
    unused = int(db.execute("PRAGMA freelist_count").fetchone()[0])
    if not 0 <= unused <= _pages(db):
        raise Damaged("the number of its unused pages is wrong")
    return unused


def _page_size(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA page_size").fetchone()[0])


def forget_needless(db: sqlite3.Connection, rows: Iterable[int]) -> None:
    """Delete those of these rows that are old and needless now. Call it in the transaction that made them so."""
    swept = run_row(db).swept
    db.executemany(_FORGET_ONE, [(row, swept) for row in rows if row <= swept])


class OldEvents:
    """Looks at the rows that leave the last ones, a few at a time."""

    def __init__(self) -> None:
        self._new = 0

    def forget(self, db: sqlite3.Connection, new: int) -> None:
        """Delete events that are old and needless; `new` events have been inserted. Call it within each transaction."""
        self._new += new
        if self._new >= max(1, _KEPT // _AT_ONCE):
            _sweep(db, _EXAMINED * self._new)
            self._new = 0

    def forget_earlier_run(self, db: sqlite3.Connection) -> None:
        """Delete a piece of the delivered events of earlier runs: no id is compared with theirs. Raises
        sqlite3.Error.
        """
        run = run_row(db)
        if run.swept < run.first_row - 1:
            with transaction(db):
                _sweep(db, _PIECE)


def _sweep(db: sqlite3.Connection, most: int) -> None:
    run = run_row(db)
    target = min(run.swept + most, max(last_row(db) - _KEPT, run.first_row - 1))
    if target > run.swept:
        db.execute(_FORGET_ENDS, (run.swept, target))
        db.execute(_FORGET, (run.swept, target))
        db.execute("UPDATE run SET swept = ?", (target,))
