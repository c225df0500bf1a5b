"""What hangs keeps nothing else waiting: a disk, the process of pictures, the run itself, and many who ask them."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import select
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.services import TOKENS, Served, serving_run, with_tokens
from camgraph_test_stages.waiting import until
from structlog import get_logger

from camgraph.pipeline.errors import Unavailable
from camgraph.tools.lab.benchmarks.incident_lists import record as record_of
from camgraph.tools.lab.blinking import write_clip
from camgraph.tools.lab.light_model import SIDE, write_model
from camgraph.tools.service.history.event_calls import event_calls
from camgraph.tools.service.history.event_history import EventHistory
from camgraph.tools.service.history.incident_calls import incident_calls
from camgraph.tools.service.run import run_link
from camgraph.tools.service.run.health_calls import Rendered, health_calls
from camgraph.tools.service.run.run_link import RunLink
from camgraph.tools.service.shapes.shape_calls import shape_calls
from camgraph.tools.service.web.access import Access
from camgraph.tools.service.web.app import build_app
from camgraph.tools.service.web.http_server import HttpServer, bound
from camgraph.tools.service.web.thread_pools import ThreadPool, ThreadPools

WITHIN_S = 90.0
GRAPH = """
version: 1
name: hung
camera_defaults: {{loop: true, realtime: true, url: cam.mp4}}
cameras: {{hall: {{}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [SIDE, SIDE]}}}}
  infer: {{use: infer, from: prepare, with: {{model: light.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_s: 0}}}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.3, hold: 0.2s}}]}}}}
  footage: {{use: sink_footage, from: actions, with: {{path: footage, before_s: 1, after_s: 1}}}}
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"{more}}}}}
""".replace("SIDE", str(SIDE))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("h")
    write_clip(folder / "cam.mp4")
    write_model(folder / "light.onnx", bright=110.0)
    with serving_run(folder, GRAPH, more=with_tokens()) as run:
        yield run


PICTURE = "/api/cameras/hall/picture.jpg"
OTHER_PLACES = ("/healthz", "/metrics", "/api/status")


def asking(served: Served, place: str) -> http.client.HTTPConnection:
    """Who has asked, and may read the answer. Of the standard library: the start of each takes no time."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=WITHIN_S)
    connection.request("GET", place, headers={"Authorization": f"Bearer {TOKENS['viewer']}"})
    return connection


def status_of(connection: http.client.HTTPConnection) -> int:
    with closing(connection):
        answer = connection.getresponse()
        answer.read()
        return answer.status


def is_answered(asked: Sequence[http.client.HTTPConnection], within_s: float = 0.0) -> bool:
    """Whether one of these has an answer."""
    return bool(select.select([one.sock for one in asked], [], [], within_s)[0])


def test_health_answers_while_many_wait_for_pictures(served: Served) -> None:
    until(lambda: status_of(asking(served, PICTURE)) == 200, WITHIN_S, every_s=0.2)
    footage = served.get("/api/status", "viewer").json()["processes"]["footage.0"]["pid"]
    os.kill(footage, signal.SIGSTOP)
    answered_meanwhile: set[str] = set()
    try:
        asked = [asking(served, PICTURE) for _ in range(48)]
        # Until the first of them is given up, six seconds later.
        while not is_answered(asked, 0.1):
            for place in OTHER_PLACES:
                assert status_of(asking(served, place)) in (200, 503)
                if not is_answered(asked):
                    answered_meanwhile.add(place)
        codes = {status_of(one) for one in asked}
    finally:
        with suppress(ProcessLookupError):  # by then the run may have killed it, as one that hangs
            os.kill(footage, signal.SIGCONT)
    assert codes == {503}
    assert answered_meanwhile == set(OTHER_PLACES), "with the threads of all, they waited as long"
    until(lambda: status_of(asking(served, PICTURE)) == 200, WITHIN_S, every_s=0.2)


class Hang:
    """Blocking work that does not return before `over`."""

    def __init__(self) -> None:
        self.over, self._begun = threading.Event(), threading.Semaphore(0)
        self.ran = 0

    def __call__(self, *_: object, **__: object) -> None:
        self.ran += 1
        self._begun.release()
        assert self.over.wait(WITHIN_S)

    async def begun(self, count: int) -> None:
        for _ in range(count):
            await asyncio.to_thread(self._begun.acquire)


def test_a_pool_that_hangs_refuses_and_others_go_on() -> None:
    async def use() -> int:
        full, other, hang = ThreadPool("the disk", 2, wait_s=0.1), ThreadPool("the run", 1), Hang()
        first = [asyncio.ensure_future(full.run(hang)) for _ in range(2)]
        await hang.begun(2)
        for _ in range(3):
            with pytest.raises(Unavailable, match="all 2 threads that wait for the disk are busy") as refused:
                await full.run(hang)
            assert refused.value.error_id == "threads-busy"
        assert await other.run(int, "7", base=8) == 7
        hang.over.set()
        await asyncio.gather(*first)
        assert await full.run(int, "7") == 7
        full.close()
        other.close()
        return hang.ran

    assert asyncio.run(use()) == 2, "who is refused has begun nothing"


def test_who_is_cancelled_waits_for_work_that_has_begun() -> None:
    async def use() -> None:
        pool, hang = ThreadPool("the disk", 1), Hang()
        running = asyncio.ensure_future(pool.run(hang))
        await hang.begun(1)
        waiting = asyncio.ensure_future(pool.run(hang))
        await asyncio.sleep(0)
        waiting.cancel()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not running.done()
        hang.over.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert hang.ran == 1
        pool.close()

    asyncio.run(use())


def test_the_threads_of_a_service_end_with_it() -> None:
    pools = ThreadPools()

    async def used() -> list[threading.Thread]:
        return await asyncio.gather(*(pool.run(threading.current_thread) for pool in (pools.footage, pools.health)))

    threads = asyncio.run(used())
    assert all(thread.is_alive() for thread in threads)
    pools.close()
    for thread in threads:
        thread.join(WITHIN_S)
        assert not thread.is_alive()
    late: list[int] = []
    pools.footage.run_later(late.append, 1)
    assert late == [1]


# ---- a disk that hangs


STATUS: dict[str, Any] = {
    "health": {"level": "healthy", "reason": "all is well"},
    "phase": "running",
    "totals": {"committed": 3},
    "uptime_s": 1.0,
    "memory_mb": 2.0,
    "troubles": [],
    "cameras": {
        "hall": {
            "frames": 5,
            "fps": 2.0,
            "drops_by_reason": {},
            "skipped_by_reason": {},
            "age_ms": 20.0,
            "through_s": 0.1,
            "losses": 0,
            "state": "live",
        }
    },
    "stages": {},
    "processes": {},
}
INCIDENT = 32 * "0"
CLIP = f"/api/incidents/{INCIDENT}/clip.mp4"
HANGS = {  # what is asked for, what hangs, and the threads for it
    "a clip": (CLIP, "os.pread", 16),
    "a clip that is opened": (CLIP, "camgraph.tools.service.history.kept_incidents.open_regular", 16),
    "a list of incidents": ("/api/incidents", "camgraph.tools.service.history.kept_incidents.incidents_in", 16),
    "a page of events": ("/api/events", "camgraph.tools.service.history.event_history.EventHistory.page", 8),
    "a stream of events": ("/api/events/stream", "camgraph.tools.service.history.event_history.EventHistory.newest", 8),
    "the rules": ("/api/cameras/hall/shapes", "camgraph.tools.service.shapes.shape_calls.ShapeFile.text", 8),
}


@pytest.fixture
def served_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The calls over a folder, in this process: their port. Who finds no thread waits for a moment alone."""
    monkeypatch.setattr(run_link, "ask", lambda *_, **__: STATUS)
    for directory in ("footage", "history"):
        (tmp_path / directory).mkdir()
    incident = record_of(tmp_path / "footage", 0, datetime(2026, 11, 22, tzinfo=UTC))
    incident.write()
    assert incident.incident == INCIDENT
    incident.file("clip").write_bytes(bytes(100))
    (tmp_path / "rules.yaml").write_text("rules: []\n")
    history = EventHistory(tmp_path / "history" / "h.sqlite", get_logger(), keep_s=1e6, keep_bytes=1e8)
    run, threads, listener = RunLink("none"), ThreadPools(), bound("127.0.0.1", 0)
    for pool in vars(threads).values():
        pool._wait_s = 0.1
    calls = [
        *health_calls(run, threads),
        *incident_calls([tmp_path / "footage"], history, threads, lambda: 0.0),
        *event_calls(history, threads.history),
        *shape_calls(run, threads, tmp_path, {"actions": "rules.yaml"}),
    ]
    server = HttpServer(build_app(calls, Access(), get_logger()), listener, get_logger())
    server.start()
    yield listener.getsockname()[1]
    server.stop()
    threads.close()


@pytest.mark.parametrize(("place", "hanging", "threads"), HANGS.values(), ids=HANGS)
def test_health_answers_while_a_disk_hangs(
    served_here: int, monkeypatch: pytest.MonkeyPatch, place: str, hanging: str, threads: int
) -> None:
    def asks(where: str) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", served_here, timeout=WITHIN_S)
        connection.request("GET", where)
        return connection

    hang = Hang()
    monkeypatch.setattr(hanging, hang)
    asked = [asks(place) for _ in range(48)]
    try:
        until(lambda: hang.ran == threads, WITHIN_S)
        for where in ("/healthz", "/readyz", "/metrics", "/api/status"):
            assert status_of(asks(where)) == 200, where
        refused = asks(place)
        if hanging != "os.pread":  # by then the answer has begun
            answer = refused.getresponse()
            assert (answer.status, json.loads(answer.read())["id"]) == (503, "threads-busy")
        refused.close()
    finally:
        hang.over.set()
        for one in asked:
            one.close()


def test_what_is_made_of_a_state_is_made_once() -> None:
    made: list[Any] = []

    def make(status: Any) -> bytes:
        made.append(status)
        return b"%d" % len(made)

    rendered, state = Rendered(make), {"a": 1}
    assert [rendered.of(state) for _ in range(3)] == [b"1"] * 3
    assert rendered.of(dict(state)) == b"2"
    assert rendered.of(None) == b"3"
