"""A web server on loopback whose answers a test writes: cameras that speak HTTP, and others that are none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Serve = Callable[[BaseHTTPRequestHandler], None]


class WebServer:
    """Answers each GET by `serve`, from its making to `close`; `asked` has the path and the headers of each."""

    def __init__(self, serve: Serve) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                try:
                    serve(self)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def url(self, path: str) -> str:
        return f"http://viewer:geheim@{self.host}/{path}"

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
