"""Follows a live camera: one connection after the other, for ever; each that brought a picture is an epoch."""

from __future__ import annotations

import av

from pipeline.errors import UserError
from pipeline.messages import Stamp
from pipeline.stage import Context, Stop
from stages.reading import addresses
from stages.reading.camera import Camera
from stages.reading.live import complaints, retries
from stages.reading.live.connection import connected
from stages.reading.live.decoder import Decoder, LivePicture
from stages.reading.live.voice import Voice
from stages.reading.opening import why
from stages.reading.shots import Shot, Shots
from stages.reading.timeline import SECOND_NS
from stages.reading.waiting import wait

EPOCHS_OF_A_PROCESS = 1_000_000
"""So many reconnections of a live camera have room before the numbers of a restarted process begin."""


class Following:
    """One live camera."""

    def __init__(self, name: str, camera: Camera, context: Context) -> None:
        self._name = name
        self._camera = camera
        self._context = context
        self._voice = Voice(name, context)

    def shots(self, stop: Stop, resume: Stamp | None) -> Shots:
        """Pictures stamped by their arrival. Raises UserError for a protocol that FFmpeg does not have."""
        # Never one that an earlier incarnation of this process may have used: readers know its frames.
        epoch = max(resume.epoch + 1 if resume else 0, (self._context.incarnation - 1) * EPOCHS_OF_A_PROCESS)
        backoff_s, first_ns = retries.FIRST_BACKOFF_S, None
        while not stop.is_set():
            seen, reason = False, "the stream ended"
            try:
                for shot in self._connection(epoch, stop):
                    seen, backoff_s = True, retries.FIRST_BACKOFF_S
                    first_ns = shot.stamp.time_ns if first_ns is None else first_ns
                    if self._is_long_enough(shot.stamp.time_ns - first_ns):
                        return
                    yield shot
            except av.ProtocolNotFoundError:
                url = addresses.redact_url(self._camera.url)
                raise UserError(f"{url}: the FFmpeg of this installation does not open this protocol") from None
            except (av.FFmpegError, OSError) as error:
                reason = why(error)
            epoch += seen
            if not stop.is_set():
                url = addresses.redact_url(self._camera.url)
                self._context.log.warning("camera_lost", camera=self._name, url=url, why=reason, retry_s=backoff_s)
                wait(backoff_s, stop, self._context.alive)
                backoff_s = retries.next_backoff_s(backoff_s)

    def _is_long_enough(self, passed_ns: int) -> bool:
        duration_s = self._camera.duration_s
        return duration_s is not None and passed_ns >= duration_s * SECOND_NS

    def _connection(self, epoch: int, stop: Stop) -> Shots:
        seq = 0
        with complaints.listening() as heard, connected(self._camera, self._voice) as connection:
            decoder = Decoder(connection.stream, self._camera, self._voice, heard)
            for packet in connection.packets(stop):
                for picture in decoder.pictures(packet):
                    yield Shot(self._stamp(epoch, seq, picture), picture.frame)
                    seq += 1

    def _stamp(self, epoch: int, seq: int, picture: LivePicture) -> Stamp:
        base = (picture.time_base.numerator, picture.time_base.denominator)
        at_ns = picture.arrived_ns
        return Stamp(self._name, epoch, seq, at_ns, at_ns, picture.wall_ns, picture.pts, base)
