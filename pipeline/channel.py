"""The inherited socket between the supervisor and one of its processes: msgpack messages with a length before each.

Neither side ever waits for the other: what cannot be sent now is kept and sent by `flush`. The end of the file means
that the other side is dead.
"""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

from pipeline.errors import WireError
from pipeline.wire import MAX_PART, pack, unpack

_LENGTH = struct.Struct("<I")
_MAX_KEPT = 16 << 20


class Channel:
    """One end. `send` may be called from several threads."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._socket.setblocking(False)
        self._in = bytearray()
        self._out = bytearray()
        self._lock = threading.Lock()
        self.closed = False

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, op: str, **values: Any) -> None:
        """Queue a message and send what can be sent. One that finds 16 MB waiting is dropped: nobody listens."""
        data = pack({"op": op, **values})
        with self._lock:
            if len(self._out) < _MAX_KEPT:
                self._out += _LENGTH.pack(len(data)) + data
        self.flush()

    def flush(self) -> bool:
        """Send what waits; True when nothing is left."""
        with self._lock:
            try:
                while self._out and not self.closed:
                    del self._out[: self._socket.send(self._out)]
            except BlockingIOError:
                pass
            except OSError:
                self.closed = True
            return not self._out

    def receive(self) -> list[dict[str, Any]]:
        """The messages that have arrived whole. Sets `closed` at the end of the file."""
        try:
            while data := self._socket.recv(1 << 18):
                self._in += data
            self.closed = True
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True
        return self._split()

    def _split(self) -> list[dict[str, Any]]:
        messages = []
        while len(self._in) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._in)
            if length > MAX_PART:
                raise WireError(f"a message of {length} bytes on a control channel")
            end = _LENGTH.size + length
            if len(self._in) < end:
                break
            messages.append(unpack(bytes(self._in[_LENGTH.size : end])))
            del self._in[:end]
        return messages

    def close(self) -> None:
        self.closed = True
        self._socket.close()
