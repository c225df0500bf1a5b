"""What a reader is about to say to each of its senders of the messages that it got from them.

Knows nothing of sockets: `Inlet` sends what has come together here.

Each signal wakes its sender up, and most messages are done soon after they are free. So one credit of each lane that
loses nothing is withheld until there is more to say of that lane: that another message is free, or that one is done.
The sender does not wait for it: it has other credits (`Lane.may_withhold`), and these come back with it.
"""

from __future__ import annotations

from collections.abc import Collection

from pipeline.items import Item
from pipeline.transport.lane import Lane, Received
from pipeline.transport.protocol import Signals


class Answers:
    """The signals of one process that are not sent yet, by connection. Nothing is said on one that is not open."""

    def __init__(self) -> None:
        self._signals: dict[bytes, Signals] = {}
        self._open: set[bytes] = set()

    def open(self, identity: bytes) -> None:
        """A connection has begun."""
        self._open.add(identity)

    def close(self, identity: bytes) -> None:
        """A connection is over: nobody hears on it any more."""
        self._open.discard(identity)
        self._signals.pop(identity, None)

    def free(self, item: Item) -> None:
        """The item's memory is no longer read."""
        for received in _received(item):
            if not received.freed:
                received.freed = True
                lane = received.lane
                if lane.may_withhold and lane.withheld is None:
                    lane.withheld = received
                else:
                    self._say_free(received)
                    self._say_withheld(lane)

    def done(self, item: Item) -> None:
        """All that was made of the item is done."""
        for received in _received(item):
            self.finish(received)

    def finish(self, received: Received) -> None:
        """Free and done in one: its senders forget it."""
        lane = received.lane
        lane.unfinished.pop(received.key, None)
        if lane.withheld is not None:
            self._say_withheld(lane)
        if not received.freed:
            received.freed = True
            self._say_free(received)
        for identity, n in received.origins:
            self._of(identity).done.append(n)

    def _say_free(self, received: Received) -> None:
        for identity, n in received.origins:
            self._of(identity).freed.append(n)

    def _say_withheld(self, lane: Lane) -> None:
        withheld, lane.withheld = lane.withheld, None
        if withheld is not None:
            self._say_free(withheld)

    def trying(self, item: Item) -> None:
        """The item is processed alone: should this process die of it, its senders are to know."""
        for received in _received(item):
            for identity, n in received.origins:
                self._of(identity).tried.append(n)

    def survived(self, item: Item) -> None:
        """This process did not die of the item."""
        for received in _received(item):
            for identity, _ in received.origins:
                self._of(identity).tried.append(0)

    def freed(self, identity: bytes, n: int) -> None:
        """The message with this number on this connection is not read."""
        self._of(identity).freed.append(n)

    def finished(self, identity: bytes, n: int) -> None:
        """The message with this number on this connection is free and done."""
        signals = self._of(identity)
        signals.freed.append(n)
        signals.done.append(n)

    def _of(self, identity: bytes) -> Signals:
        """What is said next on this connection."""
        signals = self._signals.get(identity)
        if signals is None:
            signals = Signals([], [], [])
            if identity in self._open:
                self._signals[identity] = signals
        return signals

    def take(self) -> Collection[tuple[bytes, Signals]]:
        """What has come together, by connection; it is not given again."""
        signals, self._signals = self._signals, {}
        return signals.items()


def _received(item: Item) -> list[Received]:
    """The messages that an item was made of, as this side knows them."""
    return [received for received in item.received if isinstance(received, Received)]
