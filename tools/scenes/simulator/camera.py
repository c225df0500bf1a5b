"""One camera: its listener, its media clock, its clients and its faults."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.tools.scenes.simulator.accounts import CameraCounts, FrameSent
from camgraph.tools.scenes.simulator.carriers import HOST
from camgraph.tools.scenes.simulator.clip import Clip
from camgraph.tools.scenes.simulator.connection import Connection
from camgraph.tools.scenes.simulator.faults import Fault, FaultName
from camgraph.tools.scenes.simulator.settings import CameraSettings
from camgraph.tools.scenes.simulator.timeline import SECOND_NS, Due, Timeline
from camgraph.tools.scenes.simulator.viewer import Identity, Viewer

_KEPT_FRAMES = 50_000
"""Of the log of sent frames: half an hour at 25 fps."""
_BACKLOG = 128


@dataclass(frozen=True, slots=True)
class _Change:
    """Another clip, that waits for its moment."""

    fault: Fault
    clip: Clip


class Camera:
    """Sends its clip to every client, until it is closed. All of it runs in the thread of one event loop."""

    def __init__(self, settings: CameraSettings, clip: Clip) -> None:
        self.settings = settings
        self.nonce = ""
        self.faults: dict[FaultName, Fault] = {}
        self.counts = CameraCounts()
        self.sent: deque[FrameSent] = deque(maxlen=_KEPT_FRAMES)
        self._own_clip = clip
        self._listener = Listener(lambda: Connection(self), settings)
        self._connections: set[Connection] = set()
        self._viewers: set[Viewer] = set()
        self._change: _Change | None = None
        self._wall_ns = time.time_ns() - time.monotonic_ns()
        self._timer: asyncio.TimerHandle | None = None
        self._down = False
        self._random: random.Random
        self._timeline: Timeline
        self._begin()

    @property
    def port(self) -> int:
        return self._listener.port

    @property
    def clip(self) -> Clip:
        """The clip that it sends now."""
        return self._timeline.clip

    @property
    def declared_fps(self) -> float:
        """The clip that the SDP describes."""
        fault = self.faults.get("fps")
        return fault.number if fault else self.settings.declared_fps or float(self.clip.fps)

    def open(self) -> None:
        """Begin to listen and to run. Raises EnvironmentProblem if the port is taken."""
        self._listener.open()
        self._run()

    def close(self) -> None:
        """End all connections, and the camera."""
        self._stop()
        self._listener.close()
        self._cut_all("rst")

    def apply(self, fault: Fault, clip: Clip | None = None) -> None:
        """Begin a fault; from then on a changed stream sends ``clip``."""
        if fault.name in ("resize", "codec") and clip is not None:
            self._change = _Change(fault, clip)
        elif fault.name == "reboot":
            self._reboot(fault.number)
        elif fault.name in ("cut", "half_open", "hold", "jump") and not fault.waits:
            self._strike(fault)
        else:
            self.faults[fault.name] = fault
            self._listen_or_refuse()

    def heal(self, name: FaultName) -> None:
        """End a fault; its effects on connections stay, and a reboot takes its time."""
        self.faults.pop(name, None)
        self._listen_or_refuse()
        if name in ("resize", "codec"):
            self._change = None
            if self.clip is not self._own_clip:
                self._timeline = self._timeline.followed_by(self._own_clip)
                self._restart()

    def connected(self, connection: Connection) -> None:
        self._connections.add(connection)
        self.counts.connections += 1

    def disconnected(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def joined(self, viewer: Viewer) -> None:
        """A client played: it gets pictures from the next keyframe on."""
        if viewer not in self._viewers:
            self._viewers.add(viewer)
            self.counts.plays += 1

    def left(self, viewer: Viewer) -> None:
        self._viewers.discard(viewer)

    def counted(self) -> CameraCounts:
        """The present counters."""
        self.counts.open_connections = len(self._connections)
        self.counts.clients = len(self._viewers)
        return self.counts

    def new_identity(self) -> Identity:
        """The first numbers of the next client: a function of the camera's seed and of the number of earlier
        clients.
        """
        stamp = self._random.getrandbits(32)
        if wrap := self.faults.get("wrap"):
            stamp = (1 << 32) - round(wrap.number * 90_000)
        return Identity(self._random.getrandbits(32), self._random.getrandbits(16), stamp)

    def _begin(self) -> None:
        """As when it is switched on: the clip and the media clock from their beginning, new random numbers."""
        # A seed that anybody may know is the point here.
        self._random = random.Random(f"{self.settings.seed}/{self.settings.name}/{self.counts.boots}")  # noqa: S311
        self.nonce = f"{self._random.getrandbits(128):032x}"
        # Cameras do not tick together, even if they were switched on together.
        phase_ns = int(self._random.random() * SECOND_NS / self._own_clip.fps)
        self._timeline = Timeline(self._own_clip, time.monotonic_ns() + phase_ns)
        self._change = None
        self.counts.boots += 1

    def _run(self) -> None:
        self._timer = asyncio.get_running_loop().call_at(self._timeline.due_ns / SECOND_NS, self._tick)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _restart(self) -> None:
        self._stop()
        self._run()

    def _tick(self) -> None:
        """Send the picture that is due, to all."""
        if self._changed_clip():
            self._run()
            return
        due = self._timeline.take()
        wall_ns = due.due_ns + self._wall_ns + self._clock_error_ns()
        served = [viewer for viewer in tuple(self._viewers) if self._served(viewer, due, wall_ns)]
        if served:
            self._note(due, len(served))
        self._run()

    def _served(self, viewer: Viewer, due: Due, wall_ns: int) -> bool:
        packets, octets = viewer.packets, viewer.octets
        served = viewer.send(due, self.faults, wall_ns)
        self.counts.packets += viewer.packets - packets
        self.counts.octets += viewer.octets - octets
        return served

    def _note(self, due: Due, clients: int) -> None:
        self.counts.frames += clients
        wall_ns = due.caught_ns + self._wall_ns + self._clock_error_ns()
        now_ns = time.monotonic_ns()
        self.sent.append(FrameSent(due.place, due.frame.keyframe, due.caught_ns, now_ns, wall_ns, clients))

    def _clock_error_ns(self) -> int:
        fault = self.faults.get("clock")
        return round((self.settings.clock_offset_s + (fault.number if fault else 0.0)) * SECOND_NS)

    def _changed_clip(self) -> bool:
        """Whether another clip goes on from here; its first picture may be due later."""
        change = self._change
        if change is None:
            return False
        most = max(((viewer.packets, viewer.frames) for viewer in self._viewers), default=(0, 0))
        if change.fault.packets_left(*most):
            return False
        self._change = None
        self._timeline = self._timeline.followed_by(change.clip)
        return True

    def _strike(self, fault: Fault) -> None:
        """A fault that happens once, to the present clients."""
        if fault.name == "cut":
            self._cut_all(fault.value)
        elif fault.name == "half_open":
            for connection in tuple(self._connections):
                connection.abandon()
        elif fault.name == "hold":
            for connection in tuple(self._connections):
                connection.hold(fault.number)
        else:
            for viewer in self._viewers:
                viewer.jump(fault.number)

    def _cut_all(self, how: str) -> None:
        for connection in tuple(self._connections):
            connection.cut(how)

    def _reboot(self, down_s: float) -> None:
        self._stop()
        self._down = True
        self._listen_or_refuse()
        self._cut_all("rst")
        self._timer = asyncio.get_running_loop().call_later(down_s, self._boot)

    def _boot(self) -> None:
        self._down = False
        self._begin()
        self._listen_or_refuse()
        self._run()

    def _listen_or_refuse(self) -> None:
        if self._down or "refuse" in self.faults:
            self._listener.refuse()
        else:
            self._listener.accept()


class Listener:
    """The port of a camera: it accepts or refuses connections, and stays the camera's meanwhile.

    Listens on 127.0.0.1 alone. While it refuses, a socket that is bound and does not listen keeps the port.
    """

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
