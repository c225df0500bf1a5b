"""A web server on loopback that keeps what it gets, and answers as a test wants, also with faults."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NamedTuple


class Request(NamedTuple):
    """One request. Names of headers are in lower case. `connection`: the number of the connection it came on."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int


@dataclass
class Reply:
    """`fault`: reset the connection, close it without an answer, send garbage, or send `body` forever in drops."""

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    fault: Literal["", "reset", "close", "garbage", "trickle"] = ""
    then_close: bool = False
    """Close the connection behind the answer, without announcing it."""


class WebReceiver:
    """`replies`: a reply for each of the first requests; further ones get `reply(request)`."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.replies: list[Reply] = []
        self.reply: Callable[[Request], Reply] = lambda _: Reply()
        self.connections = 0
        self.released = threading.Event()
        """Set it to end all trickles."""
        self._server = _Server(("127.0.0.1", port), self, tls)
        self.port: int = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def next_reply(self, request: Request) -> Reply:
        self.requests.append(request)
        return self.replies.pop(0) if self.replies else self.reply(request)

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()


@contextmanager
def web_receiver(port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[WebReceiver]:
    receiver = WebReceiver(port, tls)
    try:
        yield receiver
    finally:
        receiver.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, where: tuple[str, int], receiver: WebReceiver, tls: ssl.SSLContext | None) -> None:
        self.receiver, self._tls = receiver, tls
        self._open: set[socket.socket] = set()
        super().__init__(where, _Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        self.receiver.connections += 1
        number = self.receiver.connections
        try:
            stream = self._tls.wrap_socket(request, server_side=True) if self._tls else request
        except OSError:
            return
        self._open.add(stream)
        try:
            _Handler(stream, client_address, self, number)
        finally:
            self._open.discard(stream)
            stream.close()

    def hang_up(self) -> None:
        """End the connections that are kept."""
        for stream in list(self._open):
            try:
                stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    wbufsize = -1

    def __init__(self, request: Any, client_address: Any, server: _Server, number: int) -> None:
        self._number = number
        super().__init__(request, client_address, server)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.receiver.next_reply(Request(self.path, headers, body, self._number))
        if reply.fault:
            self._fail(reply)
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)
        self.close_connection = reply.then_close

    def _fail(self, reply: Reply) -> None:
        if reply.fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif reply.fault == "garbage":
            self.wfile.write(reply.body or b"SSH-2.0-OpenSSH_9.2\r\n\r\n\0\xff")
        elif reply.fault == "trickle":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            self.wfile.flush()
            while not self.server.receiver.released.wait(0.05):
                self.wfile.write(b".")
                self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Quiet."""
