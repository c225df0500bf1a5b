"""Brings together the messages of several edges of a camera for one stage: joined by key, or merged into one order.

A join has one partition a port, each in order:

    frames   7  8  9  10            all partitions have 7        -> (7, 7)
    tracks   7     9                8 has no partner        -> dropped, `unpaired`
                                    9                       -> (9, 9); 10 waits, unless tracks is silent up to it

A tombstone counts as the partner that says "nothing": the others of its key are dropped as `empty`. The end of a camera
comes out when every partition has it at its head.

A merge takes the lowest key first, and the key says on which edge a message came: no two of them are the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from camgraph.pipeline.items import Key
from camgraph.pipeline.messages import Event, Stamp, Tombstone
from camgraph.pipeline.plan import EdgePlan

T = TypeVar("T")
IsSilent = Callable[[str, Key], bool]
"""Whether nothing more comes on the partition of this port with a key up to this one."""


class Matched(NamedTuple, Generic[T]):
    """A row: `kind` says whether it is a full one, or one to be passed over."""

    kind: Literal["joined", "empty", "unpaired", "end"]
    key: Key
    row: dict[str, T]

    @property
    def first(self) -> T:
        """One of the row: all of them are of the same frame."""
        return next(iter(self.row.values()))

    def tombstone(self, stamp: Stamp) -> Tombstone:
        """The tombstone of a row that is passed over; `stamp` is that of its frame."""
        return Tombstone(stamp, "unpaired" if self.kind == "unpaired" else "")


class Join(Generic[T]):
    """The join of one camera. `is_end` and `is_tombstone` tell marks from content."""

    def __init__(self, ports: Sequence[str], is_end: Callable[[T], bool], is_tombstone: Callable[[T], bool]) -> None:
        self._partitions: dict[str, deque[tuple[Key, T]]] = {port: deque() for port in ports}
        self._is_end = is_end
        self._is_tombstone = is_tombstone

    def push(self, port: str, key: Key, value: T) -> None:
        """Put the next message of a partition behind the others."""
        self._partitions[port].append((key, value))

    def __len__(self) -> int:
        return sum(len(partition) for partition in self._partitions.values())

    def matched(self, is_silent: IsSilent = lambda port, key: False) -> Iterator[Matched[T]]:
        """All rows that are sure by now, in order. An empty partition is waited for, unless it `is_silent`."""
        while waiting := [partition[0][0] for partition in self._partitions.values() if partition]:
            low = min(waiting)
            silent = [port for port, partition in self._partitions.items() if not partition]
            if not all(is_silent(port, low) for port in silent):
                return
            row = {
                port: partition.popleft()[1]
                for port, partition in self._partitions.items()
                if partition and partition[0][0] == low
            }
            yield Matched(self._kind(row, len(silent)), low, row)

    def _kind(self, row: dict[str, T], silent: int) -> Literal["joined", "empty", "unpaired", "end"]:
        if len(row) + silent == len(self._partitions) and any(self._is_end(value) for value in row.values()):
            return "end"
        if len(row) < len(self._partitions):
            return "unpaired"
        return "empty" if any(self._is_tombstone(value) for value in row.values()) else "joined"


def merged_in_order(edges: Sequence[EdgePlan]) -> bool:
    """Whether a reader takes the messages of `edges`, all that lead to it, in the order of the frames.

    Ports are joined instead. Events are merged as they come: the outbox puts them into order.
    """
    return len(edges) > 1 and not any(edge.port or edge.type == Event.TYPE for edge in edges)


def merged_key(key: Key, edge: EdgePlan, edges: Sequence[EdgePlan]) -> Key:
    """The key behind the merge of a message that came on `edge`, one of all the `edges` that lead to its reader."""
    return key.merged(edges.index(edge), len(edges)) if merged_in_order(edges) else key
