"""Gives the pictures of a bare H.264 or H.265 stream (`.h264`, `.h265`) times, which such a file does not have.

    packet 0 1 2 3   in the order of decoding   -->  decoder  -->  picture 0 2 3 1   in the order of showing

Only the decoder knows which picture a packet becomes: each packet gets a number, and its picture comes out with that.
The n-th picture is shown n intervals of the frame rate after the first one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from fractions import Fraction

from av.container import Container
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

_FORMATS = frozenset({"h264", "hevc"})
_MOST_HELD = 64
"""A packet that has become no picture after so many more never will."""
_AHEAD = 2
"""A packet is decoded so many intervals before its turn of being shown: pictures refer to later ones."""


def has_no_times(container: Container) -> bool:
    """Whether the packets of a file come without times."""
    return container.format.name in _FORMATS


class BareTimes:
    """The packets and pictures of one bare stream, in the time base of that. `rate`: pictures a second."""

    def __init__(self, stream: VideoStream, rate: Fraction) -> None:
        self._ticks = max(1, round(1 / (rate * (stream.time_base or Fraction(1, 1000)))))
        self._held: deque[tuple[int, Packet[VideoStream]]] = deque()
        self._shown: dict[int, int] = {}
        """Number of a packet -> that of its picture."""
        self._packets = self._pictures = 0
        self._last_dts: int | None = None

    def number(self, packet: Packet[VideoStream]) -> None:
        """Note the next packet, which is decoded after this call."""
        packet.pts = self._packets
        self._held.append((self._packets, packet))
        self._packets += 1

    def show(self, picture: VideoFrame) -> None:
        """Give the next picture that the decoder has made its time."""
        if picture.pts is not None:
            self._shown[picture.pts] = self._pictures
        picture.pts = self._pictures * self._ticks
        self._pictures += 1

    def timed(self, *, is_over: bool = False) -> Iterator[Packet[VideoStream]]:
        """The packets whose times are known now, in the order of decoding. `is_over`: no more pictures come."""
        while self._held and (is_over or self._held[0][0] in self._shown or len(self._held) > _MOST_HELD):
            number, packet = self._held.popleft()
            shown = self._shown.pop(number, None)
            if shown is None:
                continue
            dts = (number - _AHEAD) * self._ticks
            if self._last_dts is not None:
                dts = max(dts, self._last_dts + 1)
            packet.pts, packet.dts = shown * self._ticks, dts
            packet.duration = self._ticks
            self._last_dts = dts
            yield packet
