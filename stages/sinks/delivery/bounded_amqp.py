"""The connection of py-amqp, for brokers that may send anything.

By itself the library reads as much as the head of a frame says, and makes its frames as large as the broker asks for.
"""

from __future__ import annotations

from typing import Any

from camgraph.stages.sinks.delivery.bounded_socket import Allowance, BoundedSocket, connected

_LEAST_FRAME, _MOST_FRAME = 4096, 1 << 20
"""Bytes; the least is that of AMQP."""


def bounded_connection_class(allowance: Allowance) -> Any:
    """A class of connections that raise AnswerTooLong and TimeoutError once the allowance is used up."""
    from amqp import Connection  # noqa: PLC0415 - an extra
    from amqp.transport import SSLTransport, TCPTransport  # noqa: PLC0415

    class Bounded:
        """For a transport: its socket is ours. TLS needs the bare one, and is bounded by its own timeout."""

        def _connect(self, host: str, port: int, timeout: float) -> None:
            self.sock: Any = connected(host, port, allowance)

        def _setup_transport(self) -> None:
            self.connect_timeout = allowance.left_s()
            super()._setup_transport()  # type: ignore[misc]
            self.sock = BoundedSocket(self.sock, allowance)
            self._quick_recv = self.sock.recv
            self._write = self.sock.sendall
            self._read_buffer = b""

        def _read(self, size: int, *more: Any) -> Any:
            allowance.expect(size - len(self._read_buffer))
            return super()._read(size, *more)  # type: ignore[misc]

    class Plain(Bounded, TCPTransport):  # type: ignore[misc]
        pass

    class Encrypted(Bounded, SSLTransport):  # type: ignore[misc]
        pass

    class BoundedConnection(Connection):  # type: ignore[misc]
        def Transport(  # noqa: N802 - as in the library
            self,
            host: str,
            connect_timeout: float,
            ssl: Any = False,
            read_timeout: float | None = None,
            write_timeout: float | None = None,
            **more: Any,
        ) -> Any:
            kind, waits = Encrypted if ssl else Plain, {"read_timeout": read_timeout, "write_timeout": write_timeout}
            return kind(host, connect_timeout=connect_timeout, ssl=ssl, **waits, **more)

        def _on_tune(self, channels: int, frame: int, heartbeat: int, *more: Any) -> Any:
            if frame and frame < _LEAST_FRAME:
                raise ValueError(f"frames of {frame} bytes")
            return super()._on_tune(channels, min(frame, _MOST_FRAME), heartbeat, *more)

    return BoundedConnection
