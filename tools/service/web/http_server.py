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
from pathlib import Path
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipeline.errors import EnvironmentProblem
from pipeline.stage import Logger
from tools.service.web.quotas import counted_address

_MOST_CONNECTIONS = 256
_MOST_OF_ADDRESS = 64
_HEAD_S = 10.0
"""Within this time the head of a request has to be there: otherwise its connection only takes another one's place."""
_STALLED_S = 30.0
"""A client that takes none of an answer for so long is disconnected."""
_MOST_UNSENT = 128 << 10
"""Bytes that the system takes of an answer before the network can."""
_MOST_REST = 64 << 20
"""Bytes of a body that still come after the answer: whoever sends them must be able to read that it was refused."""
_RENEW_S = 60.0
"""So often it looks whether the certificate was renewed."""
_STOP_S = 2
_STUCK_S = 30.0
"""A loop that has not turned for so long never will."""


class _Protocol(H11Protocol):
    """As uvicorn's, but a client that only takes a place is disconnected.

    A head must be there soon after the connection, or after its own first byte, an answer must be read, and a body must
    come to its end soon after the answer.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._rest = 0
        self._stalls: asyncio.TimerHandle | None = None
        self._head: asyncio.TimerHandle | None = self.loop.call_later(_HEAD_S, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._rest = self._rest + len(data) if self._is_answered_early else 0
        if self._rest > _MOST_REST:
            self.transport.abort()
        if self._is_asked:
            self._end_head()
        elif self._head is None and self.conn.trailing_data[0]:
            self._head = self.loop.call_later(_HEAD_S, self.transport.abort)

    @property
    def _is_asked(self) -> bool:
        """Whether a request is being answered."""
        cycle = getattr(self, "cycle", None)
        return cycle is not None and not cycle.response_complete

    @property
    def _is_answered_early(self) -> bool:
        """Whether the body of a request still comes after its answer."""
        return not self._is_asked and self.conn.their_state is h11.SEND_BODY

    def on_response_complete(self) -> None:
        self._end_head()
        super().on_response_complete()
        if not self._is_asked and self.conn.trailing_data[0]:
            self._head = self.loop.call_later(_HEAD_S, self.transport.abort)

    def _end_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
        self._head = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalls = self.loop.call_later(_STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        self._end_stall()
        super().resume_writing()

    def _end_stall(self) -> None:
        if self._stalls is not None:
            self._stalls.cancel()

    def _part_if_silent(self) -> None:
        is_asked = getattr(self, "cycle", None) is not None
        if not is_asked and not self.transport.is_closing():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
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

    def look(self, context: ssl.SSLContext) -> None:
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
            self.renewal.look(self.config.ssl)
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
            h11_max_incomplete_event_size=16 << 10,
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
