"""Whatever is asked over the control socket, the run goes on, and says what is wrong. Slow answers come in the order
in which they were asked for.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from typing import Any

import pytest
import zmq
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EnvironmentProblem, UserError
from camgraph.pipeline.supervision.control import Answer, ControlServer, Job, Later, answered
from camgraph.pipeline.supervision.control_client import ask
from camgraph.pipeline.system.run_folder import RunFolder
from camgraph.pipeline.system.side_link import follow

LIMIT_S = 60.0


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


def polled(later: Later[Any]) -> Answer:
    """The answer, once it is there."""
    [answer] = until(lambda: [one for one in [later.poll()] if one is not None])
    return answer


def test_a_job_is_done_when_its_work_is() -> None:
    gate = threading.Event()
    job = Job(lambda: gate.wait(LIMIT_S))
    assert not job.is_done
    gate.set()
    assert job.result() is True
    assert job.is_done


def test_a_job_raises_what_its_work_raises() -> None:
    def work() -> int:
        raise ValueError("no")

    job = Job(work)
    with pytest.raises(ValueError, match="no"):
        job.result()


def test_answer_is_made_in_the_asking_thread() -> None:
    later = Later(lambda: Job(threading.get_ident), lambda found: {"in": found, "by": threading.get_ident()}, None)
    answer = polled(later)
    assert answer["by"] == threading.get_ident() != answer["in"]
    assert later.is_answered


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UserError("a mistake"), {"error": "a mistake", "error_id": ""}),
        (EnvironmentProblem("no disk"), {"error": "no disk", "error_id": "", "status": EXIT_ENVIRONMENT}),
    ],
)
def test_what_is_not_possible_is_an_answer(error: Exception, expected: Answer) -> None:
    def fail() -> Answer:
        raise error

    assert answered(fail) == expected
    assert polled(Later(lambda: Job(fail), lambda found: found, None)) == expected


def test_one_behind_another_begins_when_that_one_is_answered() -> None:
    gate, begun = threading.Event(), list[str]()

    def begin(name: str, work: Callable[[], object]) -> Callable[[], Job[object]]:
        def start() -> Job[object]:
            begun.append(name)
            return Job(work)

        return start

    first = Later(begin("first", lambda: gate.wait(LIMIT_S)), lambda _: {"of": "first"}, None)
    second = Later(begin("second", lambda: None), lambda _: {"of": "second"}, first)
    assert second.poll() is None
    assert begun == ["first"]
    gate.set()
    assert polled(first) == {"of": "first"}
    assert polled(second) == {"of": "second"}
    assert begun == ["first", "second"]


@pytest.mark.parametrize("where", ["work", "then"])
def test_a_bug_in_one_does_not_keep_those_behind_it_waiting(where: str) -> None:
    def fail(*_: object) -> Any:
        raise ZeroDivisionError

    first: Later[Any] = Later(
        lambda: Job(fail if where == "work" else lambda: None), fail if where == "then" else lambda _: {}, None
    )
    second = Later(lambda: Job(lambda: None), lambda _: {"of": "second"}, first)
    with pytest.raises(ZeroDivisionError):
        polled(first)
    assert first.is_answered
    assert polled(second) == {"of": "second"}


def test_failed_start_does_not_block_later_jobs() -> None:
    def no_thread() -> Job[None]:
        raise RuntimeError("can't start new thread")

    gate = threading.Event()
    first = Later(lambda: Job(lambda: gate.wait(LIMIT_S)), lambda _: {}, None)
    second = Later(no_thread, lambda _: {}, first)
    third = Later(lambda: Job(lambda: None), lambda _: {"of": "third"}, second)
    gate.set()
    assert polled(first) == {}
    with pytest.raises(RuntimeError):
        polled(second)
    assert polled(third) == {"of": "third"}
