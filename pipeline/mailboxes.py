"""What has come to a process and is not taken yet: a lane for each edge and camera, taken one camera after the other.

    lanes of a camera --merged by key, or joined by frame--> ready --take--> items

Merges and joins are those of `pipeline.join`. Knows nothing of sockets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from pipeline.errors import WireError
from pipeline.items import Item
from pipeline.join import Join, Matched, merged_in_order, merged_key
from pipeline.lane import Lane, Received
from pipeline.messages import MARKS, Message, Tombstone
from pipeline.metrics import Counters
from pipeline.plan import EdgePlan
from pipeline.wire import types_for


class Mailboxes:
    """All lanes of a process.

    `accepted`: edge name -> the message types of its port. `finish` is called with what gives way to a newer message,
    `refuse` with what belongs together and cannot be believed. `successor`: this process takes the place of one that
    died, and its senders go on behind what that one was done with, as far as each of them had heard.
    """

    def __init__(
        self,
        edges: Sequence[EdgePlan],
        accepted: Mapping[str, Iterable[type[Message]]],
        counters: Counters,
        finish: Callable[[Received], None],
        refuse: Callable[[Sequence[Received], WireError], None],
        *,
        successor: bool = False,
    ) -> None:
        self._edges = list(edges)
        self._types = {name: types_for([*types, *MARKS]) for name, types in accepted.items()}
        self._counters = counters
        self._finish = finish
        self._refuse = refuse
        self._successor = successor
        self._ports = tuple(edge.port for edge in edges if edge.port)
        self._in_order = merged_in_order(edges)
        self._blocking = all(edge.policy == "block" for edge in edges)
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._camera_lanes: dict[str, list[Lane]] = {}
        self._joins: dict[str, Join[Received]] = {}
        self._turn: deque[str] = deque()
        self._ready: dict[str, deque[Item]] = {}

    @property
    def lanes(self) -> Iterable[Lane]:
        """All that something has come on."""
        return self._lanes.values()

    def lane(self, edge_name: str, camera: str) -> Lane:
        """The lane of an edge and camera, made when it is first needed."""
        lane = self._lanes.get((edge_name, camera))
        if lane is None:
            edge = next(edge for edge in self._edges if edge.name == edge_name)
            lane = self._lanes[edge_name, camera] = Lane(edge, camera, self._types[edge_name])
            self._camera_lanes.setdefault(camera, []).append(lane)
            if camera not in self._ready:
                self._begin(camera)
        return lane

    def _begin(self, camera: str) -> None:
        self._ready[camera] = deque()
        self._turn.append(camera)
        if self._ports:
            self._joins[camera] = Join(self._ports, lambda r: r.is_end, lambda r: r.is_tombstone)

    def put(self, received: Received) -> None:
        """A message that is new on its lane; on an edge that drops, another one may have to go."""
        lane = received.lane
        lane.put(received)
        victim = lane.overflow()
        if victim:
            self._counters.add(lane.edge.overflow, lane.camera)
            self._finish(victim)

    def waiting(self) -> int:
        """Messages not yet taken."""
        return sum(len(lane.mailbox) for lane in self._lanes.values()) + sum(len(join) for join in self._joins.values())

    # ---- taking

    def take(self, most: int, room: Callable[[str], int]) -> list[Item]:
        """Up to `most` items, one camera after the other; of each camera at most `room(camera)`.

        A mark is handed out alone, and so is what processes have died with.
        """
        items: list[Item] = []
        taken: dict[str, int] = {}
        idle = 0
        while len(items) < most and idle < len(self._turn):
            camera = self._turn[0]
            has_room = room(camera) > taken.get(camera, 0)
            item = self._next(camera, first=not items) if has_room else None
            self._turn.rotate(-1)
            if item is None:
                idle += 1
                continue
            idle = 0
            items.append(item)
            taken[camera] = taken.get(camera, 0) + 1
            if item.is_mark or item.suspect:
                break
        return items

    def _next(self, camera: str, *, first: bool) -> Item | None:
        ready = self._ready[camera]
        if not ready and self._ports:
            self._join_all(camera)
        while not ready and not self._ports and self._merge_next(camera):
            pass
        if not ready or (not first and (ready[0].is_mark or ready[0].suspect)):
            return None
        return ready.popleft()

    # ---- merging

    def _merge_next(self, camera: str) -> bool:
        """Move the lowest message of a camera's lanes to `ready`; False where it is not known yet which one that is."""
        lanes = [lane for lane in self._camera_lanes[camera] if lane.mailbox]
        if not lanes or (self._in_order and len(lanes) < len(self._edges)):
            return False  # what comes late on the other lane may belong before
        lane = min(lanes, key=lambda lane: (lane.mailbox[0].key, self._edges.index(lane.edge)))
        if lane.mailbox[0].is_end:
            return self._merge_ends(camera, lanes)
        received = lane.mailbox.popleft()
        self._append([received], partial(self._merged, received))
        return True

    def _merged(self, received: Received) -> Item:
        lane = received.lane
        key = merged_key(received.key, lane.edge, self._edges)
        message = received.message()
        known = (received.deaths, received.tries, received.incarnation)
        return Item(lane.camera, key, message, lane.edge.sender, (received,), *known)

    def _merge_ends(self, camera: str, lanes: Sequence[Lane]) -> bool:
        """A camera has ended when all of its lanes have."""
        ends = [lane.mailbox[0] for lane in lanes if lane.mailbox[0].is_end]
        if len(ends) < len(self._edges):
            return False
        for lane in lanes:
            lane.mailbox.popleft()
        self._append(ends, partial(self._ended, camera, ends))
        return True

    def _ended(self, camera: str, ends: Sequence[Received]) -> Item:
        return Item(camera, ends[0].key, ends[0].message(), "", tuple(ends))

    # ---- joining

    def _join_all(self, camera: str) -> None:
        """Feed the join with what has come, and move what comes out of it to `ready`."""
        join = self._joins[camera]
        for lane in self._camera_lanes[camera]:
            while lane.mailbox:
                received = lane.mailbox.popleft()
                join.push(lane.edge.port, received.key, received)
        for matched in join.matched():
            self._append(list(matched.row.values()), partial(self._joined, camera, matched))

    def _joined(self, camera: str, matched: Matched[Received]) -> Item:
        row = tuple(matched.row.values())
        if matched.kind == "end":
            return self._ended(camera, row)
        if matched.kind == "joined":
            payload = {port: received.message() for port, received in matched.row.items()}
            deaths, tries = max(received.deaths for received in row), max(received.tries for received in row)
            return Item(camera, matched.key, payload, "", row, deaths, tries)
        stamp = matched.first.header.stamp
        if matched.kind == "unpaired":
            if self._was_done(camera, matched):
                self._counters.add("repeated", camera)
                return Item(camera, matched.key, Tombstone(stamp), "", row)
            # On edges that drop, the partner has been counted where it was dropped.
            self._counters.add("dropped.unpaired" if self._blocking else "skipped.unpaired", camera)
        return Item(camera, matched.key, matched.tombstone(stamp), "", row)

    def _was_done(self, camera: str, matched: Matched[Received]) -> bool:
        """True where a partner is missing because its sender had heard that the row was done; others had not yet."""
        missing = [lane for lane in self._camera_lanes[camera] if lane.edge.port not in matched.row]
        return self._successor and any(lane.begins_behind(matched.key) for lane in missing)

    def _append(self, row: Sequence[Received], make: Callable[[], Item]) -> None:
        """Put what `make` builds of `row` behind what is ready; what cannot be built is refused."""
        try:
            item = make()
        except WireError as error:
            self._refuse(row, error)
        else:
            self._ready[item.camera].append(item)
