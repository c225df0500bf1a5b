"""One connection to a live camera: opened, read and closed in bounded time.

Measured: a server that dies raises nothing, the packets just end. One that freezes raises ExitError when the read
time-out passes, or gives the picture that FFmpeg's parser had kept, and raises when it has passed again. A read that
timed out is never taken up again, although RTSP allows it: over TCP FFmpeg then has lost its place wherever the pause
fell into a packet. A container is never touched by two threads: `close` in another one crashes the process.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import av
from av.container import InputContainer
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.stage import Stop
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.ffmpeg_log import FfmpegLog
from camgraph.stages.video.live.arrivals import Arrival
from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.clocks import Ticks
from camgraph.stages.video.live.gate.gate import Gate
from camgraph.stages.video.live.gate.web_gate import WebGate
from camgraph.stages.video.live.options import PICTURES, format_of, options_of
from camgraph.stages.video.live.reading_watchdog import ReadingWatchdog
from camgraph.stages.video.live.timeouts import Timeouts, timeouts_of
from camgraph.stages.video.waiting import wait

if TYPE_CHECKING:
    # Generic for type checkers alone.
    Demuxed = Generator[Packet[VideoStream], None, None]

CLOSE_S = 1.0
_MARGIN_S = 1.0
"""The time that FFmpeg may take beyond its own time-outs."""

_MOST_NAME = 40
_PORTIONS = "hls"
"""The format of streams that come in portions of some seconds."""
LONGEST_GAP_S = 1.0
"""Between two pictures. More was left out on the way: waiting for it would let the playlist run away once more."""


class Connection:
    """An open connection; used by the thread that opened it alone."""

    def __init__(
        self, container: InputContainer, timeouts: Timeouts, watchdog: ReadingWatchdog, codec: str = ""
    ) -> None:
        """``codec``: the name of the video's format, if the camera or FFmpeg has said."""
        self._container = container
        self._codec = codec
        self._demuxed: Demuxed | None = None
        self._timeouts = timeouts
        self._watchdog = watchdog
        self._pacer = Pacer() if container.format.name == _PORTIONS else None
        # FFmpeg counts 25 pictures a second, whatever comes.
        self._ticks = Ticks() if container.format.name == PICTURES else None
        if self._ticks:
            for stream in container.streams.video:
                stream.time_base = Ticks.TICK

    @property
    def stream(self) -> VideoStream:
        """The first video of it that can be decoded. Raises Dropped if there is none."""
        videos = self._container.streams.video
        if not videos:
            raise Dropped("it sends no video")
        for stream in videos:
            # PyAV gives no context if its FFmpeg has no decoder.
            if cast("VideoCodecContext | None", stream.codec_context) is not None:
                return stream
        name = f"the format {shown(self._codec, _MOST_NAME)}" if self._codec else "a format"
        raise Dropped(
            f"its video is in {name} that the FFmpeg of this installation cannot decode: choose another codec in the "
            "camera, such as H.264 or H.265"
        )

    def packets(self, stop: Stop) -> Generator[Arrival, None, None]:
        """As they come, until the stop comes.

        Raises Dropped when the stream ends or has been silent for too long, av.FFmpegError when it breaks.
        """
        while (packet := self._next(stop)) is not None:
            if not self._paced(packet, stop):
                arrival = Arrival(packet, time.monotonic_ns(), time.time_ns())
                if self._ticks:
                    packet.time_base = Ticks.TICK
                    packet.pts = packet.dts = self._ticks.at(arrival.arrived_ns)
                yield arrival

    def _next(self, stop: Stop) -> Packet[VideoStream] | None:
        """The next packet; None when the stop came first."""
        if stop.is_set():
            return None
        began = time.monotonic()
        packet = self._read()
        if stop.is_set():
            return None
        took_s = time.monotonic() - began
        if packet is None or took_s > self._timeouts.give_up_s:
            raise Dropped(why_no_packet(took_s, self._timeouts.give_up_s))
        self._watchdog.note_arrival()
        return packet

    def close(self) -> None:
        """Let go of the camera; after `CLOSE_S` its sockets are shut down."""
        # The generator's end takes PyAV's read time-out back: it has expired by now, and no TEARDOWN would be sent.
        if self._demuxed is not None:
            self._demuxed.close()
        with self._watchdog.lease(CLOSE_S, heeds_stop=False):
            self._container.close()

    def _read(self) -> Packet[VideoStream] | None:
        """The next packet; None when the read timed out."""
        if self._demuxed is None:
            self._demuxed = cast("Demuxed", self._container.demux(self.stream))
        with self._watchdog.lease(self._timeouts.give_up_s + _MARGIN_S):
            try:
                packet = next(self._demuxed, None)
            except av.ExitError:
                self._demuxed = None  # a generator that has raised is over
                return None
        if packet is None or packet.size == 0:
            raise Dropped("the stream ended")
        return packet

    def _paced(self, packet: Packet[VideoStream], stop: Stop) -> bool:
        """Keep packets back until their time; True if the stop came meanwhile."""
        if self._pacer is None or packet.dts is None or self.stream.time_base is None:
            return False
        wait_s = self._pacer.wait_s(float(packet.dts * self.stream.time_base), time.monotonic())
        return wait(wait_s, stop, self._watchdog.alive)


def why_no_packet(took_s: float, give_up_s: float) -> str:
    """The verdict on a camera whose read timed out after ``took_s``.

    FFmpeg keeps the time-out of connecting: if it passes in the middle of a packet, the first read ends at once, even
    if data comes.
    """
    if took_s >= give_up_s / 2:
        return f"nothing came for {give_up_s:g} s"
    return "it sends, and not one picture of it was complete within the time to connect (connect_s)"


@contextmanager
def connected(
    camera: Camera, watchdog: ReadingWatchdog, gate: Gate | None = None, log: FfmpegLog | None = None
) -> Iterator[Connection]:
    """A connection to this camera, through its gate. Raises av.FFmpegError, OSError or Dropped if there is none.

    `log`: FFmpeg's, of this thread.
    """
    # FFmpeg has this time to connect, and then as much again to identify the stream.
    with watchdog.lease(2 * camera.connect_s + _MARGIN_S):
        container = _open(camera, gate)
    codec = (gate.codec if gate else "") or (log.codec() if log else "")
    connection = Connection(container, timeouts_of(camera), watchdog, codec)
    watchdog.note_arrival()
    try:
        yield connection
    finally:
        connection.close()


def _open(camera: Camera, gate: Gate | None) -> InputContainer:
    timeout = (camera.connect_s, timeouts_of(camera).give_up_s)
    served = gate.ask() if isinstance(gate, WebGate) else "stream"
    try:
        return av.open(
            gate.url if gate else camera.url,
            format=format_of(camera, served),
            options=options_of(camera, served),
            timeout=timeout,
        )
    except av.ArgumentError:
        # Of a format that is not on the list, nothing else is said.
        raise Dropped("it sends something that is no video or picture of a format that camgraph reads") from None


class Pacer:
    """Spreads packets that come in portions over the time that they show. Pure: times are arguments, in seconds.

    A segment of HLS holds some seconds, and is there at once. Without pacing the newest frame would be one that has
    been waiting for its segment, and the time of arrival would say nothing. If the connection runs dry, pacing starts
    again: late packets are not hurried.
    """

    def __init__(self) -> None:
        self._origin_s: float | None = None
        self._last_s = 0.0

    def wait_s(self, media_s: float, now_s: float) -> float:
        """How long to keep back the packet with this time, 0 if it is due."""
        follows = 0 <= media_s - self._last_s <= LONGEST_GAP_S
        self._last_s = media_s
        if self._origin_s is None or not follows or self._origin_s + media_s < now_s:
            self._origin_s = now_s - media_s
        return max(0.0, self._origin_s + media_s - now_s)
