"""Answers of what only looks like a run: too slow, too large, of another protocol, or of another user."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import structlog

from camgraph.pipeline.errors import EnvironmentProblem, WireError
from camgraph.pipeline.supervision import control_client
from camgraph.pipeline.supervision.control_client import exchange
from camgraph.pipeline.system.side_channel import SideChannel
from camgraph.pipeline.system.side_link import framed

WITHIN_S = 60.0


def exchanged(path: Path, within_s: float = WITHIN_S) -> str:
    return exchange(path, "{}", owner=os.getuid(), within_s=within_s)


def saying(answer: bytes) -> Callable[[socket.socket], None]:
    """Says so, and waits for the client to go."""

    def answer_with(client: socket.socket) -> None:
        client.sendall(answer)
        while client.recv(1 << 16):
            pass

    return answer_with


def drop_by_drop(client: socket.socket) -> None:
    pause = threading.Event()
    for byte in framed("x" * 1000):
        client.sendall(bytes([byte]))
        pause.wait(0.05)


Serve = Callable[[Callable[[socket.socket], None]], Path]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Serve]:
    """Makes a socket whose first client is answered by a function, in a thread."""
    server = socket.socket(socket.AF_UNIX)
    threads: list[threading.Thread] = []

    def serve(answer: Callable[[socket.socket], None]) -> Path:
        server.bind(str(tmp_path / "c"))
        server.listen()

        def accept() -> None:
            with suppress(OSError):  # the test may be over before this thread runs
                client, _ = server.accept()
                with client:
                    answer(client)

        threads.append(threading.Thread(target=accept, daemon=True))
        threads[0].start()
        return tmp_path / "c"

    yield serve
    server.close()
    for thread in threads:
        thread.join(WITHIN_S)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    "answer", [((64 << 20) + 1).to_bytes(4, "big"), b"HTTP/1.1 400 Bad Request\r\n", b"\xff" + bytes(8) + b"\x7f\x03"]
)
def test_what_is_too_large_or_of_another_protocol_is_not_read(served: Serve, answer: bytes) -> None:
    with pytest.raises(WireError, match=f"at most {64 << 20} bytes"):
        exchanged(served(saying(answer)))


@pytest.mark.parametrize("answer", [7, None, {"error": "expected one message"}, b"{}", ["{}"]])
def test_an_answer_that_is_no_text_is_refused(served: Serve, answer: Any) -> None:
    with pytest.raises(ValueError, match="expected JSON, got"):
        exchanged(served(saying(framed(answer))))


def test_an_answer_byte_by_byte_meets_the_deadline(served: Serve) -> None:
    with pytest.raises(TimeoutError):
        exchanged(served(drop_by_drop), within_s=0.5)


def test_a_connection_that_ends_early_is_an_error(served: Serve) -> None:
    with pytest.raises(ConnectionError):
        exchanged(served(lambda client: client.sendall(framed("{}")[:-1])))


@pytest.mark.parametrize("size", [0, 255, 256, 3 << 20])
def test_answers_of_any_size_come_whole(tmp_path: Path, size: int) -> None:
    channel = SideChannel(
        tmp_path / "c",
        lambda client: client.message * size,
        structlog.get_logger(),
        name="run",
        within_s=WITHIN_S,
        most_request=100,
    )
    channel.serve()
    try:
        assert exchange(tmp_path / "c", "q", owner=os.getuid(), within_s=WITHIN_S) == "q" * size
    finally:
        channel.close()


def test_a_socket_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        exchanged(tmp_path / "c", within_s=0.2)


def test_answers_of_another_user_are_not_believed(served: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner of a folder may put a socket of somebody else there. Linux says who listens."""
    asked: list[bytes] = []
    path = served(lambda client: asked.append(client.recv(100)))
    monkeypatch.setattr(control_client, "_ROOT", -1)
    with pytest.raises(
        EnvironmentProblem, match=r"expected an answer of user 54321, got one of .*, which is not believed"
    ):
        exchange(path, "{}", owner=54321, within_s=WITHIN_S)
    assert asked in ([], [b""]), "nor is it asked"
