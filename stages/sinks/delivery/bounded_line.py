"""A line between a client library and its server, on which the server can neither talk nor take its time without end.

    library <--127.0.0.1:port--> line <--TCP, or TLS under a name of our choice--> server

    until_s = time.monotonic() + 4
    line = BoundedLine(host, port, until_s, tls=context, server_name="broker.local")
    client = library.connect("127.0.0.1", line.port)
    with line.call(until_s):
        client.publish(...)
    line.close()

Client libraries read as much as a length in an answer says, their time-outs begin anew with each byte, and each of them
has TLS of its own. With a line, a library needs none of that, and none of its private parts is touched. A call is over
at its end, whatever hangs: the search for the host, the connection, TLS or the answer. Then both sides are hung up, and
the library fails as it does when a server dies. That holds in every placement: no watchdog has to end the process.
"""

from __future__ import annotations

import math
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.system import happy_eyeballs
from camgraph.stages.sinks.delivery.tls import tls_failure

MOST_ANSWER = 1 << 20
"""Bytes that a server may say in one call: brokers confirm each event with less than a hundred."""
HERE = "127.0.0.1"
_CHUNK = 1 << 16
_MOST_WAITING = 1 << 17
"""Bytes of the library on their way: it is to notice a slow server as it would without a line."""
_MOST_FIRST_LINE = 1 << 16
_GOODBYE_S = 0.5
"""For the last words of the library to reach the server."""
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_HUNG_UP = (ConnectionResetError, BrokenPipeError)

Greeted = Callable[[bytes], tuple[bytes, ssl.SSLContext | None]]


class LineCut(ConnectionError):
    """Why there is no connection; the text is for people."""


class BoundedLine:
    """See the module. For one connection of a library; the line has one thread, which sleeps while nobody talks."""

    def __init__(
        self,
        host: str,
        port: int,
        until_s: float,
        *,
        tls: ssl.SSLContext | None = None,
        server_name: str = "",
        greeted: Greeted | None = None,
        inspect: Callable[[bytes], object] = lambda some: None,
    ) -> None:
        """Connect to the server until `until_s` (time.monotonic), when the first call has to be over as well.

        `greeted`: for a server that says a line before TLS begins. Gets that line; returns what the library hears
        instead, and the context, which replaces `tls`. `inspect` gets all that the server says, and may raise LineCut.
        Raises OSError, Unavailable if this machine has no thread left, and what `greeted` raises.
        """
        self._host, self._server_port = host, port
        self._tls, self._server_name, self._greeted = tls, server_name, greeted
        self._inspect = inspect
        self._until_s = until_s
        self._heard, self._most = 0, MOST_ANSWER
        """Bytes that the server has said so far, and may have said by now."""
        self._is_closed = False
        self._is_connected = threading.Event()
        self.is_over = False
        """Whether the server has hung up, or the line was cut."""
        self.why_cut: Exception | None = None
        """None if one of both sides has hung up, which the other one sees."""
        self._listener = socket.create_server((HERE, 0))
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _MOST_WAITING)
        self._ends = [self._listener]
        self.port = int(self._listener.getsockname()[1])
        """The library connects to it, at 127.0.0.1."""
        self._thread = threading.Thread(target=self._run, name="line", daemon=True)
        self._begin()

    def _begin(self) -> None:
        try:
            self._thread.start()
        except RuntimeError as error:
            self._listener.close()
            raise Unavailable(f"cannot begin a connection: {error}: raise ulimit -u") from error
        if not self._is_connected.wait(max(0.0, self._until_s - time.monotonic())):
            self.cut()
            raise TimeoutError
        if self.why_cut:
            raise self.why_cut

    @contextmanager
    def call(self, until_s: float, most_bytes: int = MOST_ANSWER) -> Iterator[None]:
        """Within, the library makes one call, which begins with its saying something. At `until_s` the line is cut."""
        self.allow(most_bytes)
        self._until_s = until_s
        try:
            yield
        finally:
            self._until_s = math.inf

    def allow(self, most_bytes: int) -> None:
        """The server may say so much from now on."""
        self._most = self._heard + most_bytes

    def close(self) -> None:
        """Hang up. Close the library's connection before, so that its last words arrive."""
        self._thread.join(_GOODBYE_S)
        self.cut()
        self._thread.join(_GOODBYE_S)

    def cut(self) -> None:
        """Hang up now; the library fails."""
        self._is_closed = True
        for end in list(self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    # ---- the thread

    def _run(self) -> None:
        try:
            server, first = self._connected()
            self._is_connected.set()
            library = self._own(self._accepted())
            self._pass_on(library, server, first)
            self.is_over = True
            _let_finish(library)
        except Exception as error:  # noqa: BLE001 - raised in the thread that calls, or told by `why_cut`
            if not self._is_closed and not (self._is_connected.is_set() and isinstance(error, _HUNG_UP)):
                self.why_cut = error
        finally:
            self.is_over = True
            for end in self._ends:
                hang_up(end)
            self._is_connected.set()

    def _connected(self) -> tuple[socket.socket, bytes]:
        """The server, and what it has said already."""
        server, first = self._own(happy_eyeballs.connect(self._host, self._server_port, self._until_s)), b""
        server.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._greeted:
            first, self._tls = self._greeted(self._first_line(server))
        if self._tls:
            server.settimeout(self._left_s())  # for all of the handshake
            server = self._own(self._tls.wrap_socket(server, server_hostname=self._server_name))
        return server, first

    def _first_line(self, server: socket.socket) -> bytes:
        """Byte by byte, since behind the line TLS begins."""
        line = bytearray()
        while not line.endswith(b"\n"):
            server.settimeout(self._left_s())
            some = server.recv(1)
            if not some or len(line) > _MOST_FIRST_LINE:
                raise LineCut("it says something else than expected: is it such a server?")
            line += some
        return bytes(line)

    def _accepted(self) -> socket.socket:
        while True:
            self._listener.settimeout(self._left_s())
            library, (_, port) = self._listener.accept()
            if _is_of_this_user(port, self.port):
                self._listener.close()
                library.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return library
            library.close()

    def _own(self, end: socket.socket) -> socket.socket:
        """Remember this end, which `close` hangs up."""
        self._ends.append(end)
        if self._is_closed:
            raise ConnectionAbortedError
        return end

    def _pass_on(self, library: socket.socket, server: socket.socket, first: bytes) -> None:
        """Until one of both hangs up. Raises OSError, for example LineCut and TimeoutError."""
        library.setblocking(False)
        server.setblocking(False)
        ways = [_Way(server, library, self._count, first), _Way(library, server)]
        while all(way.move() for way in ways):
            left_s = self._left_s()
            poll = select.poll()
            for end in (library, server):
                if events := ways[0].waits_for(end) | ways[1].waits_for(end):
                    poll.register(end, events)
            poll.poll(None if left_s == math.inf else left_s * 1000)

    def _count(self, some: bytes) -> None:
        self._heard += len(some)
        if self._heard > self._most:
            raise LineCut("its answer is longer than any that it has reason to give: is it such a server?")
        self._inspect(some)

    def _left_s(self) -> float:
        """More than 0. Raises TimeoutError."""
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


class _Way:
    """What one side says, on its way to the other. No more is read before that has gone."""

    def __init__(
        self,
        source: socket.socket,
        target: socket.socket,
        count: Callable[[bytes], object] = lambda some: None,
        rest: bytes = b"",
    ) -> None:
        self._source, self._target, self._count = source, target, count
        self._rest = memoryview(rest)

    def move(self) -> bool:
        """Pass on what can be passed on now; False once the source has hung up. Raises OSError."""
        with suppress(*_NOT_NOW):
            if not self._rest:
                some = self._source.recv(_CHUNK)
                if not some:
                    return False
                self._count(some)
                self._rest = memoryview(some)
            self._rest = self._rest[self._target.send(self._rest) :]
        return True

    def waits_for(self, end: socket.socket) -> int:
        """The events of `poll`."""
        if self._rest:
            return select.POLLOUT if end is self._target else 0
        return select.POLLIN if end is self._source else 0


def _let_finish(library: socket.socket) -> None:
    """The server has hung up: the library reads what has come until then, and what it says now goes nowhere."""
    library.setblocking(True)
    library.shutdown(socket.SHUT_WR)
    while library.recv(_CHUNK):
        pass


def hang_up(end: socket.socket) -> None:
    """Close the socket, and tell a peer that speaks TLS that nothing is missing."""
    if isinstance(end, ssl.SSLSocket):
        with suppress(OSError, ValueError):
            end.setblocking(False)
            end.unwrap()
    end.close()


def _is_of_this_user(port: int, to_port: int) -> bool:
    """Whether a connection within this machine is ours: the server takes the one who is on the line for us.

    True where the system does not tell.
    """
    ends, user = [f"0100007F:{one:04X}" for one in (port, to_port)], str(os.geteuid())
    with suppress(OSError):
        rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()]
        return any(row[1:3] == ends and row[7] == user for row in rows)
    return True


def why_away(error: BaseException | str) -> str:
    """Why there is no connection, for people, without the words of a library."""
    if isinstance(error, str | LineCut):
        return str(error)
    if isinstance(error, ssl.SSLError):
        return tls_failure(error)
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, socket.gaierror):
        return f"this host is not found: {error.strerror}"
    if isinstance(error, OSError) and (error.errno or 0) > 0:
        return f"no connection: {os.strerror(error.errno or 0)}"
    inner = error.__cause__ or error.__context__
    return why_away(inner) if inner else f"no connection: {type(error).__name__}"
