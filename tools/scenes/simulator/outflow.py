"""The data that a server sends on one connection, and ways to hold it up.

A network that loses packets for a moment loses nothing of a TCP stream: all of it comes late, and the pause may fall
anywhere, also into the middle of a packet of RTP.
"""

from __future__ import annotations

import asyncio


class Outflow:
    """The bytes to one client, in order."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held: bytearray | None = None
        self._splits = False

    @property
    def waiting_bytes(self) -> int:
        """The data that the client has not taken yet."""
        return self._transport.get_write_buffer_size() + len(self._held or b"")

    def write(self, data: bytes) -> None:
        """Send this behind all that came before."""
        if self._held is None:
            self._transport.write(data)
            return
        at = len(data) // 2 if self._splits else 0
        self._splits = False
        self._transport.write(data[:at])
        self._held += data[at:]

    def hold(self, seconds: float) -> None:
        """Send half of the next data, then nothing for this time, then all of it at once."""
        if self._held is None:
            self._held, self._splits = bytearray(), True
            asyncio.get_running_loop().call_later(seconds, self._let_go)

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held and not self._transport.is_closing():
            self._transport.write(held)
