"""What a connection hands out."""

from __future__ import annotations

from typing import NamedTuple

from av.packet import Packet
from av.video.stream import VideoStream


class Arrival(NamedTuple):
    """A packet, and when it came: `arrived_ns` by CLOCK_MONOTONIC, `wall_ns` UTC since 1970, both by this machine."""

    packet: Packet[VideoStream]
    arrived_ns: int
    wall_ns: int
