"""Sockets at paths, for programs of the same user: in folders that nobody else can enter."""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path

_MOST_ADDRESS = 107
"""Bytes."""
_PEER = struct.Struct("3i")
"""pid, uid and gid, as Linux tells them of the process at the other end."""
_PIECE = 1 << 20


def listening(path: Path, backlog: int) -> socket.socket:
    """A socket at this path that does not block. Raises OSError, or AttributeError where there are none."""
    path.unlink(missing_ok=True)  # of a process that was killed
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        _bind(server, path)
        server.listen(backlog)
    except OSError:
        server.close()
        raise
    return server


def _bind(server: socket.socket, path: Path) -> None:
    """By its own path if possible, since Linux shows everybody that (`pipeline.system.found_runs`)."""
    if len(os.fsencode(path)) <= _MOST_ADDRESS:
        server.bind(str(path))
        return
    with short_address(path) as address:
        server.bind(address)


class short_address:  # noqa: N801 - a context manager, as in contextlib
    """An address for a socket at `path`, however long that is: `_MOST_ADDRESS` is all that a socket's may have."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> str:
        self._folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._folder}/{self._path.name}"

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)


def answering_user(connection: socket.socket) -> int:
    """The number of the user whose process listens at the other end of a connected socket. Linux vouches for it."""
    _, uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return int(uid)


class Exchange:
    """A connected socket with a deadline for a whole request or answer, however slowly its bytes come.

    A socket's own time-out bounds single reads: a client that sends a byte a second never reaches the time-out. All
    methods raise TimeoutError after the deadline, ConnectionResetError if the other side ends before, and OSError.
    """

    def __init__(self, connection: socket.socket, within_s: float) -> None:
        self._connection = connection
        self._in = bytearray()
        self.extend(within_s)

    def extend(self, within_s: float) -> None:
        """Set the deadline to `within_s` from now."""
        self._until_s = time.monotonic() + within_s

    def send(self, data: bytes | memoryview) -> None:
        """All of `data`."""
        self._bound()
        self._connection.sendall(data)  # its time-out is one for all

    def read(self, size: int) -> bytes:
        """Read exactly `size` bytes."""
        while len(self._in) < size:
            if not self._receive(min(size - len(self._in), _PIECE)):
                raise ConnectionResetError(f"it broke off after {len(self._in)} of {size} bytes")
        return self._taken(size)

    def line(self, most: int) -> bytes:
        """Read a line with its line end, or the first `most` bytes if they hold none."""
        while (end := self._in.find(b"\n", 0, most) + 1) == 0 and len(self._in) < most:
            if not self._receive(min(most, _PIECE)):
                raise ConnectionResetError("it ended before the end of a line")
        return self._taken(end or most)

    def _receive(self, most: int) -> bool:
        """Whether something came; False at the end."""
        self._bound()
        received = self._connection.recv(most)
        self._in += received
        return bool(received)

    def _taken(self, size: int) -> bytes:
        taken = bytes(self._in[:size])
        del self._in[:size]
        return taken

    def _bound(self) -> None:
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._connection.settimeout(left_s)
