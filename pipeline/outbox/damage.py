"""Sets aside a file that is no outbox or is broken, and saves the events of it that can still be read.

    outbox.sqlite ── cannot be read ──> outbox.sqlite-new, with the waiting events that could be read
                                    └─> outbox.sqlite.damaged-20260301T123005Z, for a person; then the new is renamed

If the process dies before the first renaming, the next one begins anew; if it dies after it, that finishes the second.
A disk or a power cut may break a file (see `sync`), and a person may put another one in its place. A run must not fail
for that. If the damage shows while the run goes on, `mark` leaves a note, and the next process sets the file aside.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pipeline.outbox.event_file import PENDING_SINKS, open_event_file, transaction
from pipeline.system.disk import sync_folder

_NEW = "-new"
MARK = "-damaged"
"""The suffix of the note that the file is broken; it holds the reason."""
_PIECE = 500
_STEP = 20
"""Over a part of the list that cannot be read."""
_MOST_BLIND = 100_000
"""Rows that are tried one after the other where not even the list of events can be read: a file counts up for ever."""
_WAITING = "SELECT row FROM pending WHERE sink = ? AND row > ? ORDER BY row LIMIT ?"
_EXISTING = "SELECT row FROM events WHERE row > ? ORDER BY row LIMIT ?"
_SMALL = ("incidents", "ended")


class Saved(NamedTuple):
    """How many events were saved, and how many were known to wait and could not be read."""

    events: int
    lost: int


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
        if not path.exists():
            new.rename(path)
    _remove(new)


def replace_damaged(path: Path, now_ns: int) -> tuple[Path, Saved]:
    """Replace the file by one with the events that can be read; returns the new path of the old one.

    Raises sqlite3.Error, OSError, and EnvironmentProblem, if the disk is full, say: then all is as it was.
    """
    new = Path(f"{path}{_NEW}")
    _remove(new)
    try:
        with closing(open_event_file(new, by_time=False)) as db:
            saved = save_from(path, db)
    except BaseException:
        _remove(new)
        raise
    aside = _set_aside(path, now_ns)
    new.rename(path)
    sync_folder(path.parent)
    return aside, saved


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        with suppress(OSError):
            Path(f"{path}{suffix}").unlink()


def _set_aside(path: Path, now_ns: int) -> Path:
    """Rename the file, and SQLite's files beside it; returns its new path. Raises OSError."""
    at = datetime.fromtimestamp(now_ns // 1_000_000_000, UTC)
    aside = path.with_name(f"{path.name}.damaged-{at:%Y%m%dT%H%M%SZ}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{at:%Y%m%dT%H%M%SZ}-{number}")
    path.rename(aside)
    with suppress(OSError):
        Path(f"{path}-wal").rename(f"{aside}-wal")
    for suffix in ("-shm", MARK):
        with suppress(OSError):
            Path(f"{path}{suffix}").unlink()
    return aside


def save_from(broken: Path, db: sqlite3.Connection) -> Saved:
    """Copy the waiting events that can be read, under their rows. Raises sqlite3.Error if `db` takes none.

    Where the list of what waits is broken, every event counts as one that waits: better twice than never.
    """
    saved, lost = set[int](), set[int]()
    with closing(sqlite3.connect(broken, isolation_level=None)) as source:
        source.execute("PRAGMA writable_schema = ON")  # reads a file that was cut off, too
        _copy_small(source, db)
        for sink in _sinks(source):
            for rows in _pending(source, sink, _last_row(source)):
                found = []
                for row in rows:
                    try:
                        event = _read(source, row)
                    except sqlite3.DatabaseError:
                        lost.add(row)
                    else:
                        found += [(row, event)] if event else []
                _insert(db, sink, found)
                saved.update(row for row, _ in found)
    return Saved(len(saved), len(lost))


def _sinks(source: sqlite3.Connection) -> list[str]:
    found: set[str] = set()
    for query in (PENDING_SINKS, "SELECT sink FROM readers"):
        with suppress(sqlite3.DatabaseError):
            found |= {sink for (sink,) in source.execute(query)}
    return sorted(found)


def _last_row(source: sqlite3.Connection) -> int:
    for query in ("SELECT seq FROM sqlite_sequence WHERE name = 'events'", "SELECT max(row) FROM events"):
        with suppress(sqlite3.DatabaseError, TypeError):
            return int(source.execute(query).fetchone()[0])
    return 0


def _copy_small(source: sqlite3.Connection, db: sqlite3.Connection) -> None:
    with transaction(db):
        for table in _SMALL:
            with suppress(sqlite3.DatabaseError):
                rows = source.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - one of our names
                marks = ", ".join("?" * len(rows[0])) if rows else ""
                db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)  # noqa: S608 - as above
        with suppress(sqlite3.DatabaseError):
            run = source.execute("SELECT first_row, swept, open_s FROM run").fetchone()
            db.execute("UPDATE run SET first_row = ?, swept = ?, open_s = ?", run)


def _pending(source: sqlite3.Connection, sink: str, last_row: int) -> Iterator[list[int]]:
    """The rows that a sink waits for, some at a time; all rows where that cannot be read."""
    at = blind = 0
    while at < last_row and blind < _MOST_BLIND:
        rows = _rows(source, _WAITING, (sink, at, _PIECE))
        if rows is None:
            rows = _rows(source, _EXISTING, (at, _STEP))
        if rows is None:
            rows = [*range(at + 1, min(at + _STEP, last_row) + 1)]
            blind += _STEP
        else:
            blind = 0
        if not rows:
            return
        at = rows[-1]
        yield rows


def _rows(source: sqlite3.Connection, query: str, values: tuple[object, ...]) -> list[int] | None:
    """None if they cannot be read."""
    try:
        return [row for (row,) in source.execute(query, values)]
    except sqlite3.DatabaseError:
        return None


def _read(source: sqlite3.Connection, row: int) -> dict[str, object] | None:
    cursor = source.execute("SELECT * FROM events WHERE row = ?", (row,))
    found = cursor.fetchone()
    return dict(zip((column[0] for column in cursor.description), found, strict=True)) if found else None


def _insert(db: sqlite3.Connection, sink: str, rows: list[tuple[int, dict[str, object]]]) -> None:
    with transaction(db):
        for row, event in rows:
            names, marks = ", ".join(event), ", ".join("?" * len(event))
            db.execute(f"INSERT OR IGNORE INTO events ({names}) VALUES ({marks})", tuple(event.values()))  # noqa: S608
            db.execute("INSERT OR IGNORE INTO pending VALUES (?, ?)", (sink, row))
