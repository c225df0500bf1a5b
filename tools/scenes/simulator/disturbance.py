"""The effects of a bad network on packets: a function of the packets and of a seed.

A disturbance is called with the packets of one picture after another, in order, and returns the packets to send
instead. Each connection starts with the same seed, so that it meets the same losses at the same packets.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from camgraph.tools.scenes.simulator.rtp import RTP_HEADER_BYTES

Disturb = Callable[[list[bytes]], list[bytes]]
Kind = Literal["drop", "reorder", "corrupt"]

_MAX_DELAY = 4
"""Packets by which a reordered one comes too late."""
_MAX_FLIPS = 3


def disturbance(kind: Kind, percent: float, seed: int) -> Disturb:
    """The disturbance of that kind, at its beginning; it meets ``percent`` of 100 packets on average."""
    # A seed that anybody may know is the point here.
    source = random.Random(seed)  # noqa: S311
    if kind == "drop":
        return Drop(percent / 100, source)
    return Reorder(percent / 100, source) if kind == "reorder" else Corrupt(percent / 100, source)


class Drop:
    """Some packets never arrive."""

    def __init__(self, share: float, source: random.Random) -> None:
        self._share = share
        self._source = source

    def __call__(self, packets: list[bytes]) -> list[bytes]:
        return [packet for packet in packets if self._source.random() >= self._share]


class Reorder:
    """Some packets arrive behind one to four of those that were sent later; none is lost while packets come."""

    def __init__(self, share: float, source: random.Random) -> None:
        self._share = share
        self._source = source
        self._held: list[tuple[int, bytes]] = []

    def __call__(self, packets: list[bytes]) -> list[bytes]:
        sent: list[bytes] = []
        for packet in packets:
            if self._source.random() < self._share:
                self._held.append((self._source.randint(1, _MAX_DELAY), packet))
                continue
            sent.append(packet)
            self._held = [(left - 1, held) for left, held in self._held]
            sent += [held for left, held in self._held if left == 0]
            self._held = [(left, held) for left, held in self._held if left]
        return sent


class Corrupt:
    """Some packets arrive with one to three other bytes behind the header of RTP."""

    def __init__(self, share: float, source: random.Random) -> None:
        self._share = share
        self._source = source

    def __call__(self, packets: list[bytes]) -> list[bytes]:
        return [self._spoilt(packet) if self._source.random() < self._share else packet for packet in packets]

    def _spoilt(self, packet: bytes) -> bytes:
        spoilt = bytearray(packet)
        for _ in range(self._source.randint(1, _MAX_FLIPS)):
            spoilt[self._source.randrange(RTP_HEADER_BYTES, len(packet))] ^= self._source.randint(1, 255)
        return bytes(spoilt)
