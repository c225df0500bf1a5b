"""What was committed against what was delivered."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from camgraph.tools.lab.proofs.trials.delivery import Ledger, by_type, compare


def line(key: str, **more: object) -> bytes:
    return json.dumps({"id": key, "type": "t", **more}).encode()


def test_each_committed_event_has_to_be_there_once_or_more() -> None:
    good = compare(["a", "b"], [line("a"), line("b"), line("a"), line("c")])
    assert good.good
    assert (good.committed, good.repeated) == (2, 1)


def test_a_lost_event_is_found() -> None:
    assert compare(["a", "b"], [line("a")]).lost == ("b",)
    assert not compare(["a", "b"], [line("a")]).good


def test_nothing_committed_proves_nothing() -> None:
    assert not compare([], []).good


def test_an_id_with_two_contents_and_a_broken_line_are_found() -> None:
    assert compare([], [line("a"), line("a", x=1)]).contradicting == ("a",)
    assert not compare(["a"], [line("a"), line("a", x=1)]).good
    assert compare([], [line("a"), b'{"id": "b"', b"[]"]).broken == 2
    assert not compare(["a"], [line("a"), b"{"]).good


def test_events_are_counted_once() -> None:
    assert by_type([line("a"), line("a"), line("b")]) == {"t": 2}


def write(path: Path, ids: list[str]) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE IF NOT EXISTS events (row INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT)")
        db.executemany("INSERT INTO events (id) VALUES (?)", [(one,) for one in ids])
        db.commit()


def test_ledger_outlives_deletions_and_new_outbox_file(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "outbox.sqlite")
    ledger.read()
    write(ledger.outbox, ["a", "b"])
    ledger.read()
    with closing(sqlite3.connect(ledger.outbox)) as db:
        db.execute("DELETE FROM events")
        db.commit()
    write(ledger.outbox, ["before 2 b", "c"])
    ledger.read()
    assert ledger.ids == {"a", "b", "c"}
    ledger.outbox.rename(tmp_path / "old.sqlite")
    write(ledger.outbox, ["d"])
    ledger.read()
    assert ledger.ids == {"a", "b", "c", "d"}
