"""Connects to a receiver (tcp, unix), and again when it is lost."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from collections.abc import Callable, Sequence

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.happy_eyeballs import Place, connect_first
from camgraph.stages.sinks.delivery.attempts import Attempts
from camgraph.stages.sinks.delivery.bounded_line import hang_up
from camgraph.stages.sinks.sockets.address import Address, Lookup
from camgraph.stages.sinks.sockets.greeter import shake_hands
from camgraph.stages.sinks.sockets.streams import (
    Line,
    drop_input,
    raise_pending,
    send_some,
    unconfirmed,
    why_broken,
)

_PAUSES_S = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_LEAST_S = 0.05
"""For connecting, however late it is."""
DEAD_PEER_MS = 20_000
"""Bytes unconfirmed, or silence on an idle connection, for this long: the other machine is gone."""


class Connection:
    """A connection to a receiver that listens.

        absent --connect--> connected --reset, closed--> absent (pause)
                                |  ^
                  not all taken |  | handed in again: only what is new is written
                                v  |
                              behind

    A line counts as delivered when the other side's kernel has confirmed it (tcp), or its program has read it (unix):
    the queue of unconfirmed bytes is empty and the connection is whole. Nothing shows whether a program on tcp has read
    the bytes that its kernel took; lines that lay there unread when it died are lost.
    """

    def __init__(
        self,
        address: Address,
        log: Logger,
        tls: Callable[[], ssl.SSLContext] | None = None,
        server_name: str | None = None,
    ) -> None:
        """`tls` makes the context, with `server_name` in the certificate of the receiver; None: no TLS."""
        self._address = address
        self._log = log
        self._tls, self._server_name = tls, server_name or address.host
        self._lookup = Lookup(address)
        self._socket: socket.socket | None = None
        self._unsent = bytearray()
        self._behind: set[str] = set()
        self._attempts = Attempts(_PAUSES_S)

    def open(self, deadline: float) -> None:
        """Try to connect; a receiver may also come later."""
        with contextlib.suppress(Unavailable):
            self._connect(deadline)

    def deliver(self, lines: Sequence[Line], deadline: float) -> list[str]:
        """Write the lines that this connection does not have yet, and wait for the other side to take them."""
        connected_before = self._socket is not None
        try:
            self._write(lines, deadline)
        except ConnectionError:
            # The receiver was restarted since the last event: its old connection breaks only when written to.
            if not connected_before:
                raise self._unavailable("the receiver closed the connection") from None
            self._write_again(lines, deadline)
        self._behind.clear()
        return [""] * len(lines)

    def close(self) -> None:
        """Let the receiver see the end of the stream."""
        if self._socket is not None:
            hang_up(self._socket)
            self._socket = None
        self._unsent.clear()
        self._behind.clear()

    def _write_again(self, lines: Sequence[Line], deadline: float) -> None:
        try:
            self._write(lines, deadline)
        except ConnectionError:
            raise self._unavailable("the receiver closed the connection") from None

    def _write(self, lines: Sequence[Line], deadline: float) -> None:
        if self._socket is None:
            self._connect(deadline)
        for line in lines:
            if line.id not in self._behind:
                self._behind.add(line.id)
                self._unsent += line.data
        try:
            self._drain(deadline)
        except OSError as error:
            self._lose(error)
            raise ConnectionError from error

    def _drain(self, deadline: float) -> None:
        """Until all is sent and confirmed. Raises OSError for a broken connection, Unavailable at the deadline."""
        assert self._socket is not None
        wait_s = 0.0002
        while True:
            drop_input(self._socket)
            taken = not self._unsent and unconfirmed(self._socket) == 0
            raise_pending(self._socket)  # a broken connection may have an empty queue, or one that stays as it is
            if taken:
                return
            if self._unsent:
                del self._unsent[: send_some(self._socket, self._unsent)]
            if time.monotonic() >= deadline:
                raise Unavailable(f"{self._address}: the receiver does not read: events wait for it")
            _wait(self._socket, for_room=bool(self._unsent), seconds=wait_s)
            wait_s = min(wait_s * 1.5, 0.01)

    def _connect(self, deadline: float) -> None:
        if not self._attempts.may_try(time.monotonic()):
            raise self._unavailable("not connected")
        try:
            places = self._lookup.places(deadline)
            self._socket = self._secured(_connected(places, deadline), deadline)
        except (OSError, Unavailable) as error:
            raise self._failed(error) from error
        self._attempts.succeeded()
        self._log.info("receiver_connected", address=str(self._address))

    def _secured(self, stream: socket.socket, deadline: float) -> socket.socket:
        """The stream, in TLS if that is wanted. Raises OSError and Unavailable."""
        if self._tls is None:
            return stream
        try:
            context = self._tls()
            secured = context.wrap_socket(stream, server_hostname=self._server_name, do_handshake_on_connect=False)
        except BaseException:
            stream.close()
            raise
        try:
            shake_hands(secured, deadline)
        except BaseException:
            secured.close()
            raise
        return secured

    def _lose(self, error: OSError) -> None:
        self.close()
        self._log.warning("receiver_lost", address=str(self._address), error=why_broken(error) or "closed")

    def _failed(self, error: Exception) -> Unavailable:
        """The error that `deliver` raises; the first of a row is logged."""
        reason = (why_broken(error) or "it took too long") if isinstance(error, OSError) else str(error)
        if not self._attempts.failures:
            self._log.warning("receiver_absent", address=str(self._address), error=reason)
        self._attempts.failed(time.monotonic(), reason)
        return self._unavailable(reason)

    def _unavailable(self, reason: str) -> Unavailable:
        return Unavailable(f"{self._address}: no receiver: {reason}; start one there: events wait for it")


def _connected(places: Sequence[Place], deadline: float) -> socket.socket:
    """The first of these addresses that takes a connection. Raises OSError."""
    if places and places[0].family == socket.AF_UNIX:
        stream = _connected_here(places[0].where, deadline)
    else:
        stream = connect_first(places, max(deadline, time.monotonic() + _LEAST_S))
        _find_death(stream)
    stream.setblocking(False)
    return stream


def _connected_here(path: str, deadline: float) -> socket.socket:
    """Raises OSError."""
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        stream.settimeout(max(_LEAST_S, deadline - time.monotonic()))
        stream.connect(path)
    except OSError:
        stream.close()
        raise
    return stream


def _find_death(stream: socket.socket) -> None:
    """Notice within DEAD_PEER_MS that the other machine has gone without a word."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_PEER_MS)


def _wait(stream: socket.socket, *, for_room: bool, seconds: float) -> None:
    poll = select.poll()
    poll.register(stream, select.POLLOUT if for_room else 0)
    poll.poll(max(1.0, seconds * 1000) if for_room else 0)
    if not for_room:  # nothing signals a confirmation
        time.sleep(seconds)
