"""A file of SQLite, whatever lies in its place and whoever dies: `tests/test_store_contract.py` has the stores."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages import small_disks

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.system import sqlite_file
from camgraph.pipeline.system.sqlite_file import (
    Damaged,
    Newer,
    SqliteFile,
    SqliteFormat,
    as_problem,
    is_damage,
    transaction,
)

OURS = 0x746E7473


def make(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE plants (name TEXT, height INTEGER)")


def add_height(db: sqlite3.Connection, version: int) -> None:
    assert version == 1
    db.execute("ALTER TABLE plants ADD COLUMN height INTEGER")


FORM = SqliteFormat(
    name="the herbarium",
    version=2,
    tables=frozenset({"plants"}),
    make=make,
    application=OURS,
    older=frozenset({(OURS, 1)}),
    upgrade=add_height,
    newer=Newer(error_id="outbox-newer", way_out="press new plants"),
    of_new=("auto_vacuum = INCREMENTAL",),
    most_aside=3,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """With what means something else in an address."""
    folder = tmp_path / "50 % of? #1"
    folder.mkdir()
    return folder / "plants.sqlite"


def opened(path: Path, form: SqliteFormat = FORM, **more: Any) -> SqliteFile:
    file = SqliteFile(path, form, busy_s=0.05, pragmas=("journal_mode = WAL", "synchronous = FULL"), **more)
    file.open()
    return file


def plant(path: Path, *names: str) -> None:
    with closing(opened(path)) as file, transaction(file.db):
        file.db.executemany("INSERT INTO plants (name) VALUES (?)", [(name,) for name in names])


def plants(path: Path) -> list[str]:
    with closing(opened(path)) as file:
        return [name for (name,) in file.db.execute("SELECT name FROM plants")]


def foreign(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


OLDER = ("CREATE TABLE plants (name TEXT)", f"PRAGMA application_id = {OURS}", "PRAGMA user_version = 1")


# ---- opening


def test_a_file_that_is_up_to_date_is_not_written(path: Path) -> None:
    plant(path, "moss")
    before = path.read_bytes()
    assert plants(path) == ["moss"]
    assert path.read_bytes() == before


def test_a_new_file_is_one_that_gives_space_back(path: Path) -> None:
    with closing(opened(path)) as file:
        assert file.db.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert file.upgraded_from is None


def test_an_older_file_is_brought_up_to_date(path: Path) -> None:
    foreign(path, *OLDER, "INSERT INTO plants VALUES ('fern')")
    with closing(opened(path)) as file:
        assert file.upgraded_from == 1
        assert file.db.execute("SELECT * FROM plants").fetchall() == [("fern", None)]
        assert file.db.execute("PRAGMA user_version").fetchone() == (2,)


def test_an_upgrade_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    foreign(path, *OLDER)

    def fail(db: sqlite3.Connection, version: int) -> None:
        add_height(db, version)
        raise sqlite3.OperationalError("database or disk is full")

    with pytest.raises(sqlite3.OperationalError, match="full"):
        opened(path, replace(FORM, upgrade=fail))
    with closing(sqlite3.connect(path)) as db:
        assert [row[1] for row in db.execute("PRAGMA table_info(plants)")] == ["name"]
        assert db.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_file_that_another_process_has_made_meanwhile_is_taken(path: Path) -> None:
    """Both find it new; the other one is the first to lock it."""
    first = SqliteFile(path, FORM, busy_s=0.05)
    age = first.age

    def found_new(db: sqlite3.Connection) -> str:
        first.age = age  # type: ignore[method-assign]
        found = age(db)
        plant(path, "moss")
        return found

    first.age = found_new  # type: ignore[method-assign,assignment]
    first.open()
    assert first.db.execute("SELECT name FROM plants").fetchall() == [("moss",)]
    first.close()


def test_a_newer_file_stays_as_it_is(path: Path) -> None:
    plant(path, "moss")
    foreign(path, "PRAGMA user_version = 3")
    before = path.read_bytes()
    with pytest.raises(EnvironmentProblem, match=r"the herbarium .* \(its format is 3, .* knows 2\).*press new plants"):
        opened(path)
    assert path.read_bytes() == before


STRANGE: list[tuple[str, Callable[[Path], object], str]] = [
    ("another program's", lambda path: foreign(path, "PRAGMA application_id = 9"), "another program"),
    ("without our table", lambda path: foreign(path, "DROP TABLE plants", "CREATE TABLE a (a)"), "another program"),
    ("without any table", lambda path: foreign(path, "DROP TABLE plants"), "tables are gone"),
    ("a version beyond reason", lambda path: foreign(path, "PRAGMA user_version = 70000"), "another program"),
    ("no database", lambda path: path.write_bytes(b"garbage" * 5000), "not a database"),
    ("cut off", lambda path: path.write_bytes(path.read_bytes()[:5000]), "malformed"),
]


@pytest.mark.parametrize(("change", "why"), [case[1:] for case in STRANGE], ids=[case[0] for case in STRANGE])
def test_what_is_none_of_ours_is_damaged(path: Path, change: Callable[[Path], object], why: str) -> None:
    plant(path, *"abc" * 500)
    change(path)
    with pytest.raises(sqlite3.DatabaseError, match=why) as met:
        plants(path)
    assert is_damage(met.value)


def test_without_a_way_out_a_newer_file_counts_as_damaged(path: Path) -> None:
    plant(path, "moss")
    foreign(path, "PRAGMA user_version = 3")
    with pytest.raises(Damaged):
        opened(path, replace(FORM, newer=None))


@pytest.mark.parametrize("was_there", [False, True])
def test_an_empty_file_that_was_begun_in_vain_is_removed(path: Path, was_there: bool) -> None:
    if was_there:
        path.touch()

    def fail(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with pytest.raises(sqlite3.OperationalError, match="full"):
        SqliteFile(path, replace(FORM, make=fail, of_new=()), busy_s=0.05).open()
    assert path.exists() is was_there


@pytest.mark.parametrize("is_private", [False, True])
def test_a_private_file_is_its_users_alone(path: Path, is_private: bool) -> None:
    with closing(opened(path, replace(FORM, is_private=is_private))) as file:
        file.db.execute("INSERT INTO plants (name) VALUES ('moss')")
        modes = {stat.S_IMODE(found.stat().st_mode) for found in path.parent.iterdir()}
    assert (modes == {0o600}) is is_private


def test_reading_writes_nothing_and_waits_for_nobody(path: Path) -> None:
    with closing(opened(path)) as file:
        file.db.execute("INSERT INTO plants (name) VALUES ('moss')")
        file.db.execute("BEGIN IMMEDIATE")
        with file.reading() as db:
            assert db.execute("SELECT name FROM plants").fetchall() == [("moss",)]
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                db.execute("DELETE FROM plants")


# ---- setting aside


def test_what_was_set_aside_can_be_read_with_its_log(path: Path) -> None:
    """As after a kill: the last changes are in the log alone."""
    plant(path, "moss")
    copy = path.with_name("killed.sqlite")
    with closing(opened(path)) as file:
        file.db.execute("INSERT INTO plants (name) VALUES ('fern')")
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    aside = SqliteFile(copy, FORM, busy_s=0.05).set_aside(datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC))
    assert aside.name == "killed.sqlite.damaged-20260301T123005Z"
    assert list(path.parent.glob("killed.sqlite-*")) == []
    assert plants(aside) == ["moss", "fern"]


def test_no_file_that_was_set_aside_is_overwritten(path: Path) -> None:
    """The first and the last ones stay, also of one second."""
    file, at = SqliteFile(path, FORM, busy_s=0.05), datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC)
    for number in range(5):
        path.write_text(str(number))
        file.set_aside(at)
    assert [aside.read_text() for aside in file.asides()] == ["0", "3", "4"]


def test_setting_aside_is_finished_after_a_death(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = SqliteFile(path, FORM, busy_s=0.05)
    path.write_text("database")
    Path(f"{path}-wal").write_text("log")
    with monkeypatch.context() as death:
        death.setattr(SqliteFile, "_take_along", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            file.set_aside()
    file.finish_set_aside()
    [aside] = file.asides()
    assert (aside.read_text(), Path(f"{aside}-wal").read_text()) == ("database", "log")
    assert not Path(f"{path}-wal").exists()


# ---- errors


def coded(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("as SQLite says")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize("code", [sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CORRUPT_INDEX, sqlite3.SQLITE_NOTADB])
def test_a_broken_file_is_damaged(code: int) -> None:
    assert is_damage(coded(code))


@pytest.mark.parametrize(
    ("code", "way_out"),
    [
        (sqlite3.SQLITE_FULL, "free some disk space"),
        (sqlite3.SQLITE_IOERR_WRITE, "check that its disk works"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "let no other program lock"),
        (sqlite3.SQLITE_PROTOCOL, "let no other program lock"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "make the file and its folder writable"),
        (sqlite3.SQLITE_CANTOPEN, "make the file and its folder writable"),
        (sqlite3.SQLITE_INTERRUPT, "check that its disk has room"),
    ],
)
def test_an_error_that_passes_is_no_damage_and_has_a_way_out(path: Path, code: int, way_out: str) -> None:
    assert not is_damage(coded(code))
    assert f"it cannot be used: as SQLite says: {way_out}" in str(as_problem("it cannot be used", coded(code), "x"))


def test_text_that_is_none_is_damage(path: Path) -> None:
    plant(path, "moss")
    foreign(path, "UPDATE plants SET name = CAST(x'ff' AS TEXT)")
    with pytest.raises(sqlite3.OperationalError) as met:
        plants(path)
    assert is_damage(met.value)


@pytest.mark.parametrize(
    ("free", "is_broken", "is_said"), [(1 << 30, True, True), (1 << 30, False, False), (9, True, False)]
)
def test_a_broken_page_that_is_taken_for_a_full_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch, free: int, is_broken: bool, is_said: bool
) -> None:
    plant(path, *"abc" * 5000)
    if is_broken:
        with path.open("r+b") as raw:
            raw.seek(4 * 4096)
            raw.write(b"\xa5" * 4096)
    monkeypatch.setattr(sqlite_file.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1 << 40, 0, free))  # type: ignore[attr-defined]
    with closing(opened(path)) as file:
        assert bool(file.why_damaged(coded(sqlite3.SQLITE_FULL))) is is_said
        assert file.why_damaged(coded(sqlite3.SQLITE_FULL)) == "" or not is_said or free == 9, "the file is read once"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disks.small_disk(tmp_path, 6) as disk:
        yield disk


def test_a_medium_that_is_read_only_is_read(small_disk: Path) -> None:
    path, form = small_disk / "plants.sqlite", replace(FORM, of_new=())
    first = SqliteFile(path, form, busy_s=0.05)
    first.open()
    first.db.execute("INSERT INTO plants (name) VALUES ('moss')")
    first.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    again = SqliteFile(path, form, busy_s=0.05)
    again.open()
    assert again.db.execute("SELECT name FROM plants").fetchall() == [("moss",)]
    with pytest.raises(sqlite3.OperationalError) as met:
        again.db.execute("DELETE FROM plants")
    assert "on a disk that is not read-only" in str(as_problem("it cannot be used", met.value, "x"))
    again.close()


# ---- removing


@pytest.mark.parametrize("is_needed", [False, True])
def test_a_file_that_is_needed_is_not_removed(path: Path, is_needed: bool) -> None:
    plant(path, "moss")
    assert SqliteFile(path, FORM, busy_s=0.05).remove_unless(lambda _: is_needed) is not is_needed
    assert bool(list(path.parent.iterdir())) is is_needed


def test_a_file_that_is_open_elsewhere_is_not_removed(path: Path) -> None:
    with closing(opened(path)) as other:
        other.db.execute("INSERT INTO plants (name) VALUES ('moss')")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            SqliteFile(path, FORM, busy_s=0.05).remove_unless(lambda _: False)
    assert plants(path) == ["moss"]
