"""The committed events that each sink has still to get, and their order.

    committed --pull--> handed out --acknowledge--> delivered --note--> forgotten

A delivery is kept in memory until `note` writes all of them in one transaction, because each transaction waits for the
disk. If the process dies first, a sink may get these events again: at most `MOST_REPEATED`, because it gets no new ones
while that many are not written.

Another process may requeue or drop events meanwhile (`pipeline.outbox.outbox_view`): `changed_outside`.

An event that is not as it was written is not handed out: all reading methods raise `Damaged` (a sqlite3.Error) for it,
and also if events wait that the file does not give out. An event whose body is too large to be sent is given up.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from camgraph.pipeline.messages import MOST_REPEATED, Event, Stamp
from camgraph.pipeline.outbox.commit_times import CommitTimes
from camgraph.pipeline.outbox.event_file import pending_sinks, run_row, shown_id
from camgraph.pipeline.outbox.old_events import forget_needless
from camgraph.pipeline.outbox.stored_event import TO_SEND, WHOLE, StoredEvent, read_event
from camgraph.pipeline.system.sqlite_file import Damaged, transaction

_NEVER, _ALWAYS = -(1 << 62), 1 << 62
_COLUMNS = f"p.row, e.committed_ns, e.waits_from_s, {TO_SEND}"
# LEFT JOIN: a row that waits without an event is damage, and must not be skipped.
_BY_ROW = f"""
SELECT {_COLUMNS} FROM pending p LEFT JOIN events e ON e.row = p.row
WHERE p.sink = ? AND p.row > ? ORDER BY p.row LIMIT ?
"""  # noqa: S608 - made of constants
# CROSS JOIN: along the index of the time, from the sink's position.
_BY_TIME = f"""
SELECT {_COLUMNS} FROM events e CROSS JOIN pending p ON p.row = e.row AND p.sink = ?
WHERE e.time_ns BETWEEN ? AND ? ORDER BY e.time_ns, e.camera, e.epoch, e.seq, e.part, e.producer, e.row LIMIT ?
"""  # noqa: S608 - made of constants
_WHOLE = f"SELECT {WHOLE} FROM events e WHERE e.row = ?"  # noqa: S608 - made of constants
_FIRST = "SELECT min(row) FROM pending WHERE sink = ?"
_LAST = "SELECT max(row) FROM pending WHERE sink = ?"
_HEAD = """
SELECT p.row, e.camera, e.committed_ns, e.waits_from_s FROM pending p JOIN events e ON e.row = p.row
WHERE p.sink = ? ORDER BY p.row LIMIT ?
"""
_HEAD_TYPES = [int, str, int, int]
_DELIVERED = "DELETE FROM pending WHERE sink = ? AND row = ?"


Fresh = tuple[int, Event | StoredEvent]
"""A row number and its event; a StoredEvent if the body is too large to be sent."""
_MOST_WHOLE, _BEGINNING = 16 << 20, 64 << 10
"""A larger body is not kept whole as a dead letter: the loop would send no heartbeat meanwhile."""


@dataclass(slots=True)
class _Reading:
    """The position of one sink. All before `row`, or before `time_ns`, was handed out; `dry_at`: nothing is left."""

    row: int = 0
    time_ns: int = _NEVER
    handed: set[int] = field(default_factory=set)
    dry_at: tuple[int, int] | None = None
    sound_at: tuple[int, int] | None = None
    """The moment at which no event was left, confirmed by the list of waiting events."""
    again_to: int = 0
    """Events up to this row were looked for again from the earliest time."""


class Deliveries:
    """The rows of `pending` in the file of the outbox. `ordered`: sinks that want their events in order of time.

    `too_large(sink, event, size)` keeps an event whose body of this size cannot
    be sent as a dead letter; of a very large one, it gets the beginning. `waiting`: how many events each sink has still
    to get, those in its hands included; also for sinks that an earlier graph had.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        sinks: Iterable[str],
        ordered: Collection[str],
        times: CommitTimes,
        too_large: Callable[[str, Event, int], None],
    ) -> None:
        self._db = db
        self._too_large = too_large
        self._times = times
        self._ordered = ordered
        self._sinks = tuple(sinks)
        self._first_row = run_row(db).first_row
        self._readings = {sink: _Reading() for sink in self._sinks}
        self._delivered: list[tuple[str, int]] = []
        self._commits = 0
        self._waiting: Counter[str] = Counter()
        self._count()

    @property
    def waiting(self) -> Mapping[str, int]:
        return self._waiting

    def _count(self) -> None:
        names = {*self._sinks, *pending_sinks(self._db)}
        count = "SELECT count(*) FROM pending WHERE sink = ?"
        self._waiting = Counter({sink: self._db.execute(count, (sink,)).fetchone()[0] for sink in sorted(names)})

    def changed_outside(self) -> None:
        """Another process has changed the file: count anew, and look for what it has requeued."""
        self._count()
        self._commits += 1
        for reading in self._readings.values():
            reading.time_ns = _NEVER

    def committed(self, earliest_ns: int, new: Mapping[str, int]) -> None:
        """Events were committed, none of them of a time before `earliest_ns`; `new`: how many for each sink."""
        self._commits += 1
        self._waiting.update(new)
        for reading in self._readings.values():
            reading.time_ns = min(reading.time_ns, earliest_ns)

    def pull(self, sink: str, most: int, until_ns: int) -> list[tuple[int, Event]]:
        """Return up to `most` events that the sink has not got yet, with their row numbers, in the sink's order.

        A sink in order of time gets none after `until_ns`. Raises sqlite3.Error, and EnvironmentProblem if a dead
        letter cannot be written; then the same events come again.
        """
        reading, now = self._readings[sink], (self._commits, until_ns)
        most = min(most, MOST_REPEATED - len(reading.handed))
        if reading.dry_at == now:
            self._require_none_left(sink, reading, now)
            return []
        if most <= 0:
            return []
        is_ordered = sink in self._ordered
        fresh = self._by_time(sink, reading, most, until_ns) if is_ordered else self._by_row(sink, reading, most)
        for row, event in fresh:
            if isinstance(event, StoredEvent):
                self._give_up(sink, row, event)
        self._go_on(reading, fresh, most, until_ns if is_ordered else None)
        if len(fresh) < most:
            reading.dry_at = now
        return [(row, event) for row, event in fresh if isinstance(event, Event)]

    def _by_row(self, sink: str, reading: _Reading, most: int) -> list[Fresh]:
        fresh = [self._event(row) for row in self._db.execute(_BY_ROW, (sink, reading.row, most))]
        rows = [reading.row, *(row for row, _ in fresh)]
        if any(row >= after for row, after in pairwise(rows)):
            raise Damaged("the list of waiting events is not in order")
        return fresh

    def _by_time(self, sink: str, reading: _Reading, most: int, until_ns: int) -> list[Fresh]:
        rows = self._db.execute(_BY_TIME, (sink, reading.time_ns, until_ns, most + len(reading.handed)))
        fresh = (self._event(row) for row in rows if row[0] not in reading.handed)
        return list(islice(fresh, most))

    def _go_on(self, reading: _Reading, fresh: Sequence[Fresh], most: int, until_ns: int | None) -> None:
        """These events have been handed out; `until_ns`: of a sink in order of time."""
        reading.handed.update(row for row, _ in fresh)
        if until_ns is None:
            reading.row = fresh[-1][0] if fresh else reading.row
        elif len(fresh) < most:
            reading.time_ns = max(reading.time_ns, until_ns)
        else:
            last = fresh[-1][1]
            reading.time_ns = last.stamp.time_ns if isinstance(last, Event) else last.time_ns

    def _require_none_left(self, sink: str, reading: _Reading, now: tuple[int, int]) -> None:
        """Raises Broken if events wait that the lists do not lead to: the sink would wait for them without end."""
        if reading.handed or reading.sound_at == now or (sink in self._ordered and now[1] < _ALWAYS):
            return
        is_ordered = sink in self._ordered
        left = self._db.execute(_LAST if is_ordered else _FIRST, (sink,)).fetchone()[0]
        if left is not None and type(left) is not int:
            raise Damaged("an event that waits has no number")
        if left is not None and left <= (reading.again_to if is_ordered else reading.row):
            raise Damaged("events wait that are not in the list of events")
        if left is None or not is_ordered:
            reading.sound_at = now
        else:  # another process may have requeued them a moment ago: look for all of them once more
            reading.again_to, reading.time_ns, reading.dry_at = left, _NEVER, None

    def _event(self, row: Any) -> Fresh:
        number, committed_ns, waits_from_s, *values = row
        found = read_event(values)
        if type(committed_ns) is not int or type(waits_from_s) is not int or type(number) is not int:
            raise Damaged("an event lacks its time")
        if found.body is None:
            return number, found
        at_ns = self._times.now(number, committed_ns, waits_from_s)
        return number, self._made(number, found, found.body, at_ns)

    def _made(self, number: int, found: StoredEvent, body: bytes, at_ns: int) -> Event:
        stamp = Stamp(found.camera, found.epoch, min(found.seq, 1 << 53), found.time_ns, 0, 0)
        shown = shown_id(number, found.stored, self._first_row)
        return Event(stamp, shown, found.incident, found.phase, body, at_ns)

    def _give_up(self, sink: str, row: int, found: StoredEvent) -> None:
        """Keep an event that is too large to be sent as a dead letter. Raises EnvironmentProblem."""
        size = int(self._db.execute("SELECT length(body) FROM events WHERE row = ?", (row,)).fetchone()[0])
        body = self._body(row) if size <= _MOST_WHOLE else self._beginning(row, size)
        self._too_large(sink, self._made(row, found, body, 0), size)
        self.acknowledge(sink, [row])

    def _body(self, row: int) -> bytes:
        body = read_event(self._db.execute(_WHOLE, (row,)).fetchone()).body
        if body is None:
            raise Damaged("an event has no body")
        return body

    def _beginning(self, row: int, size: int) -> bytes:
        """Of a body that would keep the loop for too long, as JSON."""
        with self._db.blobopen("events", "body", row, readonly=True) as blob:
            text = blob.read(_BEGINNING).decode(errors="replace")
        return json.dumps({"bytes": size, "beginning": text}).encode()

    def acknowledge(self, sink: str, rows: Sequence[int]) -> None:
        """The sink has delivered these."""
        self._delivered += [(sink, row) for row in rows]

    def note(self) -> None:
        """Write all deliveries in one transaction. Raises sqlite3.Error; then none of them is written."""
        if not self._delivered:
            return
        rows: dict[str, list[int]] = defaultdict(list)
        for sink, row in self._delivered:
            rows[sink].append(row)
        self.forget(rows)
        for sink, row in self._delivered:
            self._readings[sink].handed.discard(row)
        self._delivered.clear()

    def forget(self, rows: Mapping[str, Sequence[int]]) -> None:
        """The sinks do not want these any more. In one transaction; raises sqlite3.Error."""
        gone = {}
        with transaction(self._db):
            for sink, numbers in rows.items():
                gone[sink] = self._db.executemany(_DELIVERED, [(sink, row) for row in numbers]).rowcount
            forget_needless(self._db, {row for numbers in rows.values() for row in numbers})
        self._waiting.subtract(gone)

    def oldest(self, sink: str, most: int) -> list[tuple[int, str, float]]:
        """(row, camera, seconds for which it has waited) of the oldest events that wait for a sink.

        Without the events that the sink has in its hands.
        """
        handed = self._readings[sink].handed if sink in self._readings else set()
        rows = [row for row in self._head(sink, most + len(handed)) if row[0] not in handed][:most]
        return [(row, camera, self._times.waited_s(row, *times)) for row, camera, *times in rows]

    def _head(self, sink: str, most: int) -> list[tuple[int, str, int, int]]:
        rows = self._db.execute(_HEAD, (sink, most)).fetchall()
        if any(list(map(type, row)) != _HEAD_TYPES for row in rows):
            raise Damaged("an event lacks its camera or its time")
        return rows

    def oldest_ns(self, sink: str) -> int:
        """When the oldest event that waits for a sink was committed; 0 if there is none, or it is not known."""
        return next((self._times.now(row, *times) for row, _, *times in self._head(sink, 1)), 0)

    def left(self, sink: str) -> int:
        """The number of events whose delivery to the sink is not recorded."""
        return int(self._db.execute("SELECT count(*) FROM pending WHERE sink = ?", (sink,)).fetchone()[0])

    def over(self, sink: str) -> bool:
        """True when all deliveries to the sink are recorded."""
        return self._db.execute("SELECT 1 FROM pending WHERE sink = ? LIMIT 1", (sink,)).fetchone() is None
