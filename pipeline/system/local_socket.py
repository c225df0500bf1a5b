"""Sockets at paths, for programs of the same user: in folders that nobody else can enter."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

_MOST_ADDRESS = 107
"""Bytes."""
_PEER = struct.Struct("3i")
"""pid, uid and gid, as Linux tells them of the process at the other end."""


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
