"""Whatever is asked over the control socket, the run goes on, and says what is wrong."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from typing import Any

import pytest
import zmq
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.supervision.control import ControlServer, ask
from camgraph.pipeline.supervision.jobs import Job, Later
from camgraph.pipeline.system.run_folder import RunFolder
from camgraph.pipeline.system.side_link import follow


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """As a run would, with a bug."""
    return {"filters": sorted(request["event_filters"].items())}


@pytest.fixture
def folder() -> Iterator[RunFolder]:
    with closing(RunFolder("asked")) as made:
        yield made


@pytest.fixture
def server(folder: RunFolder) -> Iterator[ControlServer]:
    with closing(ControlServer(folder.control, answer)) as server:
        yield server


def replied(server: ControlServer, folder: RunFolder, request: Any) -> Any:
    """The answer to a message, over a real socket."""
    with closing(follow(folder.control, request)) as link:
        [text] = until(lambda: server.serve() or list(link.receive()))
    return json.loads(text)


@pytest.mark.parametrize("request_", ["", "\0", "3", "[1]", "{", "[" * 100_000, None, 7, {"op": "status"}, b"\xff"])
def test_what_is_no_request_is_said(server: ControlServer, folder: RunFolder, request_: Any) -> None:
    reported = replied(server, folder, request_)
    assert reported == {"error": "expected a JSON object with `op`, the name of a request"}


@pytest.mark.parametrize("filters", [{}, {"event_filters": []}, {"event_filters": {"a": 1, "b": None}}])
def test_a_bug_in_an_answer_is_logged_and_said_and_ends_nothing(
    server: ControlServer, folder: RunFolder, filters: dict[str, Any]
) -> None:
    with capture_logs() as lines:
        reported = replied(server, folder, json.dumps({"op": "reload", **filters}))
    if filters.get("event_filters"):
        assert reported == {"filters": [["a", 1], ["b", None]]}
        return
    assert "is it from another version of camgraph than the run" in reported["error"]
    assert [(line["event"], line["op"]) for line in lines] == [("request_failed", "reload")]


def test_who_asks_is_told_so(server: ControlServer) -> None:
    """Over a real socket, and the next one is answered."""
    errors = list[UserError]()

    def asks() -> None:
        with pytest.raises(UserError) as caught:
            ask("asked", "reload", event_filters=[])
        errors.append(caught.value)

    for _ in range(2):
        asking = threading.Thread(target=asks)
        asking.start()
        until(lambda thread=asking: server.serve() or not thread.is_alive())
        asking.join(30)
    assert len(errors) == 2


def test_the_loop_of_the_run_is_woken_by_a_request(server: ControlServer, folder: RunFolder) -> None:
    """It polls the server's descriptor, and serves only if something has come or somebody waits."""
    poller = select.poll()
    poller.register(server.fileno(), select.POLLIN)
    assert not poller.poll(0)
    assert not server.owes
    with closing(follow(folder.control, "{}")) as link:
        assert poller.poll(30_000)
        server.serve()
        assert list(link.receive())
    until(lambda: server.serve() or not server.owes)
    assert not poller.poll(0)


def test_an_answer_that_takes_time_is_given_when_it_is_ready(folder: RunFolder) -> None:
    ready = threading.Event()

    def later(_: Mapping[str, Any]) -> Later[bool]:
        return Later(lambda: Job(lambda: ready.wait(60)), lambda done: {"done": done}, None)

    with closing(ControlServer(folder.control, later)) as server, closing(follow(folder.control, "{}")) as link:
        until(lambda: server.serve() or server.owes)
        with closing(follow(folder.control, "{}")):
            until(lambda: server.serve() or len(server._later) == 2)
        server.serve()
        assert list(link.receive()) == []
        ready.set()
        [text] = until(lambda: server.serve() or list(link.receive()))
        until(lambda: server.serve() or not server.owes)
    assert json.loads(text) == {"done": True}


def test_of_a_flood_only_a_little_is_kept(server: ControlServer, folder: RunFolder) -> None:
    """Nobody serves meanwhile: what the sender still gets rid of is on its way."""
    with socket.socket(socket.AF_UNIX) as flood:
        flood.connect(str(folder.control))
        flood.setblocking(False)
        sent = 0
        with suppress(BlockingIOError):
            while sent < 30 << 20:
                sent += flood.send(bytes(1 << 20))
    assert sent < 30 << 20


def test_a_run_of_an_older_version_is_told_apart_at_once(folder: RunFolder) -> None:
    """Its control socket speaks ZeroMQ."""
    with zmq.Context.instance().socket(zmq.ROUTER) as older:
        older.bind(f"ipc://{folder.control}")
        begun_s = time.monotonic()
        with pytest.raises(EnvironmentProblem, match="is it from another version of camgraph") as caught:
            ask("asked", "status", within_s=1000.0)
        assert time.monotonic() - begun_s < 100
        assert caught.value.error_id == "run-unreadable"


def test_a_command_of_an_older_version_is_refused_at_once(server: ControlServer, folder: RunFolder) -> None:
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
    with socket.socket(socket.AF_UNIX) as older:
        older.settimeout(60)
        older.connect(str(folder.control))
        older.sendall(greeting)
        until(lambda: server.serve() or not server.owes)
        assert older.recv(64)[:1] != b"\xff"
