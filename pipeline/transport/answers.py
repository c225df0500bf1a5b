"""What a reader is about to say to each of its senders of the messages that it got from them.

Knows nothing of sockets: `Inlet` sends what has come together here.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.items import Item
from pipeline.transport.lane import Received
from pipeline.transport.protocol import Signals


class Answers:
    """The signals of one process that are not sent yet, by connection. Nothing is said on one that is not open."""

    def __init__(self) -> None:
        self._signals: dict[bytes, Signals] = {}

    def open(self, identity: bytes) -> None:
        """A connection has begun."""
        self._signals[identity] = Signals([], [], [])

    def close(self, identity: bytes) -> None:
        """A connection is over: nobody hears on it any more."""
        self._signals.pop(identity, None)

    def free(self, item: Item) -> None:
        """The item's memory is no longer read."""
        for received in _received(item):
            if not received.freed:
                received.freed = True
                for identity, n in received.origins:
                    self.say(identity, n, free=True)

    def done(self, item: Item) -> None:
        """All that was made of the item is done."""
        for received in _received(item):
            self.finish(received)

    def finish(self, received: Received) -> None:
        """Free and done in one: its senders forget it."""
        received.lane.unfinished.pop(received.key, None)
        for identity, n in received.origins:
            self.say(identity, n, free=not received.freed, done=True)
        received.freed = True

    def trying(self, item: Item) -> None:
        """The item is processed alone: should this process die of it, its senders are to know."""
        for received in _received(item):
            for identity, n in received.origins:
                self.say(identity, n, tried=True)

    def survived(self, item: Item) -> None:
        """This process did not die of the item."""
        for received in _received(item):
            for identity, _ in received.origins:
                self.say(identity, 0, tried=True)

    def say(self, identity: bytes, n: int, *, free: bool = False, done: bool = False, tried: bool = False) -> None:
        """Of the message with this number on this connection."""
        signals = self._signals.get(identity)
        if signals is not None:
            for wanted, numbers in zip((free, done, tried), signals, strict=True):
                if wanted:
                    numbers.append(n)

    def take(self) -> Iterator[tuple[bytes, Signals]]:
        """What has come together, by connection; it is not given again."""
        for identity, signals in self._signals.items():
            if any(signals):
                self._signals[identity] = Signals([], [], [])
                yield identity, signals


def _received(item: Item) -> list[Received]:
    """The messages that an item was made of, as this side knows them."""
    return [received for received in item.received if isinstance(received, Received)]
