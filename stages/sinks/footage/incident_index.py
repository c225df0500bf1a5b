"""An index of the incidents of a folder, in SQLite, so that a hundred thousand of them are listed without being read.

    footage/.incidents.sqlite      days:      one row a folder of a day, with the stamp that it had when it was read
                                   incidents: one row a record: what a list of incidents says of it

The records are the truth, and the index is a cache of them. Each file that appears, goes or is replaced changes the
stamp of its folder, so each call compares the stamps first and reads again only the folders that have changed, and
there only the records that have. So nobody has to tell the index anything, and a process may be killed at any moment.

An index that is lost or damaged is made anew. One that cannot be written (a full disk, a lock, a medium that is read
only) is copied into memory and completed there. If all fails, the records are read.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.names import ascii_form, is_camera_name
from camgraph.pipeline.system.sqlite_file import (
    Damaged,
    SqliteFile,
    SqliteFormat,
    is_damage,
    primary_code,
    transaction,
    way_out,
)
from camgraph.stages.sinks.footage.incident_record import KEEP, IncidentRecord, State, read_record

NAME = ".incidents.sqlite"
_RACY_NS = 2_000_000_000
"""Of two changes within one tick of a file system's clock (2 s on FAT), the second one changes no stamp."""
_BUSY_S = 0.1
"""How long somebody who asks waits for a lock, at most three times."""
_PATIENT_S = 1.0
_PIECE = 500
"""Records in one transaction."""
_EVERY_S = 5.0
_AGAIN_S = 60.0
_LAST_S = 1.0
_FAILURES = (sqlite3.Error, ValueError, TypeError)
"""Of a file whose bytes were changed: SQLite and Python notice different things."""
Phase = Literal["single", "running", "over"]


@dataclass(frozen=True, slots=True)
class IncidentSummary:
    """What a list says of an incident. Its record: `FOLDER/place/day/name`."""

    place: str
    """The folder of its camera."""
    day: str
    name: str
    incident: str
    camera: str
    rule: str
    action: str
    severity: str
    start_time: str
    start_s: float
    """Seconds since 1970."""
    phase: Phase
    duration_s: float
    snapshot: State
    snapshot_bytes: int
    clip: State
    clip_bytes: int
    keep: int

    def path(self, folder: Path) -> Path:
        """Of its record."""
        return folder / self.place / self.day / self.name


@dataclass(frozen=True, slots=True)
class IncidentFilter:
    """Which incidents are asked for; by default all of them."""

    camera: str | None = None
    since: datetime | None = None
    rule: str | None = None
    """The rule, or its action."""
    incident: str = ""
    """The first letters."""
    phase: Phase | None = None
    newest: int | None = None
    """So many at most."""
    before: IncidentSummary | None = None
    """Those alone that are listed before this one: the next page, from the newest on."""
    among: Sequence[str] | None = None
    """These alone, by their whole names."""
    until: datetime | None = None
    """Those alone that began before."""


def incidents_in(folder: Path, wanted: IncidentFilter) -> list[IncidentSummary]:
    """The incidents that are kept, the oldest first. Raises OSError if the folder cannot be read."""
    if wanted.camera is not None and not is_camera_name(wanted.camera):
        return []  # no camera is called so, and the name would be that of a folder
    for place in (_on_disk, _on_disk, _copied):
        try:
            with place(folder) as db:
                _refresh(db, folder, wanted)
                return _found(db, wanted)
        except _FAILURES as error:
            if _is_damage(error):
                _set_aside(folder)
    with _in_memory() as db:
        _refresh(db, folder, wanted)
        return _found(db, wanted)


def summary_of(record: IncidentRecord) -> IncidentSummary | None:
    """What a list says of this record; None if it lacks the facts of an incident: anybody may have written it."""
    with suppress(KeyError, ValueError, TypeError, AttributeError, OverflowError):
        path, data = record.path, record.data
        end = record.last["data"] if record.last else {}
        start_time, snapshot, clip = str(data["start_time"]), record.files["snapshot"], record.files["clip"]
        return IncidentSummary(
            place=_text(path.parent.parent.name),
            day=_text(path.parent.name),
            name=_text(path.name),
            incident=_text(record.incident),
            camera=_text(record.camera),
            rule=_text(data["rule"]["id"]),
            action=_text(data["action"]),
            severity=_text(data.get("severity", "warning")),
            start_time=_text(start_time),
            start_s=datetime.fromisoformat(start_time).timestamp(),
            phase="over" if end else "single" if data["phase"] == "single" else "running",
            duration_s=_seconds(end.get("duration_s", 0.0)),
            snapshot=_state(snapshot.state),
            snapshot_bytes=_size(snapshot.bytes),
            clip=_state(clip.state),
            clip_bytes=_size(clip.bytes),
            keep=int(record.keep),
        )
    return None


def _text(value: object) -> str:
    """Raises ValueError for half a character, which a database does not take."""
    str(value).encode()
    return str(value)


def _seconds(value: Any) -> float:
    if not math.isfinite(value):
        raise ValueError("no length of time")
    return float(value) or 0.0  # not -0.0


def _size(value: Any) -> int:
    if not 0 <= value < 1 << 63:
        raise ValueError("no size of a file")
    return int(value)


def _state(value: object) -> State:
    if value not in get_args(State):
        raise ValueError("no state of a file")
    found: State = value  # type: ignore[assignment]  # it is one of them
    return found


# ---- the file


@contextmanager
def _on_disk(folder: Path, busy_s: float = _BUSY_S) -> Iterator[sqlite3.Connection]:
    """Raises sqlite3.Error, also those of `_FAILURES`."""
    file, path = _file(folder, busy_s), folder / NAME
    if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
        raise Damaged("it is no file")
    if not path.exists() and not _days(folder, IncidentFilter()):
        with _in_memory() as db:  # no index for a folder without incidents
            yield db
        return
    with closing(file):
        file.open()
        _check_once(file.db, path)
        yield file.db


checked: set[tuple[int, int]] = set()
"""The files, by device and number, whose incidents this process has counted."""
_COUNTS = (
    "SELECT count(*) FROM incidents NOT INDEXED",
    "SELECT count(stamp) FROM incidents INDEXED BY by_day",  # the stamp is in the table alone: each is looked up there
    "SELECT count(*) FROM incidents INDEXED BY by_incident",
)


def _check_once(db: sqlite3.Connection, path: Path) -> None:
    """Whether a damaged page hides incidents, which SQLite does not notice. Raises sqlite3.Error."""
    found = path.stat()
    known = (found.st_dev, found.st_ino)
    if known not in checked:
        with _snapshot(db):
            counts = {db.execute(query).fetchone()[0] for query in _COUNTS}
        if len(counts) > 1:
            raise Damaged("some of its incidents are gone")
        checked.add(known)


@contextmanager
def _snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """All is read as it is at one moment."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


@contextmanager
def _copied(folder: Path) -> Iterator[sqlite3.Connection]:
    """Of one that cannot be written. Raises sqlite3.Error."""
    file = _file(folder, _BUSY_S)
    with _in_memory() as db:
        with file.reading() as source:
            source.execute("BEGIN")
            file.age(source)  # takes the lock: without it, a copy would wait for ever
            source.backup(db)
        yield db


@contextmanager
def _in_memory() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        _make(db)
        yield db


def _make(db: sqlite3.Connection) -> None:
    for command in _TABLES:
        db.execute(command)


def _file(folder: Path, busy_s: float) -> SqliteFile:
    return SqliteFile(folder / NAME, _FORMAT, busy_s=busy_s)


_FORMAT = SqliteFormat(
    name="the index of incidents", version=1, tables=frozenset({"days", "incidents"}), make=_make, most_aside=2
)


def _is_damage(error: Exception) -> bool:
    """Also of values, which Python notices."""
    return is_damage(error) or isinstance(error, (ValueError, TypeError))


def _set_aside(folder: Path) -> bool:
    """Whether there is room for a new one."""
    try:
        _file(folder, _BUSY_S).set_aside()
    except OSError:
        return False
    return True


_COLUMNS = [field.name for field in fields(IncidentSummary)]
_TABLES = (
    "CREATE TABLE days (place TEXT, day TEXT, stamp TEXT, PRIMARY KEY (place, day)) WITHOUT ROWID",
    f"CREATE TABLE incidents ({', '.join(_COLUMNS)}, stamp TEXT, checksum INTEGER, PRIMARY KEY (place, day, name)) "
    "WITHOUT ROWID",
    "CREATE INDEX by_day ON incidents (day, name)",
    "CREATE INDEX by_incident ON incidents (incident)",
)
_PUT = f"INSERT OR REPLACE INTO incidents VALUES ({', '.join('?' * (len(_COLUMNS) + 2))})"  # noqa: S608 - made of constants


def _row(summary: IncidentSummary, stamp: str) -> tuple[object, ...]:
    values = astuple(summary)
    return (*values, stamp, _checksum(values))


def _checksum(values: Sequence[object]) -> int:
    """SQLite notices damage to its own structure, not to values."""
    return zlib.crc32(ascii(values).encode())


def _found(db: sqlite3.Connection, wanted: IncidentFilter) -> list[IncidentSummary]:
    """Raises sqlite3.Error."""
    conditions: list[tuple[str, object]] = []
    if wanted.camera is not None:
        conditions += [("place = ?", ascii_form(wanted.camera)), ("camera = ?", wanted.camera)]
    if wanted.since is not None:
        conditions += [("day >= ?", wanted.since.date().isoformat()), ("start_s >= ?", wanted.since.timestamp())]
    if wanted.until is not None:
        conditions.append(("start_s < ?", wanted.until.timestamp()))
    if wanted.rule is not None:
        conditions.append(("? IN (rule, action)", wanted.rule))
    if wanted.phase is not None:
        conditions.append(("phase = ?", wanted.phase))
    if wanted.incident:
        conditions += [("incident >= ?", wanted.incident), ("incident < ?", wanted.incident + chr(0x10FFFF))]
    if wanted.among is not None:
        conditions.append(("incident IN (SELECT value FROM json_each(?))", json.dumps([*wanted.among])))
    values = [value for _, value in conditions]
    if wanted.before is not None:
        conditions.append(("(day, name, place) < (?, ?, ?)", None))
        values += [wanted.before.day, wanted.before.name, wanted.before.place]
    which = " AND ".join(text for text, _ in conditions) or "1"
    query = (
        f"SELECT {', '.join(_COLUMNS)}, checksum FROM incidents WHERE {which} "  # noqa: S608 - made of constants
        "ORDER BY day DESC, name DESC, place DESC LIMIT ?"
    )
    most = -1 if wanted.newest is None else wanted.newest
    rows = db.execute(query, (*values, most)).fetchall()
    return [_summary(row) for row in reversed(rows)]


def _summary(row: tuple[object, ...]) -> IncidentSummary:
    if _checksum(row[:-1]) != row[-1]:
        raise Damaged("a row is not as it was written")
    return IncidentSummary(*row[:-1])  # type: ignore[arg-type]  # the checksum vouches for them


# ---- what has changed since


class _Day(NamedTuple):
    """A folder of a day: the camera's folder, and its own name."""

    place: str
    day: str


class _Scan(NamedTuple):
    """How the index of a day has to change."""

    day: _Day
    stamp: str
    """"": to be read again, because it was still changing or something could not be read."""
    put: list[tuple[IncidentSummary, str]]
    gone: list[str]


def _refresh(
    db: sqlite3.Connection, folder: Path, wanted: IncidentFilter, is_over: Callable[[], bool] = lambda: False
) -> None:
    """Read what has changed of the days that matter. Raises OSError, sqlite3.Error."""
    found = _days(folder, wanted)
    known = {_Day(*row[:2]): row[2] for row in db.execute("SELECT place, day, stamp FROM days")}
    scans = [_gone(db, day) for day in known if day not in found and _matters(day, wanted)]
    for day, stamp in found.items():
        if is_over():
            break
        if known.get(day) != stamp:
            scan = _scan(db, folder, day, stamp)
            if scan.put or scan.gone or scan.stamp != known.get(day):
                scans.append(scan)
        if sum(len(scan.put) for scan in scans) > _PIECE:
            _save(db, scans)
            scans = []
    if scans:
        _save(db, scans)


def _save(db: sqlite3.Connection, scans: Sequence[_Scan]) -> None:
    with transaction(db):
        for scan in scans:
            db.executemany("DELETE FROM incidents WHERE place = ? AND day = ? AND name = ?", _keys(scan))
            db.executemany(_PUT, (_row(*one) for one in scan.put))
            db.execute("INSERT OR REPLACE INTO days VALUES (?, ?, ?)", (*scan.day, scan.stamp))
            db.execute("DELETE FROM days WHERE stamp = 'gone'")


def _keys(scan: _Scan) -> list[tuple[str, str, str]]:
    return [(*scan.day, name) for name in scan.gone]


def _gone(db: sqlite3.Connection, day: _Day) -> _Scan:
    return _Scan(day, "gone", [], list(_known(db, day)))


def _known(db: sqlite3.Connection, day: _Day) -> dict[str, str]:
    return dict(db.execute("SELECT name, stamp FROM incidents WHERE place = ? AND day = ?", day).fetchall())


def _scan(db: sqlite3.Connection, folder: Path, day: _Day, stamp: str) -> _Scan:
    """`stamp`: as the folder had it before."""
    path = folder.joinpath(*day)
    known, seen, put, is_settled = _known(db, day), set[str](), [], not _is_racy(path)
    for name, file_stamp in _record_files(path):
        if file_stamp and known.get(name) == file_stamp:
            seen.add(name)
            continue
        record = read_record(path / name)
        summary = summary_of(record) if record is not None else None
        if summary is not None:
            seen.add(name)
            put.append((summary, file_stamp))
        is_settled = is_settled and record is not None  # else perhaps it can be read later
    return _Scan(day, stamp if is_settled else "", put, [name for name in known if name not in seen])


def _record_files(day: Path) -> Iterator[tuple[str, str]]:
    """Names and stamps; "" for a file that may be replaced yet without another stamp."""
    entries = _entries(day)
    kept = {entry.name.removesuffix(KEEP) for entry in entries if entry.name.endswith(KEEP)}
    for entry in entries:
        if fnmatchcase(entry.name, "[!.]*_*.json"):
            with suppress(FileNotFoundError):
                found, mark = entry.stat(), KEEP if entry.name.removesuffix(".json") in kept else ""
                yield entry.name, "" if _is_recent(found) else _stamp(found) + mark


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """None in a folder that was removed a moment ago, or that this user may not read, such as `lost+found`."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _is_racy(folder: Path) -> bool:
    try:
        return _is_recent(folder.stat())
    except FileNotFoundError:
        return True


def _is_recent(found: os.stat_result) -> bool:
    return abs(time.time_ns() - found.st_mtime_ns) < _RACY_NS


def _stamp(found: os.stat_result) -> str:
    """Also of a folder. Copies, and a file that takes another one's place, have another one."""
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _days(folder: Path, wanted: IncidentFilter) -> dict[_Day, str]:
    """Those that matter, with their stamps. Raises OSError."""
    cameras = [ascii_form(wanted.camera)] if wanted.camera else [entry.name for entry in _entries(folder)]
    found = {}
    for place in cameras:
        for entry in _entries(folder / place) if place[:1] != "." else ():
            if fnmatchcase(entry.name, "????-??-??") and _matters(_Day(place, entry.name), wanted):
                with suppress(FileNotFoundError):
                    found[_Day(place, entry.name)] = _stamp(entry.stat())
    return found


def _matters(day: _Day, wanted: IncidentFilter) -> bool:
    is_of_camera = wanted.camera is None or day.place == ascii_form(wanted.camera)
    return is_of_camera and (wanted.since is None or day.day >= wanted.since.date().isoformat())


# ---- who keeps it


class IndexKeeper:
    """Keeps the index of a folder, in a thread of its own: nothing waits for it, and its failures cost no event."""

    def __init__(self, folder: Path, log: Logger) -> None:
        self._folder, self._log = folder, log
        self._touched, self._stop = threading.Event(), threading.Event()
        self._why = ""
        self._thread = threading.Thread(target=self._run, name="incident-index", daemon=True)

    def open(self) -> None:
        """Begin with what has changed since the last run."""
        self.touch()
        self._thread.start()

    def touch(self) -> None:
        """Some records have changed."""
        self._touched.set()

    def close(self) -> None:
        """Complete it if that takes no time; else the next call does so."""
        self._stop.set()
        self.touch()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        self._try(self._check)
        while not self._stop.is_set():
            self._touched.wait()
            self._touched.clear()
            if not self._try(self._refresh):
                self._touched.set()
                self._stop.wait(_AGAIN_S)
            self._stop.wait(_EVERY_S)
        until_s = time.monotonic() + _LAST_S
        self._try(lambda: self._refresh(lambda: time.monotonic() > until_s))

    def _try(self, work: Callable[[], None]) -> bool:
        """Whether it could be done. Says so once if not."""
        why = ""
        try:
            work()
        except OSError as error:
            why = str(error)
        except _FAILURES as error:
            is_anew = self._is_unusable(error) and _set_aside(self._folder)
            why = f"{error}: {'it is made anew' if is_anew else way_out(error)}"
        except Exception:  # noqa: BLE001
            # A bug must cost the index, and nothing else.
            self._log.exception("incident_index_failed")
            why = "a bug"
        if why and why != self._why:
            self._log.warning("incident_index_not_written", folder=str(self._folder), why=why)
        self._why = why
        return not why

    def _is_unusable(self, error: Exception) -> bool:
        """Also one that somebody else has made, who reads the folder as another user."""
        return _is_damage(error) or primary_code(error) == sqlite3.SQLITE_READONLY

    def _check(self) -> None:
        """Once, for it reads all of it."""
        if (self._folder / NAME).exists():
            with _on_disk(self._folder, _PATIENT_S) as db:
                if db.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
                    raise Damaged("it is damaged")

    def _refresh(self, is_over: Callable[[], bool] | None = None) -> None:
        with _on_disk(self._folder, _PATIENT_S) as db:
            _refresh(db, self._folder, IncidentFilter(), is_over or self._stop.is_set)
