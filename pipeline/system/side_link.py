"""Asks and follows side channels (`pipeline.system.side_channel`), and cuts bytes into messages for both sides.

    message  length (4 bytes, the highest first), then so many bytes of msgpack

Text, and what ZeroMQ begins with, read as a length that is longer than any message, so a program of another protocol
(or an older version) is refused at its first bytes.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.system.local_socket import answering_user, short_address

MOST_BYTES = 64 << 20
"""Of a message, if its reader sets no other bound."""
PIECE = 1 << 18
"""Bytes of a read: a socket holds no more."""
_LENGTH = struct.Struct(">I")
_MOST_LISTED = 10_000
"""Elements of a list. msgpack takes memory for a list before it has read the elements."""


def framed(message: Any) -> bytes:
    """A message in bytes. Raises ValueError or TypeError for values that msgpack does not take."""
    data: bytes = msgpack.packb(message)
    return _LENGTH.pack(len(data)) + data


class Frames:
    """Cuts bytes into messages, however they come. `most`: bytes of a message."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._in = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """The messages that are complete now. Raises WireError."""
        self._in += data
        while (size := self._size()) is not None and len(self._in) >= _LENGTH.size + size:
            end = _LENGTH.size + size
            message = _unpacked(memoryview(self._in)[_LENGTH.size : end])
            del self._in[:end]
            yield message

    @property
    def is_begun(self) -> bool:
        """Whether a part of another message has come."""
        return bool(self._in)

    def check_end(self) -> None:
        """Raises ConnectionResetError: the other side has ended, perhaps in the middle of a message."""
        came = len(self._in) - _LENGTH.size
        if (size := self._size()) is not None:
            raise ConnectionResetError(f"it broke off after {came} of {size} bytes")
        raise ConnectionResetError("it ended the connection")

    def _size(self) -> int | None:
        if len(self._in) < _LENGTH.size:
            return None
        (size,) = _LENGTH.unpack_from(self._in)
        if size > self._most:
            raise WireError(f"expected a message of at most {self._most} bytes, got {size}")
        return int(size)


def _unpacked(data: memoryview) -> Any:
    """Raises WireError."""
    try:
        with data:
            return msgpack.unpackb(data, max_array_len=_MOST_LISTED, max_map_len=_MOST_LISTED, max_ext_len=0)
    except (ValueError, TypeError):
        raise WireError("expected a message in msgpack") from None


class Link:
    """A connected socket on which both sides send messages, blocking or not. `most`: bytes of a message that comes.

    All methods raise OSError; those that receive raise ConnectionResetError at the end, and WireError for anything else
    than messages.
    """

    def __init__(self, connection: socket.socket, most: int = MOST_BYTES) -> None:
        self.connection = connection
        self._frames = Frames(most)

    def fileno(self) -> int:
        return self.connection.fileno()

    def close(self) -> None:
        self.connection.close()

    def send(self, message: Any) -> None:
        self.connection.sendall(framed(message))

    def receive(self) -> Iterator[Any]:
        """The messages that a single read completes; none if nothing has come to a socket that does not block."""
        try:
            data = self.connection.recv(PIECE)
        except BlockingIOError:
            return
        yield from self._read(data)

    async def arrive(self) -> Iterator[Any]:
        """As `receive`, once something has come: in a loop, of a socket that does not block."""
        return self._read(await asyncio.get_running_loop().sock_recv(self.connection, PIECE))

    async def deliver(self, message: Any) -> None:
        """As `send`, in a loop, of a socket that does not block."""
        await asyncio.get_running_loop().sock_sendall(self.connection, framed(message))

    def _read(self, data: bytes) -> Iterator[Any]:
        if not data:
            self._frames.check_end()
        yield from self._frames.feed(data)


def follow(path: Path, message: Any = None, *, most: int = MOST_BYTES) -> Link:
    """The messages of the channel at this path, on a socket that does not block. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        with short_address(path) as address:
            connection.connect(address)
        link = Link(connection, most)
        link.send(message)
    except OSError:
        connection.close()
        raise
    return link


def ask(
    path: Path,
    message: Any,
    *,
    within_s: float,
    most: int = MOST_BYTES,
    admit: Callable[[int], object] = lambda _: None,
) -> Any:
    """The answer of the channel at this path, all of it `within_s`.

    `admit` is given the user who answers, before anything is asked, and may raise. Raises OSError (TimeoutError if it
    takes longer), and WireError for an answer of another form.
    """
    until_s = time.monotonic() + within_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(within_s)
        with short_address(path) as address:
            connection.connect(address)
        admit(answering_user(connection))
        link = Link(connection, most)
        _bound(connection, until_s)
        link.send(message)  # the time-out is one for all of it
        while True:
            _bound(connection, until_s)
            for answer in link.receive():
                return answer


def _bound(connection: socket.socket, until_s: float) -> None:
    """A socket's own time-out bounds single reads: a server that sends a byte a second never reaches it."""
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("timed out")
    connection.settimeout(left_s)
