"""uvicorn in a thread of its own, over a socket that was bound before."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.stage import Logger
from camgraph.tools.service.web.calls import failure
from camgraph.tools.service.web.quotas import counted_address

_MOST_CONNECTIONS = 256
_MOST_OF_ADDRESS = 64
_HEAD_S = 10.0
"""Within this time the head of a request has to be there: otherwise its connection only takes another one's place."""
_STALLED_S = 30.0
"""A client that takes none of an answer for so long is disconnected."""
_MOST_UNSENT = 128 << 10
"""Bytes that the system takes of an answer before the network can."""
_REQUEST_S = 65.0
"""Within this time a whole request has to be there. No call waits for its body as long (tools/service/web/calls.py)."""
_REST_S = 2.0
_MOST_REST = 64 << 20
"""Bytes of a body that are dropped after the answer, and for how long: whoever still sends must be able to read the
answer, and a connection that is closed while bytes are unread loses it."""
_MOST_CHUNKS = 256
_CHUNK = 4 << 10
"""A body may come in so many chunks of any size, and in one more for each 4 kB. A chunk of a byte costs as much time as
one of 64 kB: without a bound, one connection with chunks of a byte takes all the time of the service."""
_MOST_FRAMING = 32 << 10
"""Bytes between the head and the end of a request that belong to no body: extensions of chunks, and trailers."""
_LINES_OF_CHUNK = 16
"""Bytes around a chunk without extensions."""
_RENEW_S = 60.0
"""So often it looks whether the certificate was renewed."""
_STOP_S = 2
_STUCK_S = 30.0
"""A loop that has not turned for so long never will."""


_MOST_HEAD = 16 << 10
_MALFORMED = {
    431: f"expected at most {_MOST_HEAD >> 10} kB of head, of trailers, and of the line before a chunk",
    501: "expected a body with Content-Length, or with Transfer-Encoding: chunked",
}
"""By the status that h11 gives to a request which cannot be read."""
_NO_REQUEST = "expected a request in HTTP/1.1, got one that cannot be read"


class _Refused(Exception):
    """A request that is malformed, or takes more than its share: `args` are the status and the reason."""


class _Conversation(h11.Connection):
    """As h11's, but bounds how the body of a request is cut into chunks, and takes one length for each body."""

    def __init__(self, most_head: int) -> None:
        super().__init__(h11.SERVER, most_head)
        self._received = self._body = self._chunks = 0

    @property
    def lacks_body(self) -> bool:
        """Whether a part of the request is still to come, or anything at all after a request that is none."""
        return self.their_state in (h11.SEND_BODY, h11.ERROR)

    def receive_data(self, data: bytes) -> None:
        super().receive_data(data)
        self._received += len(data)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Raises _Refused, also if the request is malformed: uvicorn would answer beside the call, which fails then."""
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            raise _Refused(error.error_status_hint, _MALFORMED.get(error.error_status_hint, _NO_REQUEST)) from None
        if isinstance(event, h11.Request):
            self._begin(event)
        elif isinstance(event, h11.Data):
            self._count(event)
        elif event is h11.NEED_DATA and self.lacks_body:
            self._check_framing()
        return event

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        if isinstance(event, h11.Response) and self.lacks_body:  # whoever answers now reads no more of this body
            event = h11.Response(
                status_code=event.status_code,
                headers=[*event.headers.raw_items(), (b"connection", b"close")],
                reason=event.reason,
            )
        return super().send_with_data_passthrough(event)

    def _begin(self, request: h11.Request) -> None:
        # Of two lengths, a proxy in front may believe the other one: a part of the body is a request for one of them.
        if {b"transfer-encoding", b"content-length"} <= {name for name, _ in request.headers}:
            raise _Refused(400, "expected either Content-Length or Transfer-Encoding, got both")
        self._received = len(self.trailing_data[0])
        self._body = self._chunks = 0

    def _count(self, data: h11.Data) -> None:
        self._body += len(data.data)
        self._chunks += data.chunk_end
        if self._chunks > _MOST_CHUNKS + self._body // _CHUNK:
            smallest = f"chunks of {_CHUNK >> 10} kB or more"
            raise _Refused(413, f"expected {smallest}: only {_MOST_CHUNKS} chunks of a body may be smaller")

    def _check_framing(self) -> None:
        if self._received - self._body > _MOST_FRAMING + _LINES_OF_CHUNK * self._chunks:
            raise _Refused(413, f"expected at most {_MOST_FRAMING >> 10} kB of extensions and trailers of a body")


class _Transport:
    """A transport that `close` closes once the client can have read the answer: see `_Protocol.part`."""

    def __init__(self, transport: asyncio.Transport, part: Callable[[], bool]) -> None:
        self._transport, self._part = transport, part
        self._is_parting = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._is_parting or self._transport.is_closing()

    def close(self) -> None:
        if self._is_parting or self._transport.is_closing() or not self._part():
            self._transport.close()
        self._is_parting = True


class _Protocol(H11Protocol):
    """As uvicorn's, but a client that only takes a place, or the time of others, is disconnected.

    A head must be there soon after the connection, or after its own first byte, a request must come to its end, and an
    answer must be read. Once a request is answered, no more of its body is parsed.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.conn = self._conversation = _Conversation(self.config.h11_max_incomplete_event_size or _MOST_FRAMING)
        self.transport = _Transport(transport, self.part)  # type: ignore[assignment]
        self._dropped: int | None = None
        """Bytes that came after the last answer of this connection; None before it."""
        self._stalls: asyncio.TimerHandle | None = None
        self._whole: asyncio.TimerHandle | None = None
        self._head: asyncio.TimerHandle | None = self.loop.call_later(_HEAD_S, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._dropped is not None:
            self._drop(data)
            return
        super().data_received(data)
        if self._is_asked:
            self._end_head()
        elif self._head is None and self.conn.trailing_data[0]:
            self._head = self.loop.call_later(_HEAD_S, self.transport.abort)
        self._time_request()

    def handle_events(self) -> None:
        try:
            super().handle_events()
        except _Refused as refused:
            self._refuse(*refused.args)

    def _time_request(self) -> None:
        if self._dropped is not None:
            return
        if not self._conversation.lacks_body:
            self._end_request()
        elif self._whole is None:
            self._whole = self.loop.call_later(_REQUEST_S, self.transport.abort)

    def _refuse(self, status: int, why: str) -> None:
        """Answer in the place of the call, which then sees a client that has left."""
        if self._is_asked:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # a part of the answer is sent
            self.transport.abort()
            return
        answer = failure(status, why, error_id="too-large" if status == 413 else "request-value")
        head = h11.Response(status_code=status, headers=answer.raw_headers, reason=HTTPStatus(status).phrase.encode())
        for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def part(self) -> bool:
        """Say that nothing more comes, and drop what the client still sends until it can have read the answer.

        Returns False if the request is whole: then the connection can be closed.
        """
        if not self._conversation.lacks_body:
            return False
        self._dropped = 0
        self._end_head()
        self._end_request()
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._whole = self.loop.call_later(_REST_S, self.transport.abort)
        return True

    def _drop(self, data: bytes) -> None:
        self._dropped = (self._dropped or 0) + len(data)
        if self._dropped > _MOST_REST:
            self.transport.abort()

    @property
    def _is_asked(self) -> bool:
        """Whether a request is being answered."""
        cycle = getattr(self, "cycle", None)
        return cycle is not None and not cycle.response_complete

    def on_response_complete(self) -> None:
        self._end_head()
        super().on_response_complete()
        if not self._is_asked and self._dropped is None and self.conn.trailing_data[0]:
            self._head = self.loop.call_later(_HEAD_S, self.transport.abort)

    def _end_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
        self._head = None

    def _end_request(self) -> None:
        if self._whole is not None:
            self._whole.cancel()
        self._whole = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalls = self.loop.call_later(_STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        self._end_stall()
        super().resume_writing()

    def _end_stall(self) -> None:
        if self._stalls is not None:
            self._stalls.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self._end_request()
        self._end_stall()
        super().connection_lost(exc)


class Listener(socket.socket):
    """A listening socket that accepts so many connections at once, in all and of one address; the rest it closes.

    It counts before any handshake: also a client that never begins with TLS takes a place.
    """

    def __init__(self, family: int, address: Any) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self.of_address: Counter[str] = Counter()
        self.is_bounded_by_address = True
        self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Also where the rest of an answer is too small for the loop to notice; connections inherit it.
        self.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(_STALLED_S * 1000))
        # Otherwise the system keeps megabytes for a slow reader, and its live pictures are old ones.
        self.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MOST_UNSENT)
        try:
            self.bind(address)
            self.listen(_MOST_CONNECTIONS)
        except BaseException:
            self.close()
            raise

    def accept(self) -> tuple[socket.socket, Any]:
        """Raises ConnectionAbortedError for one that is too many: asyncio goes on with the next."""
        accepted, address = super().accept()
        client = counted_address(address[0])
        connection = _Connection(accepted, client, self.of_address)
        too_many = self.is_bounded_by_address and self.of_address[client] > _MOST_OF_ADDRESS
        if too_many or self.of_address.total() > _MOST_CONNECTIONS:
            connection.close()
            raise ConnectionAbortedError
        return connection, address


class _Connection(socket.socket):
    """It is counted until it is closed."""

    def __init__(self, accepted: socket.socket, address: str, of_address: Counter[str]) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self._address, self._of_address = address, of_address
        of_address[address] += 1

    def close(self) -> None:
        if self.fileno() >= 0:
            self._of_address[self._address] -= 1
            if not self._of_address[self._address]:
                del self._of_address[self._address]
        super().close()


class _Loop(asyncio.SelectorEventLoop):
    """A client has as long for the handshake of TLS as for the head of a request."""

    async def create_server(self, *values: Any, **more: Any) -> Any:
        if more.get("ssl") is not None:
            more["ssl_handshake_timeout"] = _HEAD_S
        return await super().create_server(*values, **more)


def bound(host: str, port: int) -> Listener:
    """A listening socket. Raises EnvironmentProblem if the address cannot be had."""
    try:
        [family, _, _, _, address], *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return Listener(family, address)
    except OSError as error:
        # Python puts the address behind the system's words.
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise EnvironmentProblem(
            f"the service cannot listen at {host}:{port}: {why}: choose another `address`, or stop the program that "
            "has this one",
            error_id="port-taken",
        ) from None


class _Renewal:
    """Takes a certificate that was renewed, as they are every few weeks, for the handshakes to come."""

    def __init__(self, certificate: Path, key: Path, log: Logger) -> None:
        self._files = (certificate, key)
        self._log = log
        self._looked_s = time.monotonic()
        self._loaded = self._failed = self._stamps()

    def renew(self, context: ssl.SSLContext) -> None:
        """Call it often: it looks at the files once in a while."""
        if time.monotonic() - self._looked_s < _RENEW_S:
            return
        self._looked_s, stamps = time.monotonic(), self._stamps()
        if stamps == self._loaded:
            return
        try:
            # A certificate whose key is not written yet must not take the place of the present pair.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files)
            context.load_cert_chain(*self._files)
        except OSError as error:
            if stamps != self._failed:
                self._log.warning("certificate_not_renewed", why=str(error))
            self._failed = stamps
            return
        self._loaded = stamps
        self._log.info("certificate_renewed")

    def _stamps(self) -> tuple[int, ...]:
        try:
            return tuple(path.stat().st_mtime_ns for path in self._files)
        except OSError:  # one is being replaced
            return ()


class _Server(uvicorn.Server):
    """Knows when its loop last turned."""

    turned_s = 0.0
    renewal: _Renewal | None = None

    async def on_tick(self, counter: int) -> bool:
        self.turned_s = time.monotonic()
        if self.renewal is not None and self.config.ssl is not None:
            self.renewal.renew(self.config.ssl)
        return await super().on_tick(counter)


class HttpServer:
    """Serves `app` from `start` to `stop`. `certificate` and `key`: paths, for TLS; a renewed pair is taken up.

    `proxies`: addresses that are believed if they name another client (`X-Forwarded-For`).

    `stuck` is called, in a thread, if some request keeps the loop from turning: nobody is answered any more then.
    """

    def __init__(
        self,
        app: ASGIApp,
        listener: Listener,
        log: Logger,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        proxies: Sequence[str] = (),
        stuck: Callable[[], object] = lambda: None,
    ) -> None:
        tls: dict[str, Any] = {"ssl_certfile": certificate, "ssl_keyfile": key} if certificate else {}
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=_STOP_S,
            h11_max_incomplete_event_size=_MOST_HEAD,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=list(proxies),
            **tls,
        )
        # Strangers could fill the log with warnings about requests that are none.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._server = _Server(config)
        if certificate and key:
            self._server.renewal = _Renewal(certificate, key, log)
        self._listener = listener
        listener.is_bounded_by_address = not proxies
        self._stuck = stuck
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._watch = threading.Thread(target=self._watch_over, name="http-watch", daemon=True)

    def start(self) -> None:
        self._server.turned_s = time.monotonic()
        self._thread.start()
        self._watch.start()

    def stop(self) -> None:
        """Returns when all connections are closed."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join()
            self._over.set()
            self._watch.join()
        self._listener.close()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _watch_over(self) -> None:
        while not self._over.wait(_STUCK_S / 10):
            if not self._server.should_exit and time.monotonic() - self._server.turned_s > _STUCK_S:
                self._stuck()
                return

    def _run(self) -> None:
        loop = _Loop()
        try:
            loop.run_until_complete(self._server.serve(sockets=[self._listener]))
        finally:
            loop.run_until_complete(_cancel_others())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


async def _cancel_others() -> None:
    """Cancel the tasks that no request waits for any more. One whose thread hangs is left behind."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_STOP_S)
