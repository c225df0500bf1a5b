"""The door of a gate, its way to the camera, and its end."""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from camgraph_test_stages.waiting import until
from tests.stages.video.live.gate.conftest import WITHIN_S, Callers, Listener, Listeners

from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.gate import gate as gate_module
from camgraph.stages.video.live.gate.gate import MOST_STRANGERS, Gate, Road
from camgraph.stages.video.live.gate.host_lookup import HostLookup
from camgraph.stages.video.live.gate.rtsp_gate import RtspGate
from camgraph.stages.video.live.gate.web_gate import WebGate
from camgraph.stages.video.live.sockets import connections

GATES: list[tuple[type[Gate], str]] = [(RtspGate, "rtsp"), (WebGate, "http")]
HERE = frozenset({"127.0.0.1"})
both = pytest.mark.parametrize(("gate_type", "scheme"), GATES)


def road(scheme: str, port: int, connect_s: float = WITHIN_S, addresses: frozenset[str] = HERE) -> Road:
    return Road(f"{scheme}://viewer:geheim@127.0.0.1:{port}/x", addresses, follow=False, connect_s=connect_s)


def request(gate: Gate) -> str:
    """What FFmpeg begins with."""
    first = (
        f"OPTIONS {gate.url} RTSP/1.0" if isinstance(gate, RtspGate) else f"GET /{gate.url.split('/', 3)[3]} HTTP/1.1"
    )
    return f"{first}\r\nCSeq: 1\r\n\r\n"


ANSWER = {"rtsp": "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n", "http": "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n."}


def is_served(gate: Gate, camera: Listener, call: Callers, scheme: str) -> bool:
    """Whether one who knows the address gets the camera's answer."""
    client = call(gate.url).say(request(gate))
    server = camera.next()
    assert server.head()
    server.say(ANSWER[scheme])
    return " 200 " in client.head()


# --- strangers


@both
@pytest.mark.parametrize(
    "words",
    [
        "RTSP/1.0 x\r\nContent-Length: 99999999\r\n\r\n",
        "OPTIONS rtsp://127.0.0.1/guess/x RTSP/1.0\r\nCSeq: 1\r\n\r\n",
        "GET /guess/camera/http/127.0.0.1:80/x HTTP/1.1\r\n\r\n",
        "\r\n\r\n",
        "x" * 100_000,
    ],
)
def test_a_stranger_gets_nothing_and_does_no_harm(
    listener: Listeners, call: Callers, gate_type: type[Gate], scheme: str, words: str
) -> None:
    camera = listener()
    with gate_type(road(scheme, camera.port)) as gate:
        stranger = call(gate.url)
        try:
            stranger.say(words)
        except ConnectionError:
            assert len(words) > 1000  # it has hung up before it had heard all
        assert stranger.all() == b""
        assert not camera.was_called()
        assert gate.problem is None
        assert is_served(gate, camera, call, scheme)


@both
def test_a_stranger_who_says_nothing_is_not_waited_for(
    listener: Listeners, call: Callers, monkeypatch: pytest.MonkeyPatch, gate_type: type[Gate], scheme: str
) -> None:
    monkeypatch.setattr(gate_module, "ASK_S", 0.2)
    camera = listener()
    with gate_type(road(scheme, camera.port)) as gate:
        silent = call(gate.url)
        slow = call(gate.url).say("OPT")
        assert silent.all() == b""
        assert slow.all() == b""
        assert not camera.was_called()
        assert gate.problem is None


@both
def test_however_many_strangers_there_are_ffmpeg_gets_through(
    listener: Listeners, call: Callers, gate_type: type[Gate], scheme: str
) -> None:
    camera = listener()
    with gate_type(road(scheme, camera.port)) as gate:
        strangers = [call(gate.url) for _ in range(3 * MOST_STRANGERS)]
        assert is_served(gate, camera, call, scheme)
        assert strangers[0].all() == b""
        assert gate.problem is None


@both
def test_a_gate_that_is_closed_ends_strangers_as_well(
    listener: Listeners, call: Callers, gate_type: type[Gate], scheme: str
) -> None:
    with gate_type(road(scheme, listener().port)) as gate:
        silent = call(gate.url).say("OPT")
    assert silent.all() == b""


# --- the door


@both
def test_one_who_goes_before_he_is_let_in_does_not_end_the_door(
    listener: Listeners, call: Callers, monkeypatch: pytest.MonkeyPatch, gate_type: type[Gate], scheme: str
) -> None:
    camera, accept, failures = listener(), socket.socket.accept, [ConnectionAbortedError(errno.ECONNABORTED, "gone")]

    def flaky(door: socket.socket) -> tuple[socket.socket, object]:
        if failures and threading.current_thread().name == "gate":
            raise failures.pop()
        return accept(door)

    monkeypatch.setattr(socket.socket, "accept", flaky)
    with gate_type(road(scheme, camera.port)) as gate:
        assert is_served(gate, camera, call, scheme)
        assert gate.problem is None
    assert failures == []


@both
def test_a_door_without_descriptors_is_closed_and_says_why(
    listener: Listeners, call: Callers, monkeypatch: pytest.MonkeyPatch, gate_type: type[Gate], scheme: str
) -> None:
    """Otherwise FFmpeg would wait for an answer, and nobody would know why."""

    def exhausted(_: socket.socket) -> tuple[socket.socket, object]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    door = gate_type(road(scheme, listener().port))
    waits = call(door.url)
    monkeypatch.setattr(socket.socket, "accept", exhausted)
    with door as gate:
        assert waits.all() == b""
        assert isinstance(gate.problem, OSError)
        assert gate.problem.errno == errno.EMFILE


@both
def test_a_bug_in_serving_reaches_who_reads_the_camera(
    listener: Listeners, call: Callers, monkeypatch: pytest.MonkeyPatch, gate_type: type[Gate], scheme: str
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(gate_type, "_serve", broken)
    with gate_type(road(scheme, listener().port)) as gate:
        assert call(gate.url).say(request(gate)).all() == b""
        until(lambda: isinstance(gate.problem, KeyError))


# --- the way to the camera, and its end

Asking = Callable[[WebGate], tuple[threading.Thread, list[Exception]]]
FOR_EVER_S = 600.0


@pytest.fixture
def asking() -> Iterator[Asking]:
    """Asks the camera in a thread, as the one that reads it does, and keeps what is raised."""
    with ExitStack() as stack:

        def ask(gate: WebGate) -> tuple[threading.Thread, list[Exception]]:
            raised: list[Exception] = []

            def run() -> None:
                try:
                    gate.ask()
                except Exception as error:  # noqa: BLE001 - whatever it is
                    raised.append(error)

            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            stack.callback(thread.join, WITHIN_S)
            stack.callback(gate.close)
            return thread, raised

        yield ask


def full(listener: Listeners, call: Callers, host: str = "127.0.0.1", port: int = 0) -> int:
    """The port of a server that takes no more connections: a client that comes waits."""
    server = listener(host, port, backlog=0)
    call(f"x://{host}:{server.port}/")
    return server.port


def connecting_to(port: int) -> int:
    """So many sockets of this machine are connected to it, or on the way."""
    return sum(peer.port == port for _, peer in connections(Path("/proc/self/net/tcp").read_text()))


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_closing_ends_connecting(listener: Listeners, call: Callers, asking: Asking, scheme: str) -> None:
    port = full(listener, call)
    gate, before = WebGate(road(scheme, port, FOR_EVER_S)), connecting_to(port)
    thread, raised = asking(gate)
    until(lambda: connecting_to(port) > before)
    gate.close()
    thread.join(WITHIN_S)
    assert not thread.is_alive()
    assert isinstance(raised[0], OSError)
    assert gate.problem is None


def test_closing_ends_the_beginning_of_tls(listener: Listeners, asking: Asking) -> None:
    camera = listener()
    gate = WebGate(road("https", camera.port, FOR_EVER_S))
    thread, raised = asking(gate)
    camera.next()
    gate.close()
    thread.join(WITHIN_S)
    assert not thread.is_alive()
    assert isinstance(raised[0], (Dropped, OSError))


def test_closing_ends_waiting_for_an_answer(listener: Listeners, asking: Asking) -> None:
    camera = listener()
    gate = WebGate(road("http", camera.port, FOR_EVER_S))
    thread, raised = asking(gate)
    assert camera.next().head()
    gate.close()
    thread.join(WITHIN_S)
    assert not thread.is_alive()
    assert raised


def test_a_gate_that_is_closed_asks_nobody(listener: Listeners) -> None:
    camera = listener()
    gate = WebGate(road("http", camera.port))
    gate.close()
    with pytest.raises(OSError, match="the gate is closed"):
        gate.ask()
    assert not camera.was_called()


def test_all_addresses_of_a_camera_share_the_time_to_connect(listener: Listeners, call: Callers) -> None:
    port, connect_s = full(listener, call, "0.0.0.0"), 1.0
    addresses = frozenset(f"127.0.0.{number}" for number in range(1, 31))
    gate, begun = WebGate(road("http", port, connect_s, addresses)), time.monotonic()
    with gate, pytest.raises(Dropped, match="no usable answer within 1 s"):
        gate.ask()
    assert time.monotonic() - begun < connect_s * len(addresses) / 2


def test_silent_address_leaves_time_for_the_next(listener: Listeners, call: Callers) -> None:
    port = full(listener, call)
    camera = listener("127.0.0.2", port)
    gate = WebGate(road("http", port, 2.0, frozenset({"127.0.0.1", "127.0.0.2"})))
    with gate:
        thread = threading.Thread(target=lambda: camera.next().say(ANSWER["http"]))
        thread.start()
        assert gate.ask() == "stream"
        thread.join(WITHIN_S)


def test_closing_ends_looking_up_a_name(listener: Listeners, asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    def never(_: HostLookup, __: float) -> bool:
        asked.set()
        return False

    monkeypatch.setattr(HostLookup, "wait", never)
    monkeypatch.setattr(HostLookup, "begin", lambda _: None)
    monkeypatch.setattr(gate_module, "LOOK_UP_S", FOR_EVER_S)
    camera = listener()
    where = f"http://127.0.0.1:{camera.port}/x"
    gate = WebGate(Road(where, HERE, follow=True, connect_s=WITHIN_S))
    thread, raised = asking(gate)
    camera.next().say("HTTP/1.1 302 Found\r\nLocation: http://other.invalid/\r\n\r\n")
    assert asked.wait(WITHIN_S)
    gate.close()
    thread.join(WITHIN_S)
    assert not thread.is_alive()
    assert isinstance(raised[0], Dropped)


@both
def test_an_interface_that_is_not_there_is_named(call: Callers, gate_type: type[Gate], scheme: str) -> None:
    with gate_type(road(scheme, 554, addresses=frozenset({"fe80::1%nosuch0"}))) as gate:
        call(gate.url).say(request(gate)).all()
        until(lambda: gate.problem is not None)
        assert isinstance(gate.problem, Dropped)
        assert "is its network interface nosuch0 right?" in str(gate.problem)
