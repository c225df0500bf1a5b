"""Serves side channels: what programs of one user say to each other beside the messages of a run, over Unix sockets.

    serve    one thread answers all clients, beside each other
    ask      a client sends one message and gets one
    follow   a client sends one message and gets messages, until one of the two sides ends

Clients and messages are in `pipeline.system.side_link`. The socket lies in a folder that other users cannot enter.
Still no client is trusted: a request has a bound of bytes and a deadline for all of it, so a client that sends a byte a
second is parted with; the bytes that wait for a client are bounded; and so is the number of clients. One more takes the
place of the oldest client whose request is not whole or whose answer is under way. If all of them follow, it takes the
place of the one that is furthest behind, of equals the newest.
"""

from __future__ import annotations

import math
import select
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.system.local_socket import listening
from camgraph.pipeline.system.side_link import PIECE, Frames, framed

MOST_CLIENTS = 16
MOST_WAITING = 1 << 20
"""Bytes that wait for one client."""
_BACKLOG = 128
_MOST_ADMITTED = 16
"""Clients in one turn: enough for a channel that has ten turns a second, few for one with a turn for each packet."""
_AGAIN_S = 0.2
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Log(Protocol):
    """The methods of a structlog logger that are used here."""

    def warning(self, event: str, **values: Any) -> Any: ...
    def exception(self, event: str, **values: Any) -> Any: ...


class Client:
    """One client: it asks, and then gets messages until `end`, or until it goes.

    `message`: its request; `since_s`: when it came; `waiting`: bytes that it has not taken yet; `is_gone`: it has been
    parted with.
    """

    def __init__(self, channel: SideChannel, connection: socket.socket, until_s: float, most: int) -> None:
        self._channel = channel
        self.connection = connection
        self.frames = Frames(most)
        self.until_s = until_s
        self.since_s = time.monotonic()
        self.message: Any = None
        self.has_asked = self.ends = self.is_gone = False
        self.outgoing: deque[bytes | memoryview] = deque()
        self.waiting = 0
        self.events = _READ

    def send(self, frame: bytes) -> bool:
        """Whether it takes this message, or the message waits for it; False if too much waits, or it has gone.

        What the caller does with a client that is behind is its own affair: leave messages out, or `part`.
        """
        if self.is_gone or self.ends or (self.waiting and self.waiting + len(frame) > self._channel.most_waiting):
            self.flush()
            return False
        self._put(frame)
        return not self.is_gone

    def end(self, frame: bytes = b"") -> None:
        """Part with it once it has taken all that waits for it, and this last message, for which there is room."""
        if not self.is_gone:
            self.ends = True
            self.until_s = time.monotonic() + self._channel.within_s
            self._put(frame)

    def flush(self, within_s: float = 0.0) -> None:
        """Give it what waits for it, and wait for it for so long at most."""
        until_s = time.monotonic() + within_s
        self._channel.give(self)
        while self.waiting and (left_s := until_s - time.monotonic()) > 0:
            poll = select.poll()
            poll.register(self.connection, select.POLLOUT)
            if poll.poll(1000 * left_s):
                self._channel.give(self)

    def part(self) -> None:
        """Part with it at once."""
        self._channel.part(self)

    def _put(self, frame: bytes) -> None:
        self.outgoing.append(frame)
        self.waiting += len(frame)
        self._channel.give(self)


Handler = Callable[[Client], Any]
"""Makes the answer to the request of a client; None if the client follows, or is answered later by its `end`.

WireError is told to the client; another exception is a bug, and costs this answer.
"""


class SideChannel:
    """See the module. Either `serve` it, or `open` it and let one thread of yours take `turn`s.

    `name`: of the thread, and in the log. `within_s`: for a whole request, and for a whole answer. `most_request`: of a
    request, in bytes. `most_waiting`: bytes that may wait for a client that follows.
    """

    def __init__(
        self,
        path: Path,
        handler: Handler,
        log: Log,
        *,
        name: str,
        within_s: float,
        most_request: int,
        most_clients: int = MOST_CLIENTS,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._path, self._handler, self._log, self._name = path, handler, log, name
        self.within_s, self.most_waiting = within_s, most_waiting
        self._most_request, self._most_clients = most_request, most_clients
        self._expected = f"expected one message of at most {most_request} bytes, within {within_s:g} s"
        self._is_over = False
        self._server: socket.socket | None = None
        self._not_accepted = ""
        self._accept_again_s = math.inf
        self._clients: list[Client] = []
        """The oldest first."""
        self._selector = selectors.DefaultSelector()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Listen. Raises OSError, or AttributeError where there are no sockets of this kind."""
        self._server = listening(self._path, _BACKLOG)
        self._selector.register(self._server, _READ)

    def serve(self) -> None:
        """Listen and answer, in a thread. If that cannot be, nobody can ask, and all else goes on."""
        with suppress(OSError, AttributeError, RuntimeError):  # RuntimeError: no thread
            self.open()
            thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            thread.start()
            self._thread = thread

    def close(self) -> None:
        """Wait for the answer that is being made, and leave all others."""
        self._is_over = True
        if self._server is not None:
            with suppress(OSError):
                self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread
        if self._thread is not None:
            self._thread.join()
        for client in list(self._clients):
            self.part(client)
        self._selector.close()
        if self._server is not None:
            self._server.close()
            self._server = None
            with suppress(OSError):  # the next channel at this path replaces the socket
                self._path.unlink(missing_ok=True)

    @property
    def is_open(self) -> bool:
        """Whether clients can come."""
        return self._server is not None

    @property
    def is_busy(self) -> bool:
        """Whether a turn may be due although nothing has come: a client has a deadline."""
        return bool(self._clients) or self._accept_again_s < math.inf

    def fileno(self) -> int:
        """A descriptor that can be read when something has come, so that a turn is due."""
        return self._selector.fileno()

    def turn(self, wait_s: float | None = 0.0) -> None:
        """Do what is due, after waiting for so long at most (None: for ever). Never blocks after that."""
        if self._server is None:
            return
        for key, events in self._selector.select(wait_s):
            if self._is_over:
                return
            if key.data is None:
                self._admit_those_who_wait()
            elif not key.data.is_gone:
                self._go_on(key.data, events)
        if self.is_busy:
            self._keep_time(time.monotonic())

    def _serve(self) -> None:
        while not self._is_over:
            due_s = min([self._accept_again_s, *(client.until_s for client in self._clients)])
            self.turn(None if math.isinf(due_s) else max(0.0, due_s - time.monotonic()))

    def _keep_time(self, now_s: float) -> None:
        for client in [one for one in self._clients if now_s >= one.until_s]:
            self._refuse(client, self._expected)
        if now_s >= self._accept_again_s and self._server is not None:
            self._accept_again_s = math.inf
            self._selector.register(self._server, _READ)

    def _admit_those_who_wait(self) -> None:
        assert self._server is not None
        for _ in range(_MOST_ADMITTED):
            try:
                connection, _ = self._server.accept()
            except BlockingIOError:
                return
            except OSError as error:
                self._pause_accepting(str(error))
                return
            self._admit(connection)

    def _admit(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        if len(self._clients) >= self._most_clients:
            self._refuse(self._replaced(), self._expected)
        client = Client(self, connection, time.monotonic() + self.within_s, self._most_request)
        self._clients.append(client)
        self._selector.register(connection, _READ, client)
        self._go_on(client, _READ)  # mostly its request has come with it

    def _pause_accepting(self, why: str) -> None:
        """Mostly because there are no descriptors: the client still waits, so that this would be tried without end."""
        if self._not_accepted != why:
            self._log.warning("client_not_accepted", channel=self._name, why=why)
        self._not_accepted = why
        assert self._server is not None
        self._selector.unregister(self._server)
        self._accept_again_s = time.monotonic() + _AGAIN_S

    def _replaced(self) -> Client:
        """Who makes place for a new client: see the module."""
        brief = (one for one in self._clients if one.ends or not one.has_asked)
        return next(brief, None) or max(reversed(self._clients), key=lambda one: one.waiting)

    def _go_on(self, client: Client, events: int) -> None:
        if events & _WRITE:
            self.give(client)
        if events & _READ and not client.is_gone:
            self._read(client)

    def _read(self, client: Client) -> None:
        try:
            piece = client.connection.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece or client.has_asked:  # one who has asked has no more to say
            self.part(client)
            return
        try:
            messages = list(client.frames.feed(piece))
        except WireError as error:
            self._refuse(client, f"{self._expected}: {error}")
            return
        if len(messages) > 1 or (messages and client.frames.is_begun):
            self._refuse(client, self._expected)
        elif messages:
            client.has_asked, client.message = True, messages[0]
            self._answer(client)

    def _answer(self, client: Client) -> None:
        client.until_s = math.inf
        begun_s = time.monotonic()
        answer = self._answered(client)
        took_s = time.monotonic() - begun_s
        for other in self._clients:  # nobody could read from them meanwhile
            other.until_s += took_s
        if answer is not None:
            client.message = None  # a picture is large
            client.end(answer)

    def _answered(self, client: Client) -> bytes | None:
        try:
            answer = self._handler(client)
            return None if answer is None else framed(answer)
        except WireError as error:
            return framed({"error": str(error)})
        except Exception:  # noqa: BLE001
            # A bug must cost one answer, not all that come.
            self._log.exception("answer_failed", channel=self._name)
            return framed({"error": "it could not be made; the log of the run has the details"})

    def give(self, client: Client) -> None:
        """Send what waits for a client, as much as it takes."""
        try:
            while client.outgoing:
                first = client.outgoing[0]
                sent = client.connection.send(first) if first else 0
                client.waiting -= sent
                if sent < len(first):
                    client.outgoing[0] = memoryview(first)[sent:]
                    break
                client.outgoing.popleft()
        except BlockingIOError:
            pass
        except OSError:
            self.part(client)
        self._watch(client)

    def _watch(self, client: Client) -> None:
        """Be told when there is room for what waits, and, of one who is not answered yet, of what it says."""
        if client.is_gone:
            return
        if client.ends and not client.waiting:
            self.part(client)
            return
        events = (0 if client.ends else _READ) | (_WRITE if client.waiting else 0)
        if events != client.events:
            client.events = events
            self._selector.modify(client.connection, events, client)

    def _refuse(self, client: Client, why: str) -> None:
        """Who has sent no whole request is told so."""
        if not client.has_asked:
            with suppress(OSError):
                client.connection.send(framed({"error": why}))
        self.part(client)

    def part(self, client: Client) -> None:
        """Let a client go."""
        if client.is_gone:
            return
        client.is_gone, client.waiting = True, 0
        client.outgoing.clear()
        self._clients.remove(client)
        self._selector.unregister(client.connection)
        client.connection.close()
