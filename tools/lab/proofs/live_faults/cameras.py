"""The cameras to harm: those of the simulator, and one of a server that is not ours (GStreamer)."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from camgraph.pipeline.testing import hit
from camgraph.tools.lab.gstreamer import GStreamerServer
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings

FPS = 10
CLIP = ClipSettings(codec="h264", width=320, height=180, fps=FPS, gop=FPS, seconds=4)
USER = "viewer"
WITNESS, ABSENT, WRONG = "c1", "c2", "wrong"
Kind = Literal["witness", "tcp", "udp", "absent", "wrong", "server"]


@dataclass(frozen=True)
class Patient:
    """One camera of the graph. ``witness``: nothing is ever done to it; ``absent``: it refuses at the start; ``wrong``:
    the graph has a wrong password for it; ``server``: it is GStreamer's."""

    name: str
    kind: Kind
    camera: CameraHandle | None = None
    server: GStreamerServer | None = None

    @property
    def simulator(self) -> CameraHandle:
        """This camera, as the simulator takes it."""
        assert self.camera is not None
        return self.camera

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return self._other.port if self.camera is None else self.camera.port

    @property
    def path(self) -> str:
        """The path in its address."""
        return "stream" if self.camera is None else self.camera.name

    def end(self) -> None:
        """The server ends."""
        self._other.close()

    def begin(self) -> None:
        """The server is there again, at the same address."""
        self._other.start()

    def freeze(self) -> None:
        """The server stops in the middle of its work; its connections stay open."""
        hit(self._other.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """The server goes on."""
        hit(self._other.pid, signal.SIGCONT)

    @property
    def _other(self) -> GStreamerServer:
        assert self.server is not None
        return self.server


def kinds(cameras: int) -> Mapping[str, Kind]:
    """Name -> kind of the cameras: ``cameras`` (at least 4) that are seen, and one whose password is wrong."""
    names = [f"c{number}" for number in range(1, cameras + 1)]
    found: dict[str, Kind] = {name: "udp" if number % 3 == 0 else "tcp" for number, name in enumerate(names, 1)}
    return {**found, WITNESS: "witness", ABSENT: "absent", WRONG: "wrong"}


def settings_of(names: Mapping[str, Kind], password: str) -> list[CameraSettings]:
    """The simulator: all with digest, so that there is a password to be kept in every address."""
    return [
        CameraSettings(name=name, clip=CLIP, auth="digest", user=USER, password=password, seed=number)
        for number, name in enumerate(names)
    ]
