"""A socket on which the other side can neither talk without end nor take its time without end.

    allowance = Allowance()
    allowance.renew()                                  # at the beginning of each call: a megabyte, four seconds
    stream = BoundedSocket(connected(host, port, allowance), allowance)

Client libraries read as much as a length in an answer says, and their timeouts begin anew with each byte.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import Any

from camgraph.pipeline.system import happy_eyeballs

MOST_ANSWER = 1 << 20
"""Bytes that a server may say in one call: brokers confirm each event with less than a hundred."""
_CHUNK = 1 << 16


class AnswerTooLong(ConnectionError):
    """The other side says more than it has reason to."""

    def __str__(self) -> str:
        return "its answer is longer than any that it has reason to give: is it such a server?"


class Allowance:
    """What one call may read in all, and until when it may take."""

    def __init__(self) -> None:
        self._left, self._until_s = 0, 0.0

    def renew(self, within_s: float, most_bytes: int = MOST_ANSWER) -> None:
        self._left, self._until_s = most_bytes, time.monotonic() + within_s

    def left_s(self) -> float:
        """More than 0. Raises TimeoutError."""
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        return left_s

    def expect(self, size: int) -> None:
        """So many bytes are to come. Raises AnswerTooLong, before they are read, if they are too many."""
        if size > self._left:
            raise AnswerTooLong

    def take(self, size: int) -> None:
        """So many were read. Raises AnswerTooLong."""
        self._left -= size
        self.expect(0)


class BoundedSocket:
    """A connected socket, with or without TLS, that reads and writes within its allowance; else it is the socket."""

    def __init__(self, stream: socket.socket, allowance: Allowance) -> None:
        self._stream, self._allowance = stream, allowance

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def recv(self, most: int, flags: int = 0) -> bytes:
        """As of a socket, in small pieces: Python reserves `most` bytes at once. Raises AnswerTooLong."""
        before_s = self._hurry()
        try:
            some = self._stream.recv(min(most, _CHUNK), flags)
        finally:
            self._stream.settimeout(before_s)
        self._allowance.take(len(some))
        return some

    read = recv

    def recv_into(self, buffer: Any, most: int = 0, flags: int = 0) -> int:
        before_s = self._hurry()
        try:
            size = self._stream.recv_into(buffer, most, flags)
        finally:
            self._stream.settimeout(before_s)
        self._allowance.take(size)
        return size

    def sendall(self, data: Any, flags: int = 0) -> None:
        """In pieces, since each of TLS has the whole timeout."""
        before_s = self._stream.gettimeout()
        rest = memoryview(data).cast("B")
        try:
            while rest:
                self._hurry()
                rest = rest[self._stream.send(rest, flags) :]
        finally:
            self._stream.settimeout(before_s)

    def write(self, data: Any) -> int:
        """As of a socket with TLS; writes all of it."""
        self.sendall(data)
        return len(data)

    def unwrap(self) -> socket.socket:
        """Say goodbye to a peer that speaks TLS. Raises OSError."""
        assert isinstance(self._stream, ssl.SSLSocket)
        self._stream.settimeout(0.5)
        return self._stream.unwrap()

    def _hurry(self) -> float | None:
        """Wait no longer than is left; returns how long it would have waited. Raises TimeoutError."""
        before_s = self._stream.gettimeout()
        left_s = self._allowance.left_s()
        if before_s is None or before_s > left_s:
            self._stream.settimeout(left_s)
        return before_s


def connected(host: str, port: int, allowance: Allowance) -> socket.socket:
    """A connection to the first address of the host that answers, within the allowance. Raises OSError."""
    stream = happy_eyeballs.connect(host, port, time.monotonic() + allowance.left_s())
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return stream
