"""Posts to one web server, over a connection that is kept, and never for longer than a limit in all.

    exchange = client.post(headers, body, limit_s)
    while (answer := exchange.answer(wait_s=1)) is None: ...        # between two calls the process goes on listening

A request runs in a thread of its own, because finding a host and a handshake cannot be limited otherwise. It connects
to no other address than one that was checked: a name that is looked up twice can lead to two addresses. Redirects are
not followed, and the environment's proxies are not used.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.system.happy_eyeballs import Place, connect_first, places_of
from camgraph.stages.sinks.delivery.tls import tls_failure
from camgraph.stages.sinks.delivery.web.web_addresses import WebAddress, why_not_public

_MOST_ANSWER = 64 << 10
"""Bytes of an answer's body that are read. Behind a longer one the connection is not used again."""


class Answer(NamedTuple):
    """The status of an answer; some of its headers, "" if they are missing; the beginning of its body."""

    status: int
    retry_after: str
    location: str
    text: str


class WebClient:
    """Keeps one connection. `tls`: makes the context, for https; called for each connection."""

    def __init__(
        self,
        address: WebAddress,
        *,
        tls: Callable[[], ssl.SSLContext],
        server_name: str | None = None,
        allow_private: bool = False,
    ) -> None:
        self._address = address
        self._tls = tls
        self._server_name = server_name
        self._allow_private = allow_private
        self._connection: _Connection | None = None

    def post(self, headers: Mapping[str, str], body: bytes, limit_s: float, target: str = "") -> Exchange:
        """Begin to post; with a `target`, to another path and query of the server.

        Raises Unavailable if this machine has no thread left for it.
        """
        if self._connection is None or self._connection.is_aborted:
            self._connection = _Connection(
                self._address, self._tls, self._server_name, limit_s, allow_private=self._allow_private
            )
        return Exchange(self._connection, _Post(headers, body, target or self._address.target), limit_s)

    def close(self) -> None:
        """Close the connection; a request that runs fails."""
        if self._connection is not None:
            self._connection.abort()
            self._connection = None


class _Post(NamedTuple):
    headers: Mapping[str, str]
    body: bytes
    target: str


class Exchange:
    """A request, and its answer."""

    def __init__(self, connection: _Connection, post: _Post, limit_s: float) -> None:
        self._connection, self._post = connection, post
        self._limit_s, self._until_s = limit_s, time.monotonic() + limit_s
        self._over = threading.Event()
        self._answer: Answer | None = None
        self._error: Exception | None = None
        try:
            threading.Thread(target=self._run, name="http", daemon=True).start()
        except RuntimeError as error:
            raise Unavailable(f"cannot begin a request: {error}: raise ulimit -u") from error

    def answer(self, wait_s: float) -> Answer | None:
        """Wait at most so long; None if it is not there yet. Raises Unavailable and OSError."""
        if not self._over.wait(max(0.0, min(wait_s, self._until_s - time.monotonic()))):
            if time.monotonic() < self._until_s:
                return None
            self._connection.abort()
            raise Unavailable(f"{self._connection.address}: no answer within {self._limit_s:g} s")
        if self._error is not None:
            raise _for_people(self._error, self._connection.address)
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._connection.exchange(self._post)
        except Exception as error:  # noqa: BLE001 - raised in `answer`, in the thread that waits for it
            self._error = error
        self._over.set()


class _Connection(http.client.HTTPConnection):
    """A connection to one address that was checked. Used by one request at a time."""

    def __init__(
        self,
        address: WebAddress,
        tls: Callable[[], ssl.SSLContext],
        server_name: str | None,
        timeout_s: float,
        *,
        allow_private: bool,
    ) -> None:
        super().__init__(address.host, address.port, timeout=timeout_s)
        self.address = address
        self._make_tls, self._server_name = tls, server_name or address.host
        self._timeout_s = timeout_s
        self._allow_private = allow_private
        self._busy = threading.Lock()
        self._connecting: list[socket.socket] = []
        self.is_aborted = False

    def exchange(self, post: _Post) -> Answer:
        """Post; once more if a connection that was kept turns out to be closed. Raises what http.client does."""
        with self._busy:
            was_kept = self.sock is not None
            try:
                return self._post(post)
            except (ConnectionError, ssl.SSLError):
                self.close()
                if not was_kept or self.is_aborted:
                    raise
                return self._post(post)
            finally:
                if self.is_aborted:
                    self.close()

    def _post(self, post: _Post) -> Answer:
        if self.sock is None:
            with _not_of_the_event():
                self.connect()
        self.request("POST", post.target, post.body, {**post.headers, "Host": self.address.host_and_port})
        with _not_of_the_event():
            return self._read_answer()

    def _read_answer(self) -> Answer:
        with self.getresponse() as response:
            text = response.read(_MOST_ANSWER).decode(errors="replace")
            is_whole = response.isclosed() or response.length == 0
            retry_after, location = (response.headers.get(name, "") for name in ("Retry-After", "Location"))
        if not is_whole:
            self.close()
        return Answer(response.status, retry_after, location, text)

    def connect(self) -> None:
        """See http.client. Raises OSError and Unavailable."""
        places = self._places()
        until_s = time.monotonic() + self._timeout_s
        while True:
            self.sock = connect_first(places, until_s, opened=self._is_connecting)
            place = self.sock.getpeername()
            try:
                self._secure()
            except OSError:
                self.close()
                places = [other for other in places if other.where != place]  # one of them may be another machine
                if not places or self.is_aborted:
                    raise
            else:
                return

    def _is_connecting(self, stream: socket.socket) -> None:
        """Raises TimeoutError, which ends all connections that are being made, if nobody waits for them any more."""
        self._connecting.append(stream)
        if self.is_aborted:
            raise TimeoutError

    def _places(self) -> list[Place]:
        """Those of the host that may be connected to. Raises OSError and Unavailable."""
        places = places_of(self.address.host, self.address.port)
        if self._allow_private:
            return places
        allowed = [place for place in places if not why_not_public(place.ip)]
        if places and not allowed:
            ip = places[0].ip
            raise Unavailable(
                f"{self.address}: {ip} is {why_not_public(ip)}: if you mean that, write `allow_private: true`"
            )
        return allowed

    def _secure(self) -> None:
        assert self.sock is not None
        self._connecting.clear()
        self.sock.settimeout(self._timeout_s)
        if self.address.scheme == "https":
            self.sock = self._make_tls().wrap_socket(self.sock, server_hostname=self._server_name)
        if self.is_aborted:
            raise TimeoutError

    def abort(self) -> None:
        """End a request that runs in another thread, and never connect again."""
        self.is_aborted = True
        for stream in [*self._connecting, self.sock]:
            if stream is not None:
                with suppress(OSError):
                    stream.shutdown(socket.SHUT_RDWR)
        if self._busy.acquire(blocking=False):
            self.close()
            self._busy.release()


class _Nonsense(http.client.HTTPException):
    """An answer at which the library fails in a way of its own, which is its cause."""


@contextmanager
def _not_of_the_event() -> Iterator[None]:
    """Within, no exception is a bug that the event brings to light: it comes from the address or the answer."""
    try:
        yield
    except (OSError, Unavailable, http.client.HTTPException):
        raise
    except Exception as error:
        raise _Nonsense from error


def _for_people(error: Exception, address: WebAddress) -> Exception:
    """The error to raise for one of a request. A bug stays as it is."""
    if isinstance(error, Unavailable):
        return error
    if isinstance(error, ssl.SSLError):
        return Unavailable(f"{address}: {tls_failure(error)}")
    if isinstance(error, socket.gaierror):
        return Unavailable(f"{address}: cannot find this host: {error.strerror}")
    if isinstance(error, OSError):
        return Unavailable(f"{address}: {_in_words(error)}")
    if isinstance(error, http.client.HTTPException):
        return Unavailable(f"{address}: its answer is no valid HTTP: {type(error.__cause__ or error).__name__}")
    return error


def _in_words(error: OSError) -> str:
    if isinstance(error, http.client.RemoteDisconnected):
        return "it closed the connection without an answer"
    if isinstance(error, TimeoutError):
        return "it does not answer"
    return error.strerror or str(error)
