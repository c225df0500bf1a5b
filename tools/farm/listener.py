"""The port of a camera: it accepts or refuses connections, and stays the camera's meanwhile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from pipeline.errors import EnvironmentProblem
from tools.farm.carriers import HOST
from tools.farm.settings import CameraSettings


class Listener:
    """Listens on 127.0.0.1 alone. While it refuses, a socket that is bound and does not listen keeps the port."""

    def __init__(self, protocol: Callable[[], asyncio.Protocol], settings: CameraSettings) -> None:
        self._protocol = protocol
        self._settings = settings
        self._server: asyncio.Server | None = None
        self._bound: socket.socket | None = None
        self.port = settings.port

    async def open(self) -> None:
        """Take the port and accept. Raises EnvironmentProblem where it is taken."""
        self._bind()
        await self.accept()

    async def accept(self) -> None:
        """Accept connections, where it does not already."""
        if self._bound is None:
            return
        bound, self._bound = self._bound, None
        self._server = await asyncio.get_running_loop().create_server(self._protocol, sock=bound, backlog=128)

    def refuse(self) -> None:
        """Refuse connections; those that are open go on."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._bind()

    def close(self) -> None:
        """Give the port back."""
        if self._server is not None:
            self._server.close()
        if self._bound is not None:
            self._bound.close()

    def _bind(self) -> None:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((HOST, self.port))
        except OSError as error:
            made.close()
            raise EnvironmentProblem(
                f"farm: camera {self._settings.name}: cannot listen on {HOST}:{self.port}: {error.strerror}; "
                "choose another --port"
            ) from error
        self._bound = made
        self.port = made.getsockname()[1]
