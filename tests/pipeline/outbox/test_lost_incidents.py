"""Incidents that a dead process has left open, and those that it has not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import Event
from camgraph.pipeline.outbox.event_file import open_event_file
from camgraph.pipeline.outbox.lost_incidents import LostIncidents
from camgraph.pipeline.testing import stamp


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_event_file(tmp_path / "outbox.sqlite", by_time=False)) as file:
        yield file.db


def event(phase: str, incident: str = "i", *, seq: int = 1, camera: str = "cam", incarnation: int = 1) -> Item:
    made = Event(stamp(seq, camera), f"{incident}-{phase}-{seq}", incident, phase, b'{"type": "t.%s"}' % phase.encode())  # type: ignore[arg-type]
    return Item(camera, Key(0, seq, 0), made, "rules", incarnation=incarnation)


def commit(db: sqlite3.Connection, lost: LostIncidents, item: Item) -> int:
    """As the outbox does it; returns the row that was the last of the incident."""
    one: Event = item.payload
    columns = "id, producer, camera, epoch, seq, part, time_ns, incident, phase, body, incarnation"
    values = (one.id, item.sender, item.camera, *item.key, one.stamp.time_ns, one.incident, one.phase, one.body)
    row = db.execute(
        f"INSERT INTO events ({columns}) VALUES ({', '.join('?' * 11)})", (*values, item.incarnation)
    ).lastrowid
    assert row
    return lost.inserted(db, item, row)


def ends(db: sqlite3.Connection, lost: LostIncidents, camera: str = "cam") -> list[str]:
    return [item.payload.incident for item in lost.ends(db, "rules", camera)]


def test_only_incidents_that_are_open_get_an_end(db: sqlite3.Connection) -> None:
    lost = LostIncidents()
    for item in (event("start", "open"), event("start", "over"), event("end", "over", seq=2), event("single", "one")):
        commit(db, lost, item)
    commit(db, lost, event("start", "elsewhere", camera="yard"))
    lost.note("rules", "cam", 1)
    assert ends(db, lost) == ["open"]
    assert ends(db, lost, "yard") == [], "its process lives"


def test_an_end_is_the_last_event_again_and_of_the_dead_process(db: sqlite3.Connection) -> None:
    lost = LostIncidents()
    commit(db, lost, event("start", seq=1))
    commit(db, lost, event("update", seq=7))
    lost.note("rules", "cam", 3)
    [end] = lost.ends(db, "rules", "cam")
    assert (end.sender, end.incarnation, end.key, end.payload.phase) == ("rules", 3, Key(0, 7, 0), "end")
    assert b'"reason":"lost"' in end.payload.body
    [again] = lost.ends(db, "rules", "cam")
    assert again.payload.id == end.payload.id, "the same id, however often it is made"


def test_incidents_of_the_next_process_stay_open(db: sqlite3.Connection) -> None:
    lost = LostIncidents()
    lost.note("rules", "cam", 2)
    lost.note("rules", "cam", 1)
    commit(db, lost, event("start", "old", incarnation=2))
    commit(db, lost, event("start", "new", incarnation=3))
    assert ends(db, lost) == ["old"], "a late report of an earlier death takes nothing back"
    assert lost.is_late(event("start", incarnation=2))
    assert not lost.is_late(event("start", incarnation=3))


def test_an_incident_that_the_next_process_continues_is_its_own(db: sqlite3.Connection) -> None:
    lost = LostIncidents()
    commit(db, lost, event("start", incarnation=1))
    commit(db, lost, event("update", seq=2, incarnation=2))
    commit(db, lost, event("update", seq=3, incarnation=1))
    lost.note("rules", "cam", 1)
    assert ends(db, lost) == []


def test_after_its_end_an_incident_takes_no_late_event(db: sqlite3.Connection) -> None:
    lost = LostIncidents()
    commit(db, lost, event("start"))
    commit(db, lost, event("end", seq=2))
    late = event("update", seq=3)
    assert not lost.is_over(db, late), "its process lives"
    lost.note("rules", "cam", 1)
    assert lost.is_over(db, late)
    assert not lost.is_over(db, event("single", seq=4))
    assert not lost.is_over(db, replace(late, incarnation=2))


def test_each_event_replaces_the_last_one_of_its_incident(db: sqlite3.Connection) -> None:
    lost = LostIncidents()
    items = (event("start"), event("update", seq=2), event("end", seq=3), event("update", seq=4))
    assert [commit(db, lost, item) for item in items] == [0, 1, 2, 0]
    assert commit(db, lost, event("single")) == 0
    lost.note("rules", "cam", 1)
    assert ends(db, lost) == [], "a late update does not open it again"
