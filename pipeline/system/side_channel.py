"""Answers to other programs of the same user, beside the messages of the run: over a socket at a path.

    request   a line of JSON, and then as many bytes as belong to it
    answer    a line of JSON, and then bytes

The socket lies in a folder that other users cannot enter. One thread makes all answers, one after another: a client
that asks a lot makes other clients wait, and nothing else. Clients are read and written side by side, each within a
time for its whole request and as much for its whole answer, so a slow one keeps nobody waiting. With `MOST_CLIENTS`, a
new client takes the place of the oldest.
"""

from __future__ import annotations

import json
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.system.local_socket import Exchange, listening, short_address

MOST_HEAD = 10_000
"""Bytes of the line of a request or of an answer."""
MOST_CLIENTS = 16
_TURN_S = 0.2
_BACKLOG = 128
_PIECE = 1 << 20


class Request(NamedTuple):
    """`head`: the line's JSON, None if it is none. `payload`: the bytes behind it. `since_s`: when the client came."""

    head: Any
    payload: bytes
    since_s: float


class Answer(NamedTuple):
    """The values of the line, and the bytes behind it."""

    head: Mapping[str, Any]
    parts: Sequence[bytes] = ()


class Log(Protocol):
    """The methods of a structlog logger that are used here."""

    def warning(self, event: str, **values: Any) -> Any: ...
    def exception(self, event: str, **values: Any) -> Any: ...


def no_payload(_: Any) -> int:
    """A request is its line."""
    return 0


@dataclass(slots=True, eq=False)
class _Client:
    """`incoming`: what it has sent so far; `outgoing`: what is left of its answer."""

    socket: socket.socket
    since_s: float
    until_s: float
    incoming: bytearray = field(default_factory=bytearray)
    head: Any = None
    line: int = 0
    """The length of the line, 0 while it is not whole."""
    payload: int = 0
    outgoing: list[memoryview] | None = None


class SideChannel:
    """See the module. `answer` makes an answer; WireError is told to the client, another exception is a bug.

    `name`: of the thread, and in the log. `within_s`: for a request, and for an answer. `payload_of`: the bytes that
    belong to a head; raises WireError for a head that nobody understands.
    """

    def __init__(
        self,
        path: Path,
        answer: Callable[[Request], Answer],
        log: Log,
        *,
        name: str,
        within_s: float,
        payload_of: Callable[[Any], int] = no_payload,
    ) -> None:
        self._path, self._answer, self._log, self._name = path, answer, log, name
        self._within_s, self._payload_of = within_s, payload_of
        self._expected = f"expected one line of JSON of at most {MOST_HEAD} bytes, within {within_s:g} s"
        self._stop = threading.Event()
        self._server: socket.socket | None = None
        self._not_accepted = ""
        self._clients: list[_Client] = []
        """The oldest first."""
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def open(self) -> None:
        """Begin to answer. Without sockets of this kind or threads, nobody can ask, and all else goes on."""
        with suppress(OSError, AttributeError, RuntimeError):
            self._server = listening(self._path, _BACKLOG)
            self._selector.register(self._server, selectors.EVENT_READ)
            self._thread.start()

    def close(self) -> None:
        """Wait for the answer that is being made, and leave all others."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        for client in list(self._clients):
            self._part(client)
        self._selector.close()
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while not self._stop.is_set():
            for key, _ in self._selector.select(_TURN_S):
                if key.data is None:
                    self._admit()
                elif key.data in self._clients and not self._stop.is_set():
                    self._go_on(key.data)
            for client in [one for one in self._clients if time.monotonic() > one.until_s]:
                self._refuse(client)

    def _admit(self) -> None:
        assert self._server is not None
        try:
            connection, _ = self._server.accept()
        except BlockingIOError:
            return
        except OSError as error:
            # Mostly because there are no descriptors: the client still waits, so that this would be tried without end.
            if self._not_accepted != str(error):
                self._log.warning("client_not_accepted", channel=self._name, why=str(error))
            self._not_accepted = str(error)
            self._stop.wait(_TURN_S)
            return
        connection.setblocking(False)
        if len(self._clients) >= MOST_CLIENTS:
            self._refuse(self._clients[0])
        now_s = time.monotonic()
        client = _Client(connection, now_s, now_s + self._within_s)
        self._clients.append(client)
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _go_on(self, client: _Client) -> None:
        try:
            if client.outgoing is None:
                self._read(client)
            else:
                self._send(client)
        except BlockingIOError:
            pass
        except OSError:
            self._part(client)

    def _read(self, client: _Client) -> None:
        """Answer when the request is whole. Raises OSError."""
        piece = client.socket.recv(_PIECE if client.line else MOST_HEAD)
        client.incoming += piece
        try:
            if not client.line and not self._read_head(client):
                if piece:
                    return
                raise ConnectionResetError
            if len(client.incoming) - client.line < client.payload:
                if piece:
                    return
                raise ConnectionResetError
            answer = self._answered(client)
        except WireError as error:
            answer = Answer({"error": str(error)})
        client.outgoing = [memoryview(part) for part in (json.dumps(answer.head).encode() + b"\n", *answer.parts)]
        client.until_s = time.monotonic() + self._within_s
        self._selector.modify(client.socket, selectors.EVENT_WRITE, client)
        self._send(client)

    def _read_head(self, client: _Client) -> bool:
        """Whether its line is whole. Raises WireError."""
        client.line = client.incoming.find(b"\n", 0, MOST_HEAD) + 1
        if not client.line:
            if len(client.incoming) >= MOST_HEAD:
                raise WireError(self._expected)
            return False
        with suppress(ValueError, RecursionError):
            client.head = json.loads(client.incoming[: client.line])
        client.payload = self._payload_of(client.head)
        return True

    def _answered(self, client: _Client) -> Answer:
        """Raises WireError."""
        payload = bytes(client.incoming[client.line : client.line + client.payload])
        begun_s = time.monotonic()
        try:
            return self._answer(Request(client.head, payload, client.since_s))
        except WireError:
            raise
        except Exception:  # noqa: BLE001
            # A bug must cost one answer, not all that come.
            self._log.exception("answer_failed", channel=self._name)
            return Answer({"error": "it could not be made; the log of the run has the details"})
        finally:
            client.incoming.clear()
            took_s = time.monotonic() - begun_s
            for other in self._clients:  # nobody could read from them meanwhile
                other.until_s += took_s

    def _send(self, client: _Client) -> None:
        """As much as it takes. Raises OSError."""
        assert client.outgoing is not None
        while client.outgoing:
            first = client.outgoing[0]
            sent = client.socket.send(first) if first else 0
            if sent < len(first):
                client.outgoing[0] = first[sent:]
                return
            del client.outgoing[0]
        self._part(client)

    def _refuse(self, client: _Client) -> None:
        """Who has sent no whole request is told so."""
        if client.outgoing is None:
            with suppress(OSError):
                client.socket.send(json.dumps({"error": self._expected}).encode() + b"\n")
        self._part(client)

    def _part(self, client: _Client) -> None:
        self._clients.remove(client)
        self._selector.unregister(client.socket)
        client.socket.close()


@contextmanager
def ask(path: Path, head: Mapping[str, Any], payload: bytes = b"", *, within_s: float) -> Iterator[Exchange]:
    """Ask the channel at this path, and give the exchange from which the answer is read, all of that `within_s`.

    Raises OSError; TimeoutError if it takes longer.
    """
    until_s = time.monotonic() + within_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(within_s)
        with short_address(path) as address:
            connection.connect(address)
        link = Exchange(connection, until_s - time.monotonic())
        link.send(json.dumps(head).encode() + b"\n")
        if payload:
            link.send(payload)
        yield link


def answered_head(link: Exchange) -> dict[str, Any]:
    """The line of an answer. Raises OSError, and ValueError for anything else than an object in JSON."""
    try:
        head = json.loads(link.line(MOST_HEAD))
    except RecursionError:
        head = None
    if not isinstance(head, dict):
        raise ValueError("the answer is no object in JSON")
    return head
