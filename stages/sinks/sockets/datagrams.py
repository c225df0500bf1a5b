"""One datagram a line (udp), and no word of who gets it."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Sequence
from typing import Any

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.stage import Logger
from camgraph.stages.sinks.sockets.address import Address, Lookup
from camgraph.stages.sinks.sockets.streams import Line


class Datagrams:
    """One datagram a line, sent and forgotten."""

    def __init__(self, address: Address, log: Logger) -> None:
        self._address = address
        self._log = log
        self._lookup = Lookup(address)
        self._socket: socket.socket | None = None
        self._where: Any = None

    def open(self, deadline: float) -> None:
        """Find the host; it may also be found later."""
        with contextlib.suppress(Unavailable):
            self._find(deadline)

    def deliver(self, lines: Sequence[Line], deadline: float) -> list[str]:
        """Send each line. A line beyond a datagram's 64 kB is dropped: `too_large`."""
        if self._socket is None:
            self._find(deadline)
        return [self._send(line) for line in lines]

    def close(self) -> None:
        """Let go of the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _find(self, deadline: float) -> None:
        family, self._where = self._lookup.places(deadline)[0]
        try:
            self._socket = socket.socket(family, socket.SOCK_DGRAM)
        except OSError as error:  # also in `open`: it may be there later
            raise Unavailable(f"{self._address}: cannot make a socket: {error.strerror}; events wait") from error

    def _send(self, line: Line) -> str:
        assert self._socket is not None
        try:
            self._socket.sendto(line.data, self._where)
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                return "too_large"
            self.close()
            raise Unavailable(f"{self._address}: cannot send: {error.strerror}; events wait") from error
        return ""
