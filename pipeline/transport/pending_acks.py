"""Pending acknowledgements of a reader to each of its senders.

Knows nothing of sockets: `Receiver` sends the signals that are collected here.

Each signal wakes its sender up, so a signal that nobody waits for is withheld until there is more to send on the same
connection: of each partition that loses nothing the first `Lane.may_withhold` credits, because the sender has others,
and the first message that is done, because the window has room for others. A signal that has been withheld for 0.1 s is
sent with the loop's next turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pipeline.items import Item
from pipeline.transport.partition import Partition, Received
from pipeline.transport.protocol import Signals

_WITHHELD_S = 0.1


@dataclass(slots=True)
class _Unsaid:
    """The pending signals of one connection. `frees`, `dones`: by partition, how many."""

    since_s: float
    signals: Signals = field(default_factory=lambda: Signals([], [], []))
    frees: dict[Partition, int] = field(default_factory=dict)
    dones: set[Partition] = field(default_factory=set)
    urgent: bool = False

    def free(self, partition: Partition, n: int) -> None:
        self.signals.freed.append(n)
        self.frees[partition] = frees = self.frees.get(partition, 0) + 1
        if frees > partition.may_withhold:
            self.urgent = True

    def done(self, partition: Partition, n: int, *, at_once: bool) -> None:
        self.signals.done.append(n)
        if at_once or partition in self.dones or not partition.may_withhold:
            self.urgent = True
        self.dones.add(partition)


class PendingAcks:
    """The signals of one process that are not sent yet, by connection. Nothing is said on one that is not open.

    `clock`: in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unsaid: dict[bytes, _Unsaid] = {}
        self._open: set[bytes] = set()

    def open(self, identity: bytes) -> None:
        """A connection has begun."""
        self._open.add(identity)

    def close(self, identity: bytes) -> None:
        """A connection is over: nobody listens on it any more."""
        self._open.discard(identity)
        self._unsaid.pop(identity, None)

    def free(self, item: Item) -> None:
        """The item's memory is no longer read."""
        for received in _received(item):
            if not received.freed:
                received.freed = True
                for identity, n in received.origins:
                    self._of(identity).free(received.partition, n)

    def done(self, item: Item) -> None:
        """All that was made of the item is done."""
        for received in _received(item):
            self.finish(received)

    def finish(self, received: Received) -> None:
        """Free and done in one: its senders forget it."""
        partition, at_once = received.partition, received.is_end
        partition.unfinished.pop(received.key, None)
        for identity, n in received.origins:
            unsaid = self._of(identity)
            if not received.freed:
                unsaid.free(partition, n)
            unsaid.done(partition, n, at_once=at_once)
        received.freed = True

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
        unsaid = self._of(identity)
        unsaid.signals.tried.append(n)
        unsaid.urgent = True

    def freed(self, identity: bytes, n: int) -> None:
        """The message with this number on this connection is not read."""
        unsaid = self._of(identity)
        unsaid.signals.freed.append(n)
        unsaid.urgent = True

    def finished(self, identity: bytes, n: int) -> None:
        """The message with this number on this connection is free and done."""
        self.freed(identity, n)
        self._of(identity).signals.done.append(n)

    def _of(self, identity: bytes) -> _Unsaid:
        """The next signals for this connection."""
        unsaid = self._unsaid.get(identity)
        if unsaid is None:
            unsaid = _Unsaid(self._clock())
            if identity in self._open:
                self._unsaid[identity] = unsaid
        return unsaid

    def take(self) -> Iterator[tuple[bytes, Signals]]:
        """The signals to send now, by connection; each is returned once."""
        if not self._unsaid:
            return
        over_s = self._clock() - _WITHHELD_S
        for identity, unsaid in list(self._unsaid.items()):
            if unsaid.urgent or unsaid.since_s <= over_s:
                del self._unsaid[identity]
                yield identity, unsaid.signals


def _received(item: Item) -> list[Received]:
    """The messages that an item was made of, as this side knows them."""
    return [received for received in item.received if isinstance(received, Received)]
