"""The sinks' side of the socket to the program that reads."""

from __future__ import annotations

import select
import socket
import time

from pydantic import Field

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.stage import Settings
from camgraph.stages.sinks.handover.parcel import CREDIT, MODES, Mode, Parcel

STALL_S = 1.0
"""A program that reads no byte for this long counts as gone. It gets the parcel again when it connects anew."""
BUFFER_BYTES = 1 << 20


class HandoverSettings(Settings):
    """The Python API fills this in."""

    address: str = Field("", description="The path of the socket on which the program listens")


class Link:
    """A connection to the program, reopened when it is lost. Use it from one thread.

    `sent`: the number of parcels sent on this connection; `done`: the number of them that the program has acknowledged.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._mode: Mode | None = None
        self._received = b""
        self._granted = self.sent = self.done = 0
        self.connections = 0
        """How many connections there have been. When it changes, `sent` and `done` have started from 0 again."""

    def connect(self) -> Mode:
        """Connect if needed, and return which frames the program wants. Raises Unavailable if the program is gone."""
        if self._socket is not None and self._mode is not None:
            return self._mode
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            opened.settimeout(STALL_S)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
            opened.connect(self._address)
            mode = MODES[opened.recv(1)]
        except (OSError, KeyError) as error:
            opened.close()
            # No trouble to report: the program is also the run's supervisor, so the run is ending.
            raise Unavailable("the program that reads is gone", patient=True) from error
        self._socket, self._mode = opened, mode
        self._received, self._granted, self.sent, self.done = b"", 0, 0, 0
        self.connections += 1
        return mode

    def wait_credit(self, deadline: float) -> bool:
        """Wait for a credit to send a parcel, at most until `deadline` (time.monotonic). Raises Unavailable."""
        while self.sent >= self._granted:
            if not self._listen(deadline):
                return False
        return True

    def wait_done(self, number: int, deadline: float) -> bool:
        """Wait until the program has acknowledged `number` parcels, at most until `deadline`. Raises Unavailable."""
        while self.done < number:
            if not self._listen(deadline):
                return False
        return True

    def send(self, parcel: Parcel) -> int:
        """Send a parcel for which there is a credit, and return its number. Raises Unavailable if the send fails."""
        self.connect()
        assert self._socket is not None
        try:
            for part in parcel.parts():
                self._socket.sendall(part)
        except OSError as error:  # a time-out as well: the rest of a half-sent parcel cannot follow later
            raise self._lost() from error
        self.sent += 1
        return self.sent

    def _listen(self, deadline: float) -> bool:
        """Receive credits and acks; False if none arrive before `deadline`. Raises Unavailable."""
        self.connect()
        assert self._socket is not None
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return False
        try:
            received = self._socket.recv(1 << 12)
        except OSError as error:
            raise self._lost() from error
        if not received:
            raise self._lost()
        self._received += received
        whole = len(self._received) // CREDIT.size * CREDIT.size
        if whole:
            self._granted, self.done = CREDIT.unpack_from(self._received, whole - CREDIT.size)
            self._received = self._received[whole:]
        return True

    def _lost(self) -> Unavailable:
        self.close()
        return Unavailable("the connection to the program that reads is lost", patient=True)

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
