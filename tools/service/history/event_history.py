"""The events of a run, in an SQLite file: pages of them for people, and the newest ones for those who listen.

    history.sqlite    events: number, id, kept_s, camera, rule, action, type, phase, incident, time_ms
                      bodies: number, body            apart, so that a search reads the narrow table alone

One thread adds. A batch is one transaction, on the disk before the events count as delivered; an event that comes
again is known by its id. Who reads has a connection of its own and sees the file as it was at one moment, so neither
waits for the other (WAL). The newest events are also in memory, for all who listen.

Numbers only grow. The oldest events go first, a hundred at a time. A file of an older version is taken over; one of a
newer version is left alone, and the run learns it. A file that is damaged, or of another program, is set aside, and a
new one begins, with numbers beyond any that the old one can have had.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from camgraph.pipeline.errors import EnvironmentProblem, Unavailable
from camgraph.pipeline.messages import Event
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.sqlite_file import Damaged, Newer, SqliteFile, SqliteFormat, transaction, way_out
from camgraph.stages.sinks.delivery.event_view import view_of

T = TypeVar("T")

_MOST_ASIDE = 5
"""Damaged files that stay: the first, which has the most in it, and the last ones."""
_VERSION = 4
_APPLICATION = 0x63676869  # "cghi": of files since version 4
_BUSY_S = 5.0
_PIECE = 100
"""Events that are removed at once."""
_MOST_PIECES = 50
_TIDY_S = 60.0
_STEP_S = 60.0
"""A clock that differs by more was set."""
_RECENT, _RECENT_BYTES = 1000, 4 << 20
"""Of the newest events that are kept in memory."""
_WAL_BYTES = 16 << 20
_LONGEST_FACT = 200
_EVENTS = (
    "CREATE TABLE events (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, kept_s REAL, camera TEXT, "
    "rule TEXT, action TEXT, type TEXT, phase TEXT, incident TEXT, time_ms INTEGER)"
)
_BODIES = "CREATE TABLE bodies (number INTEGER PRIMARY KEY, body BLOB)"
_BY_INCIDENT = "CREATE INDEX by_incident ON events (incident)"
_INDEXES = tuple(
    # Rows with the same value are in the order of their numbers: a page is read from its place, and nothing is sorted.
    f"CREATE INDEX by_{column} ON events ({column})"
    for column in ("camera", "rule", "action", "type", "phase")
)
_TABLES = (_EVENTS, _BODIES, _BY_INCIDENT, *_INDEXES)
_FROM_1 = (
    "ALTER TABLE events RENAME TO old",
    "DROP INDEX by_camera",
    "UPDATE sqlite_sequence SET name = 'events' WHERE name = 'old'",
    _EVENTS,
    _BODIES,
    "INSERT INTO bodies SELECT number, body FROM old",
    "INSERT INTO events SELECT number, id, time_s, camera, rule, action, type, phase, incident_of(body), "
    "CAST(time_s * 1000 AS INTEGER) FROM old",
    "DROP TABLE old",
)
_FROM_2 = (
    "ALTER TABLE events ADD COLUMN incident TEXT",
    "UPDATE events SET incident = (SELECT incident_of(body) FROM bodies WHERE bodies.number = events.number)",
)
_UPGRADES = {
    1: (*_FROM_1, _BY_INCIDENT, *_INDEXES),
    2: (*_FROM_2, _BY_INCIDENT, *_INDEXES),
    3: _INDEXES,
}
_PUT = (  # `INSERT OR IGNORE` would use up a number
    "INSERT INTO events (id, kept_s, camera, rule, action, type, phase, incident, time_ms) "
    "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM events WHERE id = ?)"
)
_START_TYPE, _END_TYPE = "camgraph.incident.start", "camgraph.incident.end"
_FIRST_TYPES = f"('{_START_TYPE}', 'camgraph.incident.single')"
_HAS_FIRST = (
    "SELECT DISTINCT incident FROM events "  # noqa: S608 - made of constants
    f"WHERE incident IN (SELECT value FROM json_each(?)) AND +type IN {_FIRST_TYPES}"
)
_WITH_BODY = "SELECT number, body FROM bodies"
_NEWER = "SELECT number, body, type, incident FROM bodies JOIN events USING (number) WHERE number > ? ORDER BY number"
_GO_ON = (
    "SELECT incident, number FROM events AS first WHERE type = ? AND NOT EXISTS "
    "(SELECT 1 FROM events AS last WHERE last.incident = first.incident AND +last.type = ?)"
)
_OF_THESE = "number IN (SELECT value FROM json_each(?))"
_WITH_ENDS = (
    "SELECT first.number, first.kept_s, bodies.number, bodies.body FROM events AS first "
    "LEFT JOIN events AS last ON last.incident = first.incident AND +last.type = ? "
    "LEFT JOIN bodies ON bodies.number = last.number WHERE first.number IN (SELECT value FROM json_each(?))"
)


Condition = tuple[str, object]
"""With one place, and its value."""


class KeptEvent(NamedTuple):
    """`body`: the CloudEvent, one line of JSON."""

    number: int
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        """As a plain object."""
        plain: dict[str, Any] = json.loads(self.body)
        return plain


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


class KeptIncident(NamedTuple):
    """Its first event, when that was kept (seconds since 1970), and its end; None while it goes on."""

    first: KeptEvent
    kept_s: float
    last: KeptEvent | None


class _SetAside(Unavailable):
    """It was damaged, and there is room for a new one."""


class EventHistory:
    """See the module. `add` belongs to one thread; all else may be called from any."""

    def __init__(self, path: Path, log: Logger, *, keep_s: float, keep_bytes: float) -> None:
        self.path, self._log = Path(os.path.realpath(path)), log  # beside it, SQLite writes more files
        form = replace(_FORMAT, make=self._make)
        self._file = SqliteFile(self.path, form, busy_s=_BUSY_S, pragmas=_PRAGMAS, is_shared=True)
        self._keep_s, self._keep_bytes = keep_s, keep_bytes
        self._writing = threading.Lock()
        self._recent: deque[KeptEvent] = deque()
        self._recent_bytes = 0
        self._newest = 0
        self._recent_after: int | None = None
        """All events with higher numbers are in `_recent`; None before the file was opened."""
        self._going_on: dict[str, int] = {}
        """Incidents without an end, and the numbers of their first events; also those of earlier runs that died."""
        self._reading = threading.Lock()
        """Over the four above."""
        self._listeners: set[Callable[[], object]] = set()
        self._listening = threading.Lock()
        self.is_over = False
        """Nobody needs to listen any more."""
        self._over, self._wake = False, threading.Event()
        self._clock_ahead_s: float | None = None
        """The clock, less the one that nobody sets, when it was looked at last; None before that."""
        self._kept_before = 0
        """The number of the last event that an earlier process kept."""
        self._is_suspect = False
        """Somebody could not read it."""
        self._why = ""
        self._said_broken = False
        self._tidier = threading.Thread(target=self._tidy, name="history", daemon=True)

    # ---- the thread that adds

    def open(self) -> None:
        """Raises Unavailable if the disk does not allow it now: `add` tries again.

        Raises EnvironmentProblem for a file of a newer version.
        """
        try:
            self._prepare_file()
            self._kept_before = self._newest
        finally:
            self._tidier.start()

    def _prepare_file(self) -> None:
        with suppress(_SetAside), self._changing():
            return
        with self._changing():
            pass

    def add(self, events: Sequence[Event]) -> None:
        """They are on the disk when this returns. Raises Unavailable while the disk does not take them."""
        try:
            self._add(events)
        except _SetAside:
            self._add(events)
        self._notify()

    def _add(self, events: Sequence[Event]) -> None:
        with self._changing() as db:
            for event in events:
                if db.execute(_PUT, _row(event)).rowcount:
                    db.execute("INSERT INTO bodies VALUES (last_insert_rowid(), ?)", (bytes(event.body),))
        with self._changing() as db:
            # By what the file has, for a commit that failed may have been made all the same.
            rows = db.execute(_NEWER, (self._newest,)).fetchall()
            if any(type(body) is not bytes for _, body, _, _ in rows):
                raise Damaged("an event has no body")
            self._learn(rows)
            for _ in range(_MOST_PIECES):
                if not self._is_too_large(db) or not self._remove_piece(db, math.inf):
                    break

    def _notify(self) -> None:
        with self._listening:
            listeners = tuple(self._listeners)
        for notify in listeners:
            notify()

    def _learn(self, rows: Sequence[tuple[int, bytes, str, str]]) -> None:
        with self._reading:
            for number, body, kind, incident in rows:
                self._recent.append(KeptEvent(number, body))
                self._recent_bytes += len(body)
                self._newest = number
                if kind == _START_TYPE:
                    self._going_on[incident] = number
                elif kind == _END_TYPE:
                    self._going_on.pop(incident, None)
            while len(self._recent) > _RECENT or self._recent_bytes > _RECENT_BYTES:
                gone = self._recent.popleft()
                self._recent_bytes -= len(gone.body)
                self._recent_after = gone.number

    def close(self) -> None:
        self._over = True
        self._wake.set()
        if self._tidier.ident is not None:
            self._tidier.join()
        with self._writing:
            self._file.close()

    # ---- those who ask

    @contextmanager
    def listening(self, notify: Callable[[], object]) -> Iterator[None]:
        """Call `notify`, in another thread, whenever there are new events, and when it is over."""
        with self._listening:
            self._listeners.add(notify)
        try:
            yield
        finally:
            with self._listening:
                self._listeners.discard(notify)

    def end(self) -> None:
        """Tell all who listen that it is over."""
        self.is_over = True
        self._notify()

    def newest(self) -> int:
        """The number of the newest event; 0 if there was none yet. Raises EnvironmentProblem."""
        with self._reading:
            if self._recent_after is not None:
                return self._newest
        rows = self._asked("SELECT seq FROM sqlite_sequence WHERE name = 'events'", ())
        return rows[0][0] if rows and type(rows[0][0]) is int else 0

    def recent(self, number: int, most: int) -> list[KeptEvent] | None:
        """As `after`, without the disk; None if memory does not reach back so far."""
        with self._reading:
            if self._recent_after is None or number < self._recent_after:
                return None
            found = (one for one in self._recent if one.number > number)
            return list(itertools.islice(found, most))

    def after(self, number: int, most: int) -> list[KeptEvent]:
        """Events with higher numbers, the oldest first. Raises EnvironmentProblem."""
        return self._kept(f"{_WITH_BODY} WHERE number > ? ORDER BY number LIMIT ?", (number, most))

    def page(self, wanted: EventFilter, most: int) -> list[KeptEvent]:
        """Those that fit, the newest first. Raises EnvironmentProblem."""
        return self._fitting(wanted, _conditions(wanted), most)

    def incidents(
        self,
        wanted: EventFilter,
        most: int,
        *,
        incident: str | None = None,
        before: str | None = None,
        going_on: bool = False,
    ) -> list[KeptIncident]:
        """Those whose first events fit, the newest first; or this one alone. Raises EnvironmentProblem.

        `going_on`: those alone that have no end.
        """
        # `+`: most events are of these types, so that their index would be the slow way.
        conditions = [*_conditions(wanted), (f"+type IN {_FIRST_TYPES} AND +incident != ?", "")]
        if incident is not None:
            conditions.append(("incident = ?", _fact(incident)))
        if before is not None:
            conditions.append(("number < (SELECT min(number) FROM events WHERE incident = ?)", _fact(before)))
        if going_on:
            conditions.append((_OF_THESE, json.dumps(self._without_end())))
        first = self._fitting(wanted, conditions, most)
        numbers = json.dumps([one.number for one in first])
        ends = {row[0]: row[1:] for row in self._asked(_WITH_ENDS, (_END_TYPE, numbers))} if first else {}
        found = [(one, *ends[one.number]) for one in first if one.number in ends]
        kept = [KeptIncident(one, kept_s, KeptEvent(*end) if end[0] else None) for one, kept_s, *end in found]
        return self._intact(kept, _is_incident)

    def has_incidents(self, names: Sequence[str]) -> set[str]:
        """Those of these whose first events are there. Raises EnvironmentProblem."""
        if not names:
            return set()
        found = {name for (name,) in self._asked(_HAS_FIRST, (json.dumps([*map(_fact, names)]),))}
        return {name for name in names if _fact(name) in found}

    def _without_end(self) -> list[int]:
        """The first events of incidents that go on, from memory: the file would be searched in vain each time."""
        with self._reading:
            if self._recent_after is not None:
                return list(self._going_on.values())
        if not self.path.exists():
            return []
        raise EnvironmentProblem("the history of events cannot be read now: it is not open", error_id="cannot-read")

    def _fitting(self, wanted: EventFilter, conditions: Sequence[Condition], most: int) -> list[KeptEvent]:
        query, values = fitting_query(wanted, conditions, most)
        return self._kept(query, values)

    def _kept(self, query: str, values: tuple[object, ...]) -> list[KeptEvent]:
        return self._intact([KeptEvent(*row) for row in self._asked(query, values)], _is_event)

    def _intact(self, kept: Sequence[T], is_intact: Callable[[T], bool]) -> list[T]:
        """Without those whose values were changed, of which SQLite knows nothing. Says so once."""
        intact = [one for one in kept if is_intact(one)]
        if len(intact) < len(kept) and not self._said_broken:
            self._said_broken = True
            self._log.warning("history_events_left_out", path=str(self.path), why="the file is damaged")
        return intact

    def _asked(self, query: str, values: tuple[object, ...]) -> list[Any]:
        """Nothing if there is no file yet. Raises EnvironmentProblem if it cannot be read now."""
        if not self.path.exists():
            return []
        try:
            with self._file.reading() as db:
                return db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            # Perhaps the thread that adds events never comes to the damaged place.
            self._is_suspect = True
            self._wake.set()
            raise EnvironmentProblem(
                f"the history of events cannot be read now: {error}", error_id="cannot-read"
            ) from None

    # ---- the file

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """A transaction. Raises Unavailable; nothing is changed then, and a damaged file is set aside.

        Raises EnvironmentProblem for a file of a newer version.
        """
        with self._writing:
            try:
                if not self._file.is_open:
                    self._open_file()
                with transaction(self._file.db):
                    yield self._file.db
            except sqlite3.Error as error:
                self._fail(error)
            except BaseException:
                self._file.close()
                raise

    def _fail(self, error: sqlite3.Error) -> None:
        """Raises Unavailable."""
        why = self._file.why_damaged(error)
        self._file.close()
        if why and self._set_aside(why):
            raise _SetAside(f"{self.path}: {error}", error_id="cannot-write") from None
        raise Unavailable(f"{self.path}: {error}: {way_out(error)}", error_id="cannot-write") from None

    def _open_file(self) -> None:
        """Raises sqlite3.Error, and EnvironmentProblem for a file of a newer version."""
        file = self._file
        file.open()
        if file.upgraded_from is not None:
            known = {"path": str(self.path), "from_version": file.upgraded_from, "to_version": _VERSION}
            self._log.info("history_upgraded", **known)
        newest = file.db.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'events'").fetchone()[0] or 0
        if type(newest) is not int:
            raise Damaged("the number of its last event is wrong")
        with self._reading:
            if self._recent_after is None or newest != self._newest:
                self._recent.clear()
                self._recent_bytes, self._recent_after, self._newest = 0, newest, newest
                self._going_on = dict(file.db.execute(_GO_ON, (_START_TYPE, _END_TYPE)).fetchall())

    def _make(self, db: sqlite3.Connection) -> None:
        """Numbers begin beyond any that a file which was set aside can have had."""
        _make(db)
        if self._file.asides():
            first = max(self._newest, int(time.time() * 1000))
            db.execute("INSERT INTO sqlite_sequence VALUES ('events', ?)", (first,))

    def _set_aside(self, why: str) -> bool:
        """Whether there is room for a new one."""
        try:
            aside = self._file.set_aside()
        except OSError:
            return False
        self._log.warning("history_begins_anew", path=str(self.path), why=why, kept=aside.name)
        return True

    # ---- what is old

    def _tidy(self) -> None:
        while not self._over:
            self._wake.clear()
            try:
                if self._is_suspect:
                    self._check()
                self._follow_clock()
                while self._removed_by_age() and not self._over:
                    pass
                self._why = ""
            except (Unavailable, EnvironmentProblem) as error:
                if str(error) != self._why:
                    self._log.warning("history_not_tidied", why=str(error))
                self._why = str(error)
            self._wake.wait(_TIDY_S)

    def _check(self) -> None:
        """Raises Unavailable if it is damaged; then it was set aside."""
        self._is_suspect = False
        with self._changing() as db:
            # A quick check does not compare the indexes with the table, and readers go by them.
            if (found := db.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
                raise Damaged(f"it is damaged: {found}")

    def _follow_clock(self) -> None:
        """If the clock was set, what was kept by the wrong one gets a right time: it would go at once, or never."""
        ahead_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        step_s = ahead_s - self._clock_ahead_s if self._clock_ahead_s is not None else 0.0
        if self._clock_ahead_s is not None and abs(step_s) < _STEP_S:
            return
        latest_s = time.time() + _STEP_S
        with self._changing() as db:
            if step_s > 0:
                own = (step_s, self._kept_before, latest_s - step_s)
                db.execute("UPDATE events SET kept_s = kept_s + ? WHERE number > ? AND kept_s < ?", own)
            db.execute("UPDATE events SET kept_s = ? WHERE kept_s > ?", (time.time(), latest_s))
        self._clock_ahead_s = ahead_s

    def _removed_by_age(self) -> int:
        # Not by a clock that was set since `_follow_clock`.
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME) + (self._clock_ahead_s or 0.0)
        with self._changing() as db:
            return self._remove_piece(db, now_s - self._keep_s)

    def _remove_piece(self, db: sqlite3.Connection, before_s: float) -> int:
        """Of the oldest ones, those that were kept before this time. Returns how many."""
        rows = db.execute("SELECT number, kept_s FROM events ORDER BY number LIMIT ?", (_PIECE,)).fetchall()
        if any(type(kept_s) is not float for _, kept_s in rows):
            raise Damaged("an event lacks the time when it was kept")
        going = [(number,) for number, kept_s in rows if kept_s < before_s]
        for table in ("bodies", "events"):
            db.executemany(f"DELETE FROM {table} WHERE number = ?", going)  # noqa: S608 - constants
        if going:
            with self._reading:
                self._going_on = {name: n for name, n in self._going_on.items() if n > going[-1][0]}
            db.execute(f"PRAGMA incremental_vacuum({_PIECE})").fetchall()
        return len(going)

    def _is_too_large(self, db: sqlite3.Connection) -> bool:
        pages, free, size = (
            db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return bool((pages - free) * size > self._keep_bytes)


def _make(db: sqlite3.Connection) -> None:
    for command in _TABLES:
        db.execute(command)


def _upgrade(db: sqlite3.Connection, version: int) -> None:
    db.create_function("incident_of", 1, _incident_of, deterministic=True)
    for command in _UPGRADES[version]:
        db.execute(command)


_FORMAT = SqliteFormat(
    name="the history",
    version=_VERSION,
    tables=frozenset({"events"}),
    make=_make,
    application=_APPLICATION,
    older=frozenset((0, version) for version in _UPGRADES),
    upgrade=_upgrade,
    newer=Newer(error_id="history-newer", way_out="move the file away, and a new one begins"),
    of_new=("auto_vacuum = INCREMENTAL",),
    is_private=True,
    most_aside=_MOST_ASIDE,
)
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", f"journal_size_limit = {_WAL_BYTES}")


def _is_event(kept: KeptEvent) -> bool:
    with suppress(ValueError, RecursionError):
        return type(kept.number) is int and type(kept.body) is bytes and isinstance(json.loads(kept.body), dict)
    return False


def _is_incident(kept: KeptIncident) -> bool:
    return type(kept.kept_s) is float and (kept.last is None or _is_event(kept.last))


def _row(event: Event) -> tuple[object, ...]:
    """All facts are those of the body."""
    view = view_of(event)
    kind, facts = view.body.get("type", ""), (view.camera, view.rule, view.action)
    texts = [_fact(text) for text in (*facts, kind, view.phase, view.incident)]
    return (event.own_id, time.time(), *texts, view.wall_ns // 1_000_000, event.own_id)


def _fact(value: object) -> str:
    """A database does not take half a character."""
    return str(value)[:_LONGEST_FACT].encode(errors="replace").decode()


def _incident_of(body: bytes) -> str:
    """ "" for a body that names none."""
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        return _fact(json.loads(body)["data"]["incident"])
    return ""


def fitting_query(wanted: EventFilter, conditions: Sequence[Condition], most: int) -> tuple[str, tuple[object, ...]]:
    """The newest events that fit, and the values of its places.

    A rule and an action are looked for one after the other, each by its index, which has them in order.
    """
    ways: list[Sequence[Condition]] = [conditions]
    if wanted.rule is not None:
        ways = [[*conditions, ("rule = ?", wanted.rule)], [*conditions, ("action = ?", wanted.rule)]]
    parts, values = [], list[object]()
    for way in ways:
        which = " AND ".join(text for text, _ in way) or "1"
        parts.append(f"SELECT * FROM (SELECT number FROM events WHERE {which} ORDER BY number DESC LIMIT ?)")  # noqa: S608
        values += [*(value for _, value in way), most]
    inner = " UNION ".join(parts)
    return f"{_WITH_BODY} WHERE number IN ({inner}) ORDER BY number DESC LIMIT ?", (*values, most)


def _conditions(wanted: EventFilter) -> list[Condition]:
    """Without that of its rule."""
    since, until = (at.timestamp() * 1000 if at else None for at in (wanted.since, wanted.until))
    conditions = [
        ("camera = ?", wanted.camera),
        ("type = ?", wanted.type),
        ("phase = ?", wanted.phase),
        ("time_ms >= ?", since),
        ("time_ms < ?", until),
        ("number < ?", wanted.before),
    ]
    return [(text, value) for text, value in conditions if value is not None]
