"""The index of incidents: it answers as the records do, whatever has become of it or of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog
from camgraph_test_stages.waiting import until
from hypothesis import given, settings
from hypothesis import strategies as st

from camgraph.stages.sinks.footage import incident_index
from camgraph.stages.sinks.footage.incident_index import (
    NAME,
    IncidentFilter,
    IncidentSummary,
    IndexKeeper,
    incidents_in,
    summary_of,
)
from camgraph.stages.sinks.footage.incident_record import FileState, IncidentRecord, read_record, records_in
from camgraph.stages.sinks.footage.retention import remove

EVERY = IncidentFilter()
RULES = ("fall", "waving", "running")


def set_aside(folder: Path) -> list[Path]:
    """The damaged indexes of a folder."""
    return list(folder.glob(f"{NAME}.damaged-*"))


def keep(folder: Path, number: int, *, camera: str = "front") -> IncidentRecord:
    """One of the day `number` of a month, at noon."""
    start, rule = f"2026-11-{number % 28 + 1:02d}T12:00:{number % 60:02d}.000Z", RULES[number % len(RULES)]
    data: dict[str, Any] = {
        "incident": f"{number:032x}",
        "phase": "start",
        "rule": {"id": f"{rule}-{number % 2}"},
        "action": rule,
        "camera": camera,
        "start_time": start,
    }
    path = folder / camera / start[:10] / f"12-00-{number % 60:02d}_{rule}_{number:08x}.json"
    files = {"snapshot": FileState("ready", bytes=number), "clip": FileState("pending"), "best": FileState("missing")}
    record = IncidentRecord(path, {"data": data}, {}, files)  # type: ignore[arg-type]
    record.write()
    return record


def settle(folder: Path) -> None:
    """As if nothing had changed for a while."""
    earlier = time.time() - 60
    for path in (*folder.glob("*/*/*.json"), *folder.glob("*/*")):
        os.utime(path, (earlier, earlier))


@pytest.fixture
def footage(tmp_path: Path) -> Path:
    """Six incidents of two cameras, with an index that needs no record any more."""
    folder = tmp_path / "footage"
    for number in range(1, 7):
        keep(folder, number, camera="front" if number % 2 else "back")
    settle(folder)
    incidents_in(folder, EVERY)
    return folder


def truth(folder: Path) -> list[IncidentSummary]:
    """As the records have it."""
    found = [summary for record in records_in(folder) if (summary := summary_of(record))]
    return sorted(found, key=lambda one: (one.day, one.name, one.place))


def rows(folder: Path) -> int:
    with closing(sqlite3.connect(folder / NAME)) as db:
        return int(db.execute("SELECT count(*) FROM incidents").fetchone()[0])


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """The records that are read meanwhile."""
    read: list[Path] = []

    def reading(path: Path) -> IncidentRecord | None:
        read.append(path)
        return read_record(path)

    with monkeypatch.context() as patch:
        patch.setattr(incident_index, "read_record", reading)
        yield read


def test_no_record_is_read_twice(footage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as read:
        assert incidents_in(footage, EVERY) == truth(footage) != []
        assert read == []
        changed = keep(footage, 3)
        assert incidents_in(footage, EVERY) == truth(footage)
        assert read == [changed.path]


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (IncidentFilter(camera="front"), [1, 3, 5]),
        (IncidentFilter(camera="nobody"), []),
        (IncidentFilter(rule="fall"), [3, 6]),
        (IncidentFilter(rule="fall-1"), [3]),
        (IncidentFilter(since=datetime(2026, 11, 5, 12, 0, 5, tzinfo=UTC)), [5, 6]),
        (IncidentFilter(since=datetime(2026, 11, 5, 12, 0, 4, tzinfo=UTC)), [4, 5, 6]),
        (IncidentFilter(incident="0" * 31 + "2"), [2]),
        (IncidentFilter(incident="%"), []),
        (IncidentFilter(newest=2), [5, 6]),
        (IncidentFilter(camera="back", rule="running", newest=1), [2]),
    ],
)
def test_filters(footage: Path, wanted: IncidentFilter, numbers: list[int]) -> None:
    assert [int(one.incident, 16) for one in incidents_in(footage, wanted)] == numbers


@pytest.mark.parametrize(
    "name", ["../elsewhere", "front/../../elsewhere", "{elsewhere}", ".", "..", "a\0b", "a" * 5000]
)
def test_a_name_of_a_camera_leads_nowhere_else(footage: Path, name: str) -> None:
    elsewhere = footage.parent / "elsewhere"
    keep(footage.parent, 9, camera="elsewhere")
    camera = name.format(elsewhere=elsewhere)
    before = truth(footage)
    assert incidents_in(footage, IncidentFilter(camera)) == []
    assert list(records_in(footage, camera=camera)) == []
    assert incidents_in(footage, EVERY) == before
    assert not set_aside(footage)


def mark(record: IncidentRecord) -> None:
    record.mark_keep(True)


def rewrite(record: IncidentRecord) -> None:
    record.last = {"data": {"duration_s": 3.5}}
    record.write()


def in_the_way(record: IncidentRecord) -> None:
    record.path.write_text("somebody has written over it")


CHANGES: list[Callable[[IncidentRecord], object]] = [mark, rewrite, remove, lambda record: record.path.unlink()]


@pytest.mark.parametrize("is_settled", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_behind_its_back_is_seen(
    footage: Path, change: Callable[[IncidentRecord], object], is_settled: bool
) -> None:
    before = incidents_in(footage, EVERY)
    record = read_record(before[2].path(footage))
    assert record is not None
    change(record)
    if is_settled:
        settle(footage)
    after = incidents_in(footage, EVERY)
    assert after == truth(footage) != before


def test_a_camera_that_is_removed_and_another_that_comes(footage: Path) -> None:
    shutil.rmtree(footage / "back")
    keep(footage, 9, camera="yard")
    assert {one.camera for one in incidents_in(footage, EVERY)} == {"front", "yard"}
    assert rows(footage) == 4


def test_changes_within_one_tick_of_the_clock_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the time of the folder nor that of the file changes then."""
    monkeypatch.setattr(incident_index, "_stamp", lambda _: "one tick")
    record = keep(tmp_path, 1)
    for size in range(3):
        record.files["snapshot"].bytes = size
        record.write()
        assert [one.snapshot_bytes for one in incidents_in(tmp_path, EVERY)] == [size]


def test_a_copy_of_a_folder_trusts_no_stamp(footage: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(footage, copy)
    gone = next(copy.glob("front/*/*.json"))
    found = gone.parent.stat()
    gone.unlink()
    os.utime(gone.parent, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert len(incidents_in(copy, EVERY)) == 5


def change_a_value(path: Path) -> None:
    """SQLite takes it for good."""
    data = path.read_bytes()
    path.write_bytes(data.replace(b"fall", b"Fall"))


def a_link(path: Path) -> None:
    other = path.with_name("precious")
    path.rename(other)
    path.symlink_to(other)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: list[Callable[[Path], object]] = [
    lambda path: path.write_bytes(b"garbage" * 5000),
    change_a_value,
    a_link,
    a_folder,
]
"""`tests/test_store_contract.py` has more."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_one_that_is_lost_or_damaged_is_made_anew(
    footage: Path, damage: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(footage / NAME)
    assert incidents_in(footage, EVERY) == truth(footage) != []
    with counted(monkeypatch) as read:
        assert incidents_in(footage, EVERY) == truth(footage)
        assert read == [], "it is there again"


def test_incidents_that_an_index_hides_are_listed(footage: Path) -> None:
    """As a flipped bit in the number of a page's rows does, which SQLite does not notice."""
    before, hidden = truth(footage), " WHERE phase = 'over'"
    with closing(sqlite3.connect(footage / NAME, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = sql || ? WHERE name = 'by_day'", (hidden,))
        db.execute("PRAGMA writable_schema = RESET")
        db.execute("REINDEX by_day")
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, ?, '') WHERE name = 'by_day'", (hidden,))
    incident_index.checked.clear()
    assert incidents_in(footage, EVERY) == before
    assert set_aside(footage)


@settings(max_examples=30, deadline=None)
@given(where=st.integers(0, 60_000), data=st.binary(min_size=1, max_size=600))
def test_no_damage_changes_an_answer(tmp_path_factory: pytest.TempPathFactory, where: int, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    keep(folder, 1)
    keep(folder, 3)
    incidents_in(folder, EVERY)
    with (folder / NAME).open("r+b") as file:
        file.seek(where % (folder / NAME).stat().st_size)
        file.write(data)
    assert incidents_in(folder, EVERY) == truth(folder)


def test_a_lock_is_not_waited_for(footage: Path) -> None:
    with closing(sqlite3.connect(footage / NAME, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        keep(footage, 7)
        assert incidents_in(footage, EVERY) == truth(footage)
        assert not set_aside(footage)
    assert len(incidents_in(footage, EVERY)) == rows(footage) == 7


KILLED = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 1")
db.execute("BEGIN IMMEDIATE")
db.execute("UPDATE incidents SET action = hex(randomblob(3000))")
print("in the middle", flush=True)
sys.stdin.read()
"""


def test_a_kill_while_it_is_written(footage: Path) -> None:
    """Between a record and the index, and in the middle of a transaction that has reached the disk in part."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", KILLED, str(footage / NAME)], stdin=pipe, stdout=pipe) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline()
        keep(footage, 8)
        writer.send_signal(signal.SIGKILL)
    assert (footage / f"{NAME}-journal").stat().st_size
    assert incidents_in(footage, EVERY) == truth(footage)
    assert rows(footage) == 7


FOREIGN: list[Any] = [
    {"incident": "1", "camera": "c"},
    {"incident": "1", "camera": "c", "rule": {"id": "r"}, "action": "a", "phase": "single", "start_time": "soon"},
    {"incident": "1", "camera": "\ud800", "rule": {"id": "r"}, "action": "a", "phase": "single", "start_time": "2026"},
    ["incident"],
]


@pytest.mark.parametrize("data", FOREIGN)
def test_a_foreign_record_costs_nothing(footage: Path, data: Any) -> None:
    before = incidents_in(footage, EVERY)
    foreign = {"first": {"data": data}, "last": {}, "snapshot": {}, "clip": {}}
    (footage / "front" / "2026-11-02" / "12_my_notes.json").write_text(json.dumps(foreign))
    (footage / "front" / "2026-11-02" / "12_list.json").write_text("[1, 2")
    assert incidents_in(footage, EVERY) == before


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, 1 << 64, "many", True])
def test_no_size_of_a_file_is_believed(tmp_path: Path, value: Any) -> None:
    record = keep(tmp_path, 1)
    record.files["snapshot"].bytes = value
    record.write()
    assert incidents_in(tmp_path, EVERY) == truth(tmp_path)


def test_the_same_without_a_right_to_write(small_disk: Path) -> None:
    folder = small_disk / "footage"
    for number in (1, 2):
        keep(folder, number)
    settle(folder)
    incidents_in(folder, EVERY)
    keep(folder, 3)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert incidents_in(folder, EVERY) == truth(folder)
    assert len(truth(folder)) == 3
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    (folder / NAME).unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert incidents_in(folder, EVERY) == truth(folder)


@contextmanager
def keeping(folder: Path) -> Iterator[IndexKeeper]:
    keeper = IndexKeeper(folder, structlog.get_logger())
    keeper.open()
    try:
        yield keeper
    finally:
        keeper.close()


def test_the_keeper_writes_what_it_finds_and_what_comes(footage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incident_index, "_EVERY_S", 0.01)
    (footage / NAME).write_bytes(b"garbage" * 5000)
    with keeping(footage) as keeper:
        until(lambda: set_aside(footage) and (footage / NAME).exists() and _rows_or_none(footage) == 6)
        keep(footage, 7)
        keeper.touch()
        until(lambda: _rows_or_none(footage) == 7)
        remove(keep(footage, 7))
        keeper.touch()
        until(lambda: _rows_or_none(footage) == 6)
        keep(footage, 8)
    assert rows(footage) == 7, "completed at the end"


def _rows_or_none(folder: Path) -> int | None:
    with suppress(sqlite3.Error):
        return rows(folder)
    return None


def test_the_keeper_outlives_a_full_disk(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incident_index, "_EVERY_S", 0.01)
    monkeypatch.setattr(incident_index, "_AGAIN_S", 0.01)
    folder = small_disk / "footage"
    keep(folder, 1)
    filler = small_disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(1024)):
            pass
    assert len(incidents_in(folder, EVERY)) == 1
    with keeping(folder):
        filler.unlink()
        until(lambda: _rows_or_none(folder) == 1)


def test_no_index_without_incidents(tmp_path: Path) -> None:
    assert incidents_in(tmp_path, EVERY) == []
    with keeping(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_summary_says_how_it_is(tmp_path: Path) -> None:
    record = keep(tmp_path, 3)
    running = summary_of(record)
    assert running is not None
    record.last = {"data": {"duration_s": 8.5}}
    record.mark_keep(True)
    assert summary_of(record) == replace(running, phase="over", duration_s=8.5, keep=1)
