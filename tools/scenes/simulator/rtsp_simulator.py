"""RTSP cameras, for tests and for trying camgraph out: `with RtspSimulator([CameraSettings(name="a")]): ...`"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Literal, Self

from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem, UserError
from camgraph.tools.scenes.simulator.accounts import CameraCounts, FrameSent
from camgraph.tools.scenes.simulator.control import Order, Plan, Reply
from camgraph.tools.scenes.simulator.faults import Fault, FaultName, ScheduledFault
from camgraph.tools.scenes.simulator.nal import Codec
from camgraph.tools.scenes.simulator.settings import CameraSettings

_REPLY_S = 60.0
_END_S = 5.0
_POLL_S = 0.01


class RtspSimulator:
    """Cameras on 127.0.0.1, served by a process of their own from `start` to `close`. Safe to use from many threads."""

    def __init__(
        self,
        cameras: Sequence[CameraSettings],
        *,
        schedule: Sequence[ScheduledFault] = (),
        say_faults: bool = False,
        start_s: float = 120.0,
    ) -> None:
        """``start_s`` bounds how long reading and encoding the clips may take. Raises UserError for twins."""
        names = [camera.name for camera in cameras]
        if len(set(names)) < len(names):
            raise UserError(f"farm: expected names that differ, got {', '.join(names)}", error_id="name-taken")
        for one in schedule:
            if one.camera not in (None, *names):
                raise UserError(
                    f"farm: there is no camera `{one.camera}`; there are {', '.join(names)}", error_id="name-unknown"
                )
        self._plan = Plan(cameras=tuple(cameras), schedule=tuple(schedule), say_faults=say_faults)
        self._start_s = start_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._handles: dict[str, CameraHandle] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def cameras(self) -> tuple[CameraHandle, ...]:
        """All cameras, in the order in which they were given."""
        return tuple(self._handles.values())

    @property
    def pid(self) -> int:
        """Of the process that serves."""
        assert self._process is not None
        return self._process.pid

    def camera(self, name: str) -> CameraHandle:
        """One camera by its name."""
        return self._handles[name]

    def start(self) -> None:
        """Serve; all ports are open afterwards. Raises UserError for a clip, EnvironmentProblem for a port."""
        own, others = socket.socketpair()
        with others:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "camgraph.tools.scenes.simulator.server"],
                stdin=others.fileno(),
                process_group=0,
            )
        self._control = own
        self._lines = own.makefile("rb")
        try:
            ports = self._say(self._plan.model_dump_json(), self._start_s).ports
        except BaseException:
            self.close()
            raise
        for settings, port in zip(self._plan.cameras, ports, strict=True):
            self._handles[settings.name] = CameraHandle(self, settings, port)

    def wait(self) -> int:
        """Wait until the serving process ends, which by itself it never does; its exit status."""
        assert self._process is not None
        return self._process.wait()

    def close(self) -> None:
        """End all cameras and their process; nothing if that is done."""
        process, self._process = self._process, None
        if process is None:
            return
        self._lines.close()
        self._control.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def ask(self, order: Order) -> Reply:
        """Give an order, and wait until it is done."""
        return self._say(order.model_dump_json(), _REPLY_S)

    def _say(self, line: str, within_s: float) -> Reply:
        with self._lock:
            try:
                self._control.settimeout(within_s)
                self._control.sendall(line.encode() + b"\n")
                answer = self._lines.readline()
            except OSError as error:
                raise EnvironmentProblem(
                    f"farm: no answer of its process in {within_s:g} s: {error}", error_id="simulator"
                ) from error
        if not answer:
            raise EnvironmentProblem("farm: its process ended; see its messages above", error_id="simulator")
        reply = Reply.model_validate_json(answer)
        if reply.error:
            raise _as_it_was(reply)
        return reply


def _as_it_was(reply: Reply) -> CamgraphError:
    kinds = (UserError, EnvironmentProblem, CamgraphError)
    return next(kind for kind in kinds if kind.exit_status == reply.exit_status)(reply.error)


class CameraHandle:
    """One camera of a running simulator. Each method returns when the camera has done it.

    Faults last until `heal`. Those with ``after_packets`` or ``after_frames`` meet each client, present or future, when
    it has got that many since its PLAY; without, they affect its present clients (`cut`, `half_open`, `jump`) or all.
    """

    def __init__(self, simulator: RtspSimulator, settings: CameraSettings, port: int) -> None:
        self.settings = settings
        self.port = port
        self._simulator = simulator

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def url(self) -> str:
        """With user and password, if the camera asks for them."""
        return self.settings.url(self.port)

    def apply(self, fault: Fault) -> None:
        """Let a fault begin."""
        self._simulator.ask(Order(do="fault", camera=self.name, fault=fault))

    def heal(self, *names: FaultName) -> None:
        """Let these faults end, or all of them."""
        self._simulator.ask(Order(do="heal", camera=self.name, names=names))

    def refuse(self) -> None:
        """Refuse new connections; those that are open go on."""
        self.apply(Fault(name="refuse"))

    def silence(self) -> None:
        """Accept connections and never answer; packets of clients that play go on."""
        self.apply(Fault(name="silence"))

    def answer(self, status: Literal[401, 404, 503]) -> None:
        """Answer all requests but OPTIONS with this status."""
        self.apply(Fault(name="answer", value=str(status)))

    def stall(self, *, after_packets: int = 0, after_frames: int = 0) -> None:
        """Send no more packets; the connection stays, and requests are answered."""
        self.apply(Fault(name="stall", after_packets=after_packets, after_frames=after_frames))

    def hold(self, seconds: float) -> None:
        """Over TCP: send half a packet, then nothing for this time, then at once everything that was due."""
        self.apply(Fault(name="hold", value=f"{seconds:f}"))

    def cut(self, how: Literal["fin", "rst"] = "rst", *, after_packets: int = 0, after_frames: int = 0) -> None:
        """End connections: in order, or with a reset."""
        self.apply(Fault(name="cut", value=how, after_packets=after_packets, after_frames=after_frames))

    def half_open(self, *, after_packets: int = 0, after_frames: int = 0) -> None:
        """Forget connections: their sockets stay open, unread and unwritten. New ones work."""
        self.apply(Fault(name="half_open", after_packets=after_packets, after_frames=after_frames))

    def reboot(self, down_s: float) -> None:
        """Reset all connections, refuse new ones for this time, then return with a new SSRC, time stamps and clock."""
        self.apply(Fault(name="reboot", value=f"{down_s:f}"))

    def drop(self, percent: float, *, seed: int = 0, after_packets: int = 0) -> None:
        """Lose this percentage of UDP packets."""
        self.apply(Fault(name="drop", value=f"{percent:f}", seed=seed, after_packets=after_packets))

    def reorder(self, percent: float, *, seed: int = 0, after_packets: int = 0) -> None:
        """Send this percentage of UDP packets one to four places too late."""
        self.apply(Fault(name="reorder", value=f"{percent:f}", seed=seed, after_packets=after_packets))

    def corrupt(self, percent: float, *, seed: int = 0, after_packets: int = 0) -> None:
        """Change bytes in the payload of this percentage of packets."""
        self.apply(Fault(name="corrupt", value=f"{percent:f}", seed=seed, after_packets=after_packets))

    def resize(self, width: int, height: int, *, after_frames: int = 0) -> None:
        """Change the resolution in mid-stream, after the first client has got `after_frames` frames."""
        self.apply(Fault(name="resize", value=f"{width}x{height}", after_frames=after_frames))

    def recode(self, codec: Codec, *, after_frames: int = 0) -> None:
        """Change the codec in mid-stream, after the first client has got `after_frames` frames."""
        self.apply(Fault(name="codec", value=codec, after_frames=after_frames))

    def jump(self, seconds: float, *, after_packets: int = 0, after_frames: int = 0) -> None:
        """Let time stamps jump, forward or back."""
        value = f"{seconds:f}"
        self.apply(Fault(name="jump", value=value, after_packets=after_packets, after_frames=after_frames))

    def wrap(self, after_s: float) -> None:
        """Let the time stamps of clients from now on pass 2**32 after this time."""
        self.apply(Fault(name="wrap", value=f"{after_s:f}"))

    def stamps(self, how: Literal["constant", "duplicate"], *, after_frames: int = 0) -> None:
        """Give all pictures the same time stamp, or two each."""
        self.apply(Fault(name="timestamps", value=how, after_frames=after_frames))

    def clock(self, offset_s: float) -> None:
        """Let sender reports be wrong by this time."""
        self.apply(Fault(name="clock", value=f"{offset_s:f}"))

    def declare(self, fps: float) -> None:
        """Give this rate in the SDP, at any real rate."""
        self.apply(Fault(name="fps", value=f"{fps:f}"))

    def counts(self) -> CameraCounts:
        """The camera's actions up to now."""
        counts = self._simulator.ask(Order(do="count", camera=self.name)).counts
        assert counts is not None
        return counts

    def sent(self, newest: int = 0) -> tuple[FrameSent, ...]:
        """The pictures that were sent to any client, the oldest first: the newest ones, or all of the last 50,000."""
        return self._simulator.ask(Order(do="sent", camera=self.name, newest=newest)).sent

    def wait_for(self, condition: Callable[[CameraCounts], bool], within_s: float = 10.0) -> CameraCounts:
        """Wait until the counters are so. Raises TimeoutError if that takes longer."""
        end = time.monotonic() + within_s
        while not condition(counts := self.counts()):
            if time.monotonic() > end:
                raise TimeoutError(f"camera {self.name}: not so within {within_s:g} s: {counts}")
            time.sleep(_POLL_S)
        return counts
