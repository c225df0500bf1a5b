"""Receives events from a `sink_socket`, as another program would: reads lines, and knows a repeated one by its id."""

from __future__ import annotations

import json
import select
import socketserver
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HOST = "127.0.0.1"
_POLL_S = 0.2


class EventReceiver:
    """Listens on this machine from `with` on; every new event becomes a line of `target`.

    Listens on `port`, or on a free one if that is taken; `address` gives it. When the block ends, arrived events are
    still read. Delivery is at least once, so an id that was seen before is passed over.
    """

    def __init__(self, target: Path, port: int) -> None:
        self.ids: set[str] = set()
        self._target = target
        self._lock = threading.Lock()
        try:
            self._server = _Server((HOST, port), self)
        except OSError:
            self._server = _Server((HOST, 0), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), name="event-receiver")

    @property
    def address(self) -> str:
        """As `sink_socket` takes it."""
        return f"tcp://{HOST}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._file = self._target.open("wb")
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.over = True
        self._server.shutdown()
        while select.select([self._server], [], [], 0)[0]:  # connected already, and not yet listened to
            self._server.handle_request()
        self._server.server_close()  # waits for those who still read
        self._thread.join()
        self._file.close()

    def keep(self, line: bytes) -> None:
        """Write an event down, unless it is here already."""
        event_id = str(json.loads(line)["id"])
        with self._lock:
            if event_id not in self.ids:
                self.ids.add(event_id)
                self._file.write(line + b"\n")
                self._file.flush()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    over = False

    def __init__(self, address: tuple[str, int], receiver: EventReceiver) -> None:
        self.receiver = receiver
        super().__init__(address, _Connection)


class _Connection(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        """Read until the sender closes, or until nothing more waits and the receiver ends."""
        self.request.settimeout(_POLL_S)
        rest = b""
        while data := self._read():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self.server.receiver.keep(line)

    def _read(self) -> bytes:
        while True:
            try:
                data: Any = self.request.recv(1 << 16)
                return bytes(data)
            except TimeoutError:
                if self.server.over:
                    return b""
            except OSError:
                return b""
