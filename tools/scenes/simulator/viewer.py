"""One client that plays: its sequence numbers and time stamps, and the effects of its camera's faults on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from camgraph.tools.scenes.simulator.carriers import Carrier
from camgraph.tools.scenes.simulator.disturbance import Disturb, Kind, disturbance
from camgraph.tools.scenes.simulator.faults import Fault, FaultName
from camgraph.tools.scenes.simulator.rtp import RTP_HEADER_BYTES, STAMP_MASK, rtp_packets, sender_report
from camgraph.tools.scenes.simulator.timeline import SECOND_NS, Due, ticks_of

Faults = Mapping[FaultName, Fault]

_ENDING: tuple[FaultName, ...] = ("stall", "cut", "half_open")
_DISTURBING: tuple[Kind, ...] = ("corrupt", "drop", "reorder")


class Line(Protocol):
    """The connection of a viewer, as far as faults end it."""

    def cut(self, how: str) -> None:
        """End it: `fin` in order, `rst` with a reset."""
        ...

    def abandon(self) -> None:
        """Forget it without closing it."""
        ...


@dataclass(frozen=True, slots=True)
class Identity:
    """The first numbers of a viewer."""

    ssrc: int
    sequence: int
    stamp: int


class Viewer:
    """Sends pictures to one client, from a keyframe on."""

    def __init__(self, carrier: Carrier, line: Line, identity: Identity, report_s: float) -> None:
        self.packets = 0
        self.frames = 0
        self.octets = 0
        self._carrier = carrier
        self._line = line
        self.identity = identity
        self._sequence = identity.sequence
        self._report_ns = round(report_s * SECOND_NS)
        self._next_report_ns = 0
        self._origin_ns: int | None = None
        self._shift = 0
        self._jumped: Fault | None = None
        self._held_stamp: int | None = None
        self._waits_for_key = True
        self._disturbances: dict[Fault, Disturb] = {}

    def send(self, due: Due, faults: Faults, wall_ns: int) -> bool:
        """Send a picture as far as the faults let it pass; whether any of it was sent.

        ``wall_ns`` is the time of day on the camera's clock when the picture is due.
        """
        if not self._takes(due):
            return False
        ending = self._ending(faults)
        left = min((fault.packets_left(self.packets, self.frames) for fault in ending), default=float("inf"))
        if left:
            self._send(due, faults, wall_ns, left)
        for fault in ending:
            if not fault.packets_left(self.packets, self.frames):
                self._end(fault)
        return left > 0

    def jump(self, seconds: float) -> None:
        """Let the time stamps jump from the next picture on."""
        self._shift += ticks_of(round(seconds * SECOND_NS))

    def close(self) -> None:
        """Free the way to the client."""
        self._carrier.close()

    def _takes(self, due: Due) -> bool:
        """Clients begin at a keyframe, and begin again at one after something was withheld from them."""
        if self._carrier.congested:
            self._waits_for_key = True
        if self._waits_for_key and not due.frame.keyframe:
            return False
        return not self._carrier.congested

    def _ending(self, faults: Faults) -> list[Fault]:
        return [faults[name] for name in _ENDING if name in faults]

    def _end(self, fault: Fault) -> None:
        self._waits_for_key = True
        if fault.name == "cut":
            self._line.cut(fault.value)
        elif fault.name == "half_open":
            self._line.abandon()

    def _send(self, due: Due, faults: Faults, wall_ns: int, left: float) -> None:
        self._waits_for_key = False
        if self._origin_ns is None:
            self._origin_ns = due.caught_ns
        self._jump_in_time(self._struck("jump", faults))
        self._report(due, wall_ns)
        stamp = self._stamp(due.caught_ns, self._struck("timestamps", faults))
        packets = rtp_packets(due.frame.payloads, self._sequence, stamp, self.identity.ssrc)
        self._sequence += len(packets)
        sent = packets if left >= len(packets) else packets[: int(left)]
        self._carrier.send(self._disturbed(sent, faults))
        self.packets += len(sent)
        self.octets += sum(map(len, sent)) - RTP_HEADER_BYTES * len(sent)
        self.frames += len(sent) == len(packets)

    def _struck(self, name: FaultName, faults: Faults) -> Fault | None:
        """The fault of that name, if there is one and it waits for nothing more."""
        fault = faults.get(name)
        return None if fault is None or fault.packets_left(self.packets, self.frames) else fault

    def _jump_in_time(self, fault: Fault | None) -> None:
        if fault is not None and fault is not self._jumped:
            self._jumped = fault
            self.jump(fault.number)

    def _report(self, due: Due, wall_ns: int) -> None:
        """Report that the media clock and the clock on the wall show these times together, when that is due."""
        if not self._report_ns or due.due_ns < self._next_report_ns:
            return
        self._next_report_ns = max((self._next_report_ns or due.due_ns) + self._report_ns, due.due_ns)
        stamp = self._running_stamp(due.due_ns)
        self._carrier.report(sender_report(self.identity.ssrc, wall_ns, stamp, self.packets, self.octets))

    def _running_stamp(self, at_ns: int) -> int:
        assert self._origin_ns is not None
        return self.identity.stamp + self._shift + ticks_of(at_ns - self._origin_ns) & STAMP_MASK

    def _stamp(self, caught_ns: int, fault: Fault | None) -> int:
        stamp, held = self._running_stamp(caught_ns), self._held_stamp
        if fault is None:
            self._held_stamp = None
            return stamp
        if held is None:
            self._held_stamp = stamp
            return stamp
        if fault.value == "duplicate":
            self._held_stamp = None
        return held

    def _disturbed(self, packets: list[bytes], faults: Faults) -> list[bytes]:
        for name in _DISTURBING:
            fault = self._struck(name, faults)
            if fault is not None and (name == "corrupt" or self._carrier.loses):
                packets = self._disturbance(name, fault)(packets)
        return packets

    def _disturbance(self, name: Kind, fault: Fault) -> Disturb:
        made = self._disturbances.get(fault)
        if made is None:
            made = self._disturbances[fault] = disturbance(name, fault.number, fault.seed)
        return made
