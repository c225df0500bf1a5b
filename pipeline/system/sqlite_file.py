"""One SQLite file: opened, brought up to date, found damaged, set aside, closed. Each store on disk has one.

    open ──> new      its tables are made
         ├─> older    its tables are brought up to date, in one transaction
         ├─> newer    EnvironmentProblem: the file stays as it is, for the version that knows it
         ├─> damaged, or of another program    Damaged: `set_aside` renames the file, for a person
         └─> full, locked, read-only           sqlite3.Error: `as_problem` says what to do

A store has a `SqliteFormat` and knows what to do about damage: to save events, to begin anew, or to make the file
again. Damage that SQLite does not notice, such as a value of a wrong type, is for the store to find: the store raises
`Damaged` as well, so one `except sqlite3.Error` meets both kinds.
"""

from __future__ import annotations

import glob
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from camgraph.pipeline.errors import EnvironmentProblem

BESIDE = ("-wal", "-shm", "-journal")
"""The suffixes of the files that SQLite has beside a database."""
DAMAGED = ".damaged"
"""What the name of a file that was set aside goes on with."""
EMPTY_BYTES = 1
"""SQLite takes a file of one byte for an empty one, and begins a new database in it."""
_NO_VERSION = 1000
"""A version this high is a sign of damage."""
_MUCH_ROOM = 8 << 20
"""With this much room, a disk that is said to be full is not."""

# Also what cannot be wrong with fixed statements on a whole file: a missing table or column, a row that is there twice.
_OF_DAMAGE = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_TOOBIG,
)
_WRITABLE = "make the file and its folder writable for this user, on a disk that is not read-only"
_WAYS_OUT = {
    sqlite3.SQLITE_FULL: "free some disk space",
    sqlite3.SQLITE_IOERR: "check that its disk works and has room",
    sqlite3.SQLITE_BUSY: "let no other program lock the file",
    sqlite3.SQLITE_LOCKED: "let no other program lock the file",
    sqlite3.SQLITE_PROTOCOL: "let no other program lock the file",
    sqlite3.SQLITE_READONLY: _WRITABLE,
    sqlite3.SQLITE_PERM: _WRITABLE,
    sqlite3.SQLITE_CANTOPEN: _WRITABLE,
}
_ANY_WAY_OUT = "check that its disk has room and its folder is writable"


class Damaged(sqlite3.DatabaseError):
    """The file is broken, or of another program, or its content is not as it was written. Its text is the reason."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


class Newer(NamedTuple):
    """The problem if a file is of a newer version, and its way out."""

    error_id: str
    way_out: str


@dataclass(frozen=True, slots=True)
class SqliteFormat:
    """What the files of one store are: their tables, their version, and what becomes of other files in their place.

    `name`: what people call the store. `application`, `version`: SQLite's `application_id` and `user_version`.
    `tables`: a file without one of these is of another program. `make` fills a new file, within a transaction.
    `older`: (application, version) of files that `upgrade(db, version)` brings up to date, within a transaction;
    `is_whole` is False for a file of this version that needs it as well. `newer`: of a file of a newer version; without
    it, such a file counts as damaged. `of_new`: pragmas before anything is in a new file. `is_private`: only its user
    can read a new file. `most_aside`: how many damaged files stay, the first and the last ones; None for all.
    """

    name: str
    version: int
    tables: frozenset[str]
    make: Callable[[sqlite3.Connection], None]
    application: int = 0
    older: frozenset[tuple[int, int]] = frozenset()
    upgrade: Callable[[sqlite3.Connection, int], None] | None = None
    is_whole: Callable[[sqlite3.Connection], bool] = lambda _: True
    newer: Newer | None = None
    of_new: Sequence[str] = ()
    is_private: bool = False
    most_aside: int | None = None


Age = Literal["new", "older", "current"]


class SqliteFile:
    """A file of this format. `db`: its connection, from `open` to `close`.

    `pragmas`: of each connection that `open` makes. `busy_s`: how long to wait for another process that has locked the
    file. `is_shared`: several threads use the connection, one at a time.
    """

    def __init__(
        self, path: Path, form: SqliteFormat, *, busy_s: float, pragmas: Sequence[str] = (), is_shared: bool = False
    ) -> None:
        self.path, self._form = path, form
        self._busy_s, self._pragmas, self._is_shared = busy_s, pragmas, is_shared
        self._db: sqlite3.Connection | None = None
        self._looked = False
        """Whether the file was read as a whole because its disk was said to be full."""
        self.upgraded_from: int | None = None
        """The version that the file had when `open` brought it up to date."""

    @property
    def db(self) -> sqlite3.Connection:
        """The connection of an open file."""
        assert self._db is not None
        return self._db

    @property
    def is_open(self) -> bool:
        """False before `open` and after `close`."""
        return self._db is not None

    # ---- opening and closing

    def open(self) -> None:
        """Open the file, or make it. A file that is up to date is not written.

        Raises Damaged, sqlite3.Error and OSError, and EnvironmentProblem for a file of a newer version.
        """
        was_there = self.path.exists()
        try:
            if self._form.is_private:
                self._create()
            self._db = self._connect("rwc")
            self._prepare(self._db)
        except BaseException:
            self._give_up(was_there=was_there)
            raise

    def _create(self) -> None:
        """A new file is its user's alone; SQLite gives the files beside it the same permissions."""
        with suppress(OSError):  # it is there, or SQLite meets the same error, and has words for it
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))

    def _connect(self, mode: Literal["ro", "rw", "rwc"], busy_s: float | None = None) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=self._busy_s if busy_s is None else busy_s,
            check_same_thread=not self._is_shared,
        )

    def _prepare(self, db: sqlite3.Connection) -> None:
        age = self.age(db)
        for pragma in (*(self._form.of_new if age == "new" else ()), *self._pragmas):
            db.execute(f"PRAGMA {pragma}")
        if age != "current":
            with transaction(db):
                self._bring_up_to_date(db)

    def _bring_up_to_date(self, db: sqlite3.Connection) -> None:
        age = self.age(db)  # another process may have done it until the transaction began
        if age == "current":
            return
        if age == "new":
            self._form.make(db)
        elif self._form.upgrade is not None:
            self.upgraded_from = _number(db, "user_version")
            self._form.upgrade(db, self.upgraded_from)
        db.execute(f"PRAGMA application_id = {self._form.application}")
        db.execute(f"PRAGMA user_version = {self._form.version}")

    def age(self, db: sqlite3.Connection) -> Age:
        """What `open` has to do. Raises Damaged for another program's, and EnvironmentProblem for a newer version's."""
        application, version = _number(db, "application_id"), _number(db, "user_version")
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            if application or version or _number(db, "page_count") > 1:
                raise Damaged("its tables are gone")
            return "new"
        form, known = self._form, (application, version)
        if form.newer and application == form.application and form.version < version < _NO_VERSION:
            raise self._newer(version, form.newer)
        if known not in {(form.application, form.version), *form.older} or not tables >= form.tables:
            raise Damaged("it is a database of another program")
        return "current" if version == form.version and form.is_whole(db) else "older"

    def _newer(self, version: int, newer: Newer) -> EnvironmentProblem:
        return EnvironmentProblem(
            f"{self._form.name} {self.path} is of a newer version of camgraph (its format is {version}, this version "
            f"knows {self._form.version}): run that version, or {newer.way_out}",
            error_id=newer.error_id,
        )

    def _give_up(self, *, was_there: bool) -> None:
        """Close the file, and remove an empty one that was begun, as on a full disk: later it would look damaged."""
        self.close()
        with suppress(OSError):
            if not was_there and self.path.stat().st_size <= EMPTY_BYTES:
                self.path.unlink()

    def close(self) -> None:
        """Close the connection, if there is one."""
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own that writes nothing, to the file as it is. Raises sqlite3.Error."""
        with closing(self._connect("ro")) as db:
            yield db

    @contextmanager
    def unchecked(self) -> Iterator[sqlite3.Connection]:
        """A connection to the file, whatever it is, to save what can be read of it. Raises sqlite3.Error."""
        with closing(self._connect("rw")) as db:
            yield db

    # ---- damage

    def why_damaged(self, error: Exception) -> str:
        """What is wrong with the file, by an error that its use has raised; "" if the error passes with time."""
        return str(error) if is_damage(error) else self._broken_page(error)

    def _broken_page(self, error: Exception) -> str:
        """What is wrong with the file if SQLite takes a broken page for a full disk. The whole file is read, once."""
        if self._db is None or self._looked or not is_full(error):
            return ""
        with suppress(sqlite3.Error, OSError):
            if shutil.disk_usage(self.path.parent).free >= _MUCH_ROOM:
                self._looked = True
                found = str(self._db.execute("PRAGMA quick_check(1)").fetchone()[0])
                return "" if found == "ok" else found
        return ""

    def set_aside(self, at: datetime | None = None) -> Path:
        """Close the file and rename it, with the files beside it; returns the new path. Raises OSError.

        `at`: the time for its name; by default that of this moment.
        """
        self.close()
        aside = self._free_name(at or datetime.now(UTC))
        self.path.rename(aside)
        self._take_along(aside)
        if self._form.most_aside is not None:
            for old in self.asides()[1 : 1 - self._form.most_aside or None]:
                remove(old)
        return aside

    def _free_name(self, at: datetime) -> Path:
        """Behind all others of the same second, also those that were removed since."""
        name = f"{self.path.name}{DAMAGED}-{at:%Y%m%dT%H%M%SZ}"
        ends = [aside.name[len(name) + 1 :] for aside in self.asides() if aside.name.startswith(name)]
        number = max((int(end) if end.isdecimal() else 1 for end in ends), default=0)
        return self.path.with_name(f"{name}-{number + 1:02}" if number else name)

    def _take_along(self, aside: Path) -> None:
        """The changes that are in SQLite's log alone belong to the file that was set aside."""
        for suffix in BESIDE:
            beside = Path(f"{self.path}{suffix}")
            with suppress(OSError):
                if suffix == "-shm":
                    beside.unlink()
                else:
                    beside.rename(f"{aside}{suffix}")

    def finish_set_aside(self) -> None:
        """After the death of a process between the renames of `set_aside`: take the rest along.

        SQLite would play a log that is left into the file that is put in this place.
        """
        for aside in self.asides()[-1:]:
            self._take_along(aside)

    def asides(self) -> list[Path]:
        """The damaged files, the oldest first."""
        found = self.path.parent.glob(f"{glob.escape(self.path.name + DAMAGED)}*")
        return sorted(path for path in found if not path.name.endswith(BESIDE))

    # ---- removing

    def remove_unless(self, is_needed: Callable[[sqlite3.Connection], bool]) -> bool:
        """Remove the file and what SQLite has beside it, unless the file is needed; returns whether it was removed.

        While another process has the file open, that raises sqlite3.Error. Raises OSError as well.
        """
        with closing(self._connect("rw", busy_s=0.0)) as db:
            if is_needed(db):
                return False
            db.execute("PRAGMA synchronous = OFF")
            db.execute("PRAGMA journal_mode = DELETE")  # which SQLite refuses while another process has the file open
            db.execute("BEGIN EXCLUSIVE")
            if is_needed(db):
                return False
            self.path.unlink()
        return True


def remove(path: Path) -> None:
    """Remove a database that nobody uses, with the files beside it."""
    for suffix in ("", *BESIDE):
        with suppress(OSError):
            Path(f"{path}{suffix}").unlink()


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Run the block in one transaction, which is on the disk when the block is left without an exception."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            with suppress(sqlite3.Error):  # the first error says more
                db.execute("ROLLBACK")
        raise


def checkpoint(db: sqlite3.Connection) -> None:
    """Move the write-ahead log into the file, and truncate the log. Raises sqlite3.Error."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])


# ---- errors


def primary_code(error: Exception) -> int:
    """SQLite's primary result code; 0 if the error has none, such as one of Python's own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_damage(error: Exception) -> bool:
    """Whether waiting would not help: the file is damaged, or is none of SQLite's."""
    is_no_text = str(error).startswith("Could not decode")  # Python's own error, without a code
    return isinstance(error, sqlite3.Error) and (primary_code(error) in _OF_DAMAGE or is_no_text)


def is_full(error: Exception) -> bool:
    """Whether the disk may be full: SQLite says so, or that it cannot write."""
    return primary_code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def way_out(error: Exception) -> str:
    """What a person can do about an error that passes with time."""
    return _WAYS_OUT.get(primary_code(error), _ANY_WAY_OUT)


def as_problem(what: str, error: Exception, error_id: str) -> EnvironmentProblem:
    """The problem for a person: what cannot be done, why, and the way out."""
    return EnvironmentProblem(f"{what}: {error}: {way_out(error)}", error_id=error_id)
