"""Keeps the file of the outbox bounded: of what was delivered, only the last events are kept, to know repeated ones by.

kept, however old   what some sink has not acknowledged
                    the last event of an incident that is open: of it its end is made, should its stage die
                    an end, while something is left of the incident before it: else that would seem to be open
"""

from __future__ import annotations

import sqlite3

from pipeline.event_file import LEFT_OVER

_KEPT = 10_000
_EXAMINED = 8
"""So many old rows are looked at for each new one: what is kept may be many, and must not hold up a commit."""
_AT_ONCE = 16
"""A part of `_KEPT` that has to be new before old ones are looked at."""

_NEXT = """
SELECT max(row), count(*) FROM (
    SELECT row FROM events WHERE row > ? AND row < (SELECT max(row) FROM events) - ? ORDER BY row LIMIT ?
)
"""
_FORGET = f"""
DELETE FROM events WHERE row > ? AND row <= ?
AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.row = events.row)
AND CASE
    WHEN phase = 'single' OR incarnation = {LEFT_OVER} THEN 1
    WHEN phase = 'end'
    THEN NOT EXISTS (SELECT 1 FROM events e WHERE e.incident = events.incident AND e.row < events.row)
    ELSE EXISTS (SELECT 1 FROM events e WHERE e.incident = events.incident AND e.row > events.row)
END
"""  # noqa: S608 - made of constants


class OldEvents:
    """Goes through the old rows again and again, a few at a time. Call `forget` within each transaction."""

    def __init__(self) -> None:
        self._new = 0
        self._looked_at = 0

    def forget(self, db: sqlite3.Connection, new: int) -> None:
        """Forget some of what need not be kept; `new` events have been put in since the last call."""
        self._new += new
        if self._new < max(1, _KEPT // _AT_ONCE):
            return
        most = _EXAMINED * self._new
        last, found = db.execute(_NEXT, (self._looked_at, _KEPT, most)).fetchone()
        if found:
            db.execute(_FORGET, (self._looked_at, last))
        self._looked_at = last if found == most else 0
        self._new = 0
