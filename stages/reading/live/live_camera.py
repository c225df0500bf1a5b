"""Follows a live camera: one connection after the other, for ever; each that brought a picture is an epoch."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing

import av

from pipeline.errors import UserError
from pipeline.messages import Stamp
from pipeline.stage import Context, Stop
from stages.reading import addresses
from stages.reading.camera import Camera
from stages.reading.live import ffmpeg_log
from stages.reading.live.camera_reporter import CameraReporter
from stages.reading.live.connection import Connection, connected
from stages.reading.live.decoder import Decoder, LivePicture
from stages.reading.live.facts import Facts
from stages.reading.live.host_lookup import HostLookup
from stages.reading.live.lifeline import Lifeline
from stages.reading.live.no_picture_timeout import NoPictureTimeout
from stages.reading.live.retries import Retries
from stages.reading.live.sockets import Peer
from stages.reading.live.timeouts import timeouts_of
from stages.reading.live.verdicts import Dropped, verdict_on
from stages.reading.shots import Shot, Shots
from stages.reading.timeline import SECOND_NS
from stages.reading.waiting import wait

EPOCHS_OF_A_PROCESS = 1_000_000
"""So many reconnections of a live camera have room before the numbers of a restarted process begin."""
NAME_S = 2.0
"""For looking up the camera's name."""
_LOOK_S = 0.1


class LiveCamera:
    """One live camera."""

    def __init__(self, name: str, camera: Camera, context: Context) -> None:
        self._name = name
        self._camera = camera
        self._incarnation = context.incarnation
        self._reporter = CameraReporter(name, context)
        self._facts = Facts(self._reporter)
        self._lookup = HostLookup(camera.url)
        # So that cameras do not come back as one: nothing that has to be hard to guess.
        self._retries = Retries(random.Random().random)  # noqa: S311

    def shots(self, stop: Stop, resume: Stamp | None) -> Shots:
        """Pictures stamped by their arrival, for `duration_s` where that is set.

        Raises UserError for a protocol that FFmpeg does not have.
        """
        first_ns: int | None = None
        with closing(self._epochs(stop, resume)) as shots:
            for shot in shots:
                first_ns = shot.stamp.time_ns if first_ns is None else first_ns
                if self._is_long_enough(shot.stamp.time_ns - first_ns):
                    return
                yield shot

    def _is_long_enough(self, passed_ns: int) -> bool:
        duration_s = self._camera.duration_s
        return duration_s is not None and passed_ns >= duration_s * SECOND_NS

    def _epochs(self, stop: Stop, resume: Stamp | None) -> Shots:
        # Never one that an earlier incarnation of this process may have used: readers know its frames.
        epoch = max(resume.epoch + 1 if resume else 0, (self._incarnation - 1) * EPOCHS_OF_A_PROCESS)
        self._reporter.is_now("connecting")
        while not stop.is_set():
            begun, seen = time.monotonic(), False
            try:
                with closing(self._connection(epoch, stop)) as shots:
                    for shot in shots:
                        seen = True
                        yield shot
                return
            except av.ProtocolNotFoundError:
                url = addresses.redact_url(self._camera.url)
                raise UserError(f"{url}: the FFmpeg of this installation does not open this protocol") from None
            except (av.FFmpegError, OSError, Dropped) as error:
                self._lost(error, time.monotonic() - begun, stop)
            epoch += seen

    def _lost(self, error: Exception, spent_s: float, stop: Stop) -> None:
        """Say so where it is news, and wait until the camera is to be tried again. A stop is not the camera's fault."""
        if stop.is_set():
            return
        verdict = verdict_on(error, addresses.redact_url(self._camera.url), spent_s, self._camera.connect_s)
        self._reporter.is_now(*verdict)
        wait(self._retries.pause_s(verdict.state, spent_s), stop, self._reporter.alive)

    def _connection(self, epoch: int, stop: Stop) -> Shots:
        """Ends when the stop comes. Raises av.FFmpegError, OSError or Dropped when the connection fails or ends."""
        lifeline = Lifeline(self._reporter, stop, self._peers(stop), timeouts_of(self._camera).stalled_s)
        with ffmpeg_log.listening() as log, lifeline, connected(self._camera, lifeline) as connection:
            self._facts.connected(self._camera, connection.stream)
            decoder = Decoder(connection.stream, self._camera, self._reporter, log)
            for seq, picture in enumerate(self._pictures(connection, decoder, stop)):
                self._retries.succeeded()
                self._facts.seen(picture.frame)
                self._reporter.is_now("live")
                yield Shot(self._stamp(epoch, seq, picture), picture.frame)

    def _pictures(self, connection: Connection, decoder: Decoder, stop: Stop) -> Iterator[LivePicture]:
        timeout = NoPictureTimeout(self._camera.max_fps, time.monotonic())
        for packet in connection.packets(stop):
            for picture in decoder.pictures(packet):
                timeout.picture(time.monotonic())
                yield picture
            if timeout.is_over(decoder.refused, time.monotonic()):
                raise Dropped("what it sends can no longer be decoded: opened again, in case its codec has changed")

    def _peers(self, stop: Stop) -> frozenset[Peer]:
        """Where the camera is. Raises Dropped where that is not found out in time."""
        self._lookup.begin()
        until = time.monotonic() + NAME_S
        while not self._lookup.wait(_LOOK_S) and time.monotonic() < until and not stop.is_set():
            self._reporter.alive()
        return self._lookup.peers()

    def _stamp(self, epoch: int, seq: int, picture: LivePicture) -> Stamp:
        base = (picture.time_base.numerator, picture.time_base.denominator)
        at_ns = picture.arrived_ns
        return Stamp(self._name, epoch, seq, at_ns, at_ns, picture.wall_ns, picture.pts, base, picture.clock)
