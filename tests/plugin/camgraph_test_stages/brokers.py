"""Events for real brokers on loopback, and a way to kill these in the middle."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trustme

from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import event
from camgraph.tools.lab import broker_servers
from camgraph.tools.lab.broker_servers import BrokerServer as Server
from camgraph.tools.lab.broker_servers import free_port, serving
from camgraph_test_stages.delivering import delivering, hand_in
from camgraph_test_stages.waiting import until

__all__ = [
    "Line",
    "Server",
    "assert_all_in_order",
    "certify",
    "delivering",
    "free_port",
    "hand_in",
    "incident",
    "or_skip",
    "program",
    "serving",
    "stream",
    "struck",
]
T = TypeVar("T")


def program(name: str) -> str:
    """Its path. The test is skipped if this machine does not have it."""
    return or_skip(lambda: broker_servers.program(name))


def or_skip(start: Callable[[], T]) -> T:
    """Skips the test, by the name of the program, if this machine does not have it."""
    try:
        return start()
    except LookupError as missing:
        pytest.skip(str(missing))


def incident(number: int, camera: str = "cam", *, phase: Any = "single", name: str = "", **data: Any) -> Event:
    """`event` of `pipeline.testing`; `name`: of its incident."""
    return event(number, camera, phase=phase, incident=name, **data)


def certify(folder: Path, name: str) -> None:
    """Write `ca.pem`, and `server.pem` with the certificate and key of a server of this name."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))


def stream(count: int) -> list[Event]:
    """Events of two cameras, in turn."""
    return [incident(number, "ab"[number % 2]) for number in range(count)]


def assert_all_in_order(sent: Sequence[Event], received: Sequence[bytes]) -> None:
    """All arrived, unchanged, and those of each camera in order, apart from repetitions."""
    unique = list(dict.fromkeys(received))
    for camera in {one.stamp.camera for one in sent}:
        wanted = [one.body for one in sent if one.stamp.camera == camera]
        assert [body for body in unique if json.loads(body)["subject"] == camera] == wanted
    assert len(unique) == len(sent)


@contextmanager
def struck(server: Server, when: Callable[[], bool]) -> Iterator[None]:
    """Within, the server is killed as soon as `when` holds, in the middle of whatever goes on, and started again."""
    failed: list[BaseException] = []

    def strike() -> None:
        try:
            until(when, every_s=0.005)
            server.kill()
            server.start()
        except BaseException as error:  # noqa: BLE001 - for the test to raise
            failed.append(error)

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failed:
        raise failed[0]


class Line:
    """A port that leads to this one, until it is cut."""

    def __init__(self, port: int) -> None:
        self.port = free_port()
        self._to = port
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Line:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        server = socket.create_server(("127.0.0.1", self.port))
        self._ends.append(server)
        self._go(self._serve, server)

    def kill(self) -> None:
        """Hang up both sides of each connection, in the middle of whatever goes over the line."""
        while self._ends or self._threads:
            for end in self._ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            for thread in self._threads[:]:
                thread.join(0.1)
                if not thread.is_alive():
                    self._threads.remove(thread)
            if not self._threads:
                for end in self._ends:
                    end.close()
                self._ends.clear()

    def _go(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments))
        self._threads[-1].start()

    def _serve(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = server.accept()
                self._ends.append(near)
                far = socket.create_connection(("127.0.0.1", self._to))
                self._ends.append(far)
                self._go(self._carry, near, far)
                self._go(self._carry, far, near)

    @staticmethod
    def _carry(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(1 << 16):
                target.sendall(piece)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
