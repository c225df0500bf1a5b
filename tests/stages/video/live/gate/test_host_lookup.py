"""Where a camera is, found out in bounded time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.gate.host_lookup import HostLookup, host_of
from camgraph.stages.video.live.sockets import Peer


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("rtsp://10.0.0.11/main", ("10.0.0.11", 554)),
        ("rtsp://v:ge%2Fheim@cam.local:8554/main", ("cam.local", 8554)),
        ("rtsps://cam/x", ("cam", 322)),
        ("HTTP://[fe80::1%25eth0]/x", ("fe80::1%eth0", 80)),
        ("hls+https://cam/x.m3u8", None),
        ("rtsp://me:p[ss@cam:8554/x", ("cam", 8554)),
        ("rtsp://v:12/geheim@cam/x", ("v", 12)),
        ("rtsp://v:ge/heim@cam/x", None),
        ("udp://239.0.0.1:5000", ("239.0.0.1", 5000)),
        ("srt://cam", None),
        ("/dev/video0", None),
    ],
)
def test_the_host_of_an_address(url: str, host: tuple[str, int] | None) -> None:
    assert host_of(url) == host


def asked(url: str, seconds: float = 20.0) -> HostLookup:
    lookup = HostLookup(url)
    lookup.begin()
    lookup.wait(seconds)
    return lookup


def test_numbers_are_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "getaddrinfo")
    assert asked("rtsp://10.0.0.11/x").peers() == {Peer("10.0.0.11", 554)}
    assert asked("/dev/video0").peers() == frozenset()


def test_a_name_is_all_of_its_addresses() -> None:
    assert Peer("127.0.0.1", 8554) in asked("rtsp://localhost:8554/x").peers()


def test_an_unknown_name_is_said_without_the_name() -> None:
    """It may be a part of a password that was not encoded."""
    with pytest.raises(Dropped, match="its name is not known") as caught:
        asked("rtsp://geheim.invalid/x@cam").peers()
    assert "geheim" not in str(caught.value)


@pytest.fixture
def slow_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A name server that answers when the event is set."""
    answer = threading.Event()

    def wait(*_: Any, **__: Any) -> list[Any]:
        answer.wait(20)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.11", 554))]

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    yield answer
    answer.set()


def test_a_name_server_that_is_silent_is_asked_once(slow_server: threading.Event) -> None:
    lookup = asked("rtsp://cam/x", 0.05)
    threads = threading.active_count()
    for _ in range(3):
        lookup.begin()
        assert not lookup.wait(0.01)
        with pytest.raises(Dropped, match="no name server answers"):
            lookup.peers()
    assert threading.active_count() == threads
    slow_server.set()
    assert lookup.wait(10)
    assert lookup.peers() == {Peer("10.0.0.11", 554)}
