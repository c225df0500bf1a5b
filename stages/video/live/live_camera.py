"""Reads a live camera: one connection after the other, for ever; each that brought a picture is an epoch.

After any error of a connection, the camera is `lost` and tried again. Only a user's mistake, or a problem that the
runtime waits out itself (`pipeline.errors.Shortage`), is passed on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path

import av

from camgraph.pipeline.errors import CamgraphError, UserError
from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.stage import Context, Stop
from camgraph.pipeline.system.disk import write_whole
from camgraph.pipeline.system.names import ascii_form
from camgraph.pipeline.system.redaction import redact_url
from camgraph.stages.messages import Frame
from camgraph.stages.video import addresses, ffmpeg_log
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.ffmpeg_memory import MemoryGuard
from camgraph.stages.video.live.camera_problems import Dropped, camera_problem, is_bug
from camgraph.stages.video.live.camera_reporter import CameraReporter, Facts
from camgraph.stages.video.live.connection import Connection, connected
from camgraph.stages.video.live.decoder import Decoder, LivePicture
from camgraph.stages.video.live.gate.gate import Gate, Road
from camgraph.stages.video.live.gate.host_lookup import LOOK_UP_S, HostLookup
from camgraph.stages.video.live.gate.rtsp_gate import RtspGate
from camgraph.stages.video.live.gate.web_gate import WebGate
from camgraph.stages.video.live.no_picture_timeout import NoPictureTimeout
from camgraph.stages.video.live.reading_watchdog import ReadingWatchdog
from camgraph.stages.video.live.retries import Attempt, Retries
from camgraph.stages.video.live.sockets import Peer
from camgraph.stages.video.live.timeouts import timeouts_of
from camgraph.stages.video.shots import Shot
from camgraph.stages.video.tap import PacketTap
from camgraph.stages.video.timeline import SECOND_NS
from camgraph.stages.video.waiting import wait

_LOOK_S = 0.1

Frames = Generator[Frame, None, None]
EPOCHS_OF_A_LIFE = 1_000_000
"""How many connections have room before the epochs of the camera's next life begin."""


class LiveCamera:
    """One live camera, for as long as its process reads it: its findings outlive a pause.

    ``develop`` turns pictures into frames; its errors are treated like those of the connection.
    """

    def __init__(
        self, name: str, camera: Camera, context: Context, develop: Callable[[Shot], Frame], tap: PacketTap
    ) -> None:
        self._name = name
        self._camera = camera
        self._develop = develop
        self._tap = tap
        self._reporter = CameraReporter(name, context)
        self._facts = Facts(self._reporter)
        self._lookup = HostLookup(camera.url)
        # Frames that leave the process need more memory.
        self._alone = context.outputs_leave
        # So that cameras do not come back as one: nothing that has to be hard to guess.
        self._retries = Retries(random.Random().random)  # noqa: S311
        self._epoch = first_epoch(context.state_folder, name, context.incarnation)

    def frames(self, stop: Stop, resume: Stamp | None) -> Frames:
        """Frames stamped by their arrival, for `duration_s` if that is set.

        Raises UserError for a protocol that FFmpeg does not have, and other kinds of `CamgraphError`.
        """
        first_ns: int | None = None
        with closing(self._connections(stop, resume)) as frames:
            for frame in frames:
                first_ns = frame.stamp.time_ns if first_ns is None else first_ns
                if self._is_long_enough(frame.stamp.time_ns - first_ns):
                    return
                yield frame

    def _is_long_enough(self, passed_ns: int) -> bool:
        duration_s = self._camera.duration_s
        return duration_s is not None and passed_ns >= duration_s * SECOND_NS

    def _connections(self, stop: Stop, resume: Stamp | None) -> Frames:
        self._epoch = max(self._epoch, resume.epoch + 1 if resume else 0)
        self._reporter.is_now("connecting")
        while not stop.is_set():
            attempt = Attempt(time.monotonic())
            try:
                with closing(self._connection(attempt, stop)) as frames:
                    yield from frames
                return
            except av.ProtocolNotFoundError:
                url = redact_url(self._camera.url)
                raise UserError(
                    f"{url}: the FFmpeg of this installation does not open this protocol", error_id="camera-address"
                ) from None
            except CamgraphError:
                raise
            except Exception as error:  # noqa: BLE001 - also a bug of ours must not cost the camera for good
                self._lost(error, attempt, stop)
            self._epoch += attempt.succeeded

    def _lost(self, error: Exception, attempt: Attempt, stop: Stop) -> None:
        """Report it if it is new, and wait until the camera is to be tried again. A stop is not the camera's fault."""
        if is_bug(error):
            self._reporter.failed(error)
        if stop.is_set():
            return
        now_s = time.monotonic()
        opening_s, live_s = attempt.opening_s(now_s), attempt.live_s(now_s)
        verdict = camera_problem(error, redact_url(self._camera.url), opening_s, self._camera.connect_s)
        self._reporter.is_now(*verdict)
        wait(self._retries.pause_s(verdict.state, opening_s, live_s), stop, self._reporter.alive)

    def _connection(self, attempt: Attempt, stop: Stop) -> Frames:
        """Ends when the stop comes. Raises the error by which a connection fails or ends."""
        peers, stalled_s = self._peers(stop), timeouts_of(self._camera).stalled_s
        with (
            ffmpeg_log.listening() as log,
            self._gate(peers) as gate,
            MemoryGuard(self._camera.memory_mb, alone=self._alone) as memory,
            ReadingWatchdog(
                self._reporter, stop, peers, stalled_s, log, cut=gate.close if gate else None, memory=memory
            ) as watchdog,
            self._true_causes(gate, watchdog),
            connected(self._camera, watchdog, gate, log) as connection,
        ):
            self._facts.connected(self._camera, connection.stream)
            decoder = Decoder(connection.stream, self._camera, self._reporter, log)
            for seq, picture in enumerate(self._pictures(connection, decoder, stop)):
                frame = self._develop(Shot(self._stamp(seq, picture), picture.frame))
                attempt.picture(time.monotonic())
                self._facts.seen(frame.width, frame.height)
                self._reporter.is_now("live")
                yield frame

    def _pictures(self, connection: Connection, decoder: Decoder, stop: Stop) -> Iterator[LivePicture]:
        timeout = NoPictureTimeout(self._camera.max_fps, time.monotonic())
        for packet in connection.packets(stop):
            self._tap.offer(packet.packet, self._epoch)
            if packet.packet.is_keyframe:
                timeout.keyframe(time.monotonic())
            elif waits := timeout.why_waiting(time.monotonic()):
                self._reporter.is_now("stalled", waits)
            for picture in decoder.pictures(packet):
                timeout.picture(time.monotonic())
                yield picture
            why = timeout.why_over(decoder.refused, time.monotonic())
            if why:
                raise Dropped(why)

    def _gate(self, peers: frozenset[Peer]) -> AbstractContextManager[Gate | None]:
        """The gate that FFmpeg speaks to instead of the camera; None if it speaks to the camera itself."""
        camera = self._camera
        if not addresses.is_gated(camera.url):
            return nullcontext()
        where = frozenset(peer.address for peer in peers)
        follow = camera.redirects == "follow"
        road = Road(camera.url, where, follow, camera.connect_s, camera.every_s)
        return RtspGate(road) if addresses.is_rtsp(camera.url) else WebGate(road)

    @contextmanager
    def _true_causes(self, gate: Gate | None, watchdog: ReadingWatchdog) -> Iterator[None]:
        """Instead of FFmpeg's own error for a connection that was ended here. Raises Dropped, OSError."""
        try:
            yield
        except CamgraphError:
            raise
        except Exception:
            if watchdog.too_much_memory:
                limit = f"{self._camera.memory_mb} MB (memory_mb)"
                raise Dropped(f"too much memory: FFmpeg took more than {limit} for its stream") from None
            if gate is not None and gate.problem is not None:
                raise gate.problem from None
            raise

    def _peers(self, stop: Stop) -> frozenset[Peer]:
        """The addresses of the camera. Raises Dropped if they are not found in time."""
        self._lookup.begin()
        until = time.monotonic() + LOOK_UP_S
        while not self._lookup.wait(_LOOK_S) and time.monotonic() < until and not stop.is_set():
            self._reporter.alive()
        return self._lookup.peers()

    def _stamp(self, seq: int, picture: LivePicture) -> Stamp:
        base = (picture.time_base.numerator, picture.time_base.denominator)
        at_ns = picture.arrived_ns
        return Stamp(self._name, self._epoch, seq, at_ns, at_ns, picture.wall_ns, picture.pts, base, picture.clock)


def first_epoch(folder: Path, camera: str, incarnation: int) -> int:
    """The first epoch of a new life of this camera in this run: no two frames of a run may have the same name.
    A life begins with its process, and again when the camera comes back after it was removed, maybe in another process.
    They are counted in a file of ``folder``, which all processes of the stage share and which lasts as long as the run.
    If that fails, ``incarnation`` (of the process) tells lives apart as far as it can.
    """
    path = folder / f"{ascii_form(camera)}.life"
    life = max(_last_life(path) + 1, incarnation - 1)
    with suppress(OSError):
        write_whole(path, str(life).encode())
    return life * EPOCHS_OF_A_LIFE


def _last_life(path: Path) -> int:
    """The number of the last life, -1 if there was none."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return -1
