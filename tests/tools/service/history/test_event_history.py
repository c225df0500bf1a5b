"""Past events: kept once each, by pages and as a stream, whatever dies and whatever lies in the file's place."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from camgraph_test_stages.incident_views import NOON, incident
from camgraph_test_stages.services import GRAPH, serving_run, with_tokens
from camgraph_test_stages.waiting import until
from structlog import get_logger
from structlog.testing import capture_logs

from camgraph.pipeline.errors import EnvironmentProblem, Unavailable
from camgraph.pipeline.messages import Event
from camgraph.tools.service.history import event_calls as event_calls_module
from camgraph.tools.service.history import event_history
from camgraph.tools.service.history.event_calls import event_calls
from camgraph.tools.service.history.event_history import EventFilter, EventHistory
from camgraph.tools.service.web.access import Access
from camgraph.tools.service.web.app import build_app
from camgraph.tools.service.web.http_server import HttpServer, bound
from camgraph.tools.service.web.thread_pools import ThreadPool

WITHIN_S = 90.0
DAY_S = 86_400.0


_BEGUN_S = round(time.time() - NOON.timestamp())


def event(number: int, **data: Any) -> Event:
    """Each is a second younger than the one before, and the first is of today."""
    return incident(f"{number:04x}", "single", at_s=_BEGUN_S + number, **data).event


@pytest.fixture
def history(tmp_path: Path) -> EventHistory:
    return EventHistory(tmp_path / "history.sqlite", get_logger(), keep_s=30 * DAY_S, keep_bytes=1e8)


def numbers(history: EventHistory, **wanted: Any) -> list[int]:
    return [one.number for one in history.page(EventFilter(**wanted), 100)]


def test_each_event_is_kept_once(history: EventHistory) -> None:
    first = [event(n) for n in range(3)]
    history.add(first)
    history.add([*first, event(3)])
    assert [one.event["id"] for one in history.after(0, 10)] == [*(one.id for one in first), event(3).id]
    assert history.newest() == history.after(0, 10)[-1].number
    history.close()


def test_those_are_found_that_fit(history: EventHistory) -> None:
    history.add([event(1, camera="hall"), event(2, camera="yard", rule="lying"), event(3, camera="hall")])
    assert numbers(history) == [3, 2, 1]
    assert numbers(history, camera="hall") == [3, 1]
    assert numbers(history, camera="hall", before=3) == [1]
    assert numbers(history, rule="lying") == [2]
    assert numbers(history, type="camgraph.incident.single") == [3, 2, 1]
    assert numbers(history, phase="end") == []
    history.close()


def test_nothing_is_found_where_nothing_was_kept(history: EventHistory) -> None:
    assert (history.newest(), numbers(history), history.after(0, 10)) == (0, [], [])


def test_an_event_handed_over_again_is_the_same(history: EventHistory) -> None:
    one = event(1)
    history.add([one])
    history.add([replace(one, id=f"before 3 {one.id}"), replace(one, id=f"again 4 {one.id}")])
    assert numbers(history) == [1]
    history.close()


def test_old_ones_go_by_when_they_came_and_not_by_what_they_tell(tmp_path: Path) -> None:
    """Events of files without a date are of 1970."""
    path = tmp_path / "h"
    history = EventHistory(path, get_logger(), keep_s=DAY_S, keep_bytes=1e8)
    history.add([event(round(-2 * DAY_S)), event(round(-time.time())), event(1)])
    history.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE events SET kept_s = kept_s - 2 * 86400 WHERE number = 1")
    history = EventHistory(path, get_logger(), keep_s=DAY_S, keep_bytes=1e8)
    history.open()
    until(lambda: numbers(history) == [3, 2])
    history.close()


class WrongClock:
    """The time of day, as somebody sets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead_s, real = 0.0, time.time
        monkeypatch.setattr(event_history.time, "time", lambda: real() + self.ahead_s)
        monkeypatch.setattr(event_history, "_TIDY_S", 0.02)


def kept_times(path: Path) -> list[float]:
    with closing(sqlite3.connect(path, timeout=WITHIN_S)) as db:
        return [kept_s for (kept_s,) in db.execute("SELECT kept_s FROM events ORDER BY number")]


def test_what_came_by_a_slow_clock_is_not_old_when_it_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, path = WrongClock(monkeypatch), tmp_path / "h"
    with closing(EventHistory(path, get_logger(), keep_s=DAY_S, keep_bytes=1e8)) as history:
        history.open()
        history.add([event(1)])
        clock.ahead_s = -40 * DAY_S
        until(lambda: max(kept_times(path)) < time.time() + 60)
        history.add([event(2)])
        clock.ahead_s = 0.0
        until(lambda: min(kept_times(path)) > time.time() - DAY_S / 2)
        history.add([event(3)])
        assert numbers(history) == [3, 2, 1]
        assert max(kept_times(path)) < time.time() + 60


def test_what_came_by_a_fast_clock_goes_in_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, path = WrongClock(monkeypatch), tmp_path / "h"
    clock.ahead_s = 365 * DAY_S
    with closing(EventHistory(path, get_logger(), keep_s=DAY_S, keep_bytes=1e8)) as history:
        history.open()
        history.add([event(n) for n in range(150)])
        clock.ahead_s = 0.0
        until(lambda: max(kept_times(path)) < time.time() + 60)
    clock.ahead_s = 2 * DAY_S  # while nobody follows the clock: all are two days old for the next process
    with closing(EventHistory(path, get_logger(), keep_s=DAY_S, keep_bytes=1e8)) as history:
        history.open()
        history.add([event(200)])
        until(lambda: numbers(history) == [151])


def test_the_oldest_go_when_all_are_too_large(tmp_path: Path) -> None:
    path = tmp_path / "h"
    history = EventHistory(path, get_logger(), keep_s=DAY_S, keep_bytes=1e6)
    for first in range(0, 2000, 50):
        history.add([event(n, filling="x" * 5000) for n in range(first, first + 50)])
    found = [one.number for one in history.after(0, 2000)]
    assert found[-1] == 2000
    assert found == list(range(found[0], 2001))
    assert 20 < len(found) < 250
    history.close()
    assert path.stat().st_size < 3e6
    history = EventHistory(path, get_logger(), keep_s=DAY_S, keep_bytes=1.0)
    history.add([event(2000)])
    assert history.after(0, 10) == []
    history.close()
    history = EventHistory(path, get_logger(), keep_s=DAY_S, keep_bytes=1e6)
    history.add([event(2001)])
    assert numbers(history) == [2002], "numbers are never given again"
    history.close()


def test_what_is_no_history_is_set_aside(history: EventHistory) -> None:
    before = os.urandom(50_000)
    history.path.write_bytes(before)
    with capture_logs() as lines:
        history.add([event(1)])
    assert [line["event"] for line in lines] == ["history_begins_anew"]
    [number] = numbers(history)
    assert number > 1_000_000, "those who were at a number of the old one miss nothing of the new one"
    [aside] = history.path.parent.glob("history.sqlite.damaged-*")
    assert aside.read_bytes() == before
    assert lines[0]["kept"] == aside.name
    history.close()


def test_events_with_changed_bytes_are_left_out_and_said_once(history: EventHistory) -> None:
    history.add([event(number) for number in range(4)])
    with closing(sqlite3.connect(history.path, isolation_level=None)) as db:
        db.execute("UPDATE bodies SET body = CAST(replace(CAST(body AS TEXT), '{', '[') AS BLOB) WHERE number = 2")
        db.execute("UPDATE bodies SET body = 'text' WHERE number = 3")
    with capture_logs() as lines:
        assert numbers(history) == [4, 1]
        assert [one.number for one in history.after(0, 9)] == [1, 4]
    assert [line["event"] for line in lines] == ["history_events_left_out"]
    history.close()


def change(history: EventHistory, statement: str) -> None:
    """As damage does, of which SQLite knows nothing."""
    with closing(sqlite3.connect(history.path, isolation_level=None)) as db:
        db.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET kept_s = NULL WHERE number = 1",
        "UPDATE sqlite_sequence SET seq = 'x'",
        "UPDATE sqlite_sequence SET seq = 1.5",
    ],
)
def test_a_value_of_a_wrong_kind_is_damage(tmp_path: Path, history: EventHistory, statement: str) -> None:
    """It must not end the thread that removes what is old."""
    history.add([event(n) for n in range(3)])
    history.close()
    change(history, statement)
    again = EventHistory(history.path, get_logger(), keep_s=30 * DAY_S, keep_bytes=1e8)
    again.open()
    until(lambda: list(tmp_path.glob("*.damaged-*")), WITHIN_S)
    again.add([event(7)])
    assert [one.event["id"] for one in again.after(0, 10)] == [event(7).id]
    assert again.newest() == again.after(0, 10)[-1].number
    assert again._tidier.is_alive()
    again.close()


def test_a_body_that_is_gone_is_damage_for_those_who_add(history: EventHistory) -> None:
    history.add([event(n) for n in range(3)])
    history.close()
    change(history, "UPDATE bodies SET body = NULL WHERE number = 3")
    change(history, "UPDATE sqlite_sequence SET seq = 2")
    history.add([event(7)])
    assert [one.event["id"] for one in history.after(0, 10)] == [event(7).id]
    history.close()


def test_an_incident_that_is_damaged_is_left_out(history: EventHistory) -> None:
    history.add([event(n) for n in range(3)])
    change(history, "UPDATE events SET kept_s = NULL WHERE number = 2")
    assert [one.first.number for one in history.incidents(EventFilter(), 10)] == [3, 1]
    history.close()


def test_it_is_its_users_alone(history: EventHistory) -> None:
    history.add([event(1)])
    files = list(history.path.parent.glob("history.sqlite*"))
    assert len(files) >= 2
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o600"}
    history.close()


# ---- versions

_TABLES_1 = (
    "CREATE TABLE events (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, type TEXT, camera TEXT, rule TEXT, "
    "action TEXT, phase TEXT, time_s REAL, body BLOB)",
    "CREATE INDEX by_camera ON events (camera, number)",
    "PRAGMA user_version = 1",
)
_TABLES_2 = (
    "CREATE TABLE events (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, kept_s REAL, camera TEXT, "
    "rule TEXT, action TEXT, type TEXT, phase TEXT, time_ms INTEGER)",
    "CREATE TABLE bodies (number INTEGER PRIMARY KEY, body BLOB)",
    "PRAGMA user_version = 2",
)
_TABLES_3 = (
    "CREATE TABLE events (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, kept_s REAL, camera TEXT, "
    "rule TEXT, action TEXT, type TEXT, phase TEXT, incident TEXT, time_ms INTEGER)",
    "CREATE INDEX by_incident ON events (incident)",
    "CREATE TABLE bodies (number INTEGER PRIMARY KEY, body BLOB)",
    "PRAGMA user_version = 3",
)
_COLUMNS = {
    1: ("number", "id", "time_s", "camera", "rule", "action", "type", "phase", "body"),
    2: ("number", "id", "kept_s", "camera", "rule", "action", "type", "phase", "time_ms"),
    3: ("number", "id", "kept_s", "camera", "rule", "action", "type", "phase", "incident", "time_ms"),
}


def write_older(path: Path, version: int, events: Sequence[Event]) -> None:
    """As that version has written it. An event behind these has been removed since."""
    with closing(sqlite3.connect(path)) as db, db:
        for command in {1: _TABLES_1, 2: _TABLES_2, 3: _TABLES_3}[version]:
            db.execute(command)
        for number, one in enumerate([*events, event(9999)], 5):
            own_id, kept_s, *facts, incident_name, time_ms, _ = event_history._row(one)
            last = {1: (one.body,), 2: (time_ms,), 3: (incident_name, time_ms)}[version]
            row = (number, own_id, kept_s, *facts, *last)
            places = ", ".join("?" * len(row))
            db.execute(f"INSERT INTO events ({', '.join(_COLUMNS[version])}) VALUES ({places})", row)
            if version > 1:
                db.execute("INSERT INTO bodies VALUES (?, ?)", (number, one.body))
        for table in ("events", "bodies") if version > 1 else ("events",):
            db.execute(f"DELETE FROM {table} WHERE number = (SELECT max(number) FROM {table})")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_older_one_is_taken_over(history: EventHistory, version: int) -> None:
    events = [event(1, camera="hall"), event(2, camera="yard", rule="lying"), replace(event(3), body=b'{"data": 7}')]
    write_older(history.path, version, events)
    with capture_logs() as lines:
        history.add([event(2, camera="yard", rule="lying"), event(4)])
    assert [line["event"] for line in lines] == ["history_upgraded"]
    assert [one.body for one in history.after(0, 9)] == [*(one.body for one in events), event(4).body]
    assert numbers(history) == [9, 7, 6, 5], "a number is never given again"
    assert numbers(history, camera="yard") == [6]
    assert numbers(history, rule="lying") == [6]
    found = history.incidents(EventFilter(), 9, incident="0001")
    assert [one.first.number for one in found] == [5]
    history.close()
    with closing(sqlite3.connect(history.path)) as db:
        known = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'by_%'")}
    assert known == {f"by_{name}" for name in ("incident", "camera", "rule", "action", "type", "phase")}
    again = EventHistory(history.path, get_logger(), keep_s=30 * DAY_S, keep_bytes=1e8)
    with capture_logs() as lines:
        again.open()
    assert lines == []
    again.close()


def test_on_a_full_disk_an_older_one_stays_what_it_is(small_disk: Path) -> None:
    history = EventHistory(small_disk / "h", get_logger(), keep_s=DAY_S, keep_bytes=1e8)
    write_older(history.path, 2, [event(n) for n in range(300)])
    ballast = small_disk / "ballast"
    with pytest.raises(OSError, match="No space"):
        ballast.write_bytes(bytes(1 << 20))
    with pytest.raises(Unavailable, match=r"full|disk I/O"):
        history.add([event(1000)])
    ballast.unlink()
    history.add([event(1000)])
    assert len(history.after(0, 1000)) == 301
    history.close()


# ---- filters


@pytest.mark.parametrize(
    "wanted",
    [{"camera": "zz"}, {"rule": "zz"}, {"type": "zz"}, {"phase": "zz"}, {"camera": "hall", "rule": "zz", "before": 9}],
)
def test_no_filter_looks_at_all_events(history: EventHistory, wanted: dict[str, Any]) -> None:
    history.add([event(1)])
    filtered = EventFilter(**wanted)
    query, values = event_history.fitting_query(filtered, event_history._conditions(filtered), 50)
    with closing(sqlite3.connect(history.path)) as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {query}", values)]
    assert any("INDEX by_" in step for step in plan), plan
    assert not any(step.startswith("SCAN events") for step in plan), plan
    history.close()


@pytest.mark.parametrize(
    ("query", "values"),
    [
        (event_history._GO_ON, (event_history._START_TYPE, event_history._END_TYPE)),
        (event_history._WITH_ENDS, (event_history._END_TYPE, "[1, 2]")),
    ],
)
def test_no_question_about_ends_looks_at_all_events(
    history: EventHistory, query: str, values: tuple[object, ...]
) -> None:
    history.add([event(1)])
    with closing(sqlite3.connect(history.path)) as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {query}", values)]
    assert not any(step.startswith("SCAN") and "json_each" not in step for step in plan), plan
    history.close()


def test_a_rule_is_found_by_its_action_too_and_each_event_once(history: EventHistory) -> None:
    history.add([event(n, rule="seen", action="seen") for n in range(4)])
    history.add([event(n, rule=f"rule {n}", action="seen") for n in range(4, 7)])
    assert numbers(history, rule="seen") == [7, 6, 5, 4, 3, 2, 1]
    assert numbers(history, rule="seen", before=6) == [5, 4, 3, 2, 1]
    assert numbers(history, rule="rule 5") == [6]
    assert [one.number for one in history.page(EventFilter(rule="seen"), 3)] == [7, 6, 5]
    history.close()


def test_damage_that_only_readers_meet_is_mended(history: EventHistory) -> None:
    history.add([event(n, filling="x" * 500) for n in range(500)])
    history.close()
    with history.path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(bytes(range(256)) * 16 * 20)
    again = EventHistory(history.path, get_logger(), keep_s=DAY_S, keep_bytes=1e8)
    again.open()

    def is_mended() -> bool:
        with suppress(EnvironmentProblem):
            return numbers(again) == []
        return False

    until(is_mended, every_s=0.02)
    again.add([event(1)])
    assert len(numbers(again)) == 1
    again.close()


def test_on_a_full_disk_events_wait_and_readers_do_not(small_disk: Path) -> None:
    history = EventHistory(small_disk / "h", get_logger(), keep_s=DAY_S, keep_bytes=1e8)
    history.add([event(1)])
    ballast = small_disk / "ballast"
    with pytest.raises(OSError, match="No space"):
        ballast.write_bytes(bytes(1 << 20))
    waiting = [event(n, filling="x" * 10_000) for n in range(2, 12)]
    with pytest.raises(Unavailable, match="full"):
        history.add(waiting)
    assert numbers(history) == [1]
    ballast.unlink()
    history.add(waiting)
    assert len(numbers(history)) == 11
    history.close()


def test_who_reads_keeps_nobody_waiting(history: EventHistory) -> None:
    history.add([event(1)])
    with closing(sqlite3.connect(history.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert len(reader.execute("SELECT * FROM events").fetchall()) == 1
        history.add([event(2)])
        assert numbers(history) == [2, 1]
        assert len(reader.execute("SELECT * FROM events").fetchall()) == 1
    history.close()


def test_memory_tells_the_same_as_the_disk(history: EventHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_history, "_RECENT", 10)
    assert history.recent(0, 10) is None
    for n in range(30):
        history.add([event(n), event(n)])
    whole = history.after(0, 100)
    assert len(whole) == 30
    assert history.recent(19, 100) is None
    assert history.recent(20, 100) == whole[20:]
    assert history.recent(25, 3) == history.after(25, 3) == whole[25:28]
    assert history.recent(30, 100) == []
    for n in range(30, 40):
        history.add([event(n, filling="x" * (1 << 20))])
    assert history.recent(30, 100) is None, "large ones do not fill the memory"
    history.close()


# ---- over HTTP

ODD = [
    b'{"a": "\\ud800", "type": "x\\n\\nid: 7"}',
    b'{"a": 1e999}',
    b'{"<script>": "</script>"}',
    b'{"data": {"camera": "\\u0000"}}',
]


@pytest.mark.parametrize("body", ODD)
def test_odd_events_spoil_neither_pages_nor_streams(history: EventHistory, body: bytes) -> None:
    history.add([replace(event(1), body=body)])
    answer = asked(history, "/api/events")
    assert answer.headers["content-type"] == "application/json"
    assert answer.content == b'{"events":[{"number":1,"event":%b}],"more":false}' % body
    with listened(history) as place, httpx.stream("GET", f"{place}?after=0", timeout=WITHIN_S) as stream:
        assert _next_line(stream.iter_bytes(), b"data: ") == body
    history.close()


def test_streams_end_when_the_service_does_and_are_limited(
    history: EventHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_calls_module, "_OF_CLIENT", 2)
    history.add([event(1)])
    with ExitStack() as stack:
        place = stack.enter_context(listened(history))
        assert httpx.head(place, timeout=WITHIN_S).status_code == 200, "that does not take a place"
        streams = [stack.enter_context(httpx.stream("GET", place, timeout=WITHIN_S)) for _ in range(2)]
        pieces = [stream.iter_bytes() for stream in streams]
        assert [next(one) for one in pieces] == [b"retry: 2000\n\n"] * 2
        answer = httpx.get(place, timeout=WITHIN_S)
        why = "2 streams of events are open from your address: close one of them"
        assert (answer.status_code, answer.json()["error"]) == (429, why)
        with monkeypatch.context() as patch:  # who follows needs no disk
            patch.setattr(history, "_asked", None)
            history.add([event(2)])
            assert [json.loads(_next_line(one, b"data: "))["id"] for one in pieces] == [event(2).id] * 2
        history.end()
        # An end in order; a connection that breaks raises here.
        assert [b"".join(one) for one in pieces] == [b""] * 2
        assert httpx.get(place, timeout=WITHIN_S).status_code == 503
    history.close()


def test_a_history_that_cannot_be_read_is_not_there_now(history: EventHistory) -> None:
    history.path.write_bytes(b"nonsense" * 1000)
    answer = asked(history, "/api/events")
    assert (answer.status_code, "cannot be read now" in answer.json()["error"]) == (503, True)


@contextmanager
def listened(history: EventHistory) -> Iterator[str]:
    """The stream over a real server: its address."""
    listener = bound("127.0.0.1", 0)
    server = HttpServer(
        build_app(event_calls(history, ThreadPool("the history", 4)), Access(), get_logger()), listener, get_logger()
    )
    server.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/api/events/stream"
    finally:
        server.stop()


def _next_line(pieces: Iterator[bytes], start: bytes) -> bytes:
    for piece in pieces:
        for line in piece.split(b"\n"):
            if line.startswith(start):
                return line.removeprefix(start)
    raise AssertionError("the stream has ended")


def asked(history: EventHistory, path: str, **headers: str) -> httpx.Response:
    async def calling() -> httpx.Response:
        transport = httpx.ASGITransport(
            build_app(event_calls(history, ThreadPool("the history", 4)), Access(), get_logger())
        )
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(calling())


def test_pages_follow_each_other(history: EventHistory) -> None:
    history.add([event(n) for n in range(7)])
    found, path = [], "/api/events?limit=3"
    while True:
        answer = asked(history, path).json()
        found += [one["number"] for one in answer["events"]]
        if not answer["more"]:
            break
        path = f"/api/events?limit=3&before={found[-1]}"
    assert found == [7, 6, 5, 4, 3, 2, 1]
    history.close()


@pytest.mark.parametrize("query", ["before=0", "before=x", f"before={1 << 63}", "since=soon", "kind=a", "limit=501"])
def test_parameters_that_cannot_be_meant(history: EventHistory, query: str) -> None:
    assert asked(history, f"/api/events?{query}").status_code == 400


@pytest.mark.parametrize("last", ["x", "-1", "9" * 40, "1.5"])
def test_a_stream_does_not_begin_anywhere(history: EventHistory, last: str) -> None:
    assert asked(history, "/api/events/stream", **{"Last-Event-ID": last}).status_code == 400


def test_a_stream_goes_on_after_the_death_of_the_service(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving_run(tmp_path_factory.mktemp("e"), GRAPH, more=with_tokens()) as served:
        url = f"http://127.0.0.1:{served.port}/api/events/stream"
        headers = {"Authorization": "Bearer the-token-of-the-viewer"}
        first = _read(url, headers, 3)
        process = served.get("/api/status", "viewer").json()["processes"]["page.0"]
        os.kill(process["pid"], signal.SIGKILL)
        until(served.answers, WITHIN_S, every_s=0.2)
        more = _read(url, {**headers, "Last-Event-ID": str(first[-1][0])}, 3)
        assert [number for number, _ in more] == list(range(first[-1][0] + 1, first[-1][0] + 4))
        ids = [body["id"] for _, body in [*first, *more]]
        assert len(set(ids)) == 6
        # The run ends in order although somebody listens: that is seen at the end of the block.
        listening = subprocess.Popen([sys.executable, "-c", _LISTEN, url], stdout=subprocess.PIPE)
        assert listening.stdout is not None
        assert listening.stdout.readline() == b"retry: 2000\n"
    listening.communicate(timeout=WITHIN_S)
    assert listening.returncode == 0, "its stream has ended in order"


_LISTEN = """
import sys, httpx
headers = {"Authorization": "Bearer the-token-of-the-viewer"}
with httpx.stream("GET", sys.argv[1], headers=headers, timeout=90) as answer:
    for line in answer.iter_lines():
        print(line, flush=True)
"""


def _read(url: str, headers: dict[str, str], most: int) -> list[tuple[int, dict[str, Any]]]:
    found: list[tuple[int, dict[str, Any]]] = []
    number = 0
    with httpx.stream("GET", url, headers=headers, timeout=WITHIN_S) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line.startswith("id: "):
                number = int(line[4:])
            if line.startswith("data: "):
                found.append((number, json.loads(line[6:])))
            if len(found) == most:
                return found
    raise AssertionError("the stream has ended")
