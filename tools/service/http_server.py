"""uvicorn in a thread of its own, over a socket that was bound before."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipeline.errors import EnvironmentProblem

_MOST_CONNECTIONS = 256
_FIRST_REQUEST_S = 10.0
"""Within this time a connection has to have sent a request: otherwise it only takes another one's place."""
_STOP_S = 2


class _Protocol(H11Protocol):
    """As uvicorn's, but a connection on which nothing is asked is closed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waits = self.loop.call_later(_FIRST_REQUEST_S, self._part_if_silent)

    def _part_if_silent(self) -> None:
        is_asked = getattr(self, "cycle", None) is not None
        if not is_asked and not self.transport.is_closing():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._waits.cancel()
        super().connection_lost(exc)


def bound(host: str, port: int) -> socket.socket:
    """A listening socket. Raises EnvironmentProblem if the address cannot be had."""
    try:
        [family, *_], *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return socket.create_server((host, port), family=family, backlog=_MOST_CONNECTIONS)
    except OSError as error:
        raise EnvironmentProblem(
            f"the service cannot listen at {host}:{port}: {error.strerror or error}: choose another `address`, or stop "
            "the program that has this one"
        ) from None


class HttpServer:
    """Serves `app` from `start` to `stop`. `certificate` and `key`: paths, for TLS."""

    def __init__(
        self, app: ASGIApp, listener: socket.socket, *, certificate: Path | None = None, key: Path | None = None
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
            **tls,
        )
        self._server = uvicorn.Server(config)
        self._listener = listener
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when all connections are closed."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join()
        self._listener.close()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        self._server.run(sockets=[self._listener])
