"""The safe place of events: SQLite between the stages that emit events and the event sinks.

    producers --accept--> [events] --pull--> sink --acknowledge, note--> [pending] row gone

An event is committed when `accept` returns; one that no sink could take is refused (`pipeline.outbox.event_validity`).
Each sink has a row in `pending` for each event that it wants and whose delivery is not recorded, so that a sink or the
outbox may die at any time: pending events are handed out again (`pipeline.outbox.deliveries`). A repeated id is
ignored, up to some thousand events later (`pipeline.outbox.old_events`). The file outlives the run if something is left
in it; the next run of the same name delivers that first (`pipeline.outbox.event_file`). What waits is bounded
(`pipeline.outbox.backlog`), and a broken file is replaced (`pipeline.outbox.damage`). People look at the file, and
change it, from processes of their own (`pipeline.outbox.outbox_view`).

A sink that wants `order: time` gets its events by (time, camera, place in the camera's order), as soon as every camera
has been judged up to that time. For this every frame is reported to the outbox, even if no event was made of it
(tombstones).
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, TypeVar

from pydantic import Field

from camgraph.pipeline.dead_letters import DeadLetters, LetterCount
from camgraph.pipeline.errors import EnvironmentProblem, NeedsNewProcess
from camgraph.pipeline.items import Item
from camgraph.pipeline.messages import LONGEST_BODY, End, EndReason, Event, Stamp
from camgraph.pipeline.monitoring.event_format import EventSummary, event_format
from camgraph.pipeline.monitoring.outcome import GIVEN_UP, UNSURE
from camgraph.pipeline.monitoring.reports import SinkBacklog
from camgraph.pipeline.outbox.backlog import Backlog, Bounds, as_counts
from camgraph.pipeline.outbox.commit_times import CommitTimes
from camgraph.pipeline.outbox.damage import finish_replacing, mark, marked, replace_damaged
from camgraph.pipeline.outbox.deliveries import Deliveries
from camgraph.pipeline.outbox.disk_reserve import DiskReserve
from camgraph.pipeline.outbox.event_file import (
    RESERVE_BYTES,
    SUFFIXES,
    Sync,
    begin_run,
    next_row,
    note_live,
    note_sinks,
    open_event_file,
    require_sound,
    run_row,
)
from camgraph.pipeline.outbox.event_validity import why_invalid
from camgraph.pipeline.outbox.lost_incidents import LostIncidents, left_open
from camgraph.pipeline.outbox.old_events import OldEvents, forget_needless, make_room, shrink
from camgraph.pipeline.outbox.stored_event import checksum
from camgraph.pipeline.plan import EVERY_CAMERA
from camgraph.pipeline.stage import Context, Counts, Settings, Stage
from camgraph.pipeline.system.sqlite_file import Damaged, SqliteFile, as_problem, is_damage, is_full, transaction

T = TypeVar("T")

_NEVER = -(1 << 62)
_INSERT = """
INSERT INTO events (id, producer, camera, epoch, seq, part, time_ns, incident, phase, body, incarnation,
    committed_ns, waits_from_s, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
"""
_LARGEST = (1 << 63) - 1
"""The range of numbers that SQLite holds."""
_RETRY_S = 1.0
_MAINTAIN_S = 1.0
_OPEN_NOTED_S = 60
_SAVE_S, _SAVE_S_A_BYTE = 300.0, 1e-6
"""For how long events are saved from a damaged file."""


class OutboxSettings(Settings):
    """The planner fills this in when it completes the graph."""

    path: str = Field(description="The SQLite file.")
    producers: list[str] = Field(default=[], description="The stages that make events.")
    sinks: dict[str, list[str]] = Field(description="Event sink -> the stages whose events it wants; empty: all.")
    ordered: list[str] = Field(default=[], description="Sinks that want the events of all cameras in order of time.")
    emitters: list[str] = Field(default=[], description="Sinks that give events of their own to the outbox.")
    live: bool = Field(default=False, description="Its cameras are live: what a run left open ends in the next one.")
    keep_days: float = Field(default=7.0, gt=0, description="For how long an event may wait for a sink.")
    keep_events: int = Field(default=1_000_000, ge=1, description="How many events may wait for a sink.")
    keep_gb: float = Field(default=2.0, gt=0, description="How large the file may become.")
    sync: Sync = Field(default="full", description="When the disk must have an event.")

    @property
    def bounds(self) -> Bounds:
        """In the units of the outbox."""
        return Bounds(self.keep_days * 86_400, self.keep_events, round(self.keep_gb * 1e9))


class Outbox(Stage[OutboxSettings]):
    """Keeps events until every sink that wants them has them.

    `committed`: the ids of events that have not been reported yet, and what a run counts and shows of them. `unnoted`:
    the reason if a delivery cannot be recorded. `backlog`: what waits for each sink, as of the last `maintain`.
    `expects_more`: cameras are about to come, see `ProcessPlan`. `wall_ns`: the clock of `Event.committed_ns`.
    """

    settings_type = OutboxSettings
    inputs = Event
    outputs = (Event,)
    counts: ClassVar[Counts] = {
        "events": "Events that the outbox has committed.",
        "late": "Events that came when the outbox had already ended their incident, because their stage had died; they "
        "are left out.",
        "dropped.invalid_event": "A stage made an event that is not valid JSON of the right form, or is larger than "
        "4 MB. This counts events, not frames.",
        f"{GIVEN_UP}SINK": "Events that waited for this sink and were given up, because there were too many, they "
        "waited for too long, or the file was damaged (`camgraph help outbox`). A run in which that happens ends with "
        "status 1.",
        UNSURE: "Damaged files of the outbox of which nobody can tell how many events are lost. A run in which that "
        "happens ends with status 1.",
    }
    added_by_itself = True

    def __init__(
        self, settings: OutboxSettings, context: Context, *, wall_ns: Callable[[], int] = time.time_ns
    ) -> None:
        super().__init__(settings, context)
        self._wall_ns = wall_ns
        self._file: SqliteFile | None = None
        self._deliveries: Deliveries
        self._bounded: Backlog
        self._first_row = 1
        self._open_s, self._open_before_s, self._opened_at = 0, 0, math.nan
        self._maintain_again_at, self._unmaintained, self._data_version = -math.inf, "", 0
        self._letters = {sink: LetterCount(DeadLetters(Path(settings.path).parent, sink)) for sink in settings.sinks}
        self.backlog: dict[str, SinkBacklog] = {}
        self._judged: dict[tuple[str, str], int] = dict.fromkeys(self._places(), _NEVER)
        self._ended: dict[str, EndReason] = {}
        self._note_again_at, self.unnoted = 0.0, ""
        self.expects_more = False
        self._lost, self._old = LostIncidents(), OldEvents()
        self._refused: set[tuple[str, str]] = set()
        self._reserve = DiskReserve(Path(f"{settings.path}-reserve"), RESERVE_BYTES)
        self.committed: list[tuple[str, EventSummary]] = []

    def _places(self) -> list[tuple[str, str]]:
        """(camera, producer) of all whose frames are reported."""
        return [(camera, producer) for camera in self.context.cameras for producer in self.settings.producers or [""]]

    def cameras_changed(self) -> None:
        """Let a new camera start from the others' position; a removed one may come again."""
        now = min(self._judged.values(), default=_NEVER)
        self._judged = {place: self._judged.get(place, now) for place in self._places()}
        gone = self._ended.keys() - set(self.context.cameras)
        self._ended = {camera: reason for camera, reason in self._ended.items() if camera not in gone}
        self._forget_ends(gone)

    # ---- opening and closing

    def open(self) -> None:
        path = Path(self.settings.path)
        self._reserve.release()  # left by a killed process: on a full disk this one needs the room to open the file
        finish_replacing(path)
        try:
            self._open(path, marked(path))
        except Damaged as damaged:
            self._set_aside(path, damaged)

    def _open(self, path: Path, broken: str = "") -> None:
        """Raises Damaged and EnvironmentProblem."""
        if broken:
            raise Damaged(broken)
        try:
            self._file = open_event_file(path, by_time=bool(self.settings.ordered), sync=self.settings.sync)
            self._start()
        except (sqlite3.Error, OSError) as error:
            self._close_file()
            if is_damage(error):
                raise Damaged(str(error)) from None
            raise self._cannot_open(error) from None

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _cannot_open(self, error: Exception) -> EnvironmentProblem:
        return as_problem(f"the outbox {self.settings.path} cannot be opened", error, "outbox-disk")

    def _set_aside(self, path: Path, damaged: Damaged) -> None:
        """Go on with a new file, and the events of the old one that can be read. Raises EnvironmentProblem."""
        try:
            within_s = _SAVE_S + path.stat().st_size * _SAVE_S_A_BYTE
            self.context.opening("saving events from a damaged outbox", 2 * within_s)
            aside, saved = replace_damaged(path, self._wall_ns(), self.settings.sinks, within_s=within_s)
            self._open(path)
        except (sqlite3.Error, OSError) as error:
            raise self._cannot_open(error) from None
        for sink, n in saved.lost_for.items():
            self._bounded.count(sink, "", n)
            self._bounded.given_up[sink] += n
        if not saved.is_sure:
            self.context.count(UNSURE, "")
        self.context.opening("")
        self.context.log.error(
            "outbox_set_aside",
            why=str(damaged),
            kept_as=str(aside),
            saved=saved.events,
            not_readable=saved.lost,
            more_may_be_lost=not saved.is_sure,
            means="events that waited and are not among the saved ones are lost, unless you recover them",
            recover=f"sqlite3 {aside} .recover > recovered.sql",
        )

    @property
    def is_open(self) -> bool:
        """False before `open` and after `close`."""
        return self._file is not None

    @property
    def db(self) -> sqlite3.Connection:
        """The open database."""
        assert self._file is not None
        return self._file.db

    def _start(self) -> None:
        """At the start of a run, all events in the file are left over; ids are only compared within a run.

        Raises sqlite3.Error, also if the file is damaged.
        """
        require_sound(self.db, self.settings.sinks)
        started = self.context.state_folder / "started"
        if started.exists():
            for (camera,) in self.db.execute("SELECT camera FROM ended").fetchall():
                self._note_end(
                    camera, "stopped"
                )  # the file has no reason; so a sink keeps what it has for the next run
        else:
            if self.settings.live:
                self._end_left_open()
            begin_run(self.db)
            note_live(self.db, live=self.settings.live)
        note_sinks(self.db, self.settings.sinks)
        run = run_row(self.db)
        self._first_row, self._open_s, self._open_before_s = run.first_row, run.open_s, run.open_s
        times = CommitTimes(next_row(self.db), self._wall_ns, lambda: self._open_s)
        self._deliveries = Deliveries(
            self.db, self.settings.sinks, self.settings.ordered, times, self._keep_dead_letter
        )
        self._data_version = self._version_now()
        self._bounded = Backlog(self.db, self._deliveries, self.settings.bounds, self._count_given_up, self.context.log)
        if not started.exists():
            kept = as_counts(self._deliveries.waiting)
            if kept:
                waiting = ", ".join(f"{n} for {sink}" for sink, n in kept.items())
                self.context.log.warning("events_of_an_earlier_run_come_first", waiting=waiting)
            started.touch()

    def _end_left_open(self) -> None:
        """End the incidents of a run that did not come to its end: nobody else would. Raises sqlite3.Error.

        It is of that run, as are other events that it has left over.
        """
        run = run_row(self.db)
        self._first_row, self._open_s = run.first_row, run.open_s
        with transaction(self.db):
            for item in left_open(self.db, self.settings.producers):
                self._insert(item, self._wall_ns(), [])

    def _keep_dead_letter(self, sink: str, event: Event, size: int) -> None:
        """Keep an event that is too large for its sink as a dead letter. Raises EnvironmentProblem."""

        def discarded(camera: str, n: int) -> None:
            self.context.count("letters_discarded", camera, n)

        why = f"its body has {size:,} bytes; at most {LONGEST_BODY:,} can be sent"
        why += "" if len(event.body) == size else "; its beginning is kept here"
        DeadLetters(Path(self.settings.path).parent, sink, discarded=discarded).add(event, why)
        self.context.count("dropped.invalid_event", event.stamp.camera)
        self.context.log.error("event_too_large", sink=sink, id=event.own_id, why=why, error_id="events-dropped")

    def _version_now(self) -> int:
        """Changes with each change of the file by another process."""
        return int(self.db.execute("PRAGMA data_version").fetchone()[0])

    def _count_given_up(self, sink: str, camera: str, n: int) -> None:
        self.context.count(f"{GIVEN_UP}{sink}", camera, n)

    def close(self) -> None:
        if self._file is None:
            return
        with suppress(NeedsNewProcess):  # it is marked as broken, which the next process sees
            self.try_to_note(math.inf)
        self._reserve.release()
        with suppress(sqlite3.Error):
            self._note_open_s()
            self._note_backlog()
        left = as_counts(self._deliveries.waiting)
        is_empty = self._is_empty()
        self._close_file()
        if not is_empty:
            events = max(left.values(), default=0)
            self.context.log.warning("events_undelivered", events=events, kept_in=self.settings.path)
        elif self.all_ended or not self.context.cameras:
            for suffix in SUFFIXES:
                Path(self.settings.path + suffix).unlink(missing_ok=True)
            # Each events file of `camgraph watch` has a folder of its own: empty folders would pile up.
            with suppress(OSError):
                Path(self.settings.path).parent.rmdir()

    def _is_empty(self) -> bool:
        """Whether nothing waits in the file, as far as it can be read."""
        try:
            return self.db.execute("SELECT 1 FROM pending LIMIT 1").fetchone() is None
        except sqlite3.Error:
            return False

    # ---- accepting

    def accept(self, items: Sequence[Item]) -> None:
        """Commit the events among `items`, and note how far their cameras have been judged.

        Raises EnvironmentProblem when the disk is full: nothing of `items` is committed then.
        """
        with_events = [item for item in items if isinstance(item.payload, Event)]
        events = [self._of_process(item) for item in with_events if self._is_valid(item)]
        if events:
            self._commit(events)
        for camera, refused in (Counter(i.camera for i in with_events) - Counter(i.camera for i in events)).items():
            self.context.count("dropped.invalid_event", camera, refused)
        for item in items:
            # More events may follow from the same frame, so the camera is judged up to just before it.
            place = (item.camera, item.sender if self.settings.producers else "")
            if place in self._judged:
                self._judged[place] = max(self._judged[place], item.stamp.time_ns - 1)

    def _is_valid(self, item: Item) -> bool:
        """False for an event that no sink could take, which is logged once for each sender and reason."""
        why = why_invalid(item)
        if not why:
            return True
        if (item.sender, why) not in self._refused:
            self._refused.add((item.sender, why))
            event = item.payload
            # Its stage may have put anything there.
            named = {"id": str(event.id), "incident": str(event.incident)} if isinstance(event, Event) else {}
            self.context.log.error(
                "event_refused", stage=item.sender, camera=item.camera, why=why, error_id="events-dropped", **named
            )
        return False

    def _of_process(self, item: Item) -> Item:
        """If the stage runs in this same process, set this process's incarnation."""
        return item if item.incarnation else replace(item, incarnation=self.context.incarnation)

    def _commit(self, items: Sequence[Item]) -> None:
        """Insert the new events of `items`, and the ends that late ones cause; count them once they are on the disk."""
        try:
            new, over = self._with_room(lambda: self._put_in(items))
        except sqlite3.Error as error:
            self._end_if_damaged(error)
            raise as_problem(
                f"events cannot be committed to {self.settings.path}, and are kept", error, "outbox-disk"
            ) from None
        self._committed(new, over)

    def _put_in(self, items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
        """In one transaction, insert new events with the ends that late ones cause, and cameras that have ended.

        Raises sqlite3.Error.
        """
        new: list[Item] = []
        over: list[Item] = []
        late = [item for item in items if self._lost.is_late(item)]
        now_ns = self._wall_ns()
        followed: list[int] = []
        with transaction(self.db):
            for item in items:
                if self._lost.is_over(self.db, item):
                    over.append(item)
                elif self._insert(item, now_ns, followed):
                    new.append(item)
            for producer, camera in {(item.sender, item.camera) for item in late}:
                ends = self._lost.ends(self.db, producer, camera)
                new += [item for item in ends if self._insert(item, now_ns, followed)]
            if followed:
                forget_needless(self.db, followed)
            self._old.forget(self.db, len(new))
        return new, over

    def _with_room(self, put_in: Callable[[], T]) -> T:
        """Write to the file, if there is room to get out of a full disk afterwards. Raises sqlite3.Error."""
        if self._reserve.hold():
            try:
                return put_in()
            except sqlite3.Error as error:
                if not is_full(error):
                    raise
        self._make_room()
        if not self._reserve.hold():
            raise sqlite3.OperationalError(f"the disk has less than {RESERVE_BYTES >> 20} MB left")
        return put_in()

    def _make_room(self) -> None:
        """Delete delivered events, with the room of the reserve; new events take the reserve again first, or wait."""
        self._reserve.release()
        with suppress(sqlite3.Error):  # the next write fails as well, and reports it
            make_room(self.db, 2 * RESERVE_BYTES)  # for the reserve, and for new events

    def _committed(self, new: Sequence[Item], over: Sequence[Item]) -> None:
        for name, items in (("events", new), ("late", over)):
            for camera, n in Counter(item.camera for item in items).items():
                self.context.count(name, camera, n)
        summary = event_format().summary
        events = [item.payload for item in new if isinstance(item.payload, Event)]
        self.committed += [(event.id, summary(event.body)) for event in events]
        if new:
            wanted = Counter(sink for item in new for sink in self._readers(item.sender))
            self._deliveries.committed(min(item.stamp.time_ns for item in new), wanted)

    def _insert(self, item: Item, now_ns: int, followed: list[int]) -> bool:
        """Insert an event, committed at `now_ns`, for all sinks that want it; False if it was there.

        Adds the event of its incident that was the last one until then to `followed`.
        """
        event, key = item.payload, item.key
        assert isinstance(event, Event)
        place = (key.epoch, key.seq, min(key.part, _LARGEST))  # larger parts keep the order of insertion
        what = (event.stamp.time_ns, event.incident, event.phase, event.body)
        times = (item.incarnation, now_ns, self._open_s)
        stored = self._stored(event.id)
        facts = (stored, item.camera, event.incident, event.phase, key.epoch, key.seq, event.stamp.time_ns)
        seal = checksum(facts, event.body)
        cursor = self.db.execute(_INSERT, (stored, item.sender, item.camera, *place, *what, *times, seal))
        if not cursor.rowcount:
            return False
        assert cursor.lastrowid
        before = self._lost.inserted(self.db, item, cursor.lastrowid)
        if before:
            followed.append(before)
        self.db.executemany(
            "INSERT INTO pending VALUES (?, ?)", [(sink, cursor.lastrowid) for sink in self._readers(item.sender)]
        )
        return True

    def _stored(self, event_id: str) -> str:
        """An id as the file has it: the same id is another one in another run."""
        return f"{self._first_row} {event_id}"

    def _readers(self, sender: str) -> list[str]:
        """The sinks that want the events of a stage.

        Those of a sink go to the sinks that read from the same stages, and not to those in order of time: they come
        whenever they are ready, and these sinks get the same sequence in every run.
        """
        sinks = self.settings.sinks
        if sender not in self.settings.emitters:
            return [sink for sink, producers in sinks.items() if not producers or sender in producers]
        own = set(sinks[sender])
        others = sinks.keys() - {sender, *self.settings.ordered}
        return [sink for sink in sinks if sink in others and (not own or not sinks[sink] or own & set(sinks[sink]))]

    def knows(self, event_id: str) -> bool:
        """True if an event of this id is committed. Raises EnvironmentProblem if the file cannot be read now."""
        with self._reading():
            return (
                self.db.execute("SELECT 1 FROM events WHERE id = ?", (self._stored(event_id),)).fetchone() is not None
            )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self._end_if_damaged(error)
            raise as_problem(f"events cannot be read from {self.settings.path}", error, "outbox-disk") from None

    def _end_if_damaged(self, error: sqlite3.Error) -> None:
        """Raises NeedsNewProcess if the file is broken: the next process sets it aside, and saves what it can."""
        assert self._file is not None
        why = self._file.why_damaged(error)
        if why:
            mark(Path(self.settings.path), why)
            raise NeedsNewProcess(
                f"the outbox {self.settings.path} is broken ({why}): it is set aside at the next start"
            ) from None

    def end_lost(self, producer: str, cameras: Iterable[str], incarnation: int) -> None:
        """End the incidents that a stage left open when its process died in this incarnation.

        Later messages of that process leave nothing open either; incidents of a later process are not affected. May
        be called again. Raises as `accept`.
        """
        for camera in cameras:
            self._lost.note(producer, camera, incarnation)
            with self._reading():
                ends = list(self._lost.ends(self.db, producer, camera))
            self._commit(ends)

    def end(self, camera: str, reason: EndReason = "end") -> None:
        """No more events of this camera will come. If it was removed, it does not count for the end of the run."""
        if reason == "removed":
            self._judge_all(camera)
            return
        try:
            self.db.execute("INSERT OR IGNORE INTO ended VALUES (?)", (camera,))
        except sqlite3.Error as error:
            # Only a later incarnation would miss it.
            self.context.log.warning("camera_end_not_kept", camera=camera, error=str(error))
        self._note_end(camera, reason)

    def _forget_ends(self, cameras: Iterable[str]) -> None:
        try:
            self.db.executemany("DELETE FROM ended WHERE camera = ?", [(camera,) for camera in cameras])
        except sqlite3.Error as error:
            self.context.log.warning("camera_end_not_forgotten", error=str(error))

    def _note_end(self, camera: str, reason: EndReason) -> None:
        self._ended[camera] = reason
        self._judge_all(camera)

    def _judge_all(self, camera: str) -> None:
        for place in self._judged:
            if place[0] == camera:
                self._judged[place] = 1 << 62

    @property
    def all_ended(self) -> bool:
        """True when all cameras have ended, and no others are about to come; False without cameras."""
        return bool(self.context.cameras) and not self.expects_more and self._ended.keys() >= set(self.context.cameras)

    @property
    def last_word(self) -> End:
        """The end of all cameras, for the sinks. Its reason is "end" only if each camera came to its own end."""
        reasons = set(self._ended.values())
        reason: EndReason = "stopped" if "stopped" in reasons else "error" if "error" in reasons else "end"
        return End(Stamp(EVERY_CAMERA, 0, 0, 0, 0, 0), reason)

    # ---- handing out

    def pull(self, sink: str, most: int) -> list[tuple[int, Event]]:
        """Return up to `most` events that the sink has not got yet, with their row numbers, in the sink's order.

        Raises EnvironmentProblem while they cannot be read.
        """
        with self._reading():
            return self._deliveries.pull(sink, most, min(self._judged.values(), default=1 << 62))

    def acknowledge(self, sink: str, rows: Sequence[int]) -> None:
        """The sink has delivered these; `note_delivered` records them."""
        self._deliveries.acknowledge(sink, rows)

    def note_delivered(self) -> None:
        """Record acknowledged events. Raises EnvironmentProblem if the disk does not accept it now."""
        try:
            self._note()
        except sqlite3.Error as error:
            self._end_if_damaged(error)
            raise as_problem(f"deliveries cannot be recorded in {self.settings.path}", error, "outbox-disk") from None

    def _note(self) -> None:
        try:
            self._deliveries.note()
        except sqlite3.Error as error:
            if not is_full(error):
                raise
            self._make_room()
            self._deliveries.note()

    def try_to_note(self, now: float) -> None:
        """Do `note_delivered`; call it often. After a failure, which is logged once, it waits a second. `now` in
        seconds.
        """
        if now < self._note_again_at:
            return
        try:
            self.note_delivered()
        except EnvironmentProblem as error:
            if not self.unnoted:
                self.context.log.warning("delivery_not_noted", error=str(error))
            self.unnoted, self._note_again_at = str(error), now + _RETRY_S
        else:
            self.unnoted = ""

    def maintain(self, now: float) -> None:
        """Keep the file within its bounds, and notice changes by other processes; call it often. `now` in seconds.

        It does something once a second. A failure is logged once. Raises NeedsNewProcess if the file is broken.
        """
        if now < self._maintain_again_at or self._file is None:
            return
        self._maintain_again_at = now + _MAINTAIN_S
        if math.isnan(self._opened_at):
            self._opened_at = now
        self._open_s = self._open_before_s + int(now - self._opened_at)
        try:
            if self._maintain():
                self._maintain_again_at = now
        except sqlite3.Error as error:
            self._end_if_damaged(error)
            if is_full(error):
                self._make_room()
            if not self._unmaintained:
                self.context.log.warning("outbox_not_tended", error=str(error))
            self._unmaintained = str(error)
        else:
            self._unmaintained = ""

    def _maintain(self) -> bool:
        """True if there is more to do. Raises sqlite3.Error."""
        version = self._version_now()
        if version != self._data_version:
            self._data_version = version
            self._deliveries.changed_outside()
        more = self._bounded.keep_within(self._open_s)
        self._old.forget_earlier_run(self.db)
        shrink(self.db)
        if self._open_s - run_row(self.db).open_s >= _OPEN_NOTED_S:
            self._note_open_s()
        self._note_backlog()
        return more

    def _note_backlog(self) -> None:
        self.backlog = {sink: self._backlog_of(sink, waiting) for sink, waiting in self._deliveries.waiting.items()}

    def _note_open_s(self) -> None:
        self.db.execute("UPDATE run SET open_s = ?", (self._open_s,))

    def _backlog_of(self, sink: str, waiting: int) -> SinkBacklog:
        letters = self._letters[sink].now() if sink in self._letters else 0
        oldest_ns = self._deliveries.oldest_ns(sink) if waiting else 0
        age_s = max(0.0, (self._wall_ns() - oldest_ns) / 1e9) if oldest_ns else None
        return SinkBacklog(waiting=waiting, oldest_s=age_s, dead_letters=letters, given_up=self._bounded.given_up[sink])

    def left(self, sink: str) -> int:
        """The number of events whose delivery to the sink is not recorded. Raises as `pull`."""
        with self._reading():
            return self._deliveries.left(sink)

    def goes_before(self, sink: str) -> frozenset[str]:
        """The sinks that must have had their end before this one gets it: their last events may be for it."""
        emitters = frozenset(self.settings.emitters)
        return frozenset() if sink in emitters else emitters

    def over(self, sink: str) -> bool:
        """True when all deliveries to the sink are recorded. Raises as `pull`."""
        with self._reading():
            return self._deliveries.over(sink)
