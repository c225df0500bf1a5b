"""The base of all senders: their interface, lines, and small steps on a stream socket."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import ssl
import struct
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from camgraph.stages.sinks.delivery.tls import tls_failure

CHUNK = 1 << 16
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Line(NamedTuple):
    """An event's id, and its bytes: a line with the newline, or as the format of the sink says."""

    id: str
    data: bytes


class Sender(Protocol):
    """Gets lines to the outside. `deadline`, on the clock of time.monotonic, is when a call must return.

    `deliver` says for each line why it was dropped ("": it was not), and raises Unavailable when the lines must be
    handed in again later.
    """

    def open(self, deadline: float) -> None: ...

    def deliver(self, lines: Sequence[Line], deadline: float) -> list[str]: ...

    def close(self) -> None: ...


def unconfirmed(stream: socket.socket) -> int:
    """Bytes that the other side's kernel has not confirmed (tcp), or its program not read (unix). See SIOCOUTQ."""
    import fcntl  # noqa: PLC0415 - there is none on Windows, where `SinkSocket.open` refuses
    import termios  # noqa: PLC0415 - as above

    answer = fcntl.ioctl(stream, termios.TIOCOUTQ, bytes(4))
    return int(struct.unpack("i", answer)[0])


def drop_input(stream: socket.socket) -> None:
    """Discard some of the other side's data; its end means nothing, as it may still read. Raises OSError.

    Not all of it: one that sends without a pause would keep us busy for ever.
    """
    with contextlib.suppress(*_NOT_NOW):
        stream.recv(CHUNK)


def send_some(stream: socket.socket, data: bytearray | memoryview) -> int:
    try:
        return stream.send(data[:CHUNK])
    except _NOT_NOW:
        return 0


def raise_pending(stream: socket.socket) -> None:
    """Raise OSError if the connection is broken. A reset after the other side's end shows in no `recv`."""
    number = stream.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    poll = select.poll()
    poll.register(stream, 0)
    if number or poll.poll(0):
        raise OSError(number or errno.EPIPE, os.strerror(number or errno.EPIPE))


def why_broken(error: OSError) -> str:
    """For people."""
    if isinstance(error, ssl.SSLError):
        return tls_failure(error)
    return error.strerror or str(error)
