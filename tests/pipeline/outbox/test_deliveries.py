"""Which events a sink gets next, and in which order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from camgraph.pipeline.messages import MOST_REPEATED
from camgraph.pipeline.outbox.commit_times import CommitTimes
from camgraph.pipeline.outbox.deliveries import Deliveries
from camgraph.pipeline.outbox.event_file import open_event_file
from camgraph.pipeline.system.sqlite_file import transaction

LATEST = 1 << 60


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_event_file(tmp_path / "outbox.sqlite", by_time=True)) as file:
        yield file.db


def commit(db: sqlite3.Connection, *times_ns: int, sinks: tuple[str, ...] = ("log",), camera: str = "cam") -> None:
    """An event for each time, as the outbox writes it."""
    with transaction(db):
        for time_ns in times_ns:
            values = ("rules", camera, 0, time_ns, 0, time_ns, "i", "single", b"{}", 1)
            columns = "id, producer, camera, epoch, seq, part, time_ns, incident, phase, body, incarnation"
            row = db.execute(
                f"INSERT INTO events ({columns}) VALUES ('1 ' || hex(randomblob(8)), {', '.join('?' * 10)})", values
            ).lastrowid
            db.executemany("INSERT INTO pending VALUES (?, ?)", [(sink, row) for sink in sinks])


def deliveries(db: sqlite3.Connection, *ordered: str, sinks: tuple[str, ...] = ("log",)) -> Deliveries:
    times = CommitTimes(LATEST, lambda: 0, lambda: 0)
    return Deliveries(db, sinks, ordered, times, lambda sink, event, size: None)


def pulled(found: Deliveries, most: int = 10, until_ns: int = LATEST, sink: str = "log") -> list[int]:
    """The times of the events that the sink gets."""
    return [event.stamp.time_ns for _, event in found.pull(sink, most, until_ns)]


def test_each_event_is_handed_out_once_in_order_of_commitment(db: sqlite3.Connection) -> None:
    commit(db, 30, 10, 20)
    found = deliveries(db)
    assert [pulled(found, 2), pulled(found, 2), pulled(found, 2)] == [[30, 10], [20], []]
    commit(db, 5)
    assert pulled(found) == [], "nobody has said that there is more"
    found.committed(5, {"log": 1})
    assert pulled(found) == [5]


def test_in_order_of_time_nothing_comes_after_the_limit(db: sqlite3.Connection) -> None:
    commit(db, 30, 10, 20)
    found = deliveries(db, "log")
    assert pulled(found, until_ns=9) == []
    assert pulled(found, 1, until_ns=20) == [10]
    assert pulled(found, until_ns=20) == [20]
    commit(db, 15)
    found.committed(15, {"log": 1})
    assert pulled(found, until_ns=30) == [15, 30], "an earlier one that came later is not passed over"


def test_events_of_one_time_go_by_camera(db: sqlite3.Connection) -> None:
    commit(db, 10, camera="yard")
    commit(db, 10, camera="hall")
    found = deliveries(db, "log").pull("log", 10, LATEST)
    assert [event.stamp.camera for _, event in found] == ["hall", "yard"]


def test_no_more_are_handed_out_than_may_come_again(db: sqlite3.Connection) -> None:
    commit(db, *range(MOST_REPEATED + 5))
    found = deliveries(db)
    rows = [row for row, _ in found.pull("log", 2 * MOST_REPEATED, LATEST)]
    assert len(rows) == MOST_REPEATED
    assert pulled(found) == []
    found.acknowledge("log", rows[:3])
    assert pulled(found) == [], "not before the deliveries are written"
    found.note()
    assert len(pulled(found)) == 3


def test_a_delivery_is_counted_once_it_is_written(db: sqlite3.Connection) -> None:
    commit(db, 1, 2, sinks=("log", "mail"))
    found = deliveries(db, sinks=("log", "mail"))
    rows = [row for row, _ in found.pull("log", 10, LATEST)]
    found.acknowledge("log", rows)
    assert (found.waiting["log"], found.left("log"), found.over("log")) == (2, 2, False)
    found.note()
    assert (found.waiting["log"], found.left("log"), found.over("log")) == (0, 0, True)
    assert (found.waiting["mail"], found.left("mail")) == (2, 2), "the other sink has not had them"


def test_the_oldest_are_those_that_the_sink_does_not_have(db: sqlite3.Connection) -> None:
    commit(db, 1, 2, 3)
    found = deliveries(db)
    [(first, _)] = found.pull("log", 1, LATEST)
    assert [row for row, _, _ in found.oldest("log", 2)] == [first + 1, first + 2]


def test_events_of_a_sink_that_the_graph_has_no_more_still_wait(db: sqlite3.Connection) -> None:
    commit(db, 1, 2, sinks=("gone",))
    found = deliveries(db)
    assert dict(found.waiting) == {"gone": 2, "log": 0}
    found.forget({"gone": [1]})
    assert found.waiting["gone"] == 1


def test_an_event_that_another_process_requeued_is_found(db: sqlite3.Connection) -> None:
    commit(db, 10)
    found = deliveries(db, "log")
    assert pulled(found) == [10]
    commit(db, 5)
    found.changed_outside()
    assert (pulled(found), found.waiting["log"]) == ([5], 2)
