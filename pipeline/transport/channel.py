"""The inherited socket between the supervisor and one of its processes: msgpack messages with a length before each.

Neither side ever waits for the other: messages that cannot be sent now are kept, and `flush` sends them. The end of the
file means that the other side is dead. A message that is larger than `MAX_PART` is not sent; a note of that goes in its
place: {"op": "oversize", "of": op, "bytes": size}.
"""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.transport.wire import MAX_PART, pack, unpack

_LENGTH = struct.Struct("<I")
_MAX_KEPT = 16 << 20
_READ_BYTES = 1 << 14
_READS = 64


class Channel:
    """One end. `send` may be called from several threads."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._socket.setblocking(False)
        self._in = bytearray()
        # `recv` takes all that it may read for each report, and cuts it down: that riddles the heap with gaps.
        self._buffer = bytearray(_READ_BYTES)
        self._out = bytearray()
        self._lock = threading.Lock()
        self.closed = False
        self.fault = ""
        """Not empty: why the other side is no longer listened to, after it sent something that is no message."""

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, op: str, **values: Any) -> bool:
        """Queue a message and send as much as possible; False if it was dropped.

        It is dropped when it is too large, and when it finds 16 MB waiting: nobody listens.
        """
        data = pack({"op": op, **values})
        fits = len(data) <= MAX_PART
        if not fits:
            data = pack({"op": "oversize", "of": op, "bytes": len(data)})
        with self._lock:
            kept = len(self._out) < _MAX_KEPT and not self.closed
            if kept:
                self._out += _LENGTH.pack(len(data)) + data
        self.flush()
        return kept and fits

    def flush(self) -> bool:
        """Send waiting messages; True if none is left."""
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
        """The messages that have arrived whole. Sets `closed` at the end of the file, and also `fault` if something
        came that is no message; the messages before it are still returned.
        """
        try:
            for _ in range(_READS):  # no more at once: a side that never stops sending must not keep others waiting
                size = self._socket.recv_into(self._buffer)
                self._in += memoryview(self._buffer)[:size]
                if not size:
                    self.closed = True
                    break
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True
        messages: list[dict[str, Any]] = []
        try:
            while not self.fault and (message := self._next()) is not None:
                messages.append(message)
        except WireError as error:
            self.fault, self.closed = str(error), True
        return messages

    def _next(self) -> dict[str, Any] | None:
        """The first message, when all of it is there. Raises WireError when it is none."""
        if len(self._in) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._in)
        if length > MAX_PART:
            raise WireError(f"a message of {length} bytes on a control channel; at most {MAX_PART} are accepted")
        end = _LENGTH.size + length
        if len(self._in) < end:
            return None
        message = unpack(bytes(self._in[_LENGTH.size : end]))
        del self._in[:end]
        if not isinstance(message, dict) or not isinstance(message.get("op"), str):
            raise WireError("a message without an `op` on a control channel")
        return message

    def close(self) -> None:
        self.closed = True
        self._socket.close()
