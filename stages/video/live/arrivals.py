"""The pictures that a connection hands out."""

from __future__ import annotations

import struct
from typing import NamedTuple

from av.packet import Packet
from av.video.stream import VideoStream

_PRODUCER_TIME = struct.Struct("=q")
"""Microseconds since 1970 stand first in the side data `prft` (producer reference time)."""


class Arrival(NamedTuple):
    """A packet, and when it came: `arrived_ns` by CLOCK_MONOTONIC, `wall_ns` UTC since 1970, both by this machine."""

    packet: Packet[VideoStream]
    arrived_ns: int
    wall_ns: int


def reported_ns(packet: Packet[VideoStream]) -> int | None:
    """When the camera caught the picture, by its own clock in nanoseconds since 1970; None before its first report."""
    if not packet.has_sidedata("prft"):
        return None
    return int(_PRODUCER_TIME.unpack_from(bytes(packet.get_sidedata("prft")))[0]) * 1000
