from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from camgraph_test_stages.dead_addresses import dead_address, name_host

from camgraph.pipeline.system import happy_eyeballs
from camgraph.pipeline.system.happy_eyeballs import (
    Place,
    connect,
    connect_first,
    host_and_port,
    is_this_machine,
    places_of,
)

LONG_S = 100.0
"""Nobody waits for so long, also on a slow machine."""


@pytest.fixture
def good() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def far() -> float:
    return time.monotonic() + LONG_S


def test_silent_address_holds_up_no_other(good: int, monkeypatch: pytest.MonkeyPatch) -> None:
    name_host(monkeypatch, "two.test", "::1", "127.0.0.1")
    began_s = time.monotonic()
    with dead_address(good), connect("two.test", good, far()) as made:
        assert made.getpeername()[0] == "127.0.0.1"
        assert 0 < (made.gettimeout() or 0) <= LONG_S
    assert time.monotonic() - began_s < LONG_S / 2


def test_address_that_answered_is_tried_first(good: int, monkeypatch: pytest.MonkeyPatch) -> None:
    name_host(monkeypatch, "two.test", "::1", "127.0.0.1")
    begun: list[socket.socket] = []
    with dead_address(good):
        for attempts in (2, 1):
            begun.clear()
            places = places_of("two.test", good)
            with connect_first(places, far(), opened=begun.append):
                assert len(begun) == attempts


def test_many_silent_addresses_all_give_way(good: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(happy_eyeballs, "HEAD_START_S", 0.01)
    dead = [f"127.0.1.{number}" for number in range(1, 31)]
    closed: list[socket.socket] = []
    with ExitStack() as stack:
        for ip in dead:
            stack.enter_context(dead_address(good, ip))
        places = [Place(socket.AF_INET, (ip, good)) for ip in [*dead, "127.0.0.1"]]
        begun: list[socket.socket] = []

        def opened(stream: socket.socket) -> None:
            begun.append(stream)
            assert len(begun) - len(closed) <= 8

        def close(stream: socket.socket) -> None:
            closed.append(stream)
            stream.close()

        with connect_first(places, far(), opened=opened, close=close) as made:
            assert made.getpeername()[0] == "127.0.0.1"
    assert len(begun) == 31
    assert len(closed) == 30


def test_families_take_turns() -> None:
    six, four = socket.AF_INET6, socket.AF_INET
    places = [Place(six, (name, 1)) for name in "abc"] + [Place(four, ("d", 1))]
    assert [place.ip for place in happy_eyeballs._in_order(places)] == ["a", "d", "b", "c"]


def test_an_address_has_ipv6_in_brackets() -> None:
    assert [host_and_port(host, 80) for host in ("a.b", "::1")] == ["a.b:80", "[::1]:80"]


def test_only_loopback_and_its_name_are_this_machine() -> None:
    local = {host: is_this_machine(host) for host in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "a.b")}
    assert [host for host, is_local in local.items() if is_local] == ["localhost", "127.0.0.2", "::1"]


def test_reason_is_that_of_an_address_that_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
    name_host(monkeypatch, "two.test", "::1", "127.0.0.1")
    with dead_address(port):
        with pytest.raises(ConnectionRefusedError):
            connect("two.test", port, time.monotonic() + 0.6)
        with pytest.raises(TimeoutError):
            connect("::1", port, time.monotonic() + 0.1)
    with pytest.raises(OSError, match="no address"):
        connect_first([], far())


def test_who_is_told_of_a_socket_may_give_up(good: int) -> None:
    closed: list[socket.socket] = []

    def opened(_: socket.socket) -> None:
        raise KeyboardInterrupt

    def close(stream: socket.socket) -> None:
        closed.append(stream)
        stream.close()

    with pytest.raises(KeyboardInterrupt):
        connect_first(places_of("127.0.0.1", good), far(), opened=opened, close=close)
    assert len(closed) == 1
