"""The file of the outbox: its tables, how to open it, and its changes when a run begins.

events    one row for each committed event; `row` counts up and is never used again
pending   (sink, row): the sink wants the event and has not acknowledged it
ended     cameras that send no more events in this run

Events that an earlier run of the same name has left are delivered, but do not belong to this run: their ids
are changed, so that equal ids of this run are new, and their incarnation is `LEFT_OVER`, which no process has.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import EnvironmentProblem

LEFT_OVER = -1
"""The incarnation of events that an earlier run has left."""

_BUSY_S = 0.25
"""How long the loop waits for another process that has locked the file. It retries a second later, because it must
send its heartbeat meanwhile."""

_LOG_PAGES = 250
"""The write-ahead log is moved into the file when it has this many pages of 4 kB: that must fit into RESERVE_BYTES."""
RESERVE_BYTES = 2 << 20
"""How much of the disk is reserved for deleting events when it is full."""
SUFFIXES = ("", "-wal", "-shm", "-reserve")
"""The suffixes of the path, for the files that belong together."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE, producer TEXT NOT NULL, camera TEXT NOT NULL,
    epoch INTEGER NOT NULL, seq INTEGER NOT NULL, part INTEGER NOT NULL, time_ns INTEGER NOT NULL,
    incident TEXT NOT NULL, phase TEXT NOT NULL, body BLOB NOT NULL, incarnation INTEGER NOT NULL DEFAULT 0,
    committed_ns INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS pending (
    sink TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (sink, row)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ended (camera TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
DROP INDEX IF EXISTS by_incident;
CREATE INDEX IF NOT EXISTS of_incident ON events (incident);
CREATE INDEX IF NOT EXISTS of_row ON pending (row);
"""
_BY_TIME = "CREATE INDEX IF NOT EXISTS by_time ON events (time_ns, camera, epoch, seq, part, producer)"
_ADDED = ("incarnation", "committed_ns")
"""Columns that files of older versions lack."""
_BEGIN_RUN = """
DELETE FROM ended;
DELETE FROM events WHERE NOT EXISTS (SELECT 1 FROM pending WHERE pending.row = events.row);
UPDATE events SET incarnation = -1;
UPDATE events SET id = 'before ' || row || ' ' || id WHERE id NOT LIKE 'before %';
"""


def open_event_file(path: Path, *, by_time: bool) -> sqlite3.Connection:
    """Open or make the file; `by_time`: some sink wants its events in order of time.

    Raises EnvironmentProblem if that fails.
    """
    db = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only of a file that is made now, before anything is in it
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        db.executescript(_SCHEMA + (_BY_TIME if by_time else ""))
        _migrate(db)
    except (sqlite3.Error, OSError) as error:
        if db is not None:
            db.close()
        raise cannot_open(path, error) from None
    return db


def _migrate(db: sqlite3.Connection) -> None:
    """Add the columns that a file of an older version lacks."""
    there = {row[1] for row in db.execute("PRAGMA table_info(events)")}
    for column in _ADDED:
        if column not in there:
            db.execute(f"ALTER TABLE events ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")


def cannot_open(path: Path, error: Exception) -> EnvironmentProblem:
    """The error if the file cannot be opened."""
    return EnvironmentProblem(
        f"the outbox {path} cannot be opened: {error}: check that the folder is writable and the disk has room"
    )


def begin_run(db: sqlite3.Connection) -> int:
    """Delete delivered events, mark the others as left over, and return their number. Raises sqlite3.Error."""
    with transaction(db):
        for statement in _BEGIN_RUN.split(";"):
            db.execute(statement)
    return int(db.execute("SELECT count(*) FROM events").fetchone()[0])


def remove_delivered(path: Path) -> bool:
    """Remove the file, and SQLite's files beside it, if every event in it was delivered; returns whether it did.

    It does not while another process has the file open: one of a killed run may still be writing its deliveries. Raises
    sqlite3.Error if the file is in use or damaged, and OSError.
    """
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=0)
    try:
        if db.execute("SELECT 1 FROM pending LIMIT 1").fetchone():
            return False
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA journal_mode = DELETE")  # which SQLite refuses while anybody else has the file open
        db.execute("BEGIN EXCLUSIVE")
        if db.execute("SELECT 1 FROM pending LIMIT 1").fetchone():
            return False
        path.unlink()
    finally:
        db.close()
    return True


def checkpoint(db: sqlite3.Connection) -> None:
    """Move the write-ahead log into the file, and truncate the log. Raises sqlite3.Error."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def is_full(error: sqlite3.Error) -> bool:
    """Whether the disk may be full: SQLite says so, or that it cannot write."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Run the block in one transaction, which is on the disk when the block is left without an exception."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
