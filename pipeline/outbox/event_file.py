"""The file of the outbox: its tables, how to open it, and its changes when a run begins.

events     one row for each committed event; `row` counts up and is never used again
pending    (sink, row): the sink wants the event and has not acknowledged it
incidents  those of this run: whether they are over, and the row of their last event
readers    the sinks of the graph, with the stages whose events they want (JSON; none for all), and other sinks of which
           events are pending
ended      cameras that send no more events in this run
run        one row: `first_row`, the first that this run may write; `swept`, up to which delivered events were deleted;
           `open_s`, for how long the outbox was open in all

An id is stored as "<first_row> <id>": so equal ids of two runs are different ones, and a run begins without a change of
the events that earlier ones have left. These are the rows before `first_row`. A requeued event is a new row with the
id "again <key> <id>", which belongs to no process (`NOBODY`).

`PRAGMA user_version` is the version of all this. A file of version 0 is brought up to date; a newer one is refused.
A file without the column `checksum` (`pipeline.outbox.stored_event`) gets it; programs of this version that do not know
it go on with such a file.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from camgraph.pipeline.system.sqlite_file import EMPTY_BYTES, Damaged, Newer, SqliteFile, SqliteFormat, transaction

NOBODY = -1
"""The incarnation of requeued events."""
VERSION = 2
_APPLICATION = 0x63616D67
"""PRAGMA application_id: "camg"."""
_BUSY_S = 0.25
"""How long the loop waits for another process that has locked the file. It retries a second later, because it must
send its heartbeat meanwhile."""

_LOG_PAGES = 250
"""The write-ahead log is moved into the file when it has this many pages of 4 kB: that must fit into RESERVE_BYTES."""
RESERVE_BYTES = 2 << 20
"""How much of the disk is reserved for deleting events when it is full."""
SUFFIXES = ("", "-wal", "-shm", "-reserve", "-damaged", "-new", "-new-wal", "-new-shm")
"""The suffixes of the path, for the files that belong together."""
AGAIN = "again"

LARGEST_ROW = 1 << 62
"""Higher row numbers are a sign of damage."""
_LARGEST_OPEN_S = 1 << 32

Sync = Literal["full", "normal", "none"]
_LEVELS = {"full": "FULL", "normal": "NORMAL", "none": "OFF"}

_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE, producer TEXT NOT NULL, camera TEXT NOT NULL,
    epoch INTEGER NOT NULL, seq INTEGER NOT NULL, part INTEGER NOT NULL, time_ns INTEGER NOT NULL,
    incident TEXT NOT NULL, phase TEXT NOT NULL, body BLOB NOT NULL, incarnation INTEGER NOT NULL DEFAULT 0,
    committed_ns INTEGER NOT NULL DEFAULT 0, waits_from_s INTEGER NOT NULL DEFAULT 0,
    checksum INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS pending (
    sink TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (sink, row)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ended (camera TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS incidents (
    incident TEXT PRIMARY KEY, producer TEXT NOT NULL, camera TEXT NOT NULL, incarnation INTEGER NOT NULL,
    row INTEGER NOT NULL, over INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS readers (sink TEXT PRIMARY KEY, producers TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run (
    one INTEGER PRIMARY KEY CHECK (one = 1), first_row INTEGER NOT NULL, swept INTEGER NOT NULL, open_s INTEGER NOT NULL
) STRICT;
INSERT OR IGNORE INTO run VALUES (1, 1, 0, 0);
"""
_AWAITED_S = 7 * 86_400
"""Later nobody waits for the end of an incident: the file of a graph that is not run again would stay for ever."""
_BY_TIME = "CREATE INDEX IF NOT EXISTS by_time ON events (time_ns, camera, epoch, seq, part, producer)"
_ADDED = ("incarnation", "committed_ns", "waits_from_s", "checksum")
"""Columns that files of older versions lack."""
_OF_OLDER = ("by_incident", "of_incident", "of_row")
"""Indexes that older versions need, and this one does without."""
_NEW_TABLES = {"incidents", "readers", "run"}
_NEXT_ROW = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0) + 1"
_BEGIN_RUN = (
    "DELETE FROM ended",
    "DELETE FROM incidents",
    f"UPDATE run SET first_row = {_NEXT_ROW}",  # noqa: S608 - made of constants
)
# From one name to the next, along the index: as cheap as there are sinks, however much is pending. UNION, because a
# damaged index may lead in a circle.
PENDING_SINKS = """
WITH RECURSIVE named(sink) AS (
    SELECT min(sink) FROM pending
    UNION SELECT (SELECT min(sink) FROM pending WHERE pending.sink > named.sink) FROM named WHERE sink IS NOT NULL
) SELECT sink FROM named WHERE sink IS NOT NULL
"""
NOTE_READER = "INSERT OR IGNORE INTO readers VALUES (?, '[]')"
"""For a sink that the graph does not have: whatever is pending for a sink without a row there would be forgotten."""
READERS = "SELECT sink FROM readers"


class RunRow(NamedTuple):
    """The row of `run`."""

    first_row: int
    swept: int
    open_s: int


def event_file(path: Path, *, sync: Sync = "full", busy_s: float = _BUSY_S) -> SqliteFile:
    """The file at this path, not open yet. `busy_s`: how long to wait for another process that has locked it."""
    level = _LEVELS[sync]
    pragmas = ("journal_mode = WAL", f"synchronous = {level}", f"wal_autocheckpoint = {_LOG_PAGES}")
    return SqliteFile(path, _FORMAT, busy_s=busy_s, pragmas=pragmas)


def open_event_file(path: Path, *, by_time: bool, sync: Sync = "full", busy_s: float = _BUSY_S) -> SqliteFile:
    """Open or make the file; `by_time`: some sink wants its events in order of time.

    Raises Damaged, sqlite3.Error and OSError, and EnvironmentProblem for a file of a newer version.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size <= EMPTY_BYTES:
        raise Damaged("it is empty: the events that were in it are lost")
    file = event_file(path, sync=sync, busy_s=busy_s)
    file.open()
    try:
        if by_time:
            file.db.execute(_BY_TIME)
    except BaseException:
        file.close()
        raise
    return file


def _make(db: sqlite3.Connection) -> None:
    for statement in _SCHEMA.split(";"):
        db.execute(statement)


def _is_whole(db: sqlite3.Connection) -> bool:
    """False for a file that a program has made which did not know all of this version."""
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return tables >= _NEW_TABLES and _columns(db).issuperset(_ADDED)


def _columns(db: sqlite3.Connection) -> set[str]:
    return {row[1] for row in db.execute("PRAGMA table_info(events)")}


def _bring_up_to_date(db: sqlite3.Connection, version: int) -> None:
    _make(db)
    for column in _ADDED:
        if column not in _columns(db):
            db.execute(f"ALTER TABLE events ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
    db.executemany(NOTE_READER, [(sink,) for sink in pending_sinks(db)])
    for index in _OF_OLDER:
        db.execute(f"DROP INDEX IF EXISTS {index}")
    if version < VERSION:
        # A file that lacks a column alone may be in use: its rows stay those of the run that goes on.
        db.execute(f"UPDATE run SET first_row = {_NEXT_ROW}")  # noqa: S608 - made of constants


_FORMAT = SqliteFormat(
    name="the outbox",
    version=VERSION,
    tables=frozenset({"events", "pending", "ended"}),
    make=_make,
    application=_APPLICATION,
    older=frozenset({(0, 0), *((_APPLICATION, version) for version in range(VERSION))}),
    upgrade=_bring_up_to_date,
    is_whole=_is_whole,
    newer=Newer(error_id="outbox-newer", way_out="move the file away, and its events wait until you move it back"),
    of_new=("auto_vacuum = INCREMENTAL",),  # of a file that has something in it, it would write a page
)


def run_row(db: sqlite3.Connection) -> RunRow:
    """Raises sqlite3.Error."""
    values = db.execute("SELECT first_row, swept, open_s FROM run WHERE one = 1").fetchone()
    if not values or set(map(type, values)) != {int}:
        raise Damaged("nothing is known about its run")
    return RunRow(*values)


def pending_sinks(db: sqlite3.Connection) -> list[str]:
    """The sinks of which events are pending, by name. Raises sqlite3.Error."""
    return sorted(map(require_sink, (name for (name,) in db.execute(PENDING_SINKS))))


def require_sink(name: object) -> str:
    """The name of a sink. Raises Damaged for a value that no stage can have as its name."""
    if not isinstance(name, str) or not name.isprintable() or "/" in name or not name:
        raise Damaged("a sink has no name")
    return name


def require_sound(db: sqlite3.Connection, sinks: Collection[str]) -> None:
    """Check what a damaged page can do to the lists without an error of SQLite, at no cost that grows with the events.

    `sinks`: those of the graph. The list of what waits is read as a whole, as it is when it is counted. Raises
    sqlite3.Error.
    """
    found = db.execute("PRAGMA quick_check(pending)").fetchone()[0]
    if found != "ok":
        raise Damaged(f"the list of waiting events is damaged: {found}")
    known = {name for (name,) in db.execute(READERS)}
    for sink in pending_sinks(db):
        if known and sink not in known and sink not in sinks:
            raise Damaged(f"events wait for {sink}, a sink that the run did not have")
        if db.execute("SELECT 1 FROM pending WHERE sink = ? AND row < 1", (sink,)).fetchone():
            raise Damaged(f"an event that waits for {sink} has no number")
    run = run_row(db)
    seq, last = db.execute(
        "SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'events'), (SELECT max(row) FROM events)"
    ).fetchone()
    counted = 0 if seq is None else seq
    if type(counted) is not int or not (last or 0) <= counted < LARGEST_ROW:
        raise Damaged("the number of its last event is wrong")
    is_run = 1 <= run.first_row <= counted + 1 and 0 <= run.swept <= counted and 0 <= run.open_s < _LARGEST_OPEN_S
    if not is_run:
        raise Damaged("the facts about its run are wrong")


def last_row(db: sqlite3.Connection) -> int:
    """The last row that was ever written. Raises sqlite3.Error."""
    return int(db.execute(f"SELECT {_NEXT_ROW} - 1").fetchone()[0])


def begin_run(db: sqlite3.Connection) -> None:
    """From now on, all events in the file are left over. As cheap for a million of them as for one.

    Raises sqlite3.Error.
    """
    with transaction(db):
        for statement in _BEGIN_RUN:
            db.execute(statement)


def next_row(db: sqlite3.Connection) -> int:
    """The row of the next event that is committed. Raises sqlite3.Error."""
    return int(db.execute(f"SELECT {_NEXT_ROW}").fetchone()[0])


def note_sinks(db: sqlite3.Connection, sinks: Mapping[str, Sequence[str]]) -> None:
    """These are the sinks of the graph, with the stages whose events they want. Raises sqlite3.Error."""
    with transaction(db):
        db.execute("DELETE FROM readers")
        rows = [(sink, json.dumps(list(producers))) for sink, producers in sinks.items()]
        db.executemany("INSERT INTO readers VALUES (?, ?)", rows)
        db.executemany(NOTE_READER, [(sink,) for sink in pending_sinks(db)])


def note_live(db: sqlite3.Connection, *, live: bool) -> None:
    """Whether the next run has to end what this one leaves open. Raises sqlite3.Error."""
    db.execute("CREATE TABLE IF NOT EXISTS live (one INTEGER) STRICT" if live else "DROP TABLE IF EXISTS live")


def _has_incidents_to_end(db: sqlite3.Connection, path: Path) -> bool:
    """Whether the next run of live cameras has incidents to end here, and it is not too late for that."""
    is_live = db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'live'").fetchone()
    written = [Path(f"{path}{suffix}") for suffix in ("", "-wal")]
    written_s = max(one.stat().st_mtime for one in written if one.exists())
    is_awaited = is_live and time.time() - written_s < _AWAITED_S
    return bool(is_awaited and db.execute("SELECT 1 FROM incidents WHERE NOT over").fetchone())


def shown_id(row: int, stored: str, first_row: int) -> str:
    """The id under which a sink gets the event of this row."""
    kind, _, own = stored.rpartition(" ")
    if kind.startswith(AGAIN):
        return f"{AGAIN} {row} {own}"
    return f"before {row} {own}" if row < first_row else own


def remove_delivered(path: Path) -> bool:
    """Remove the file, and SQLite's files beside it, if every event in it was delivered; returns whether it did.

    It does not if the next run of live cameras has incidents to end there, nor while another process has the file open:
    one of a killed run may still be writing its deliveries. Raises sqlite3.Error if the file is in use or damaged, and
    OSError.
    """
    return event_file(path).remove_unless(lambda db: _has_pending(db) or _has_incidents_to_end(db, path))


def remove_unused(path: Path) -> bool:
    """As `remove_delivered`, if the file never had an event: its run was refused when it began."""
    return event_file(path).remove_unless(lambda db: db.execute(f"SELECT {_NEXT_ROW}").fetchone()[0] > 1)


def _has_pending(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM pending LIMIT 1").fetchone() is not None
