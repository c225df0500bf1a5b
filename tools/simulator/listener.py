"""The port of a camera: it accepts or refuses connections, and stays the camera's meanwhile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from pipeline.errors import EnvironmentProblem
from tools.simulator.carriers import HOST
from tools.simulator.settings import CameraSettings

_BACKLOG = 128


class Listener:
    """Listens on 127.0.0.1 alone. While it refuses, a socket that is bound and does not listen keeps the port."""

    def __init__(self, protocol: Callable[[], asyncio.Protocol], settings: CameraSettings) -> None:
        self._protocol = protocol
        self._settings = settings
        self._bound: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self.port = settings.port

    def open(self) -> None:
        """Take the port and accept. Raises EnvironmentProblem if it is taken."""
        self._bind()
        self.accept()

    def accept(self) -> None:
        """Accept connections from now on, unless it does already."""
        if self._bound is None or self._accepting is not None:
            return
        self._bound.listen(_BACKLOG)
        self._accepting = asyncio.get_running_loop().create_task(self._accept(self._bound))

    def refuse(self) -> None:
        """Refuse connections from now on; those that are open go on."""
        if self._accepting is not None:
            self.close()
            self._bind()

    def close(self) -> None:
        """Give the port back."""
        accepting, self._accepting = self._accepting, None
        if accepting is not None:
            accepting.cancel()
        bound, self._bound = self._bound, None
        if bound is not None:
            asyncio.get_running_loop().remove_reader(bound.fileno())
            bound.close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            accepted, _ = await loop.sock_accept(listening)
            await loop.connect_accepted_socket(self._protocol, accepted)

    def _bind(self) -> None:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setblocking(False)
        try:
            made.bind((HOST, self.port))
        except OSError as error:
            made.close()
            raise EnvironmentProblem(
                f"farm: camera {self._settings.name}: cannot listen on {HOST}:{self.port}: {error.strerror}; "
                "choose another --port",
                error_id="port-taken",
            ) from error
        self._bound = made
        self.port = made.getsockname()[1]
