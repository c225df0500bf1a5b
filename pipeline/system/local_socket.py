"""Sockets at paths, for programs of the same user: in folders that nobody else can enter."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def listening(path: Path, backlog: int) -> socket.socket:
    """A socket at this path that does not block. Raises OSError, or AttributeError where there are none."""
    path.unlink(missing_ok=True)  # of a process that was killed
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        with short_address(path) as address:
            server.bind(address)
        server.listen(backlog)
    except OSError:
        server.close()
        raise
    return server


class short_address:  # noqa: N801 - a context manager, as in contextlib
    """An address for a socket at `path`, however long that is: 107 characters are all that a socket's may have."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> str:
        self._folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._folder}/{self._path.name}"

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)
