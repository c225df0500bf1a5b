"""A file that is broken, or none of ours, costs the run nothing, and as few events as possible."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.outboxes import crash, deliver, fill, make_event, open_outbox, pull_ids
from structlog.testing import capture_logs

from camgraph.pipeline.errors import EnvironmentProblem, NeedsNewProcess
from camgraph.pipeline.monitoring.outcome import UNSURE
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.outbox.outbox_view import OutboxView
from camgraph.pipeline.system.sqlite_file import SqliteFile
from camgraph.pipeline.testing import reports_of

PAGE = 4096


def kept_aside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("outbox.sqlite.damaged-*") if not path.name.endswith("-wal"))


def overwrite(path: Path, first_page: int, pages: int) -> None:
    with path.open("r+b") as file:
        file.seek(first_page * PAGE)
        file.write(b"\xa5" * PAGE * pages)


def use(outbox: Outbox) -> None:
    """Read and write all of it."""
    while pull_ids(outbox, most=10):
        pass
    outbox.accept([make_event(n) for n in range(400, 500)])


def closed_file(folder: Path, events: int, *, size: int = 2000) -> Path:
    """A file with so many events, all of it moved out of SQLite's log."""
    outbox = open_outbox(folder)
    outbox.accept([make_event(n, size=size) for n in range(events)])
    outbox.close()
    return folder / "outbox.sqlite"


def test_what_is_no_database_is_set_aside(tmp_path: Path) -> None:
    content = b"SQLite format 3\0" + b"?" * 9000
    (tmp_path / "outbox.sqlite").write_bytes(content)
    with capture_logs() as logs:
        outbox = open_outbox(tmp_path, wall_ns=lambda: 1_772_368_205_000_000_000)
    outbox.accept([make_event(1)])
    assert pull_ids(outbox) == ["e1"]
    assert kept_aside(tmp_path) == ["outbox.sqlite.damaged-20260301T123005Z"]
    assert (tmp_path / kept_aside(tmp_path)[0]).read_bytes() == content
    [line] = [line for line in logs if line["event"] == "outbox_set_aside"]
    assert (line["log_level"], line["saved"]) == ("error", 0)
    assert "damaged-20260301T123005Z .recover" in line["recover"]
    outbox.close()


def test_events_that_can_be_read_are_saved(tmp_path: Path) -> None:
    path = closed_file(tmp_path, 200)
    with closing(sqlite3.connect(path)) as db:
        [page] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'readers'").fetchone()
    overwrite(path, page - 1, 1)
    with capture_logs() as logs:
        outbox = open_outbox(tmp_path, incarnation=2)
    assert pull_ids(outbox) == [f"e{n}" for n in range(200)]
    [line] = [line for line in logs if line["event"] == "outbox_set_aside"]
    assert (line["saved"], line["not_readable"]) == (200, 0)
    outbox.accept([make_event(5), make_event(999)])
    assert pull_ids(outbox) == ["e999"], "ids of before are still known"
    outbox.close()


def test_of_a_broken_table_the_rest_is_saved(tmp_path: Path) -> None:
    path = closed_file(tmp_path, 300)
    pages = path.stat().st_size // PAGE
    overwrite(path, pages * 2 // 3, 8)
    first = open_outbox(tmp_path, incarnation=2)
    with pytest.raises(NeedsNewProcess, match="is broken"):
        use(first)
    crash(first)
    with capture_logs() as logs:
        again = open_outbox(tmp_path, incarnation=3)
    [line] = [line for line in logs if line["event"] == "outbox_set_aside"]
    found = pull_ids(again)
    assert len(found) == line["saved"] == 300 - line["not_readable"]
    assert 200 < len(found) < 300
    assert set(found) <= {f"e{n}" for n in range(300)}
    again.accept([make_event(1000)])
    assert pull_ids(again) == ["e1000"]
    again.close()
    assert len(kept_aside(tmp_path)) == 1
    assert not (tmp_path / "outbox.sqlite-damaged").exists()


def test_with_a_broken_backlog_all_events_are_saved(tmp_path: Path) -> None:
    path = closed_file(tmp_path, 3000, size=0)
    with closing(sqlite3.connect(path)) as db:
        [page] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'pending'").fetchone()
    overwrite(path, page - 1, 1)
    with capture_logs() as logs:
        outbox = open_outbox(tmp_path, incarnation=2)
    found: list[str] = []
    while some := deliver(outbox):
        found += some
    assert found == [f"e{n}" for n in range(3000)]
    [line] = [line for line in logs if line["event"] == "outbox_set_aside"]
    assert (line["saved"], line["not_readable"]) == (3000, 0)
    outbox.close()


def test_a_file_that_has_seen_many_events_is_saved_as_fast(tmp_path: Path) -> None:
    """Rows count up for the life of a file: those that are no more must cost nothing."""
    path = closed_file(tmp_path, 50)
    with closing(sqlite3.connect(path)) as db:
        for table in ("events", "pending"):
            db.execute(f"UPDATE {table} SET row = row + 50000000")
        db.execute("UPDATE sqlite_sequence SET seq = 50000050 WHERE name = 'events'")
        db.commit()
        [page] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'pending'").fetchone()
    overwrite(path, page - 1, 1)
    outbox = open_outbox(tmp_path, incarnation=2)
    assert pull_ids(outbox) == [f"e{n}" for n in range(50)]
    outbox.close()


def opened_at_last(folder: Path, **more: Any) -> tuple[Outbox, list[str], list[dict[str, Any]]]:
    """The outbox of the next run, the ids that it hands out, and what was logged; after as many starts as it takes."""
    with capture_logs() as logs:
        for incarnation in range(1, 5):
            outbox = open_outbox(folder, run=2, incarnation=incarnation, **more)
            try:
                outbox.maintain(0.0)
                return outbox, pull_ids(outbox), [line for line in logs if line["event"] == "outbox_set_aside"]
            except NeedsNewProcess:
                crash(outbox)
    raise AssertionError("broken at each start")


def test_a_file_cut_off_anywhere_costs_no_more_than_its_end(tmp_path: Path) -> None:
    whole = closed_file(tmp_path / "whole", 100).read_bytes()
    for number, length in enumerate(range(0, len(whole), len(whole) // 23)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "outbox.sqlite").write_bytes(whole[:length])
        outbox, found, told = opened_at_last(folder)
        if not told:
            assert len(found) == 100  # the last page was not in use
            outbox.close()
            continue
        assert len(told) == 1, length
        assert len(found) == told[0]["saved"]
        assert told[0]["more_may_be_lost"] or told[0]["not_readable"] == 100 - len(found)
        outbox.accept([make_event(1000)])
        assert pull_ids(outbox) == ["e1000"]
        outbox.close()


def change_freely(path: Path, table: str, statement: str) -> None:
    """As damage does, which knows no types."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema = ON")
        [sql] = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        for text in (sql.replace(" STRICT", "").replace(" NOT NULL", ""), sql):
            db.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (text, table))
            db.execute("PRAGMA writable_schema = RESET")
            if text != sql:
                db.execute(statement)
                db.execute("PRAGMA writable_schema = ON")


@pytest.mark.parametrize("value", ["incident = x'05'", "body = 'text'", "seq = 'x'", "phase = 'begun'", "time_ns = 5"])
def test_of_a_row_with_other_values_that_row_alone_is_lost(tmp_path: Path, value: str) -> None:
    change_freely(closed_file(tmp_path, 20), "events", f"UPDATE events SET {value} WHERE row = 8")
    outbox, found, [told] = opened_at_last(tmp_path)
    assert found == [f"before {n + 1} e{n}" for n in range(20) if n != 7]
    assert (told["saved"], told["not_readable"], told["more_may_be_lost"]) == (19, 1, False)
    outbox.close()


@pytest.mark.parametrize("column", ["waits_from_s", "committed_ns"])
@pytest.mark.parametrize("value", ["NULL", "'soon'", "x'ff'", "1.5"])
def test_an_event_without_its_time_is_damage_and_is_saved(tmp_path: Path, column: str, value: str) -> None:
    """The bounds and the backlog read these, before any sink does."""
    change_freely(closed_file(tmp_path, 20), "events", f"UPDATE events SET {column} = {value} WHERE row = 1")
    outbox, found, [told] = opened_at_last(tmp_path)
    assert (len(found), told["saved"], told["not_readable"]) == (20, 20, 0)
    outbox.close()


def test_a_body_that_is_gone_is_not_taken_for_a_large_one(tmp_path: Path) -> None:
    change_freely(closed_file(tmp_path, 20), "events", "UPDATE events SET body = NULL WHERE row = 1")
    outbox, found, [told] = opened_at_last(tmp_path)
    assert (len(found), told["saved"], told["not_readable"]) == (19, 19, 1)
    outbox.close()


def test_an_incident_whose_last_event_has_no_number_is_damage(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path)
    outbox.accept([make_event(1, phase="start", incident="open")])
    crash(outbox)
    change_freely(tmp_path / "outbox.sqlite", "incidents", "UPDATE incidents SET row = 'one'")
    again = open_outbox(tmp_path, incarnation=2)
    with pytest.raises(NeedsNewProcess, match="is broken"):
        again.accept([make_event(2, phase="update", incident="open")])
    crash(again)


@pytest.mark.parametrize("open_s", [1 << 30, (1 << 32) - 1, 1 << 40])
def test_a_damaged_clock_makes_no_event_old(tmp_path: Path, open_s: int) -> None:
    with closing(sqlite3.connect(closed_file(tmp_path, 20), isolation_level=None)) as db:
        db.execute("UPDATE run SET open_s = ?", (open_s,))
    outbox, found, _ = opened_at_last(tmp_path)
    outbox.maintain(1.0)
    assert (len(found), outbox.backlog["log"].waiting, outbox.backlog["log"].given_up) == (20, 20, 0)
    outbox.close()


@pytest.mark.parametrize("off_s", [0, 30 * 86_400])
def test_what_was_saved_waits_anew(tmp_path: Path, off_s: int) -> None:
    """The waiting time of a rescued event begins with the rescue, however long the machine was off."""
    with closing(sqlite3.connect(closed_file(tmp_path, 20), isolation_level=None)) as db:
        db.execute("UPDATE run SET open_s = 1 << 40")
    outbox = open_outbox(tmp_path, run=2, wall_ns=lambda: time.time_ns() + off_s * 10**9)
    outbox.maintain(0.0)
    outbox.maintain(6 * 86_400.0)
    assert outbox.backlog["log"].waiting == 20
    outbox.close()


def test_a_sink_whose_name_is_no_text_is_left_out(tmp_path: Path) -> None:
    path = closed_file(tmp_path, 5)
    change_freely(path, "readers", "INSERT INTO readers VALUES (x'00', '[]')")
    (tmp_path / "outbox.sqlite-damaged").write_text("broken, says somebody")
    outbox, found, _ = opened_at_last(tmp_path)
    assert len(found) == 5
    outbox.close()


def test_no_sink_gets_an_event_with_other_bytes(tmp_path: Path) -> None:
    path = closed_file(tmp_path, 20)
    data = bytearray(path.read_bytes())
    data[data.index(b'"seq":13,')] ^= 1
    data[data.index(b'"seq":15,"camera":"cam","text":"xxx') + 33] ^= 1
    path.write_bytes(data)
    outbox, found, [told] = opened_at_last(tmp_path)
    assert {"before 14 e13", "before 16 e15"}.isdisjoint(found)
    assert (len(found), told["not_readable"]) == (18, 2)
    outbox.close()


def test_an_event_that_waits_and_is_not_there_is_counted(tmp_path: Path) -> None:
    with closing(sqlite3.connect(closed_file(tmp_path, 20), isolation_level=None)) as db:
        db.execute("DELETE FROM events WHERE row = 3")
    outbox, found, [told] = opened_at_last(tmp_path)
    assert (len(found), told["not_readable"], told["more_may_be_lost"]) == (19, 1, False)
    outbox.close()


def given_up(outbox: Outbox) -> dict[str, int]:
    found = reports_of(outbox).counts.items()
    return {name.removeprefix("given_up."): n for (name, _), n in found if name.startswith("given_up.")}


@pytest.mark.parametrize(
    ("change", "sink"), [("sink = 'lof'", "lof"), ("sink = ''", "?"), ("row = 0", "log"), ("row = -9", "log")]
)
def test_an_event_that_waits_for_nobody_is_counted(tmp_path: Path, change: str, sink: str) -> None:
    """Nothing but the names of the sinks tells that a bit of the list has changed: the list has no checksum."""
    with closing(sqlite3.connect(closed_file(tmp_path, 20), isolation_level=None)) as db:
        db.execute(f"UPDATE pending SET {change} WHERE row = 7")
    outbox, found, [told] = opened_at_last(tmp_path)
    assert found == [f"before {n + 1} e{n}" for n in range(20) if n != 6]
    assert (told["not_readable"], told["more_may_be_lost"]) == (1, False)
    assert given_up(outbox) == {sink: 1}
    states = {state.sink: state.waiting for state in OutboxView(tmp_path).states()}
    assert states == {"log": 19} | ({"lof": 1} if sink == "lof" else {}), "a person may still drop or requeue it"
    outbox.close()
    outbox, found, told = opened_at_last(tmp_path)
    assert (len(found), told) == (19, []), "the next start finds nothing new"
    outbox.close()


def test_of_two_pages_that_were_exchanged_more_may_be_lost(tmp_path: Path) -> None:
    """The list of what waits has become the list of ids: nobody knows any more who waits for what."""
    path = closed_file(tmp_path, 20)
    with closing(sqlite3.connect(path)) as db:
        roots = dict(db.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage"))
        (size,) = db.execute("PRAGMA page_size").fetchone()
    [ids] = [root for name, root in roots.items() if name.startswith("sqlite_autoindex_events")]
    places = [slice((root - 1) * size, root * size) for root in (roots["pending"], ids)]
    data = bytearray(path.read_bytes())
    data[places[0]], data[places[1]] = data[places[1]], data[places[0]]
    path.write_bytes(data)
    outbox, _, [told] = opened_at_last(tmp_path)
    assert told["more_may_be_lost"]
    outbox.close()


def test_an_event_for_a_removed_sink_is_no_damage(tmp_path: Path) -> None:
    first = open_outbox(tmp_path, ["log", "gone"])
    first.accept([make_event(n) for n in range(3)])
    first.close()
    outbox = open_outbox(tmp_path, run=2)
    assert outbox._deliveries.waiting == {"gone": 3, "log": 3}
    assert not kept_aside(tmp_path)
    outbox.close()


def test_lost_events_are_given_up_for_each_sink(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, ["log", "crm"])
    outbox.accept([make_event(n) for n in range(20)])
    outbox.acknowledge("log", [row for row, _ in outbox.pull("log", 10)])
    outbox.close()
    path = tmp_path / "outbox.sqlite"
    data = bytearray(path.read_bytes())
    for seq in (5, 15):
        data[data.index(b'"seq":%d,' % seq)] ^= 1
    path.write_bytes(data)
    for incarnation in (1, 2):
        outbox = open_outbox(tmp_path, ["log", "crm"], run=2, incarnation=incarnation)
        with contextlib.suppress(NeedsNewProcess):
            pull_ids(outbox, "crm")
            break
        crash(outbox)
    outbox.maintain(0.0)
    assert given_up(outbox) == {"log": 1, "crm": 2}
    assert {sink: one.given_up for sink, one in outbox.backlog.items()} == {"log": 1, "crm": 2}
    outbox.close()


def test_an_event_outside_the_order_of_time_does_not_wait(tmp_path: Path) -> None:
    outbox = open_outbox(tmp_path, ordered=["log"])
    outbox.accept([make_event(n) for n in range(5)])
    outbox.close()
    with closing(sqlite3.connect(tmp_path / "outbox.sqlite", isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = sql || ' WHERE row != 3' WHERE name = 'by_time'")
        db.execute("PRAGMA writable_schema = RESET")
        db.execute("REINDEX by_time")
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, ' WHERE row != 3', '') WHERE name = 'by_time'")
    first = open_outbox(tmp_path, run=2, ordered=["log"])
    first.end("cam")
    assert deliver(first) == [f"before {n} e{n - 1}" for n in (1, 2, 4, 5)]
    with pytest.raises(NeedsNewProcess, match="is broken"):
        list(map(deliver, [first] * 5))
    crash(first)
    again = open_outbox(tmp_path, run=2, incarnation=2, ordered=["log"])
    assert "before 3 e2" in pull_ids(again)
    again.close()


def test_a_wrong_number_of_unused_pages_costs_no_events(tmp_path: Path) -> None:
    path = closed_file(tmp_path, 20)
    data = bytearray(path.read_bytes())
    data[36] ^= 128
    path.write_bytes(data)
    first = open_outbox(tmp_path, run=2)
    with pytest.raises(NeedsNewProcess, match="unused pages"):
        first.maintain(0.0)
    crash(first)
    outbox, found, [told] = opened_at_last(tmp_path)
    assert (len(found), told["not_readable"], told["more_may_be_lost"]) == (20, 0, False)
    outbox.close()


def test_a_row_that_waits_at_a_wrong_place_costs_no_other_row(tmp_path: Path) -> None:
    """As a flipped bit in an inner page of the list, which SQLite follows without an error."""
    path = closed_file(tmp_path, 3000, size=0)
    data = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as db:
        [page] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'pending'").fetchone()
    root = (page - 1) * PAGE
    cell = root + int.from_bytes(data[root + 12 : root + 14], "big")  # the first of those that divide its pages
    row = data[cell:].index(b"log") + cell + 3
    data[row] ^= 2  # hundreds more, or fewer
    path.write_bytes(data)
    outbox, found, told = opened_at_last(tmp_path)
    while some := deliver(outbox):
        found += some
    assert len(set(found)) >= 2999
    assert told[0]["more_may_be_lost"]
    outbox.close()


@pytest.mark.parametrize("left", [b"", b"S", b"\0"], ids=["empty", "one letter", "one zero"])
def test_an_empty_file_is_said_to_be_none(tmp_path: Path, left: bytes) -> None:
    """SQLite, too, takes a file of one byte for an empty one."""
    closed_file(tmp_path, 5).write_bytes(left)
    outbox, found, [told] = opened_at_last(tmp_path)
    assert (found, told["saved"], told["more_may_be_lost"]) == ([], 0, True)
    assert told["why"].startswith("it is empty")
    assert reports_of(outbox).counts[UNSURE, ""] == 1
    outbox.close()


def test_a_file_that_could_not_be_begun_is_not_damaged_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that is full at the first start."""

    def fill(file: SqliteFile, _: sqlite3.Connection) -> str:
        assert file.path.stat().st_size == 0
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as full:
        full.setattr(SqliteFile, "age", fill)  # before the first page is written
        with pytest.raises(EnvironmentProblem, match="full"):
            open_outbox(tmp_path)
    outbox, _, told = opened_at_last(tmp_path)
    assert told == []
    outbox.close()


def test_a_tree_that_leads_in_a_circle_ends_with_the_time(tmp_path: Path) -> None:
    path = closed_file(tmp_path, 3000, size=0)
    with closing(sqlite3.connect(path)) as db:
        [page] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'pending'").fetchone()
    data = bytearray(path.read_bytes())
    root = (page - 1) * PAGE
    assert data[root] == 2, "the page is the root of an index"
    cells = int.from_bytes(data[root + 3 : root + 5], "big")
    for cell in range(cells):
        at = root + int.from_bytes(data[root + 12 + 2 * cell : root + 14 + 2 * cell], "big")
        data[at : at + 4] = page.to_bytes(4, "big")
    path.write_bytes(data)
    outbox, found, [told] = opened_at_last(tmp_path)
    assert len(found) > 900
    assert told["saved"] + told["not_readable"] >= 3000 or told["more_may_be_lost"]
    outbox.close()


def test_a_lock_of_another_program_costs_the_rescue_no_events(tmp_path: Path) -> None:
    """What cannot be read counts as lost, so the rescue waits for locks longer than the loop of a run may."""
    path = closed_file(tmp_path, 100)
    (tmp_path / "outbox.sqlite-damaged").write_text("broken, says somebody")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(1.0, other.close)
    release.start()
    outbox, found, [told] = opened_at_last(tmp_path)
    release.join()
    assert (len(found), told["saved"], told["more_may_be_lost"]) == (100, 100, False)
    outbox.close()


def log_of_killed(folder: Path) -> bytes:
    """SQLite's log of an outbox whose process was killed: changes of another file than the one that is there now."""
    outbox = open_outbox(folder)
    outbox.accept([make_event(n, size=2000) for n in range(10)])
    content = (folder / "outbox.sqlite-wal").read_bytes()
    crash(outbox)
    return content


@pytest.mark.parametrize("half_done", ["saving", "renaming", "renaming, with a note", "renaming, with a log"])
def test_a_process_that_dies_while_it_saves_costs_nothing(tmp_path: Path, half_done: str) -> None:
    log, path = log_of_killed(tmp_path / "other"), closed_file(tmp_path, 100)
    new, aside = tmp_path / "outbox.sqlite-new", tmp_path / "outbox.sqlite.damaged-20260301T123005Z"
    if half_done == "saving":
        new.write_bytes(path.read_bytes()[:PAGE])
        (tmp_path / "outbox.sqlite-damaged").write_text("broken, says somebody")
    else:
        new.write_bytes(path.read_bytes())
        path.rename(aside)
    if half_done == "renaming, with a note":
        (tmp_path / "outbox.sqlite-damaged").write_text("broken, says somebody")
    if half_done == "renaming, with a log":
        (tmp_path / "outbox.sqlite-wal").write_bytes(log)
    outbox = open_outbox(tmp_path, incarnation=2)
    assert pull_ids(outbox) == [f"e{n}" for n in range(100)]
    assert len(kept_aside(tmp_path)) == 1
    assert not new.exists()
    outbox.close()


def test_a_full_disk_leaves_a_damaged_file_as_it_is(small_disk: Path) -> None:
    path = closed_file(small_disk, 300)
    (small_disk / "outbox.sqlite-damaged").write_text("broken, says somebody")
    before, ballast = path.read_bytes(), fill(small_disk)
    with pytest.raises(EnvironmentProblem, match="cannot be opened"):
        open_outbox(small_disk, incarnation=2)
    assert path.read_bytes() == before
    assert kept_aside(small_disk) == []
    ballast.unlink()
    outbox = open_outbox(small_disk, incarnation=2)
    assert len(pull_ids(outbox)) == 300
    outbox.close()


def test_a_note_of_damage_without_a_file_is_no_harm(tmp_path: Path) -> None:
    (tmp_path / "outbox.sqlite-damaged").write_text("broken")
    outbox = open_outbox(tmp_path)
    outbox.accept([make_event(1)])
    outbox.close()
    assert [path.name for path in tmp_path.glob("outbox*")] == ["outbox.sqlite"]


def test_opening_does_not_depend_on_what_waits(tmp_path: Path) -> None:
    """No statement of opening and of a new run goes through the events."""
    path = closed_file(tmp_path, 50)
    statements: list[str] = []
    connect = sqlite3.connect

    def traced(*args: object, **more: object) -> sqlite3.Connection:
        db = connect(*args, **more)  # type: ignore[call-overload]
        db.set_trace_callback(statements.append)
        return db  # type: ignore[no-any-return]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", traced)
        outbox = open_outbox(tmp_path, run=2)
        outbox.maintain(0.0)
    with closing(sqlite3.connect(path)) as db:
        for line in statements:
            if line.lstrip().startswith(("SELECT", "UPDATE", "DELETE")):
                plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + line)]
                assert not [step for step in plan if step.startswith("SCAN events")], line
    assert pull_ids(outbox, most=2) == ["before 1 e0", "before 2 e1"]
    outbox.close()


@pytest.mark.parametrize(("sync", "level"), [("full", 2), ("normal", 1), ("none", 0)])
def test_the_disk_is_asked_as_the_graph_says(tmp_path: Path, sync: str, level: int) -> None:
    outbox: Outbox = open_outbox(tmp_path, sync=sync)
    assert outbox.db.execute("PRAGMA synchronous").fetchone() == (level,)
    outbox.close()
