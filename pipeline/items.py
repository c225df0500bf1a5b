"""The items that stages process, and their place in their camera's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from camgraph.pipeline.messages import MARKS, Message, Stamp

END_SEQ = 1 << 62
"""The `seq` of a camera's last words: after every frame. The end itself comes one later."""

_PART_BITS = 12
MOST_PARTS = 1 << _PART_BITS
"""How many messages a stage may make of one item: a crowd's incidents that all end with their camera."""

LARGE_PART = 1 << 63
"""From here on, a number does not fit into a signed number of msgpack."""

_POSSIBLE_POISON_DEATHS = 3
_POISON_TRIES = 2


class Key(NamedTuple):
    """A message's place in its camera's order on an edge. `part` numbers the messages made of one frame.

    Each stage adds twelve bits to it: behind many stages it is larger than a machine word.
    """

    epoch: int
    seq: int
    part: int

    def merged(self, partition: int, partitions: int) -> Key:
        """The key of a message that came on one of several merged edges: no two of them have the same."""
        return Key(self.epoch, self.seq, self.part * partitions + partition)

    def made(self, index: int) -> Key:
        """The key of the message number `index` made of the message with this key: unique, and in order."""
        return Key(self.epoch, self.seq, (self.part << _PART_BITS) + index)

    def plain(self) -> tuple[int, int, int | bytes]:
        """As msgpack holds it: a large part as bytes, behind one that says how many they are."""
        if self.part < LARGE_PART:
            return self
        size = (self.part.bit_length() + 7) // 8
        return self.epoch, self.seq, bytes([size]) + self.part.to_bytes(size, "big")

    @classmethod
    def of(cls, epoch: Any, seq: Any, part: Any) -> Key:
        """The inverse of `plain`. Raises ValueError."""
        if isinstance(part, bytes) and len(part) > 1 and len(part) == 1 + part[0]:
            part = int.from_bytes(part[1:], "big")
        if not all(isinstance(number, int) for number in (epoch, seq, part)):
            raise ValueError(f"a key {(epoch, seq, part)!r:.100}; expected epoch, seq, part")
        return cls(epoch, seq, part)


class MappedMessage(Protocol):
    """A message in shared memory that an item was made of."""

    def intact(self) -> bool:
        """True while the memory still has its content."""


@dataclass(slots=True, eq=False)
class Item:
    """One message, or one for each port, of one frame of one camera.

    `sender` is the stage that made it, "" for a joined one. `received` holds the messages to acknowledge (credit, ack).
    `deaths` counts the processes that died while they had the item; after three it is tried alone, and `tries` counts
    the processes that died of that. `incarnation` is that of the sending process, 0 if the item was made in this one.
    """

    camera: str
    key: Key
    payload: Message | dict[str, Message]
    sender: str = ""
    received: Sequence[MappedMessage] = ()
    deaths: int = 0
    tries: int = 0
    incarnation: int = 0

    @property
    def possible_poison(self) -> bool:
        """True when it must be processed alone, so that the next death shows whether it is poison."""
        return self.deaths >= _POSSIBLE_POISON_DEATHS and not self.is_mark

    @property
    def poison(self) -> bool:
        """True when processes died of it alone: it is quarantined, and never processed again."""
        return self.tries >= _POISON_TRIES and not self.is_mark

    @property
    def stamp(self) -> Stamp:
        """The stamp of the frame."""
        payload = self.payload
        return next(iter(payload.values())).stamp if isinstance(payload, dict) else payload.stamp

    @property
    def is_mark(self) -> bool:
        """True for an end or a tombstone."""
        return isinstance(self.payload, MARKS)

    def intact(self) -> bool:
        """False if a slot was taken back while it was read: then throw away the outputs."""
        return all([held.intact() for held in self.received])  # noqa: C419 - nearly always one: no generator for it
