"""Looks at the outbox of a run, and changes it, from another process: for `camgraph outbox`.

The run may go on meanwhile, or not. Each change is made in pieces, each in one transaction, and a running outbox looks
once a second whether somebody has changed the file (`PRAGMA data_version`).

requeue   a new row, "again KEY ID", behind all others; an event that is requeued twice by the same key is one row. So a
          command that was killed may be given again: it doubles nothing
drop      the sink does not want the event any more; if it has it in its hands, it may deliver it all the same
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import time_ns
from typing import Any

from camgraph.pipeline.dead_letters import DeadLetter, DeadLetters, LetterCount, sinks_with_letters
from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.messages import own_id
from camgraph.pipeline.outbox.event_file import (
    AGAIN,
    NOBODY,
    NOTE_READER,
    READERS,
    open_event_file,
    pending_sinks,
    require_sink,
    run_row,
    shown_id,
)
from camgraph.pipeline.outbox.event_validity import why_unfit
from camgraph.pipeline.outbox.old_events import forget_needless
from camgraph.pipeline.outbox.stored_event import WHOLE, checksum, read_event
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.pipeline.system.sqlite_file import Damaged, is_damage, transaction, way_out

FILE = "outbox.sqlite"
_BUSY_S = 10.0
_PIECE = 200
_LETTERS = 5000
"""So many dead letters are requeued before they are taken out of their file: fewer than the outbox knows again."""
_COLUMNS = f"e.row, e.committed_ns, e.producer, {WHOLE}"
_WAITING = f"SELECT p.sink, {_COLUMNS} FROM pending p JOIN events e ON e.row = p.row WHERE p.sink = ? ORDER BY p.row"  # noqa: S608
_OF_ID = f"SELECT {_COLUMNS} FROM events e WHERE instr(' ' || e.id, ?) ORDER BY e.row"  # noqa: S608 - made of constants
_SINCE = f"SELECT {_COLUMNS} FROM events e WHERE e.committed_ns >= ? AND e.incarnation != {NOBODY} ORDER BY e.row"  # noqa: S608
_COPY = f"""
INSERT INTO events (id, producer, camera, epoch, seq, part, time_ns, incident, phase, body, incarnation, committed_ns,
    waits_from_s, checksum)
SELECT ?, producer, camera, epoch, seq, part, time_ns, incident, phase, body, {NOBODY}, ?, ?, checksum
FROM events WHERE row = ? ON CONFLICT (id) DO NOTHING
"""  # noqa: S608 - made of constants
_NEW = f"""
INSERT INTO events (id, producer, camera, epoch, seq, part, time_ns, incident, phase, body, incarnation, committed_ns,
    waits_from_s, checksum)
VALUES (?, '', ?, ?, ?, 0, ?, ?, ?, ?, {NOBODY}, ?, ?, ?) ON CONFLICT (id) DO NOTHING
"""  # noqa: S608 - made of constants


@dataclass(frozen=True, slots=True)
class SinkState:
    """What a sink has still to get; `oldest_ns`: when the oldest of it was committed, 0 if that is not known."""

    sink: str
    waiting: int
    oldest_ns: int
    dead_letters: int


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """An event in the file. `shown_id`: as sinks get it; `id`: as it stands in its body. `waits_for`: some sinks."""

    row: int
    shown_id: str
    camera: str
    incident: str
    phase: str
    body: bytes
    committed_ns: int
    producer: str
    waits_for: tuple[str, ...]
    stored: str

    @property
    def id(self) -> str:
        return own_id(self.shown_id)


class OutboxView:
    """`folder`: that of the outbox. All methods raise EnvironmentProblem if the file cannot be read or written."""

    def __init__(self, folder: Path, *, wall_ns: Callable[[], int] = time_ns) -> None:
        self.folder = folder
        self._path = folder / FILE
        self._wall_ns = wall_ns

    # ---- looking

    def states(self) -> list[SinkState]:
        """All sinks of which anything is known, by name."""
        found = dict.fromkeys(sinks_with_letters(self.folder), (0, 0))
        if self._path.exists():
            with self._opened() as db:
                found |= {sink: _waiting_for(db, sink) for sink in _sinks(db)}
        letters = {sink: LetterCount(DeadLetters(self.folder, sink)).now() for sink in found}
        return [SinkState(sink, waiting, oldest, letters[sink]) for sink, (waiting, oldest) in sorted(found.items())]

    def sink(self, name: str) -> str:
        """The name of a sink. Raises UserError if nothing is known of it."""
        known = [state.sink for state in self.states()]
        if name not in known:
            listed = f"; there are: {', '.join(known)}" if known else ": nothing is kept for any"
            raise UserError(
                f"the outbox has no sink {name[:64]!r}{did_you_mean(name, known) or listed}", error_id="name-unknown"
            )
        return name

    def waiting(self, sink: str, wanted: Callable[[KeptEvent], bool], most: int) -> list[KeptEvent]:
        """The oldest of the events that wait for a sink."""
        if not self._path.exists():
            return []
        with self._opened() as db:
            first_row = run_row(db).first_row
            rows = (_event(row[1:], (row[0],), first_row) for row in db.execute(_WAITING, (sink,)))
            return list(islice(filter(wanted, rows), most))

    def letters(self, sink: str, wanted: Callable[[DeadLetter], bool], most: int) -> list[DeadLetter]:
        """The oldest dead letters of a sink."""
        try:
            return list(islice(filter(wanted, DeadLetters(self.folder, sink)), most))
        except OSError as error:
            raise EnvironmentProblem(
                f"the dead letters of {sink} cannot be read: {error.strerror}", error_id="cannot-read"
            ) from None

    def events(self, event_id: str) -> list[KeptEvent]:
        """All events in the file whose own ids begin so, the oldest first."""
        if not self._path.exists():
            return []
        with self._opened() as db:
            return _events(db, event_id)

    # ---- changing

    def requeue_letters(self, sink: str, wanted: Callable[[DeadLetter], bool]) -> int:
        """Hand dead letters to the sink again; returns how many events these are.

        Raises UserError, after that, if there are some that the outbox does not take: they stay.
        """
        requeued = 0
        while some := self.letters(sink, lambda letter: wanted(letter) and not why_unfit(letter.event), _LETTERS):
            keys = {letter.key for letter in some}
            by_id = {letter.id: letter for letter in some}  # of two letters about one event, the last
            with self._opened() as db:
                for piece in _pieces(list(by_id.values())):
                    with transaction(db):
                        requeued += sum(self._requeue_letter(db, letter) for letter in piece)
            self.drop_letters(sink, lambda letter, keys=keys: letter.key in keys)  # type: ignore[misc]
        for left in self.letters(sink, lambda letter: wanted(letter) and bool(why_unfit(letter.event)), 1):
            raise UserError(
                f"{requeued} events were requeued; the dead letter {left.id} of {sink}, and perhaps others, cannot be: "
                f"{why_unfit(left.event)}; take it from `camgraph outbox show {left.id}`, and then drop it",
                error_id="events-dropped",
            )
        return requeued

    def _requeue_letter(self, db: sqlite3.Connection, letter: DeadLetter) -> bool:
        event, key = letter.event, hashlib.sha256(letter.key.encode()).hexdigest()[:16]
        stamp = event.stamp
        at = (stamp.epoch, stamp.seq, stamp.time_ns)
        stored, what = f"{AGAIN} {key} {letter.id}", (event.incident, event.phase, event.body)
        times = (self._wall_ns(), run_row(db).open_s)
        seal = checksum((stored, stamp.camera, event.incident, event.phase, *at), event.body)
        values = (stored, stamp.camera, *at, *what, *times, seal)
        return _wait_again(db, letter.sink, db.execute(_NEW, values))

    def requeue_events(self, sink: str, event_ids: Sequence[str]) -> int:
        """Hand events that are still in the file to a sink again, each by the newest of its rows."""
        with self._opened() as db:
            newest = [_events(db, event_id)[-1] for event_id in event_ids]
            return self._requeue(db, sink, [event for event in newest if sink not in event.waits_for])

    def requeue_since(self, sink: str, since_ns: int) -> int:
        """Hand all events to a sink again that it has had, and that were committed since then, each once."""
        with self._opened() as db:
            first_row, producers = run_row(db).first_row, _producers(db, sink)
            found = (_event(row, (), first_row) for row in db.execute(_SINCE, (since_ns,)).fetchall())
            wanted = [event for event in found if not producers or event.producer in producers]
            return self._requeue(db, sink, [event for event in wanted if not _waits(db, sink, event.row)])

    def _requeue(self, db: sqlite3.Connection, sink: str, events: Sequence[KeptEvent]) -> int:
        requeued = 0
        for piece in _pieces(events):
            with transaction(db):
                times = (self._wall_ns(), run_row(db).open_s)
                for event in piece:
                    stored = f"{AGAIN} {event.row} {event.id}"
                    requeued += _wait_again(db, sink, db.execute(_COPY, (stored, *times, event.row)))
        return requeued

    def drop(self, sink: str, wanted: Callable[[KeptEvent], bool]) -> int:
        """The sink does not want these events any more that wait for it; returns how many."""
        dropped = 0
        if not self._path.exists():
            return 0
        with self._opened() as db:
            first_row = run_row(db).first_row
            last = db.execute("SELECT max(row) FROM pending WHERE sink = ?", (sink,)).fetchone()[0] or 0
            at = 0
            query = _WAITING.replace("ORDER BY", "AND p.row > ? AND p.row <= ? ORDER BY") + " LIMIT ?"
            while rows := db.execute(query, (sink, at, last, _PIECE)).fetchall():
                events = [_event(row[1:], (), first_row) for row in rows]
                if not at < events[0].row <= events[-1].row:
                    raise Damaged("the list of waiting events is not in order")
                dropped += _drop(db, sink, [event.row for event in events if wanted(event)])
                at = events[-1].row
        return dropped

    def drop_letters(self, sink: str, wanted: Callable[[DeadLetter], bool]) -> int:
        """Remove dead letters for good."""
        try:
            return DeadLetters(self.folder, sink).remove(wanted)
        except OSError as error:
            raise EnvironmentProblem(
                f"the dead letters of {sink} cannot be changed: {error.strerror}: free some disk space if it is full, "
                "and give the command again; what was done until then stays done",
                error_id="cannot-write",
            ) from None

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(open_event_file(self._path, by_time=False, busy_s=_BUSY_S)) as file:
                yield file.db
        except (sqlite3.Error, OSError) as error:
            raise self._problem(error) from None

    def _problem(self, error: Exception) -> EnvironmentProblem:
        if is_damage(error):
            return EnvironmentProblem(
                f"the outbox {self._path} is damaged ({error}): the next start of its run sets it aside and saves what "
                "it can; `camgraph help outbox` says more",
                error_id="outbox-damaged",
            )
        return EnvironmentProblem(
            f"the outbox {self._path} does not take this now: {error}: what was done until then stays done; "
            f"{way_out(error)}, and give the command again",
            error_id="outbox-disk",
        )


def _sinks(db: sqlite3.Connection) -> list[str]:
    known = [require_sink(sink) for (sink,) in db.execute(READERS)]
    return sorted({*known, *pending_sinks(db)})


def _producers(db: sqlite3.Connection, sink: str) -> list[str]:
    found = db.execute("SELECT producers FROM readers WHERE sink = ?", (sink,)).fetchone()
    try:
        return list(json.loads(found[0])) if found else []
    except (ValueError, TypeError):
        raise Damaged("nothing is known about the stages of a sink") from None


def _waiting_for(db: sqlite3.Connection, sink: str) -> tuple[int, int]:
    count = db.execute("SELECT count(*) FROM pending WHERE sink = ?", (sink,)).fetchone()[0]
    head = db.execute(f"{_WAITING} LIMIT 1", (sink,)).fetchone()
    return int(count), _event(head[1:], (), 0).committed_ns if head else 0


def _event(row: Any, waits_for: tuple[str, ...], first_row: int) -> KeptEvent:
    number, committed_ns, producer, *values = row
    found = read_event(values)
    if type(committed_ns) is not int or type(producer) is not str:
        raise Damaged("an event lacks its facts")
    shown, facts = shown_id(number, found.stored, first_row), (found.camera, found.incident, found.phase)
    return KeptEvent(number, shown, *facts, found.body or b"", committed_ns, producer, waits_for, found.stored)


def _events(db: sqlite3.Connection, event_id: str) -> list[KeptEvent]:
    first_row, sinks = run_row(db).first_row, _sinks(db)
    rows = db.execute(_OF_ID, (f" {event_id}",)).fetchall()
    found = [_event(row, tuple(s for s in sinks if _waits(db, s, row[0])), first_row) for row in rows]
    return [event for event in found if event.id.startswith(event_id)]


def _waits(db: sqlite3.Connection, sink: str, row: int) -> bool:
    return db.execute("SELECT 1 FROM pending WHERE sink = ? AND row = ?", (sink, row)).fetchone() is not None


def _wait_again(db: sqlite3.Connection, sink: str, inserted: sqlite3.Cursor) -> bool:
    """False if an earlier command has done it."""
    if not inserted.rowcount:
        return False
    db.execute(NOTE_READER, (sink,))
    db.execute("INSERT INTO pending VALUES (?, ?)", (sink, inserted.lastrowid))
    return True


def _drop(db: sqlite3.Connection, sink: str, rows: Sequence[int]) -> int:
    with transaction(db):
        dropped = db.executemany("DELETE FROM pending WHERE sink = ? AND row = ?", [(sink, row) for row in rows])
        forget_needless(db, rows)
    return max(0, dropped.rowcount)


def _pieces(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), _PIECE):
        yield values[start : start + _PIECE]
