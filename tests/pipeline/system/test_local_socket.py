"""The deadline of a whole exchange over a socket."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from camgraph.pipeline.system.local_socket import Exchange, answering_user

WITHIN_S = 60.0


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, its = socket.socketpair()
    with ours, its:
        yield ours, its


Pair = tuple[socket.socket, socket.socket]


def test_lines_and_bytes_come_however_they_are_cut(pair: Pair) -> None:
    link = Exchange(pair[0], WITHIN_S)
    pair[1].sendall(b"one\ntwo\nabcdef")
    assert (link.line(100), link.line(100), link.read(2), link.read(4)) == (b"one\n", b"two\n", b"ab", b"cdef")
    pair[1].sendall(b"x" * 50)
    assert link.line(20) == b"x" * 20


def test_an_end_in_the_middle_is_told(pair: Pair) -> None:
    link = Exchange(pair[0], WITHIN_S)
    pair[1].sendall(b"abc")
    pair[1].close()
    with pytest.raises(ConnectionResetError, match="broke off after 3 of 5 bytes"):
        link.read(5)
    with pytest.raises(ConnectionResetError, match="before the end of a line"):
        link.line(5)


def test_slow_bytes_meet_the_deadline(pair: Pair) -> None:
    stop = threading.Event()

    def drip() -> None:
        with suppress(OSError):
            while not stop.wait(0.05):
                pair[1].sendall(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    link = Exchange(pair[0], 0.3)
    with pytest.raises(TimeoutError):
        link.read(1000)
    with pytest.raises(TimeoutError):
        link.line(1000)
    stop.set()
    thread.join(WITHIN_S)


def test_a_side_that_reads_nothing_meets_the_deadline(pair: Pair) -> None:
    link = Exchange(pair[0], 0.3)
    with pytest.raises(TimeoutError):
        link.send(bytes(64 << 20))


def test_the_user_at_the_other_end_is_known(pair: Pair) -> None:
    assert answering_user(pair[0]) == os.getuid()
