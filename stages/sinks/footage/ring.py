"""The last packets of one camera, from keyframe to keyframe, bounded in seconds and in bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from camgraph.stages.video.packets import Packet, VideoStreamInfo


@dataclass(slots=True)
class _Group:
    """A keyframe and the packets up to the next one."""

    packets: list[Packet] = field(default_factory=list)
    bytes: int = 0

    @property
    def first_pts(self) -> int:
        return self.packets[0].pts


class Ring:
    """Keeps `seconds` of one stream, and at most `most_bytes`; the oldest groups of pictures go first.

    A camera that sends no second keyframe within these bytes is begun anew with the next one.
    Packets of another stream (a new connection, other settings of the camera) begin anew: no clip has two of them.
    """

    def __init__(self, seconds: float, most_bytes: int) -> None:
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._groups: deque[_Group] = deque()
        self.bytes = 0

    @property
    def stream(self) -> VideoStreamInfo | None:
        """The stream of the packets in it."""
        return self._groups[-1].packets[0].stream if self._groups else None

    @property
    def newest(self) -> Packet | None:
        """The packet that came last."""
        return self._groups[-1].packets[-1] if self._groups else None

    def add(self, packet: Packet) -> None:
        """Keep the next packet; one that cannot be decoded, because no keyframe came before it, is left out."""
        newest = self.newest
        if newest is not None and (packet.stream != newest.stream or packet.dts < newest.dts):
            self.clear()
        if packet.is_key:
            self._groups.append(_Group())
        elif not self._groups:
            return
        group = self._groups[-1]
        group.packets.append(packet)
        group.bytes += len(packet.data)
        self.bytes += len(packet.data)
        self._trim(packet)

    def _trim(self, newest: Packet) -> None:
        oldest_pts = newest.pts - int(self._seconds / newest.stream.time_base)
        while len(self._groups) > 1 and (self._groups[1].first_pts <= oldest_pts or self.bytes > self._most_bytes):
            self.bytes -= self._groups.popleft().bytes
        if self.bytes > self._most_bytes:
            self.clear()

    def clear(self) -> None:
        """Forget all packets."""
        self._groups.clear()
        self.bytes = 0

    def since(self, epoch: int, pts: int) -> Sequence[Packet]:
        """All packets from the keyframe at or before this moment on; from the oldest one if that is gone."""
        if self.stream is None or self.stream.epoch != epoch:
            return ()
        groups = list(self._groups)
        first = max((n for n, group in enumerate(groups) if group.first_pts <= pts), default=0)
        return [packet for group in groups[first:] for packet in group.packets]

    def behind(self, dts: int) -> Iterator[Packet]:
        """The packets of the present stream that are decoded after this time, in order."""
        groups = list(self._groups)
        first = max((n for n, group in enumerate(groups) if group.packets[0].dts <= dts), default=0)
        return (packet for group in groups[first:] for packet in group.packets if packet.dts > dts)

    def up_to(self, epoch: int, pts: int) -> Sequence[Packet]:
        """The packets that decode to the picture of this moment, which is that of the last of them.

        None if it is gone, or has not come yet. A picture that stands behind a keyframe and is shown before it also
        needs the group before.
        """
        if self.stream is None or self.stream.epoch != epoch:
            return ()
        groups = list(self._groups)
        for n in reversed(range(len(groups))):
            packets = groups[n].packets
            found = next((at for at, packet in enumerate(packets) if packet.pts == pts), None)
            if found is not None:
                before = groups[n - 1].packets if n and packets[0].pts > pts else []
                return [*before, *packets[: found + 1]]
        return ()

    def newest_key(self) -> Sequence[Packet]:
        """The newest keyframe, alone: the newest picture that can be decoded by itself."""
        return self._groups[-1].packets[:1] if self._groups else ()
