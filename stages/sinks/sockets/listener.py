"""Serves clients that connect (tcp, unix)."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import ssl
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import EnvironmentProblem, Unavailable, UserError
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.scarcity import in_words
from camgraph.stages.sinks.delivery.bounded_line import hang_up
from camgraph.stages.sinks.sockets.address import Address, find
from camgraph.stages.sinks.sockets.greeter import Greeter
from camgraph.stages.sinks.sockets.streams import Line, drop_input, raise_pending, send_some, why_broken

MOST_CLIENTS = 64
BACKLOG = 128
"""So many may wait to be accepted; no more than that are looked at for one batch of lines."""
_CLIENT_GONE = frozenset({errno.ECONNABORTED, errno.EPROTO, errno.EINTR})
"""Why one client cannot be accepted, and the next one may. Anything else that `accept` says is about this machine."""


class Listener:
    """Serves clients that connect. A client gets events from then on; without one, events are dropped: `no_client`.

    One client beyond MOST_CLIENTS is disconnected at once. If the machine has nothing left for another client, the
    connected ones are served, and the others wait in the backlog.

    A client that does not take its data before the deadline is disconnected: it sees the end of the stream and can come
    back, instead of holding up the others or reading a feed with holes that it cannot see.
    """

    def __init__(self, address: Address, log: Logger, tls: Callable[[], ssl.SSLContext] | None = None) -> None:
        """`tls` makes the context; None: no TLS."""
        self._address = address
        self._log = log
        self._tls = tls
        self._greeter: Greeter | None = None
        self._server: socket.socket | None = None
        self._clients: list[socket.socket] = []
        self._inode = 0
        self._refused = ""
        """Why clients are not accepted at present; reported once."""

    def open(self, deadline: float) -> None:
        """Listen. Raises UserError or EnvironmentProblem if that cannot be."""
        if not self._address.is_local:
            self._log.warning("listening_beyond_this_machine", address=str(self._address))
        try:
            self._server = self._bound()
            self._server.listen(BACKLOG)
        except OSError as error:
            self.close()
            raise _cannot_listen(self._address, error) from error
        self._server.setblocking(False)
        if self._tls is not None:
            try:
                self._greeter = Greeter(self._server, self._tls, self._log, MOST_CLIENTS)
            except Unavailable as error:
                self.close()
                raise EnvironmentProblem(f"{self._address}: {error}", error_id="port-taken") from None
        self._log.info("listening", address=str(self._address))

    def deliver(self, lines: Sequence[Line], deadline: float) -> list[str]:
        """Send the lines to all who are connected now."""
        self._accept()
        rest = {client: memoryview(b"".join(line.data for line in lines)) for client in self._clients}
        behind = self._send(rest, deadline)
        for client in behind:
            self._drop(client, "too slow")
        return ["" if self._clients else "no_client"] * len(lines)

    def close(self) -> None:
        """Disconnect everyone, and remove the socket file if it is still this one's."""
        if self._greeter is not None:
            self._greeter.close()
            self._greeter = None
        for client in self._clients:
            hang_up(client)
        self._clients.clear()
        if self._server is not None:
            self._server.close()
            self._server = None
            with contextlib.suppress(FileNotFoundError):
                if self._inode and Path(self._address.path).stat().st_ino == self._inode:
                    Path(self._address.path).unlink()

    def _bound(self) -> socket.socket:
        if self._address.scheme == "unix":
            return self._bound_file()
        family, where = find(self._address)[0]
        server = socket.socket(family, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return _or_close(server, where)

    def _bound_file(self) -> socket.socket:
        path = Path(self._address.path)
        _sweep(path)
        server = _or_close(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), str(path))
        path.chmod(0o600)  # before it listens: nobody else can have connected
        self._inode = path.stat().st_ino
        return server

    def _accept(self) -> None:
        """Take those who wait. Never raises: a batch of lines must not depend on who connects."""
        refused = ""
        for _ in range(BACKLOG):
            try:
                client = self._next_client()
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno in _CLIENT_GONE:
                    continue
                refused = in_words(error) or error.strerror or str(error)
                break
            if len(self._clients) < MOST_CLIENTS:
                self._clients.append(client)
                self._log.info("client_connected", address=str(self._address), clients=len(self._clients))
            else:
                client.close()
                refused = f"there are {MOST_CLIENTS} already: end some of them"
        if refused and refused != self._refused:
            self._log.warning("clients_refused", address=str(self._address), why=refused)
        self._refused = refused

    def _next_client(self) -> socket.socket:
        """Raises OSError, BlockingIOError if nobody waits."""
        assert self._server is not None
        if self._greeter is not None:
            return self._greeter.next_client()
        client = self._server.accept()[0]
        client.setblocking(False)
        return client

    def _send(self, rest: dict[socket.socket, memoryview], deadline: float) -> list[socket.socket]:
        """Send to all at once; those that are behind at the deadline."""
        while rest:
            for client in list(rest):
                try:
                    drop_input(client)
                    raise_pending(client)
                    rest[client] = rest[client][send_some(client, rest[client]) :]
                except OSError as error:
                    self._drop(client, why_broken(error) or "closed")
                    del rest[client]
                    continue
                if not rest[client]:
                    del rest[client]
            if rest and (time.monotonic() >= deadline or not _any_room(rest, deadline)):
                break
        return list(rest)

    def _drop(self, client: socket.socket, reason: str) -> None:
        client.close()  # without an end of TLS: something is missing
        self._clients.remove(client)
        self._log.info("client_gone", address=str(self._address), reason=reason, clients=len(self._clients))


def _any_room(streams: dict[socket.socket, memoryview], deadline: float) -> bool:
    poll = select.poll()
    for stream in streams:
        poll.register(stream, select.POLLOUT)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def _or_close(server: socket.socket, where: Any) -> socket.socket:
    try:
        server.bind(where)
    except OSError:
        server.close()
        raise
    return server


def _sweep(path: Path) -> None:
    """Remove the socket file of a dead process. Raises OSError when it is in use, UserError when it is none."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise UserError(f"{path}: is no socket; name another path, or move it away", error_id="file-kind")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
                return
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def _cannot_listen(address: Address, error: OSError) -> EnvironmentProblem:
    ways_out = {
        errno.EADDRINUSE: "another program listens there: stop it, or choose another port or path",
        errno.EACCES: "choose a port above 1023, or a folder that you may write to",
        errno.EADDRNOTAVAIL: "this machine does not have that address: 127.0.0.1 is always there",
        errno.ENOENT: "make the folder first",
    }
    way_out = ways_out.get(error.errno or 0, "choose another address")
    return EnvironmentProblem(f"{address}: cannot listen: {error.strerror}; {way_out}", error_id="port-taken")
