"""Sets aside a file that is no outbox or is broken, and saves the events of it that can still be read.

    outbox.sqlite ── cannot be read ──> outbox.sqlite-new, with the waiting events that could be read
                                    └─> outbox.sqlite.damaged-20260301T123005Z, for a person; then the new is renamed

If the process dies before the first renaming, the next one begins anew; if it dies after it, that finishes the second.
A disk or a power cut may break a file (see `sync`), and a person may put another one in its place. A run must not fail
for that. If the damage shows while the run goes on, `mark` leaves a note, and the next process sets the file aside.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from camgraph.pipeline.outbox.event_file import (
    LARGEST_ROW,
    NOTE_READER,
    PENDING_SINKS,
    READERS,
    event_file,
    open_event_file,
    require_sink,
)
from camgraph.pipeline.outbox.stored_event import WHOLE, read_event
from camgraph.pipeline.system.disk import sync_folder
from camgraph.pipeline.system.sqlite_file import Damaged, remove, transaction

_NEW = "-new"
MARK = "-damaged"
"""The suffix of the note that the file is broken; it holds the reason."""
_PIECE = 500
_STEP = 20
"""Over a part of the list that cannot be read."""
_MOST_BLIND = 100_000
"""Rows that are tried one after the other where not even the list of events can be read: a file counts up for ever."""
_WITHIN_S = 300.0
_PATIENT_S = 5.0
"""How long each statement waits for another program that has locked the damaged file."""
_STEPS = 10_000
"""Steps of SQLite's virtual machine between two looks at the clock: a damaged tree may lead in a circle."""
_WAITING = "SELECT row FROM pending WHERE sink = ? AND row > ? ORDER BY row LIMIT ?"
_ASTRAY = f"SELECT row FROM pending WHERE sink = ? AND row < ? LIMIT {_MOST_BLIND}"  # noqa: S608 - made of constants
_EXISTING = "SELECT row FROM events WHERE row > ? ORDER BY row LIMIT ?"
_SEALED = f"SELECT {WHOLE} FROM events e WHERE e.row = ?"  # noqa: S608 - made of constants
_UNSEALED = _SEALED.replace("e.checksum", "0")
"""Of a file of an older version."""
_FEW = 8
"""Lines of the list of what waits that may be wrong one by one. More are a page of another table: what stood in its
place is not known.
"""
_BESIDE = {"producer": "", "part": 0, "incarnation": 0, "committed_ns": 0}
"""Facts without which an event can still be delivered, and their substitutes."""
_FACTS = ("id", "camera", "incident", "phase", "epoch", "seq", "time_ns", "checksum", "body")
_PUT = (
    f"INSERT OR IGNORE INTO events (row, {', '.join((*_FACTS, *_BESIDE))}) "  # noqa: S608 - made of constants
    f"VALUES (?{', ?' * (len(_FACTS) + len(_BESIDE))})"
)
_RUN = ("first_row", "swept")


class Saved(NamedTuple):
    """How many events were saved, and how many were known to wait and could not be read.

    `is_sure`: no more events can have been lost: the list of what waited was read from its beginning to its end.
    `lost_for`: sink -> how many of its events were lost; "?" is for what no sink can be called.
    """

    events: int
    lost: int
    is_sure: bool
    lost_for: Mapping[str, int]


def mark(path: Path, why: str) -> None:
    """The file is broken, as this process found out."""
    with suppress(OSError):
        Path(f"{path}{MARK}").write_text(why)


def marked(path: Path) -> str:
    """Why an earlier process found the file broken, "" if none did."""
    note = Path(f"{path}{MARK}")
    try:
        if path.exists():
            return note.read_text() or "unknown"
        note.unlink()  # a person has taken the file away
    except OSError:
        pass
    return ""


def finish_replacing(path: Path) -> None:
    """If a process died while it replaced the file: go on with the new one, or begin anew."""
    new = Path(f"{path}{_NEW}")
    with suppress(OSError):
        if new.exists() and not path.exists():
            event_file(path).finish_set_aside()
            _put_in_place(new, path)
    remove(new)


def replace_damaged(
    path: Path, now_ns: int, sinks: Collection[str] = (), *, within_s: float = _WITHIN_S
) -> tuple[Path, Saved]:
    """Replace the file by one with the events that can be read; returns the new path of the old one.

    `sinks`: the sinks of the graph, whose names the damaged file may lack. Events that are not read within `within_s`
    count as not readable. Raises sqlite3.Error, OSError and EnvironmentProblem (a full disk); then all files are as
    before.
    """
    new = Path(f"{path}{_NEW}")
    remove(new)
    try:
        with closing(open_event_file(new, by_time=False)) as file:
            saved = save_from(path, file.db, sinks, within_s=within_s)
    except BaseException:
        remove(new)
        raise
    aside = event_file(path).set_aside(datetime.fromtimestamp(now_ns // 1_000_000_000, UTC))
    _put_in_place(new, path)
    sync_folder(path.parent)
    return aside, saved


def _put_in_place(new: Path, path: Path) -> None:
    """The note was about the file that was set aside. Raises OSError."""
    Path(f"{path}{MARK}").unlink(missing_ok=True)
    new.rename(path)


def save_from(
    broken: Path, db: sqlite3.Connection, sinks: Collection[str] = (), *, within_s: float = _WITHIN_S
) -> Saved:
    """Copy the waiting events that can be read, under their rows. Raises sqlite3.Error if `db` takes none.

    Where the list of what waits is broken, every event counts as one that waits: better twice than never.
    """
    with event_file(broken, busy_s=_PATIENT_S).unchecked() as source:
        rescue = _Rescue(source, db, time.monotonic() + within_s)
        source.set_progress_handler(lambda: rescue.is_late, _STEPS)
        return rescue.save(sinks)


class _Rescue:
    """One rescue from `source` into `db`, until a moment (monotonic seconds)."""

    def __init__(self, source: sqlite3.Connection, db: sqlite3.Connection, until_s: float) -> None:
        self._source, self._db, self._until_s = source, db, until_s
        self._saved, self._lost = set[int](), set[int]()
        self._lost_for = Counter[str]()
        self._astray = 0
        """How many lines of the list of what waits name no event, or a sink that the run did not have."""
        self._is_sure = True

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self._until_s

    def save(self, sinks: Collection[str]) -> Saved:
        """See `save_from`."""
        self._try("PRAGMA writable_schema = ON")  # reads a file that was cut off, too
        last_row = self._last_row()
        self._is_sure &= self._try("PRAGMA quick_check(pending)") == [("ok",)]
        known, strange = self._sinks(sinks)
        for sink in sorted(known):
            for rows in self._pending(sink, last_row):
                self._copy(sink, rows)
            self._lose(sink, self._rows_below(sink, 1))
        for name in strange:
            self._go_astray(name)
        self._keep_open_incidents()
        self._copy_run(last_row)
        self._is_sure &= self._astray <= _FEW
        lost = len(self._lost) + self._astray
        return Saved(len(self._saved), lost, self._is_sure and not self.is_late, self._lost_for)

    def _try(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]] | None:
        """The rows of an answer; None if they cannot be read."""
        try:
            return self._source.execute(query, values).fetchall()
        except (sqlite3.Error, ValueError, OverflowError, MemoryError):  # ValueError: a name of a column is no text
            return None

    # ---- what waits

    def _sinks(self, of_graph: Collection[str]) -> tuple[set[str], set[object]]:
        """The sinks of the graph and of the run, and other names for which events wait: damage has made these.

        Where the file names no sinks of the run, each name that a sink can have is one.
        """
        waiting, readers = self._try(PENDING_SINKS), self._try(READERS)
        self._is_sure &= waiting is not None
        names = {name for (name,) in waiting or ()}
        run = {name for (name,) in readers or ()} or names
        known = {*of_graph, *filter(_is_sink, run)}
        return known, names - known

    def _go_astray(self, name: object) -> None:
        """Count the events that wait for a strange name as lost; those of a possible one stay, for a person to see."""
        rows = self._rows_below(name, LARGEST_ROW)
        sink = name if _is_sink(name) else ""
        if sink:
            self._copy(sink, [row for row in rows if row > 0])
        self._lose(sink or "?", rows)

    def _rows_below(self, name: object, end: int) -> list[int]:
        rows = self._try(_ASTRAY, (name, end))
        self._is_sure &= rows is not None
        return [row for (row,) in rows or () if type(row) is int]

    def _lose(self, sink: str, rows: Sequence[int]) -> None:
        astray = [row for row in rows if row not in self._lost]
        self._astray += len(astray)
        if astray:
            self._lost_for[sink] += len(astray)

    def _last_row(self) -> int | None:
        """The last row that was written, as far as it is known."""
        queries = ("SELECT seq FROM sqlite_sequence WHERE name = 'events'", "SELECT max(row) FROM events")
        answers = [self._try(query) for query in queries]
        known = [row for answer in answers for (row,) in answer or () if type(row) is int and 0 <= row < LARGEST_ROW]
        return max(known, default=None)

    def _pending(self, sink: str, last_row: int | None) -> Iterator[list[int]]:
        """The rows that a sink waits for, some at a time; all rows where that cannot be read."""
        at = blind = 0
        end = LARGEST_ROW if last_row is None else last_row
        is_broken = False
        while at < end and blind < _MOST_BLIND and not self.is_late:
            rows, is_broken = ([], True) if is_broken else self._rows(_WAITING, (sink, at, _PIECE), at, end)
            if is_broken and not rows:
                self._is_sure = is_broken = False
                rows, is_blind = self._rows(_EXISTING, (at, _STEP), at, end)
                if is_blind and not rows:
                    if last_row is None:
                        return
                    rows = [*range(at + 1, min(at + _STEP, end) + 1)]
                    blind += _STEP
                else:
                    blind = 0
            if not rows:
                return
            at = rows[-1]
            yield rows
        self._is_sure &= at >= end or end == LARGEST_ROW

    def _rows(self, query: str, values: tuple[object, ...], at: int, end: int) -> tuple[list[int], bool]:
        """The rows of an answer, and whether there is something wrong with it behind them.

        Row numbers rise from `at` to at most `end`. Where one does not rise, either it or the row before is wrong: both
        are left out.
        """
        answer = self._try(query, values)
        rows: list[int] = []
        for (row,) in answer or ():
            if type(row) is not int or not (rows[-1] if rows else at) < row <= end:
                return rows[:-1], True
            rows.append(row)
        return rows, answer is None

    # ---- copying

    def _copy(self, sink: str, rows: Sequence[int]) -> None:
        """Raises sqlite3.Error if the new file does not take them."""
        with transaction(self._db):
            self._db.execute(NOTE_READER, (sink,))
            for row in rows:
                if row not in self._saved and row not in self._lost:
                    self._copy_event(row)
                if row in self._saved:
                    self._db.execute("INSERT OR IGNORE INTO pending VALUES (?, ?)", (sink, row))
                else:
                    self._lost_for[sink] += 1

    def _copy_event(self, row: int) -> None:
        """Raises sqlite3.Error if the new file does not take it."""
        values = self._read(row)
        if values is not None and self._db.execute(_PUT, values).rowcount:
            self._saved.add(row)
        else:
            self._lost.add(row)

    def _read(self, row: int) -> tuple[object, ...] | None:
        """The values for `_PUT`; None if the event cannot be read, or is none."""
        answer = self._try(_SEALED, (row,))
        if answer is None:
            answer = self._try(_UNSEALED, (row,))
        if not answer:
            return None
        try:
            found = read_event(answer[0])
        except Damaged:
            return None
        facts = (found.stored, *found[1:7], answer[0][7], found.body)
        return (row, *facts, *self._beside(row))

    def _beside(self, row: int) -> list[object]:
        answer = self._try(f"SELECT {', '.join(_BESIDE)} FROM events WHERE row = ?", (row,))  # noqa: S608 - our names
        values = answer[0] if answer else [self._fact(row, name) for name in _BESIDE]
        pairs = zip(values, _BESIDE.values(), strict=True)
        return [value if type(value) is type(default) else default for value, default in pairs]

    def _fact(self, row: int, name: str) -> object:
        answer = self._try(f"SELECT {name} FROM events WHERE row = ?", (row,))  # noqa: S608 - one of our names
        return answer[0][0] if answer else None

    def _keep_open_incidents(self) -> None:
        """The last events of incidents that go on: their ends are made from them, though nobody waits for them."""
        with transaction(self._db):
            for values in self._try("SELECT * FROM incidents") or ():
                with suppress(sqlite3.IntegrityError, sqlite3.ProgrammingError, OverflowError):
                    self._db.execute("INSERT OR IGNORE INTO incidents VALUES (?, ?, ?, ?, ?, ?)", values)
            for (row,) in self._db.execute("SELECT row FROM incidents WHERE NOT over").fetchall():
                event = None if row in self._saved or row in self._lost else self._read(row)
                if event is not None:
                    self._db.execute(_PUT, event)
            for (camera,) in self._try("SELECT camera FROM ended") or ():
                with suppress(sqlite3.IntegrityError):
                    self._db.execute("INSERT OR IGNORE INTO ended VALUES (?)", (camera,))

    def _copy_run(self, last_row: int | None) -> None:
        """Go on with the numbers of the old file: none of its rows is given again.

        The time for which the outbox was open begins anew, and so do the waiting times of all events: the old ones may
        be damaged, and events would be given up by them.
        """
        run = self._try(f"SELECT {', '.join(_RUN)} FROM run") or [(1, 0)]  # noqa: S608 - made of constants
        first_row, swept = (value if type(value) is int else 0 for value in run[0])
        with transaction(self._db):
            known = self._db.execute("SELECT max(row) FROM events").fetchone()[0]
            last = max(last_row or 0, known or 0)
            self._db.execute("DELETE FROM sqlite_sequence WHERE name = 'events'")
            self._db.execute("INSERT INTO sqlite_sequence VALUES ('events', ?)", (last,))
            values = (min(max(first_row, 1), last + 1), min(max(swept, 0), last))
            self._db.execute("UPDATE run SET first_row = ?, swept = ?", values)


def _is_sink(name: object) -> TypeGuard[str]:
    with suppress(Damaged):
        return bool(require_sink(name))
    return False
