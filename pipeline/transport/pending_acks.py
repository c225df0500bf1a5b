"""Pending acknowledgements of a reader to each of its senders.

Knows nothing of sockets: `Receiver` sends the signals that are collected here.

Each signal wakes its sender up, so a signal that nobody waits for is withheld until there is more to send on the same
connection, or until the loop's first turn after 0.1 s. Of each edge and camera, these are:

- The first two acks, because the sender's window has room for other messages. The ack of an end is sent at once.
- All credits, as long as the sender has others. An edge is one deeper than the window, so a sender that makes one
  message of a frame runs out of places in the window first, and gets those by acks. A sender that makes several may run
  out of credits; then they are sent at once.

Edges that drop, events, ports of joins, and edges with a `depth` within the window are always answered at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from camgraph.pipeline.items import Item
from camgraph.pipeline.transport.partition import Partition, Received
from camgraph.pipeline.transport.protocol import Signals

_WITHHELD_S = 0.1
_MOST_ACKS = 2


@dataclass(slots=True)
class _Pending:
    """The pending signals of one connection. `credited`, `acked`: by partition, how many."""

    since_s: float
    credits: dict[int, None] = field(default_factory=dict)
    """Those that no ack implies, in their order."""
    acks: list[int] = field(default_factory=list)
    tried: list[int] = field(default_factory=list)
    credited: dict[Partition, int] = field(default_factory=dict)
    acked: dict[Partition, int] = field(default_factory=dict)
    urgent: bool = False

    def credit(self, partition: Partition, n: int) -> None:
        self.credits[n] = None
        self.count_credit(partition)

    def count_credit(self, partition: Partition) -> None:
        self.credited[partition] = credited = self.credited.get(partition, 0) + 1
        if not partition.withholds or credited + partition.uncredited >= partition.edge.depth:
            self.urgent = True

    def ack(self, partition: Partition, n: int, *, at_once: bool) -> None:
        self.credits.pop(n, None)
        self.acks.append(n)
        self.acked[partition] = acked = self.acked.get(partition, 0) + 1
        if at_once or not partition.withholds or acked > _MOST_ACKS:
            self.urgent = True


class PendingAcks:
    """The signals of one process that are not sent yet, by connection. Nothing is sent on one that is not open.

    `clock`: in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pending: dict[bytes, _Pending] = {}
        self._open: set[bytes] = set()

    def open(self, identity: bytes) -> None:
        """A connection has begun."""
        self._open.add(identity)

    def close(self, identity: bytes) -> None:
        """A connection is over: nobody listens on it any more."""
        self._open.discard(identity)
        self._pending.pop(identity, None)

    def credit(self, item: Item) -> None:
        """The item's memory is no longer read."""
        for received in _received(item):
            if not received.credited:
                received.partition.credit(received)
                for identity, n in received.origins:
                    self._of(identity).credit(received.partition, n)

    def ack(self, item: Item) -> None:
        """All that was made of the item is done."""
        for received in _received(item):
            self.finish(received)

    def finish(self, received: Received) -> None:
        """Ack, which implies the credit: its senders forget it."""
        partition, at_once = received.partition, received.is_end
        partition.unfinished.pop(received.key, None)
        owes_credit = not received.credited
        if owes_credit:
            partition.credit(received)
        for identity, n in received.origins:
            pending = self._of(identity)
            if owes_credit:
                pending.count_credit(partition)
            pending.ack(partition, n, at_once=at_once)

    def trying(self, item: Item) -> None:
        """The item is processed alone: if this process dies of it, its senders must know."""
        for received in _received(item):
            for identity, n in received.origins:
                self._tried(identity, n)

    def survived(self, item: Item) -> None:
        """This process did not die of the item."""
        for received in _received(item):
            for identity, _ in received.origins:
                self._tried(identity, 0)

    def _tried(self, identity: bytes, n: int) -> None:
        pending = self._of(identity)
        pending.tried.append(n)
        pending.urgent = True

    def credit_number(self, identity: bytes, n: int) -> None:
        """The message with this number on this connection is not read."""
        pending = self._of(identity)
        pending.credits[n] = None
        pending.urgent = True

    def ack_number(self, identity: bytes, n: int) -> None:
        """The message with this number on this connection is not read, and done."""
        pending = self._of(identity)
        pending.acks.append(n)
        pending.urgent = True

    def _of(self, identity: bytes) -> _Pending:
        """The next signals for this connection."""
        pending = self._pending.get(identity)
        if pending is None:
            pending = _Pending(self._clock())
            if identity in self._open:
                self._pending[identity] = pending
        return pending

    def take(self) -> Iterator[tuple[bytes, Signals]]:
        """The signals to send now, by connection; each is returned once."""
        if not self._pending:
            return
        over_s = self._clock() - _WITHHELD_S
        for identity, pending in list(self._pending.items()):
            if pending.urgent or pending.since_s <= over_s:
                del self._pending[identity]
                yield identity, Signals(list(pending.credits), pending.acks, pending.tried)


def _received(item: Item) -> Sequence[Received]:
    """The messages that an item was made of: all of them came through the `Receiver`."""
    return cast(Sequence[Received], item.received)
