"""Receives the packets of all cameras, in one thread, and reconnects to a camera whose process begins anew.

Cameras are found by their sockets, and so are known by the ASCII forms of their names.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.local_socket import short_address
from camgraph.stages.video.packets import SUFFIX, Packet, PacketReader

_AGAIN_S = 0.2
_READ_BYTES = 1 << 20


@dataclass(slots=True, eq=False)
class _Connection:
    camera: str
    path: Path
    socket: socket.socket | None = None
    reader: PacketReader = field(default_factory=PacketReader)
    is_reported: bool = False
    """The log says that its messages cannot be read."""


class PacketFeed:
    """`folder` has the state folders of all stages.

    `packet(camera, packet)` is called for each, `over(camera)` when a camera says that nothing more comes, and
    `refused(camera, why)` when a camera says why its packets cannot be had. Their exceptions leave `turn`, and cost no
    connection.
    """

    def __init__(
        self,
        folder: Path,
        log: Logger,
        packet: Callable[[str, Packet], object],
        over: Callable[[str], object],
        refused: Callable[[str, str], object],
    ) -> None:
        self._folder = folder
        self._log = log
        self._connections: dict[Path, _Connection] = {}
        self._look_at_s = 0.0
        self._packet = packet
        self._over = over
        self._refused = refused
        self._selector = selectors.DefaultSelector()
        self._buffer = bytearray(_READ_BYTES)

    def turn(self, timeout_s: float) -> None:
        """Receive for at most so long; returns earlier after something came."""
        if time.monotonic() >= self._look_at_s:
            self._look_at_s = time.monotonic() + _AGAIN_S
            self._look()
        if not self._selector.get_map():
            time.sleep(min(timeout_s, _AGAIN_S))
            return
        for key, _ in self._selector.select(timeout_s):
            self._receive(key.data)

    def _look(self) -> None:
        """Connect to all cameras that are there, and forget those that are gone."""
        found = set(self._folder.glob(f"*/*{SUFFIX}"))
        for path in [path for path, known in self._connections.items() if known.socket is None and path not in found]:
            del self._connections[path]
        for path in found:
            connection = self._connections.setdefault(path, _Connection(path.name.removesuffix(SUFFIX), path))
            if connection.socket is None:
                self._connect(connection)

    def _connect(self, connection: _Connection) -> None:
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with short_address(connection.path) as address:
                opened.connect(address)
        except OSError:
            opened.close()
            return
        opened.setblocking(False)
        connection.socket, connection.reader = opened, PacketReader()
        self._selector.register(opened, selectors.EVENT_READ, connection)

    def _receive(self, connection: _Connection) -> None:
        assert connection.socket is not None
        try:
            size = connection.socket.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError:
            size = 0
        packets, is_sound = self._packets_in(connection, size)
        if not size or not is_sound:
            self._drop(connection)
        for packet in packets:
            self._packet(connection.camera, packet)
        if connection.reader.refusal:
            self._refused(connection.camera, connection.reader.refusal)
        if connection.reader.ended:
            self._over(connection.camera)

    def _packets_in(self, connection: _Connection, size: int) -> tuple[list[Packet], bool]:
        """The packets that are complete now, and whether all that came could be read."""
        packets: list[Packet] = []
        try:
            packets.extend(connection.reader.feed(bytes(memoryview(self._buffer)[:size])))
        except (WireError, ValueError, TypeError) as error:
            if not connection.is_reported:
                connection.is_reported = True
                self._log.warning("packets_not_understood", camera=connection.camera, why=str(error))
            return packets, False
        return packets, True

    def _drop(self, connection: _Connection) -> None:
        assert connection.socket is not None
        self._selector.unregister(connection.socket)
        connection.socket.close()
        connection.socket = None

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            if connection.socket is not None:
                self._drop(connection)
        with suppress(OSError):
            self._selector.close()
