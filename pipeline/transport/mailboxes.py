"""The messages that a process has not taken yet: a mailbox for each camera, with a partition for each edge.

    mailboxes --those that are due (`Shares`)--> items of a batch

Knows nothing of sockets.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import MARKS, Message
from camgraph.pipeline.plan import EdgePlan
from camgraph.pipeline.transport.mailbox import Gone, Mailbox
from camgraph.pipeline.transport.partition import Partition, Received
from camgraph.pipeline.transport.protocol import Watermark
from camgraph.pipeline.transport.wire import types_for

Room = Callable[[str], int]
"""Camera -> how many of its items may be taken now."""
Rank = tuple[int, int, int]
"""The place of a camera among those that have something, as `Shares` ranks them."""
_ROUND = 720_720
"""The stride of priority 1: divisible by all of 1 to 16."""


class Mailboxes:
    """All mailboxes of a process.

    `accepted`: edge name -> the message types of its port. `gone`: handles messages that are not handed out.
    `window`: how many frames of a camera may be unfinished.
    `priorities`: camera -> its weight, 1 if none is given. `successor`: this process takes the place of a dead one, and
    its senders go on behind the messages that the dead one had finished, as far as each of them knew. `clock`: in
    seconds.
    """

    def __init__(
        self,
        edges: Sequence[EdgePlan],
        accepted: Mapping[str, Iterable[type[Message]]],
        gone: Gone,
        *,
        window: int,
        priorities: Mapping[str, int] | None = None,
        successor: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._edges = {edge.name: edge for edge in edges}
        self._window = window
        self._all_report = all(edge.policy == "block" for edge in edges)
        self._types = {name: types_for([*types, *MARKS]) for name, types in accepted.items()}
        self._gone = gone
        self._successor = successor
        self._clock = clock
        self._shares = Shares(priorities or {})
        self._partitions: dict[tuple[str, str], Partition] = {}
        self._mailboxes: dict[str, Mailbox] = {}
        self._provisional: set[str] = set()
        self._final: set[str] = set()
        """Cameras whose watermarks have risen, until they are taken."""
        self._since: dict[str, float] = {}
        """Camera -> since when it has had something to take, without a break; in the order of that."""

    @property
    def partitions(self) -> Iterable[Partition]:
        """All that something has come on."""
        return self._partitions.values()

    def partition(self, edge_name: str, camera: str) -> Partition:
        """The partition of an edge and camera, made when it is first needed."""
        partition = self._partitions.get((edge_name, camera))
        if partition is None:
            partition = self._partitions[edge_name, camera] = Partition(
                self._edges[edge_name], camera, self._types[edge_name], self._window
            )
            if camera not in self._mailboxes:
                edges = list(self._edges.values())
                self._mailboxes[camera] = Mailbox(camera, edges, self._gone, successor=self._successor)
            self._mailboxes[camera].partitions.append(partition)
        return partition

    def put(self, received: Received) -> None:
        """A message that is new on its partition; on edges that drop, another one may have to go."""
        camera = received.partition.camera
        mailbox = self._mailboxes[camera]
        mailbox.put(received)
        if camera not in self._since and not mailbox.empty:
            self._since[camera] = self._clock()

    def raise_watermark(self, reported: Watermark) -> None:
        """A sender reports messages that are done and do not come: messages that waited for those need not wait."""
        camera = reported.camera
        self.partition(reported.edge, camera).watermark.rise(reported)
        mailbox = self._mailboxes[camera]
        mailbox.match()
        if camera not in self._since and not mailbox.empty:
            self._since[camera] = self._clock()
        # Looked at each turn: not before all senders have reported, and on an edge that drops they never do.
        if self._all_report and mailbox.provisional():
            self._provisional.add(camera)
            self._final.add(camera)

    def take_provisional(self) -> list[tuple[str, Key]]:
        """Cameras with their provisional watermarks; returned again after each new report.

        Take it before any message behind it: the readers of its outputs must know it first.
        """
        if not self._provisional:
            return []
        risen = [(camera, key) for camera in self._provisional if (key := self._mailboxes[camera].provisional())]
        self._provisional.clear()
        return risen

    def take_final(self, has_in_hand: Callable[[str], bool]) -> list[tuple[str, Key]]:
        """Cameras with their final watermarks, once all messages up to these are taken; each is returned once.

        `has_in_hand`: whether an item of a camera was taken whose outputs have not been sent on.
        """
        if not self._final:
            return []
        idle = [camera for camera in self._final if not has_in_hand(camera)]
        risen = [(camera, key) for camera in idle if (key := self._mailboxes[camera].final())]
        self._final.difference_update(camera for camera, _ in risen)
        return risen

    def waiting(self) -> int:
        """Messages not yet taken."""
        return sum(mailbox.waiting for mailbox in self._mailboxes.values())

    def keep_only(self, cameras: Collection[str], priorities: Mapping[str, int]) -> None:
        """Forget all of the other cameras: everything of theirs is done. Those that stay have these weights."""
        self._shares.follow(priorities)
        for camera in [camera for camera in self._mailboxes if camera not in cameras]:
            for partition in self._mailboxes.pop(camera).partitions:
                del self._partitions[partition.edge.name, camera]
            self._since.pop(camera, None)
            self._provisional.discard(camera)
            self._final.discard(camera)
            self._shares.forget(camera)

    # ---- taking

    def since(self, most: int, room: Room) -> float | None:
        """Since when an item waits for the rest of a batch of `most`; None if none has to wait.

        That is so if there is nothing to take, a whole batch, or an item that is handed out alone.
        """
        waiting = [camera for camera in self._since if room(camera) > 0]
        if not waiting or self.has(most, room) or any(self._mailboxes[camera].alone for camera in waiting):
            return None
        return min(self._since[camera] for camera in waiting)

    def has(self, count: int, room: Room) -> bool:
        """Whether so many items can be taken."""
        for camera in self._since:
            count -= max(0, min(room(camera), len(self._mailboxes[camera])))
            if count <= 0:
                return True
        return False

    def take(self, most: int, room: Room) -> list[Item]:
        """Up to `most` items, of each camera at most `room(camera)`; if not all fit, those that are due first.

        A mark is handed out alone, before all others, and so is a message that processes have died with.
        """
        due = []
        for camera in self._since:
            if (left := room(camera)) > 0:
                if self._mailboxes[camera].alone:
                    item = self._pop(camera)
                    return [item] if item else []
                due.append((self._shares.rank(camera), camera, left))
        heapq.heapify(due)
        return self._take_due(most, due)

    def _take_due(self, most: int, due: list[tuple[Rank, str, int]]) -> list[Item]:
        items: list[Item] = []
        while due and len(items) < most:
            _, camera, left = heapq.heappop(due)
            item = self._pop(camera)
            if item is None:
                continue
            items.append(item)
            self._shares.charge(camera)
            if left > 1 and camera in self._since and not self._mailboxes[camera].alone:
                heapq.heappush(due, (self._shares.rank(camera), camera, left - 1))
        return items

    def _pop(self, camera: str) -> Item | None:
        mailbox = self._mailboxes[camera]
        item = mailbox.pop()
        if mailbox.empty:
            self._since.pop(camera, None)
        return item


class Shares:
    """Decides which camera is next if not all can be served: in proportion to their priorities, and none starves.

    Start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996), with frames of equal cost. A camera has a tag, the
    virtual time at which its next item is due; an item moves it on by a stride of 1/priority. The lowest tag is next;
    among equals the higher priority, and then the camera that was served longer ago:

        a, priority 3   0   1/3   2/3   1   4/3 ...
        b, priority 1   0               1                     next: a b a a a b a a a b ...

    The virtual time is the highest tag that was served. A camera that had nothing for a while saves up at most one
    round (a time of 1: as many frames as its priority) of its unused share, which makes up for frames that come out of
    step with the batches. So a camera that needs less than its share gets all it needs, and the others share the rest
    (max-min fair). While two cameras both have items, their served items divided by their priorities differ by at most
    one round and their two strides. Some camera is next as long as any has an item.

    Whole numbers and no clock: the same calls make the same choices. `priorities`: 1 for cameras that are not named.
    """

    def __init__(self, priorities: Mapping[str, int]) -> None:
        self.follow(priorities)
        self._tags: dict[str, int] = {}
        self._served: dict[str, int] = {}
        self._now = 0
        self._count = 0

    def follow(self, priorities: Mapping[str, int]) -> None:
        """From now on these are the priorities."""
        self._strides = {camera: _ROUND // priority for camera, priority in priorities.items()}

    def forget(self, camera: str) -> None:
        """The camera is gone; one that comes under its name is a new one."""
        self._tags.pop(camera, None)
        self._served.pop(camera, None)

    def rank(self, camera: str) -> Rank:
        """Of all that have something, the camera with the lowest rank is next."""
        return self._tag(camera), self._stride(camera), self._served.get(camera, 0)

    def charge(self, camera: str) -> None:
        """One item of this camera was taken."""
        tag = self._tag(camera)
        self._now = max(self._now, tag)
        self._tags[camera] = tag + self._stride(camera)
        self._count += 1
        self._served[camera] = self._count

    def _tag(self, camera: str) -> int:
        return max(self._tags.get(camera, self._now), self._now - _ROUND)

    def _stride(self, camera: str) -> int:
        return self._strides.get(camera, _ROUND)
