"""A camera's actions as numbers, for tests to compare with a client's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CameraCounts:
    """Since the start of the simulator, all clients together; ``clients`` and ``open_connections`` are those of now."""

    connections: int = 0
    open_connections: int = 0
    requests: int = 0
    plays: int = 0
    clients: int = 0
    packets: int = 0
    octets: int = 0
    frames: int = 0
    boots: int = 0


@dataclass(frozen=True, slots=True)
class FrameSent:
    """One picture that went to ``clients`` clients.

    ``place`` is its index in the clip in the order of decoding. ``caught_ns`` (when the camera would have caught its
    light) and ``sent_ns`` (when it was handed to the kernel) are on the machine's monotonic clock, ``wall_ns`` is
    ``caught_ns`` on the clock that the sender reports give, right or wrong, in nanoseconds since 1970.
    """

    place: int
    keyframe: bool
    caught_ns: int
    sent_ns: int
    wall_ns: int
    clients: int
