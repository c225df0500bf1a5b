"""The messages for one camera that are not taken yet, on all edges of a process.

    partitions --merged by key----------------------> taken
    partitions --joined by frame, as they come--> ready --> taken

A waiting message may give way to a newer one: on edges that drop, a message stays in its partition until it is taken,
and of the rows of a join only the newest are kept. Merges and joins are those of `pipeline.execution.join`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.execution.join import Join, Matched, merged_in_order, merged_key
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import Tombstone
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import EdgePlan
from camgraph.pipeline.transport.partition import Partition, Received


@dataclass(frozen=True, slots=True)
class Gone:
    """Handles messages that are not handed out. `finish` is called with messages that give way to newer ones, `refuse`
    with rows that cannot be believed.
    """

    counters: Counters
    finish: Callable[[Received], None]
    refuse: Callable[[Sequence[Received], WireError], None]


class Mailbox:
    """The unread messages of one camera. `edges`: all edges that lead here. `successor`: see `Mailboxes`."""

    def __init__(self, camera: str, edges: Sequence[EdgePlan], gone: Gone, *, successor: bool) -> None:
        self.partitions: list[Partition] = []
        self._camera = camera
        self._edges = edges
        self._gone = gone
        self._successor = successor
        self._in_order = merged_in_order(edges)
        self._drops = not any(edge.policy == "block" for edge in edges)
        self._ready: deque[Item] = deque()
        ports = tuple(edge.port for edge in edges if edge.port)
        self._join = Join[Received](ports, lambda r: r.is_end, lambda r: r.is_tombstone) if ports else None

    def put(self, received: Received) -> None:
        """A message that is new on its partition; on edges that drop, another one may have to go."""
        partition = received.partition
        partition.put(received)
        if self._join is not None:
            self._join_all(self._join)
            return
        victim = partition.remove_overflow()
        if victim:
            self._drop(partition.edge, [victim])

    def match(self) -> None:
        """A sender has reported which messages are done: messages that waited for those need not wait."""
        if self._join is not None:
            self._join_all(self._join)

    def provisional(self) -> Key | None:
        """The provisional watermark of all partitions, if each has one."""
        return self._lowest((partition, partition.watermark.provisional) for partition in self.partitions)

    def final(self) -> Key | None:
        """The final watermark of all partitions, if each has one and all that comes up to it has been taken."""
        if self.waiting or not all(partition.has_all_again for partition in self.partitions):
            return None
        return self._lowest((partition, partition.watermark.final) for partition in self.partitions)

    def _lowest(self, reported: Iterable[tuple[Partition, Key | None]]) -> Key | None:
        """The lowest report of the senders on all edges; None if one has not reported."""
        known = [merged_key(key, partition.edge, self._edges) for partition, key in reported if key]
        return min(known) if len(known) == len(self._edges) else None

    def _drop(self, edge: EdgePlan, row: Sequence[Received]) -> None:
        self._gone.counters.add(edge.drop_counter, self._camera)
        for received in row:
            self._gone.finish(received)

    # ---- taking

    @property
    def waiting(self) -> int:
        """Messages not yet taken, alone or in rows."""
        known = sum(len(partition.unread) for partition in self.partitions) + sum(
            len(item.received) for item in self._ready
        )
        return known + (len(self._join) if self._join is not None else 0)

    @property
    def empty(self) -> bool:
        """True if there is nothing to take."""
        if not self._ready:
            self._make_ready()
        if self._ready:
            return False
        partition = None if self._join is not None else self._next_partition()
        return partition is None or partition.unread[0].is_end

    def __len__(self) -> int:
        """How many items can be taken. Of a merge only the first is sure: the others may have to wait."""
        return 0 if self.empty else len(self._ready) + sum(len(partition.unread) for partition in self.partitions)

    @property
    def alone(self) -> bool:
        """True if the next item must be handed out alone: a mark, or a message that processes have died with."""
        if not self._ready:
            self._make_ready()
        return bool(self._ready) and (self._ready[0].is_mark or self._ready[0].possible_poison)

    def pop(self) -> Item | None:
        """The next item, None if there is none."""
        while not self._ready and self._merge_next():
            pass
        return self._ready.popleft() if self._ready else None

    def _make_ready(self) -> None:
        """Make the next item `ready`, if nothing newer can take its place."""
        while not self._ready and (partition := self._next_partition()):
            if not (partition.blocking or partition.unread[0].is_mark) or not self._merge(partition):
                return

    # ---- merging

    def _next_partition(self) -> Partition | None:
        """The partition with the lowest message; None if it is not known yet which one that is."""
        if len(self._edges) == 1:
            return self.partitions[0] if self.partitions[0].unread else None
        partitions = [partition for partition in self.partitions if partition.unread]
        if not partitions:
            return None
        lowest = min(partitions, key=lambda partition: (partition.unread[0].key, self._edges.index(partition.edge)))
        if self._in_order and not self._all_others_are_silent(partitions, lowest.unread[0].key):
            return None  # a late message on the other partition may belong before
        return lowest

    def _all_others_are_silent(self, partitions: Collection[Partition], key: Key) -> bool:
        """True if no message comes with a key up to this one except on these partitions."""
        others = [partition for partition in self.partitions if partition not in partitions]
        return len(self.partitions) == len(self._edges) and all(partition.is_silent(key) for partition in others)

    def _merge_next(self) -> bool:
        """Move the lowest message to `ready`, unless it cannot be believed; False if none can be moved yet."""
        partition = self._next_partition()
        return partition is not None and self._merge(partition)

    def _merge(self, partition: Partition) -> bool:
        if partition.unread[0].is_end:
            return self._merge_ends()
        received = partition.unread.popleft()
        try:
            item = self._merged(received)
        except WireError as error:
            self._gone.refuse([received], error)
        else:
            self._ready.append(item)
        return True

    def _merged(self, received: Received) -> Item:
        edge = received.partition.edge
        key = merged_key(received.key, edge, self._edges) if self._in_order else received.key
        known = (received.deaths, received.tries, received.incarnation)
        return Item(self._camera, key, received.message(), edge.sender, (received,), *known)

    def _merge_ends(self) -> bool:
        """A camera has ended when all of its partitions have."""
        ended = [partition for partition in self.partitions if partition.unread and partition.unread[0].is_end]
        if not self._all_others_are_silent(ended, ended[0].unread[0].key):
            return False
        ends = [partition.unread.popleft() for partition in ended]
        self._append(ends, partial(self._ended, ends))
        return True

    def _ended(self, ends: Sequence[Received]) -> Item:
        return Item(self._camera, ends[0].key, ends[0].message(), "", tuple(ends))

    # ---- joining

    def _join_all(self, join: Join[Received]) -> None:
        """Feed the join with new messages, and move its rows to `ready`."""
        for partition in self.partitions:
            while partition.unread:
                received = partition.unread.popleft()
                join.push(partition.edge.port, received.key, received)
        for matched in join.matched(self._is_silent):
            self._append(list(matched.row.values()), partial(self._joined, matched))
            if self._drops:
                self._drop_rows()

    def _drop_rows(self) -> None:
        """Of whole rows, keep as many as the least deep edge may hold messages: by default the newest alone."""
        rows = [item for item in self._ready if not item.is_mark]
        if len(rows) > min(edge.depth for edge in self._edges):
            newest_goes = all(edge.policy == "drop_newest" for edge in self._edges)
            victim = rows[-1] if newest_goes else rows[0]
            self._ready.remove(victim)
            self._drop(self._edges[0], [one for one in victim.received if isinstance(one, Received)])

    def _joined(self, matched: Matched[Received]) -> Item:
        row = tuple(matched.row.values())
        if matched.kind == "end":
            return self._ended(row)
        if matched.kind == "joined":
            payload = {port: received.message() for port, received in matched.row.items()}
            deaths, tries = max(received.deaths for received in row), max(received.tries for received in row)
            return Item(self._camera, matched.key, payload, "", row, deaths, tries)
        stamp = matched.first.header.stamp
        if matched.kind == "unpaired":
            if self._was_done(matched):
                self._gone.counters.add("repeated", self._camera)
                return Item(self._camera, matched.key, Tombstone(stamp), "", row)
            # On an edge that drops, the partner was counted when it was dropped.
            blocking = all(edge.policy == "block" for edge in self._edges)
            self._gone.counters.add("dropped.unpaired" if blocking else "skipped.unpaired", self._camera)
        return Item(self._camera, matched.key, matched.tombstone(stamp), "", row)

    def _was_done(self, matched: Matched[Received]) -> bool:
        """True if a partner is missing because its sender knew that the row was done; others did not know yet."""
        missing = [partition for partition in self.partitions if partition.edge.port not in matched.row]
        return self._successor and any(partition.was_done(matched.key) for partition in missing)

    def _is_silent(self, port: str, key: Key) -> bool:
        return any(partition.is_silent(key) for partition in self.partitions if partition.edge.port == port)

    def _append(self, row: Sequence[Received], make: Callable[[], Item]) -> None:
        """Put the item that `make` builds of `row` behind the ready ones; if it cannot be built, the row is refused."""
        try:
            item = make()
        except WireError as error:
            self._gone.refuse(row, error)
        else:
            self._ready.append(item)
