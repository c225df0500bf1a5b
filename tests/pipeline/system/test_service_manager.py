"""What systemd is told, over real datagram sockets."""

from __future__ import annotations

import math
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from camgraph.pipeline.system.child_environment import handed_on, named
from camgraph.pipeline.system.service_manager import ServiceManager


@pytest.fixture(params=["path", "abstract"])
def listening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """The end of systemd, and its address as in NOTIFY_SOCKET."""
    name = f"@camgraph-{secrets.token_hex(8)}" if request.param == "abstract" else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(f"\0{name[1:]}" if name.startswith("@") else name)
        one.settimeout(60)
        yield one, name


def test_each_notification_is_a_datagram_of_lines(listening: tuple[socket.socket, str]) -> None:
    receiver, address = listening
    before_us = time.monotonic_ns() // 1000
    with closing(ServiceManager(address)) as manager:
        calls = [
            manager.ready(),
            manager.alive(),
            manager.need_longer(1.5),
            manager.stopping(),
            manager.status("two\nlines\tReadyé" + "x" * 900),
            manager.reloading(),
        ]
    assert all(calls)
    received = [receiver.recv(65536).decode() for _ in calls]
    assert received[:4] == ["READY=1", "WATCHDOG=1", "EXTEND_TIMEOUT_USEC=1500000", "STOPPING=1"]
    assert received[4].startswith("STATUS=two lines Readyéxxx")
    assert len(received[4]) < 600
    reloading, _, at_us = received[5].partition("\nMONOTONIC_USEC=")
    assert reloading == "RELOADING=1"
    assert before_us <= int(at_us) <= time.monotonic_ns() // 1000


def test_a_manager_that_is_gone_or_does_not_read_disturbs_nobody(tmp_path: Path) -> None:
    with closing(ServiceManager(str(tmp_path / "nobody"))) as manager:
        assert not manager.ready()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(tmp_path / "deaf"))
        with closing(ServiceManager(str(tmp_path / "deaf"))) as manager:
            sent = [manager.status("x" * 400) for _ in range(10_000)]
    assert sent[0]
    assert not sent[-1], "its queue is full"


@pytest.mark.parametrize(
    ("given", "watchdog_s"),
    [
        ({}, math.inf),
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, math.inf),
        ({"WATCHDOG_USEC": "0"}, math.inf),
        ({"WATCHDOG_USEC": "soon"}, math.inf),
    ],
)
def test_the_variables_are_taken_out_of_the_environment(given: dict[str, str], watchdog_s: float) -> None:
    environ = {"NOTIFY_SOCKET": "/run/none", "PATH": "/bin", **given}
    manager = ServiceManager.taken_from(environ)
    assert manager is not None
    manager.close()
    assert manager.watchdog_s == watchdog_s
    assert environ == {"PATH": "/bin"}


@pytest.mark.parametrize("address", ["", "relative", "vsock:2:1234", "@", "/"])
def test_without_an_address_of_a_unix_socket_there_is_no_manager(address: str) -> None:
    assert ServiceManager.taken_from({"NOTIFY_SOCKET": address}) is None


def test_no_process_of_a_run_gets_the_service_managers_address() -> None:
    environ = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "2", "HOME": "/root"}
    assert handed_on(environ) == named(["*"], environ) == {"HOME": "/root"}
