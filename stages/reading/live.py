"""Live cameras: one connection at a time, noticed when it drops.

Measured: a server that dies raises nothing, the packets just end; one that freezes raises ExitError when the read
time-out passes, after which the same container can be read on. So a short time-out is the heartbeat in which
the stop is looked at. A container is never touched by two threads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import av
from av.container import InputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from pipeline.stage import Stop
from stages.reading.addresses import is_device
from stages.reading.opening import Signs, new_clock
from stages.reading.timeline import MediaClock

# Connecting and finding out what comes each have so long: together less than `hang_s` is by default.
OPEN_S = 4.5
HEARTBEAT_S = 0.5
STALL_S = 10.0
FIRST_BACKOFF_S = 0.5
LAST_BACKOFF_S = 10.0

_NETWORK_OPTIONS = {"rtsp_transport": "tcp", "probesize": "200000", "analyzeduration": "500000"}


def arrivals(url: str, stop: Stop, signs: Signs) -> Iterator[tuple[VideoFrame, MediaClock]]:
    """The frames of one connection, each with that connection's clock; ends when it drops or the stop comes.

    Raises av.FFmpegError or OSError where the camera cannot be reached or sends what cannot be read.
    """
    with _open(url) as container:
        if not container.streams.video:
            raise av.InvalidDataError(0, "it sends no video")
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        clock = new_clock(stream)
        for packet in _packets(container, stream, stop, signs):
            try:
                frames = packet.decode()
            except av.FFmpegError:
                signs.damaged()
                continue
            for frame in frames:
                yield frame, clock


def _packets(container: InputContainer, stream: VideoStream, stop: Stop, signs: Signs) -> Iterator[Packet[VideoStream]]:
    """From the first keyframe on; ends when the stream ends, stalls, or the stop comes."""
    started, last = False, time.monotonic()
    while not stop.is_set() and time.monotonic() - last < STALL_S:
        signs.alive()
        try:
            for packet in container.demux(stream):
                signs.alive()
                if packet.size == 0 or stop.is_set():
                    return
                last = time.monotonic()
                started = started or packet.is_keyframe
                if started:
                    yield packet
        except av.ExitError:
            continue
        return


def _open(url: str) -> InputContainer:
    if is_device(url):
        return av.open(url, format="video4linux2", timeout=(OPEN_S, HEARTBEAT_S))
    return av.open(url, options=_NETWORK_OPTIONS, timeout=(OPEN_S, HEARTBEAT_S))


def next_backoff_s(backoff_s: float) -> float:
    """Twice as long as before, up to a limit."""
    return min(backoff_s * 2, LAST_BACKOFF_S)


def why(error: Exception) -> str:
    """What went wrong, without the address: FFmpeg's own text holds the password."""
    return getattr(error, "strerror", None) or type(error).__name__
