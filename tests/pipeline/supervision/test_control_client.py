"""Answers of what only looks like a run: too slow, too large, of another protocol, or of another user."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import zmq

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.supervision import control_client
from camgraph.pipeline.supervision.control_client import exchange

WITHIN_S = 60.0
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x04\x06\x05READY"


def exchanged(path: Path, within_s: float = WITHIN_S) -> bytes:
    return exchange(path, b"{}", owner=os.getuid(), within_s=within_s)


def endlessly(piece: bytes) -> Callable[[socket.socket], None]:
    def answer(client: socket.socket) -> None:
        client.sendall(GREETING + READY)
        while True:
            client.sendall(piece)

    return answer


def drop_by_drop(client: socket.socket) -> None:
    pause = threading.Event()
    for byte in GREETING * 1000:
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
    "piece", [b"\x01\x00", b"\x01\xff" + bytes(255), b"\x03" + (8 << 20).to_bytes(8, "big") + bytes(8 << 20)]
)
def test_an_answer_without_end_is_not_read_for_long(served: Serve, piece: bytes) -> None:
    with pytest.raises(ValueError, match=r"more than (64 MB|16 parts)"):
        exchanged(served(endlessly(piece)))


def test_an_answer_of_one_huge_frame_is_not_read(served: Serve) -> None:
    def answer(client: socket.socket) -> None:
        client.sendall(GREETING + READY + b"\x02" + (1 << 40).to_bytes(8, "big"))
        while client.recv(1000):
            pass

    with pytest.raises(ValueError, match="more than 64 MB"):
        exchanged(served(answer))


def test_an_answer_byte_by_byte_meets_the_deadline(served: Serve) -> None:
    with pytest.raises(TimeoutError):
        exchanged(served(drop_by_drop), within_s=0.5)


def test_another_protocol_is_refused(served: Serve) -> None:
    def answer(client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 9)
        client.recv(1 << 16)  # whoever ends before the greeting has come breaks the connection instead

    with pytest.raises(ValueError, match="another protocol"):
        exchanged(served(answer))


def test_a_connection_that_ends_early_is_an_error(served: Serve) -> None:
    with pytest.raises(ConnectionError):
        exchanged(served(lambda client: client.sendall(GREETING)))


@pytest.mark.parametrize("size", [0, 255, 256, 3 << 20])
def test_answers_of_any_size_come_whole(tmp_path: Path, size: int) -> None:
    with zmq.Context.instance().socket(zmq.ROUTER) as server:
        server.bind(f"ipc://{tmp_path}/c")

        def answer() -> None:
            identity, empty, request = server.recv_multipart()
            server.send_multipart([identity, empty, request * size])

        thread = threading.Thread(target=answer)
        thread.start()
        assert exchange(tmp_path / "c", b"q", owner=os.getuid(), within_s=WITHIN_S) == b"q" * size
        thread.join(WITHIN_S)


def test_a_socket_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        exchanged(tmp_path / "c", within_s=0.2)


def test_answers_of_another_user_are_not_believed(served: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner of a folder may put a socket of somebody else there. Linux says who listens."""
    path = served(endlessly(b"\x00\x00"))
    monkeypatch.setattr(control_client, "_ROOT", -1)
    with pytest.raises(
        EnvironmentProblem, match=r"expected an answer of user 54321, got one of .*, which is not believed"
    ):
        exchange(path, b"{}", owner=54321, within_s=WITHIN_S)
