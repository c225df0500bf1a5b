"""The events of the last weeks, in SQLite: what the service has been given, for those who ask later.

    events: one row an event, numbered upwards for ever; `number` is what pages and streams go on from

The outbox keeps an event until it is committed here, and may give it again: an event that is there already, by its
`id`, is left as it is. A damaged file, or one of another version, is set aside, and a new one is begun: the history
is for looking back, and no event waits for it. On a full disk events wait, as they do for other sinks.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pipeline.errors import Unavailable
from pipeline.messages import Event
from pipeline.stage import Logger
from stages.delivery.event_view import view_of

DAMAGED = ".damaged"
_VERSION = 1
_BUSY_S = 3.0
_TEND_S = 60.0
_PIECE = 2000
"""Events that are removed in one transaction."""
_NOT_NOW = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_NOMEM,
)
_TABLES = (
    "CREATE TABLE events (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, type TEXT, camera TEXT, rule TEXT, "
    "action TEXT, phase TEXT, time_s REAL, body BLOB)",
    "CREATE INDEX by_camera ON events (camera, number)",
    f"PRAGMA user_version = {_VERSION}",
)
_PUT = "INSERT OR IGNORE INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)"
_OLDEST = "DELETE FROM events WHERE number IN (SELECT number FROM events ORDER BY number LIMIT ?)"


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are asked for; by default all of them. `rule`: the rule, or its action."""

    camera: str | None = None
    rule: str | None = None
    type: str | None = None
    phase: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None
    """Those alone that have a lower number: the next page, from the newest on."""


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """`event`: the CloudEvent, as a plain object."""

    number: int
    event: dict[str, Any]


class EventHistory:
    """`add` is for one thread; all else may be called from any."""

    def __init__(self, path: Path, log: Logger, *, keep_s: float, keep_bytes: float) -> None:
        self.path = path
        self._log = log
        self._keep_s, self._keep_bytes = keep_s, keep_bytes
        self._tend_at_s = 0.0
        self._db: sqlite3.Connection | None = None
        self._told: set[Callable[[], object]] = set()
        self._telling = threading.Lock()

    # ---- the stage's side

    def add(self, events: Sequence[Event]) -> None:
        """They are committed when this returns. Raises Unavailable while the disk does not take them."""
        try:
            self._add(events)
        except sqlite3.Error as error:
            self.close()
            if _is_damage(error) and self._set_aside(error):
                return self.add(events)
            raise Unavailable(f"{self.path}: {error}") from None
        with self._telling:
            told = tuple(self._told)
        for tell in told:
            tell()
        return None

    def close(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
            self._db = None

    def _add(self, events: Sequence[Event]) -> None:
        if self._db is None:
            self._db = _opened(self.path)
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany(
                "INSERT OR IGNORE INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", map(_row, events)
            )
            if time.monotonic() >= self._tend_at_s:
                self._tend_at_s = time.monotonic() + _TEND_S
                self._remove_old(self._db)
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    def _remove_old(self, db: sqlite3.Connection) -> None:
        """One piece: the rest comes with later events, which are fewer than the piece."""
        db.execute(f"{_OLDEST} AND time_s < ?", (_PIECE, time.time() - self._keep_s))
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
        if (pages - free) * size > self._keep_bytes:
            db.execute(_OLDEST, (_PIECE,))

    def _set_aside(self, why: sqlite3.Error) -> bool:
        """Whether there is room for a new one."""
        try:
            for end in ("", "-wal", "-shm"):
                part = self.path.with_name(self.path.name + end)
                if part.exists() or part.is_symlink():
                    part.replace(self.path.with_name(f"{self.path.name}{end}{DAMAGED}"))
        except OSError:
            return False
        self._log.warning("history_begins_anew", path=str(self.path), why=str(why))
        return True

    # ---- those who ask

    @contextmanager
    def telling(self, tell: Callable[[], object]) -> Iterator[None]:
        """Call `tell`, in another thread, whenever there are new events."""
        with self._telling:
            self._told.add(tell)
        try:
            yield
        finally:
            with self._telling:
                self._told.discard(tell)

    def newest(self) -> int:
        """The number of the newest event; 0 if there was none yet."""
        rows = self._asked("SELECT seq FROM sqlite_sequence WHERE name = 'events'", ())
        return int(rows[0][0]) if rows else 0

    def after(self, number: int, most: int) -> list[KeptEvent]:
        """Events with higher numbers, the oldest first."""
        return self._kept("SELECT number, body FROM events WHERE number > ? ORDER BY number LIMIT ?", (number, most))

    def page(self, wanted: EventFilter, most: int) -> list[KeptEvent]:
        """Those that fit, the newest first."""
        since, until = (at.timestamp() if at else None for at in (wanted.since, wanted.until))
        conditions = [
            ("camera = ?", wanted.camera),
            ("? IN (rule, action)", wanted.rule),
            ("type = ?", wanted.type),
            ("phase = ?", wanted.phase),
            ("time_s >= ?", since),
            ("time_s < ?", until),
            ("number < ?", wanted.before),
        ]
        given = [(text, value) for text, value in conditions if value is not None]
        which = " AND ".join(text for text, _ in given) or "1"
        query = f"SELECT number, body FROM events WHERE {which} ORDER BY number DESC LIMIT ?"  # noqa: S608 - constants
        return self._kept(query, (*(value for _, value in given), most))

    def _kept(self, query: str, values: tuple[object, ...]) -> list[KeptEvent]:
        return [KeptEvent(number, json.loads(body)) for number, body in self._asked(query, values)]

    def _asked(self, query: str, values: tuple[object, ...]) -> list[Any]:
        """Nothing if there is no file yet. Raises Unavailable if it cannot be read now."""
        if not self.path.exists():
            return []
        place = f"file:{quote(str(self.path.absolute()))}?mode=ro"
        try:
            with closing(sqlite3.connect(place, uri=True, timeout=_BUSY_S)) as db:
                return db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise Unavailable(f"the history of events cannot be read now: {error}") from None


def _opened(path: Path) -> sqlite3.Connection:
    """Raises sqlite3.Error."""
    db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version not in (0, _VERSION) or (version == 0 and tables):
            raise sqlite3.DatabaseError(f"it has the version {version}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        if not version:
            db.execute("BEGIN IMMEDIATE")
            for command in _TABLES:
                db.execute(command)
            db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


def _row(event: Event) -> tuple[object, ...]:
    view = view_of(event)
    type_ = str(view.body.get("type", ""))
    time_s = view.wall_ns / 1e9 or time.time()
    texts = (event.id, type_, view.camera, view.rule, view.action, view.phase)
    return (*(text.encode(errors="replace").decode() for text in texts), time_s, bytes(event.body))


def _is_damage(error: sqlite3.Error) -> bool:
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in _NOT_NOW
