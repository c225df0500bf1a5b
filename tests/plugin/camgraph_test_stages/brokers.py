"""Real brokers on loopback: started in a folder, killed and started again on the same port."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from camgraph_test_stages.waiting import until
from pipeline.errors import Unavailable
from pipeline.messages import Event
from pipeline.testing import stamp


def program(name: str) -> str:
    """Its path. The test is skipped if this machine does not have it."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if not path:
        pytest.skip(f"{name} is not installed")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server process. It is ready when its port takes connections, or when `is_ready` says so."""

    def __init__(self, command: Sequence[str], port: int, folder: Path, is_ready: Callable[[], bool] | None = None):
        self._command, self.port, self._folder = list(command), port, folder
        self._is_ready = is_ready or self._answers
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=self._folder, stdout=log, stderr=log)
        until(self._is_ready, every_s=0.02, why=lambda: (self._folder / "server.log").read_text()[-2000:])

    def kill(self) -> None:
        """As a power cut would."""
        self.stop(signal.SIGKILL)

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._process:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None

    def _answers(self) -> bool:
        assert self._process
        assert self._process.poll() is None, (self._folder / "server.log").read_text()[-2000:]
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    server.start()
    try:
        yield server
    finally:
        server.kill()


def incident(number: int, camera: str = "cam", *, phase: str = "single", name: str = "", **data: Any) -> Event:
    """An event as `rules` make it, with as much as a sink looks at."""
    name = name or f"{number:08x}"
    facts = {"incident": name, "phase": phase, "rule": {"id": "fall", "hash": "0"}, "action": "fall"}
    body = {
        "specversion": "1.0",
        "id": f"{number:016x}",
        "source": "camgraph/test",
        "type": f"camgraph.incident.{phase}",
        "subject": camera,
        "time": "2026-01-01T12:00:00.000Z",
        "datacontenttype": "application/json",
        "data": {**facts, "camera": camera, "severity": "alarm", **data},
    }
    return Event(stamp(number, camera), body["id"], name, phase, json.dumps(body).encode())


def stream(count: int) -> list[Event]:
    """Events of two cameras, in turn."""
    return [incident(number, "ab"[number % 2]) for number in range(count)]


def hand_in(sink: Any, items: Sequence[Event], *, batch: int = 10, at: Callable[[int], None] = lambda _: None) -> int:
    """Hand in batches as the runtime does: again and again until they are taken. Returns how often they were not.

    `at` is called before each batch with the number of its first event.
    """
    refused = 0
    for first in range(0, len(items), batch):
        at(first)

        def is_taken(first: int = first) -> bool:
            nonlocal refused
            try:
                list(sink.process(items[first : first + batch]))
            except Unavailable:
                refused += 1
                return False
            return True

        until(is_taken, every_s=0.02)
    return refused


def assert_all_in_order(sent: Sequence[Event], received: Sequence[bytes]) -> None:
    """All arrived, unchanged, and those of each camera in order, apart from repetitions."""
    unique = list(dict.fromkeys(received))
    for camera in {event.stamp.camera for event in sent}:
        wanted = [event.body for event in sent if event.stamp.camera == camera]
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
