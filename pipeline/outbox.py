"""Where events are safe: SQLite between whoever emits events and the event sinks.

    producers --accept--> [events] --pull--> sink --acknowledge--> [pending] row gone

An event is committed when `accept` returns; one that no sink could take is refused (`pipeline.event_validity`).
Each sink has a row in `pending` for each event that it wants and has not acknowledged, so that a sink or the outbox
may die at any time: what is pending is handed out again. The ids of events are kept for the whole run, and a repeated
one is ignored. The file outlives the run when something is left in it; the next run of the same name delivers that
first.

A sink that wants `order: time` gets its events by (time, camera, place in the camera's order), as soon as every
camera has been judged up to that time: for this the outbox hears of every frame, also of those that made no event
(tombstones).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from pipeline.errors import EnvironmentProblem
from pipeline.event_validity import why_invalid
from pipeline.items import Item
from pipeline.lost_incidents import LostIncidents
from pipeline.messages import Event, Stamp
from pipeline.stage import Context, Settings, Stage

EVERY_CAMERA = "*"
"""The name under which the outbox hands all cameras' events to a sink: one lane, so that their order holds."""

_NEVER = -(1 << 62)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE, producer TEXT NOT NULL, camera TEXT NOT NULL,
    epoch INTEGER NOT NULL, seq INTEGER NOT NULL, part INTEGER NOT NULL, time_ns INTEGER NOT NULL,
    incident TEXT NOT NULL, phase TEXT NOT NULL, body BLOB NOT NULL, incarnation INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS pending (
    sink TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (sink, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_incident ON events (incident, phase);
CREATE TABLE IF NOT EXISTS ended (camera TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
"""
_ADD_INCARNATION = "ALTER TABLE events ADD COLUMN incarnation INTEGER NOT NULL DEFAULT 0"
_INSERT = """
INSERT INTO events (id, producer, camera, epoch, seq, part, time_ns, incident, phase, body, incarnation)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
"""
_PENDING = """
SELECT e.row, e.id, e.incident, e.phase, e.body, e.camera, e.epoch, e.seq, e.time_ns
FROM pending p JOIN events e ON e.row = p.row WHERE p.sink = ? AND e.time_ns <= ?
"""
_KEPT = 10_000
_BY_TIME = "e.time_ns, e.camera, e.epoch, e.seq, e.part, e.producer"


class OutboxSettings(Settings):
    """Filled in when the graph is completed; nobody writes it."""

    path: str = Field(description="The SQLite file.")
    producers: list[str] = Field(default=[], description="The stages that make events.")
    sinks: dict[str, list[str]] = Field(description="Event sink -> the stages whose events it wants; empty: all.")
    ordered: list[str] = Field(default=[], description="Sinks that want the events of all cameras in order of time.")


class Outbox(Stage[OutboxSettings]):
    """Keeps events until every sink that wants them has them."""

    settings_type = OutboxSettings
    inputs = Event
    outputs = (Event,)

    def __init__(self, settings: OutboxSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._db: sqlite3.Connection | None = None
        self._handed: dict[str, set[int]] = {sink: set() for sink in settings.sinks}
        places = [(camera, producer) for camera in context.cameras for producer in settings.producers or [""]]
        self._judged: dict[tuple[str, str], int] = dict.fromkeys(places, _NEVER)
        self._ended: set[str] = set()
        self._acknowledged: list[tuple[str, int]] = []
        self._lost = LostIncidents()
        self._refused: set[tuple[str, str]] = set()
        self.committed: list[bytes] = []

    # ---- opening and closing

    def open(self) -> None:
        path = Path(self.settings.path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(_SCHEMA)
            if "incarnation" not in [row[1] for row in self._db.execute("PRAGMA table_info(events)")]:
                self._db.execute(_ADD_INCARNATION)  # an older version has left events in this file
            self._start()
        except (sqlite3.Error, OSError) as error:
            if self._db is not None:
                self._db.close()
                self._db = None
            raise EnvironmentProblem(
                f"the outbox {path} cannot be opened: {error}: see that the folder is writable and the disk has room"
            ) from None

    @property
    def is_open(self) -> bool:
        """False before `open` and after `close`."""
        return self._db is not None

    @property
    def db(self) -> sqlite3.Connection:
        """The open database."""
        assert self._db is not None
        return self._db

    def _start(self) -> None:
        """At the start of a run: forget what was delivered, keep what was not; ids are only compared within a run."""
        started = self.context.state_folder / "started"
        if started.exists():
            for (camera,) in self.db.execute("SELECT camera FROM ended").fetchall():
                self._note_end(camera)
        else:
            self.db.execute("DELETE FROM ended")
            self.db.execute("DELETE FROM events WHERE row NOT IN (SELECT row FROM pending)")
            self.db.execute("UPDATE events SET id = 'before ' || row || ' ' || id WHERE id NOT LIKE 'before %'")
            kept = self.db.execute("SELECT count(*) FROM events").fetchone()[0]
            if kept:
                self.context.log.info("events_left_by_an_earlier_run", events=kept)
            started.touch()

    def close(self) -> None:
        if self._db is None:
            return
        left = self._db.execute("SELECT count(*) FROM pending").fetchone()[0]
        self._db.close()
        self._db = None
        if left:
            self.context.log.warning("events_undelivered", events=left, kept_in=self.settings.path)
        elif self.ended(self.context.cameras):
            for suffix in ("", "-wal", "-shm"):
                Path(self.settings.path + suffix).unlink(missing_ok=True)

    # ---- taking in

    def accept(self, items: Sequence[Item]) -> None:
        """Commit the events among `items`, and note how far their cameras have been judged.

        Raises EnvironmentProblem when the disk is full: nothing of `items` is committed then.
        """
        events = [self._of_process(item) for item in items if isinstance(item.payload, Event) and self._is_valid(item)]
        if events:
            self._commit(events)
        for item in items:
            # More may still come of the same frame, up to the camera's end: judged up to just before it.
            place = (item.camera, item.sender if self.settings.producers else "")
            if place in self._judged:
                self._judged[place] = max(self._judged[place], item.stamp.time_ns - 1)

    def _is_valid(self, item: Item) -> bool:
        """False for an event that no sink could take: counted, and told once for each sender and reason."""
        why = why_invalid(item)
        if not why:
            return True
        self.context.count("dropped.invalid_event", item.camera)
        if (item.sender, why) not in self._refused:
            self._refused.add((item.sender, why))
            self.context.log.error("event_refused", stage=item.sender, camera=item.camera, why=why)
        return False

    def _of_process(self, item: Item) -> Item:
        """Where the stage runs in this very process, it has this process's incarnation."""
        return item if item.incarnation else replace(item, incarnation=self.context.incarnation)

    def _commit(self, items: Sequence[Item]) -> None:
        try:
            self.db.execute("BEGIN IMMEDIATE")
            new = [body for item in items if (body := self._insert(item)) is not None]
            for producer, camera in {(item.sender, item.camera) for item in items if self._lost.is_late(item)}:
                ends = self._lost.ends(self.db, producer, camera)
                new += [body for item in ends if (body := self._insert(item)) is not None]
            self._forget_old()
            self.db.execute("COMMIT")
            self.committed += new
        except sqlite3.Error as error:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise EnvironmentProblem(
                f"events cannot be committed to {self.settings.path}: {error}: free some disk space; they are kept"
            ) from None

    def _insert(self, item: Item) -> bytes | None:
        """Put an event in; its body, or None when it was there, or came too late."""
        event, key = item.payload, item.key
        assert isinstance(event, Event)
        if self._lost.is_over(self.db, item):
            self.context.count("late", item.camera)
            return None
        what = (event.stamp.time_ns, event.incident, event.phase, event.body)
        cursor = self.db.execute(_INSERT, (event.id, item.sender, item.camera, *key, *what, item.incarnation))
        if not cursor.rowcount:
            return None
        wanted = [s for s, producers in self.settings.sinks.items() if not producers or item.sender in producers]
        self.db.executemany("INSERT INTO pending VALUES (?, ?)", [(sink, cursor.lastrowid) for sink in wanted])
        self.context.count("events", item.camera)
        return event.body

    def _forget_old(self) -> None:
        """Keep the file bounded: of what was delivered, only the last events are kept, to know repeated ones by."""
        self.db.execute(
            "DELETE FROM events WHERE row < (SELECT max(row) FROM events) - ? AND row NOT IN (SELECT row FROM pending)",
            (_KEPT,),
        )

    def end_lost(self, producer: str, cameras: Iterable[str], incarnation: int) -> None:
        """End the incidents that a stage left open when its process died in this incarnation: nobody else will.

        What still comes of that process leaves nothing open either; what a later one begins is its own. May be called
        again. Raises as `accept`.
        """
        for camera in cameras:
            self._lost.note(producer, camera, incarnation)
            self._commit(list(self._lost.ends(self.db, producer, camera)))

    def end(self, camera: str) -> None:
        """Nothing more comes of this camera."""
        try:
            self.db.execute("INSERT OR IGNORE INTO ended VALUES (?)", (camera,))
        except sqlite3.Error as error:
            # Only a later incarnation would miss it.
            self.context.log.warning("camera_end_not_kept", camera=camera, error=str(error))
        self._note_end(camera)

    def _note_end(self, camera: str) -> None:
        self._ended.add(camera)
        for place in self._judged:
            if place[0] == camera:
                self._judged[place] = 1 << 62

    def ended(self, cameras: Iterable[str]) -> bool:
        """True when all of these have ended."""
        return self._ended.issuperset(cameras)

    # ---- handing out

    def pull(self, sink: str, most: int) -> list[tuple[int, Event]]:
        """Up to `most` events that the sink has not been handed yet, with their row numbers, in the order it wants."""
        handed = self._handed[sink]
        ordered = sink in self.settings.ordered
        until = min(self._judged.values(), default=1 << 62) if ordered else 1 << 62
        query = f"{_PENDING} ORDER BY {_BY_TIME if ordered else 'e.row'} LIMIT ?"
        rows = self.db.execute(query, (sink, until, most + len(handed)))
        fresh = [_event(row) for row in rows if row[0] not in handed][:most]
        handed.update(row for row, _ in fresh)
        return fresh

    def take_back(self, sink: str) -> None:
        """The sink did not get what it was handed: hand it out again."""
        self._handed[sink].clear()

    def acknowledge(self, sink: str, rows: Sequence[int]) -> None:
        """The sink has these for good. Where the disk does not take it now, it is noted with the next ones."""
        self._acknowledged += [(sink, row) for row in rows]
        try:
            self.db.executemany("DELETE FROM pending WHERE sink = ? AND row = ?", self._acknowledged)
        except sqlite3.Error as error:
            self.context.log.warning("delivery_not_noted", sink=sink, error=str(error))
            return
        for name, row in self._acknowledged:
            self._handed[name].discard(row)
        self._acknowledged.clear()

    def left(self, sink: str) -> int:
        """How many events the sink has not acknowledged."""
        return int(self.db.execute("SELECT count(*) FROM pending WHERE sink = ?", (sink,)).fetchone()[0])


def _event(row: Any) -> tuple[int, Event]:
    number, event_id, incident, phase, body, camera, epoch, seq, time_ns = row
    stamp = Stamp(camera, epoch, min(seq, 1 << 53), time_ns, 0, 0)
    return number, Event(stamp, event_id.rpartition(" ")[2], incident, phase, body)
