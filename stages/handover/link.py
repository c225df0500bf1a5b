"""The sinks' side of the socket to the program that reads."""

from __future__ import annotations

import select
import socket
import time

from pydantic import Field

from pipeline.errors import Unavailable
from pipeline.stage import Settings
from stages.handover.parcel import CREDIT, MODES, Mode, Parcel

STALL_S = 1.0
"""A program that takes no byte of a parcel for so long is taken for gone: it gets the parcel again when it is back."""
BUFFER_BYTES = 1 << 20


class HandoverSettings(Settings):
    """Filled in by the Python API; nobody writes it."""

    address: str = Field("", description="The path of the socket on which the program listens")


class Link:
    """A connection to the program, made again when it is lost. Use it from one thread.

    `sent`: how many parcels went over this connection; `done`: how many of them the program is done with.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._mode: Mode | None = None
        self._heard = b""
        self._granted = self.sent = self.done = 0
        self.connections = 0
        """How many there have been: a change says that `sent` and `done` began anew."""

    def connect(self) -> Mode:
        """Be connected; which frames the program wants. Raises Unavailable where it is gone."""
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
            # Nothing to complain about: the run is ending, as the program is its supervisor too.
            raise Unavailable("the program that reads is gone", patient=True) from error
        self._socket, self._mode = opened, mode
        self._heard, self._granted, self.sent, self.done = b"", 0, 0, 0
        self.connections += 1
        return mode

    def wait_credit(self, deadline: float) -> bool:
        """Wait until a parcel may be sent, at most until `deadline` (time.monotonic). Raises Unavailable."""
        while self.sent >= self._granted:
            if not self._listen(deadline):
                return False
        return True

    def wait_done(self, number: int, deadline: float) -> bool:
        """Wait until the program is done with so many parcels, at most until `deadline`. Raises Unavailable."""
        while self.done < number:
            if not self._listen(deadline):
                return False
        return True

    def send(self, parcel: Parcel) -> int:
        """Send a parcel, for which there is a credit; its number. Raises Unavailable where the connection breaks."""
        self.connect()
        assert self._socket is not None
        try:
            for part in parcel.parts():
                self._socket.sendall(part)
        except OSError as error:  # also a time-out: half a parcel cannot be taken back
            raise self._lost() from error
        self.sent += 1
        return self.sent

    def _listen(self, deadline: float) -> bool:
        """Hear what the program says next; False where it says nothing until `deadline`. Raises Unavailable."""
        self.connect()
        assert self._socket is not None
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return False
        try:
            heard = self._socket.recv(1 << 16)
        except OSError as error:
            raise self._lost() from error
        if not heard:
            raise self._lost()
        self._heard += heard
        whole = len(self._heard) // CREDIT.size * CREDIT.size
        if whole:
            self._granted, self.done = CREDIT.unpack_from(self._heard, whole - CREDIT.size)
            self._heard = self._heard[whole:]
        return True

    def _lost(self) -> Unavailable:
        self.close()
        return Unavailable("the connection to the program that reads is lost", patient=True)

    def close(self) -> None:
        """Let go of the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
