"""Packets of one connection into the pictures that are wanted of it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Literal, NamedTuple

import av
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from stages.reading.camera import Camera
from stages.reading.live.arrivals import Arrival
from stages.reading.live.voice import Voice
from stages.reading.opening import new_clock
from stages.reading.timeline import Selection


class LivePicture(NamedTuple):
    """A decoded picture. `arrived_ns` is CLOCK_MONOTONIC and never runs backwards; `clock` says whose `wall_ns` is."""

    frame: VideoFrame
    arrived_ns: int
    wall_ns: int
    clock: Literal["wall", "ntp"]
    pts: int | None
    time_base: Fraction


class Decoder:
    """Of one connection: it never outlives it, and is used by the thread that reads it alone."""

    def __init__(self, stream: VideoStream, camera: Camera, voice: Voice) -> None:
        # One thread for each camera: more cost memory and bring nothing where cameras outnumber cores.
        stream.thread_type = "NONE"
        self._voice = voice
        self._clock = new_clock(stream)
        # By the camera's own times, which do not jitter.
        self._selection = Selection(max_fps=camera.max_fps)
        self.refused = 0
        """Packets that the decoder refused since it last gave a picture: where they add up, the codec has changed."""

    def pictures(self, arrival: Arrival) -> Iterator[LivePicture]:
        """Those that are done with this packet and wanted, none where it is refused: that is counted."""
        try:
            frames = arrival.packet.decode()
        except av.FFmpegError:
            self.refused += 1
            self._voice.count("dropped.damaged")
            return
        if frames:
            self.refused = 0
        for frame in frames:
            if self._selection.takes(self._clock.at(frame.pts)):
                base = self._clock.time_base
                yield LivePicture(frame, arrival.arrived_ns, arrival.wall_ns, "wall", frame.pts, base)
