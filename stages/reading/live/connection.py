"""One connection to a live camera, noticed when it drops.

Measured: a server that dies raises nothing, the packets just end; one that freezes raises ExitError when the read
time-out passes, after which the same container can be read on. So a short time-out is the heartbeat in which
the stop is looked at. A container is never touched by two threads.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import av
from av.container import InputContainer
from av.video.stream import VideoStream

from pipeline.stage import Stop
from stages.reading.addresses import is_device
from stages.reading.camera import Camera
from stages.reading.live.arrivals import Arrival
from stages.reading.live.voice import Voice

# Connecting and finding out what comes each have so long: together less than `hang_s` is by default.
OPEN_S = 4.5
HEARTBEAT_S = 0.5
STALL_S = 10.0

_NETWORK_OPTIONS = {"rtsp_transport": "tcp", "probesize": "200000", "analyzeduration": "500000"}


class Connection:
    """An open one; used by the thread that opened it alone."""

    def __init__(self, container: InputContainer, stream: VideoStream, voice: Voice) -> None:
        self.stream = stream
        self._container = container
        self._voice = voice

    def packets(self, stop: Stop) -> Generator[Arrival, None, None]:
        """From the first keyframe on; ends when the stream ends, stalls, or the stop comes."""
        started, last = False, time.monotonic()
        while not stop.is_set() and time.monotonic() - last < STALL_S:
            self._voice.alive()
            try:
                for packet in self._container.demux(self.stream):
                    self._voice.alive()
                    if packet.size == 0 or stop.is_set():
                        return
                    last = time.monotonic()
                    started = started or packet.is_keyframe
                    if started:
                        yield Arrival(packet, time.monotonic_ns(), time.time_ns())
            except av.ExitError:
                continue
            return


@contextmanager
def connected(camera: Camera, voice: Voice) -> Iterator[Connection]:
    """A connection to this camera. Raises av.FFmpegError or OSError where it cannot be had."""
    with _open(camera.url) as container:
        if not container.streams.video:
            raise av.InvalidDataError(0, "it sends no video")
        yield Connection(container, container.streams.video[0], voice)


def _open(url: str) -> InputContainer:
    if is_device(url):
        return av.open(url, format="video4linux2", timeout=(OPEN_S, HEARTBEAT_S))
    return av.open(url, options=_NETWORK_OPTIONS, timeout=(OPEN_S, HEARTBEAT_S))
