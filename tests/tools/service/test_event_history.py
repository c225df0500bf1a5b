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
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from camgraph_test_stages.incident_views import NOON, incident
from camgraph_test_stages.services import GRAPH, serving_run, with_tokens
from camgraph_test_stages.waiting import until
from structlog import get_logger
from structlog.testing import capture_logs

from pipeline.errors import Unavailable
from pipeline.messages import Event
from tools.service.access import Access
from tools.service.app import build_app
from tools.service.event_calls import event_calls
from tools.service.event_history import EventFilter, EventHistory

WITHIN_S = 90.0
DAY_S = 86_400.0
ROOT = Path(__file__).parents[3]


def event(number: int, **data: Any) -> Event:
    """Each is a second younger than the one before, and the first is of today."""
    return incident(f"{number:04x}", "single", at_s=time.time() - NOON.timestamp() + number, **data).event


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


def test_old_ones_and_too_many_go(tmp_path: Path) -> None:
    history = EventHistory(tmp_path / "h", get_logger(), keep_s=DAY_S, keep_bytes=1e8)
    history.add([event(round(-2 * DAY_S)), event(1)])
    assert [one.number for one in history.after(0, 10)] == [2]
    history.close()
    small = EventHistory(tmp_path / "h", get_logger(), keep_s=DAY_S, keep_bytes=1.0)
    small.add([event(n) for n in range(2, 9)])
    assert small.after(0, 10) == []
    small.add([event(10)])
    assert [one.number for one in small.after(0, 10)] == [10], "numbers are never given again"
    small.close()


def _random(path: Path) -> None:
    path.write_bytes(os.urandom(50_000))


def _of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")


@pytest.mark.parametrize("spoil", [_random, _of_another_program])
def test_what_is_no_history_is_set_aside(history: EventHistory, spoil: Callable[[Path], None]) -> None:
    spoil(history.path)
    before = history.path.read_bytes()
    with capture_logs() as lines:
        history.add([event(1)])
    assert [line["event"] for line in lines] == ["history_begins_anew"]
    assert numbers(history) == [1]
    assert history.path.with_name("history.sqlite.damaged").read_bytes() == before
    history.close()


def test_events_wait_while_it_cannot_be_written(history: EventHistory) -> None:
    history.path.mkdir()
    with pytest.raises(Unavailable, match="unable to open"):
        history.add([event(1)])
    history.path.rmdir()
    history.add([event(1)])
    assert numbers(history) == [1]
    history.close()


def test_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    program = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from structlog import get_logger
from camgraph_test_stages.incident_views import incident
from tools.service.event_history import EventHistory
history = EventHistory(Path({str(tmp_path / "h")!r}), get_logger(), keep_s=1e7, keep_bytes=1e8)
for n in range(100_000):
    history.add([incident(f"{{n:06x}}", "single", at_s=float(n)).event])
    print(n, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while int(process.stdout.readline()) < 50:
        pass
    process.send_signal(signal.SIGKILL)
    told = [int(line) for line in process.stdout.read().splitlines() if line.isdecimal()]
    process.stdout.close()
    process.wait()
    history = EventHistory(tmp_path / "h", get_logger(), keep_s=1e7, keep_bytes=1e8)
    found = [one.event["data"]["incident"] for one in history.after(0, 200_000)]
    assert len(found) == len(set(found)) >= max(told, default=50) + 1
    history.add([event(1)])
    history.close()


# ---- over HTTP


def asked(history: EventHistory, path: str, **headers: str) -> httpx.Response:
    async def calling() -> httpx.Response:
        transport = httpx.ASGITransport(build_app(event_calls(history), Access(), get_logger()))
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


@pytest.mark.parametrize("query", ["before=0", "before=x", "since=soon", "kind=a", "limit=501"])
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
