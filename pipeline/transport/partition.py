"""The messages of one edge for one camera, each until it is done."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from camgraph.pipeline.items import Key
from camgraph.pipeline.messages import End, Event, Message, Stamp, Tombstone
from camgraph.pipeline.plan import EdgePlan
from camgraph.pipeline.shm.mappings import MappedSegment
from camgraph.pipeline.transport.watermark import ReceivedWatermark
from camgraph.pipeline.transport.wire import Header, build, read_arrays


@dataclass(slots=True, eq=False)
class Received:
    """One message in this process, from its arrival until it is done.

    `origins`: the connections that it came on, and its number there: all of them get its signals.
    """

    partition: Partition
    key: Key
    header: Header
    mapping: MappedSegment | None
    origins: list[tuple[bytes, int]]
    incarnation: int = 1
    """The incarnation of the process that sent it first."""
    deaths: int = 0
    tries: int = 0
    before: Stamp | None = None
    """The message before it on its partition."""
    credited: bool = False
    """Its credit has been given back."""

    def intact(self) -> bool:
        """True when the memory that it points at still has its content."""
        place = self.header.descriptor
        return self.mapping is None or place is None or self.mapping.holds(place.slot, place.generation)

    @property
    def is_end(self) -> bool:
        return self.header.type == End.TYPE

    @property
    def is_tombstone(self) -> bool:
        return self.header.type == Tombstone.TYPE

    @property
    def is_mark(self) -> bool:
        return self.is_end or self.is_tombstone

    def message(self) -> Message:
        """The message with its arrays as views of the sender's memory. Raises WireError."""
        return build(self.header, self.partition.types, read_arrays(self.header, self.mapping))


@dataclass(slots=True, eq=False)
class Partition:
    """One edge and camera. `types`: the types that the edge's port takes, by wire type. `unread`: not taken yet.

    `window`: how many frames of a camera the sender may have unfinished.
    """

    edge: EdgePlan
    camera: str
    types: Mapping[str, type[Message]]
    window: int
    unread: deque[Received] = field(default_factory=deque)
    first_key: Key | None = None
    last_key: Key | None = None
    last_stamp: Stamp | None = None
    watermark: ReceivedWatermark = field(default_factory=ReceivedWatermark)
    unfinished: dict[Key, Received] = field(default_factory=dict)
    blocking: bool = field(init=False)
    """Nothing that is unread may be lost."""
    withholds: bool = field(init=False)
    """Signals to the sender may wait for others: see `pipeline.transport.pending_acks`."""
    uncredited: int = 0
    """Messages that have come and hold a credit of the sender's."""

    def __post_init__(self) -> None:
        self.blocking = self.edge.policy == "block"
        # An event's sender wants to know at once. A port of a join may need the last credit while another port waits:
        # it is as deep as the way of the other is long.
        waited_for = self.edge.port or self.edge.type == Event.TYPE
        self.withholds = self.blocking and not waited_for and self.edge.depth > self.window

    def put(self, received: Received) -> None:
        """A new message: behind all others, in its camera's order."""
        received.before = self.last_stamp
        self.first_key = self.first_key or received.key
        self.last_key, self.last_stamp = received.key, received.header.stamp
        self.unfinished[received.key] = received
        self.unread.append(received)
        self.uncredited += not received.is_mark

    def credit(self, received: Received) -> None:
        """The sender gets the message's credit back."""
        received.credited = True
        self.uncredited -= not received.is_mark

    def knows(self, key: Key) -> bool:
        """True if the message with this key has come before."""
        return self.last_key is not None and key <= self.last_key

    @property
    def has_all_again(self) -> bool:
        """True if all messages have come that its sender has announced."""
        return self.watermark.has_all_again(self.last_key)

    def is_silent(self, key: Key) -> bool:
        """True if no more messages come with a key up to this one."""
        return self.watermark.is_silent(key, self.last_key)

    def was_done(self, key: Key) -> bool:
        """True if a message with this key, which was left out, was done before this process began."""
        before = self.first_key is not None and key < self.first_key
        return before or self.watermark.was_done(key)

    @property
    def finished(self) -> Stamp | None:
        """The last message up to which all are done: a sender that sends again must begin behind it."""
        return self.unfinished[min(self.unfinished)].before if self.unfinished else self.last_stamp

    def remove_overflow(self) -> Received | None:
        """On an edge that drops, if more than `depth` messages are unread: remove the one that must give way."""
        if self.blocking:
            return None
        unread = [received for received in self.unread if not received.is_mark]
        if len(unread) <= self.edge.depth:
            return None
        victim = unread[0] if self.edge.policy == "drop_oldest" else unread[-1]
        self.unread.remove(victim)
        return victim
