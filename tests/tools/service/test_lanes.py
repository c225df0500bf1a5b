"""What hangs keeps nothing else waiting: the process of pictures, the run itself, and many who ask them."""

from __future__ import annotations

import asyncio
import http.client
import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.services import TOKENS, Served, serving_run, with_tokens
from camgraph_test_stages.waiting import until

from pipeline.errors import EnvironmentProblem
from tools.measuring.blinking import write_clip
from tools.measuring.light_model import SIDE, write_model
from tools.service import run_link
from tools.service.health_calls import Rendered
from tools.service.lanes import Lane
from tools.service.run_link import RunLink

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


def test_health_answers_while_many_wait_for_pictures(served: Served) -> None:
    until(lambda: status_of(asking(served, PICTURE)) == 200, WITHIN_S, every_s=0.2)
    footage = served.get("/api/status", "viewer").json()["processes"]["footage.0"]["pid"]
    os.kill(footage, signal.SIGSTOP)
    slowest_s = 0.0
    try:
        asked = [asking(served, PICTURE) for _ in range(48)]
        # Until the first of them is given up, six seconds later.
        while not select.select([one.sock for one in asked], [], [], 0.1)[0]:
            for place in ("/healthz", "/metrics", "/api/status"):
                begun_s = time.monotonic()
                assert status_of(asking(served, place)) in (200, 503)
                slowest_s = max(slowest_s, time.monotonic() - begun_s)
        codes = {status_of(one) for one in asked}
    finally:
        with suppress(ProcessLookupError):  # by then the run may have killed it, as one that hangs
            os.kill(footage, signal.SIGCONT)
    assert codes == {503}
    assert slowest_s < 3.0, "with the threads of all, it waited six"
    until(lambda: status_of(asking(served, PICTURE)) == 200, WITHIN_S, every_s=0.2)


def test_a_lane_has_so_many_threads_and_no_other_waits_for_it() -> None:
    async def use() -> int:
        hangs, begun = threading.Event(), threading.Semaphore(0)

        def hang() -> None:
            begun.release()
            assert hangs.wait(WITHIN_S)

        full, other = Lane(2), Lane(1)
        tasks = [asyncio.ensure_future(full.run(hang)) for _ in range(5)]
        for _ in range(2):
            await asyncio.to_thread(begun.acquire)
        assert await other.run(int, "7") == 7
        assert not begun.acquire(blocking=False), "a third one waits"
        hangs.set()
        await asyncio.gather(*tasks)
        return len(tasks)

    assert asyncio.run(use()) == asyncio.run(use()) == 5


def test_after_a_missing_picture_the_next_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def silent(path: Path, camera: str) -> Any:
        asked.append(camera)
        raise EnvironmentProblem("no picture came", error_id="no-picture")

    monkeypatch.setattr(run_link, "ask_picture", silent)
    link = RunLink("none")
    monkeypatch.setattr(link, "sockets", lambda pattern: [tmp_path / "pictures"])
    for _ in range(3):
        with pytest.raises(EnvironmentProblem):
            link.picture("hall")
    assert asked == ["hall"]
    monkeypatch.setattr(run_link, "_NO_PICTURES_S", 0.0)
    link._pictures_s = 0.0
    for _ in range(2):
        with pytest.raises(EnvironmentProblem):
            link.picture("hall")
    assert asked == ["hall"] * 3


def test_a_scrape_each_second_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slow, answered = [100.0], threading.Event(), [0]

    def ask(name: str, op: str, *, within_s: float) -> dict[str, Any]:
        if answered[0]:
            assert slow.wait(WITHIN_S)
        answered[0] += 1
        return {"n": answered[0]}

    monkeypatch.setattr(run_link, "ask", ask)
    monkeypatch.setattr(run_link.time, "monotonic", lambda: now[0])
    link = RunLink("none")
    assert link.status() == {"n": 1}
    now[0] += 1.2
    assert [link.status() for _ in range(3)] == [{"n": 1}] * 3, "while the run is asked once more"
    slow.set()
    until(lambda: link.status() == {"n": 2})
    assert answered == [2]
    now[0] += 5.0
    assert link.status() == {"n": 3}, "a state of long ago is none"
    link._status.forget()
    assert link.status() == {"n": 4}


def test_what_is_made_of_a_state_is_made_once() -> None:
    made: list[Any] = []

    def make(status: Any) -> bytes:
        made.append(status)
        return b"%d" % len(made)

    rendered, state = Rendered(make), {"a": 1}
    assert [rendered.of(state) for _ in range(3)] == [b"1"] * 3
    assert rendered.of(dict(state)) == b"2"
    assert rendered.of(None) == b"3"
