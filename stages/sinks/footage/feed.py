"""Receives the packets of all cameras, in one thread, and reconnects to a camera whose process begins anew.

Cameras are found by their sockets, and so are known by the ASCII forms of their names.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.side_link import Link, follow
from camgraph.stages.video.packets import SUFFIX, Packet, PacketReader

_AGAIN_S = 0.2


@dataclass(slots=True, eq=False)
class _Connection:
    camera: str
    path: Path
    link: Link | None = None
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
        for path in [path for path, known in self._connections.items() if known.link is None and path not in found]:
            del self._connections[path]
        for path in found:
            connection = self._connections.setdefault(path, _Connection(path.name.removesuffix(SUFFIX), path))
            if connection.link is None:
                self._connect(connection)

    def _connect(self, connection: _Connection) -> None:
        with suppress(OSError):
            connection.link, connection.reader = follow(connection.path), PacketReader()
            self._selector.register(connection.link, selectors.EVENT_READ, connection)

    def _receive(self, connection: _Connection) -> None:
        packets, goes_on = self._packets_in(connection)
        if not goes_on:
            self._drop(connection)
        for packet in packets:
            self._packet(connection.camera, packet)
        if connection.reader.refusal:
            self._refused(connection.camera, connection.reader.refusal)
        if connection.reader.ended:
            self._over(connection.camera)

    def _packets_in(self, connection: _Connection) -> tuple[list[Packet], bool]:
        """The packets that are complete now, and whether more may come."""
        assert connection.link is not None
        packets: list[Packet] = []
        try:
            packets.extend(connection.reader.packets(connection.link.receive()))
        except OSError:
            return packets, False
        except (WireError, ValueError, TypeError) as error:
            if not connection.is_reported:
                connection.is_reported = True
                self._log.warning("packets_not_understood", camera=connection.camera, why=str(error))
            return packets, False
        return packets, True

    def _drop(self, connection: _Connection) -> None:
        assert connection.link is not None
        self._selector.unregister(connection.link)
        connection.link.close()
        connection.link = None

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            if connection.link is not None:
                self._drop(connection)
        with suppress(OSError):
            self._selector.close()
