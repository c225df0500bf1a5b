"""Servers and clients of bare sockets, on both sides of a gate."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Self

import pytest

WITHIN_S = 60.0
"""For whatever should come at once."""


class Line:
    """One end of a connection."""

    def __init__(self, end: socket.socket) -> None:
        end.settimeout(WITHIN_S)
        self._end = end
        self._rest = b""

    def say(self, text: str | bytes) -> Self:
        self._end.sendall(text.encode() if isinstance(text, str) else text)
        return self

    def head(self) -> str:
        """The next text, up to its empty line; what is there of it when the other end hangs up."""
        while b"\r\n\r\n" not in self._rest and (data := self._received()):
            self._rest += data
        head, between, self._rest = self._rest.partition(b"\r\n\r\n")
        return (head + between).decode("latin-1")

    def exactly(self, size: int) -> bytes:
        """The next so many bytes, if nothing has been read ahead."""
        assert not self._rest
        got = b""
        while len(got) < size and (data := self._end.recv(size - len(got))):
            got += data
        return got

    def all(self) -> bytes:
        """All until the other end hangs up."""
        while data := self._received():
            self._rest += data
        return self._rest

    def _received(self) -> bytes:
        try:
            return self._end.recv(1 << 16)
        except ConnectionError:  # it has hung up on something unread
            return b""

    def hang_up(self) -> None:
        self._end.close()


class Listener:
    """A server that accepts a connection only when a test says so. `backlog`: one more than this may wait."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, backlog: int = 64) -> None:
        self._server = socket.create_server((host, port), backlog=backlog)
        self._lines: list[Line] = []

    @property
    def port(self) -> int:
        return int(self._server.getsockname()[1])

    def next(self) -> Line:
        """The next connection."""
        self._server.settimeout(WITHIN_S)
        self._lines.append(Line(self._server.accept()[0]))
        return self._lines[-1]

    def was_called(self) -> bool:
        """Whether there is a connection that was not taken yet."""
        self._server.setblocking(False)
        try:
            self._lines.append(Line(self._server.accept()[0]))
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        for line in self._lines:
            line.hang_up()
        self._server.close()


Listeners = Callable[..., Listener]
Callers = Callable[[str], Line]


@pytest.fixture
def listener() -> Iterator[Listeners]:
    """Makes servers, as `Listener`."""
    with ExitStack() as stack:

        def make(host: str = "127.0.0.1", port: int = 0, backlog: int = 64) -> Listener:
            made = Listener(host, port, backlog)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def call() -> Iterator[Callers]:
    """Connects to the host and port of an address."""
    with ExitStack() as stack:

        def make(url: str) -> Line:
            host, _, port = url.partition("//")[2].partition("/")[0].rpartition(":")
            made = Line(socket.create_connection((host.strip("[]"), int(port)), WITHIN_S))
            stack.callback(made.hang_up)
            return made

        yield make
