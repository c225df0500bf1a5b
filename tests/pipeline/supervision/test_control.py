"""Whatever is asked over the control socket, the run goes on, and says what is wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest
import zmq
from structlog.testing import capture_logs

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.supervision.control import ControlServer, ask
from camgraph.pipeline.system.run_folder import RunFolder


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """As a run would, with a bug."""
    return {"filters": sorted(request["event_filters"].items())}


@pytest.fixture
def server() -> Iterator[ControlServer]:
    with closing(RunFolder("asked")) as folder, closing(ControlServer(folder.control, answer)) as server:
        yield server


@pytest.mark.parametrize("request_bytes", [b"", b"\xff", b"3", b"[1]", b"{", b"[" * 100_000])
def test_what_is_no_request_is_said(server: ControlServer, request_bytes: bytes) -> None:
    reported = json.loads(server.reply(request_bytes))
    assert reported == {"error": "expected a JSON object with `op`, the name of a request"}


@pytest.mark.parametrize("filters", [{}, {"event_filters": []}, {"event_filters": {"a": 1, "b": None}}])
def test_a_bug_in_an_answer_is_logged_and_said_and_ends_nothing(server: ControlServer, filters: dict[str, Any]) -> None:
    with capture_logs() as lines:
        reported = json.loads(server.reply(json.dumps({"op": "reload", **filters}).encode()))
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
        server.socket.poll(30_000)
        server.serve()
        asking.join(30)
    assert len(errors) == 2


def test_of_a_flood_only_a_little_is_kept(server: ControlServer) -> None:
    """Nobody serves meanwhile: what the sender still gets rid of is in this process, or on its way."""
    context = zmq.Context.instance()
    with closing(context.socket(zmq.DEALER)) as flood:
        flood.setsockopt(zmq.LINGER, 0)
        flood.setsockopt(zmq.SNDHWM, 1)
        flood.connect(server.socket.getsockopt_string(zmq.LAST_ENDPOINT))
        taken = 0
        while taken < 100 and flood.poll(500, zmq.POLLOUT):
            flood.send_multipart([b"", b"a" * (1 << 20)])
            taken += 1
    assert taken < 30
