"""The reading side of a process: mailboxes for each edge and camera, and the signals that go back.

    sender                                   reader
      |------ A  attach: unit, incarnation ---->|
      |<----- H  hello: key and stamp up to which all is done, of each (edge, camera)
      |------ D  n, edge, camera, key | message ->  mailbox --take--> process --> done
      |<----- S  [free n...], [done n...], [tried n | 0: survived...]

`free`: taken, and its memory is no longer read (or dropped): gives back a credit. `done`: all that was made of it is
done, down to the ends of the graph (a sink, the outbox): the sender forgets it. So a sender can hand over again
whatever a dead reader had not finished, and whichever processes between here and there died at the same time. A
message that comes twice is known by its key: it is not processed again, but its signals go to everyone who sent it.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import zmq

from pipeline.errors import WireError
from pipeline.items import Item, Key
from pipeline.join import Join, Matched, merged_in_order, merged_key
from pipeline.mappings import MappedSegment, Mappings, SegmentGone
from pipeline.messages import MARKS, End, Message, Stamp, Tombstone
from pipeline.metrics import Counters
from pipeline.plan import EdgePlan
from pipeline.stage import Logger
from pipeline.wire import MAX_PART, Header, build, pack, read_arrays, read_header, types_for, unpack

ATTACH, HELLO, DATA, SIGNAL = b"A", b"H", b"D", b"S"
_RECEIVE_AT_ONCE = 256
_MOST_REFUSALS = 20


@dataclass(slots=True, eq=False)
class Received:
    """One message in this process, from its arrival until it is done."""

    lane: Lane
    key: Key
    header: Header
    mapping: MappedSegment | None
    origins: list[tuple[bytes, int]]
    before: tuple[Key, Stamp] | None = None
    """The message before it on its lane."""
    freed: bool = False
    deaths: int = 0
    tries: int = 0

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


@dataclass(slots=True, eq=False)
class Lane:
    """What has come on one edge for one camera."""

    edge: EdgePlan
    camera: str
    mailbox: deque[Received] = field(default_factory=deque)
    last: tuple[Key, Stamp] | None = None
    unfinished: dict[Key, Received] = field(default_factory=dict)

    @property
    def finished(self) -> tuple[Key, Stamp] | None:
        """The last message up to which all are done: whoever sends again has to begin behind it."""
        return self.unfinished[min(self.unfinished)].before if self.unfinished else self.last


@dataclass(slots=True)
class _Peer:
    unit: str
    incarnation: int
    mappings: Mappings = field(default_factory=Mappings)


class Inlet:
    """All incoming edges of a process behind one socket. `accepted`: edge name -> the message types of its port."""

    def __init__(
        self,
        endpoint: str,
        edges: Sequence[EdgePlan],
        accepted: Mapping[str, Iterable[type[Message]]],
        senders: Mapping[str, Collection[str]],
        counters: Counters,
        log: Logger,
    ) -> None:
        self.endpoint = endpoint
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.setsockopt(zmq.MAXMSGSIZE, MAX_PART)
        self.socket.bind(endpoint)
        self._edges = {edge.name: edge for edge in edges}
        self._types = {name: types_for([*types, *MARKS]) for name, types in accepted.items()}
        self._senders = {name: frozenset(units) for name, units in senders.items()}
        self._counters = counters
        self._log = log
        self._peers: dict[bytes, _Peer] = {}
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._camera_lanes: dict[str, list[Lane]] = {}
        self._joins: dict[str, Join[Received]] = {}
        self._ports = tuple(edge.port for edge in edges if edge.port)
        self._in_order = merged_in_order(edges)
        self._refused: set[str] = set()
        self._turn: deque[str] = deque()
        self._ready: dict[str, deque[Item]] = {}
        self._signals: dict[bytes, tuple[list[int], list[int], list[int]]] = {}

    # ---- receiving

    def receive(self) -> bool:
        """Take what has arrived into the mailboxes; True when there is more."""
        for _ in range(_RECEIVE_AT_ONCE):
            try:
                identity, kind, *parts = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return False
            try:
                self._handle(identity, kind, parts)
            except (WireError, ValueError, KeyError, TypeError, IndexError) as error:
                self._counters.add("dropped.wire", "")
                self._tell_refused(str(error))
        return True

    def _tell_refused(self, error: str) -> None:
        """Each kind of refusal once: a sender that is wrong is wrong for ever."""
        if error not in self._refused and len(self._refused) < _MOST_REFUSALS:
            self._refused.add(error)
            self._log.error("message_refused", error=error)

    def _handle(self, identity: bytes, kind: bytes, parts: list[bytes]) -> None:
        if kind == ATTACH:
            self._attach(identity, *unpack(parts[0]))
        elif kind == DATA and identity in self._peers:
            n, edge, camera, epoch, seq, part, deaths, tries = unpack(parts[0])
            received = self._data(identity, n, self._lane(edge, camera), Key(epoch, seq, part), parts[1])
            if received:
                received.deaths, received.tries = deaths, tries

    def _attach(self, identity: bytes, unit: str, incarnation: int) -> None:
        """A sender begins, or begins again: whatever its earlier incarnations still have on the way is ignored."""
        for other, peer in list(self._peers.items()):
            if peer.unit == unit and peer.incarnation < incarnation:
                del self._peers[other]
                self._signals.pop(other, None)
        self._peers[identity] = _Peer(unit, incarnation)
        done = [[lane.edge.name, lane.camera, lane.finished] for lane in self._lanes.values() if lane.finished]
        self._send(identity, HELLO, pack(done))

    def _lane(self, edge_name: str, camera: str) -> Lane:
        lane = self._lanes.get((edge_name, camera))
        if lane is None:
            lane = self._lanes[edge_name, camera] = Lane(self._edges[edge_name], camera)
            self._camera_lanes.setdefault(camera, []).append(lane)
            if camera not in self._ready:
                self._ready[camera] = deque()
                self._turn.append(camera)
            if self._ports and camera not in self._joins:
                self._joins[camera] = Join(self._ports, lambda r: r.is_end, lambda r: r.is_tombstone)
        return lane

    def _data(self, identity: bytes, n: int, lane: Lane, key: Key, body: bytes) -> Received | None:
        """Put a message into its mailbox; None where it is not new, or cannot be read."""
        if lane.last and key <= lane.last[0]:
            self._repeated(identity, n, lane, key)
            return None
        try:
            received = self._read(identity, n, lane, key, body)
        except WireError:
            # Refused for good: sent again it would be no better.
            self._signal(identity, n, free=True, done=True)
            raise
        if received is not None:
            received.before = lane.last
            lane.last = (key, received.header.stamp)
            lane.unfinished[key] = received
            lane.mailbox.append(received)
            self._make_room(lane)
        return received

    def _read(self, identity: bytes, n: int, lane: Lane, key: Key, body: bytes) -> Received | None:
        """The message, or None when its memory is gone with its sender, who will say it again."""
        header = read_header(body, self._types[lane.edge.name])
        mapping = None
        place = header.descriptor
        if place is not None:
            try:
                mapping = self._peers[identity].mappings.get(place.segment)
            except SegmentGone as error:
                self._log.info("segment_gone", error=str(error))
                return None
            if not mapping.holds(place.slot, place.generation):
                self._counters.add("dropped.stale", lane.camera)
                self._signal(identity, n, free=True, done=True)
                return None
        return Received(lane, key, header, mapping, [(identity, n)])

    def _repeated(self, identity: bytes, n: int, lane: Lane, key: Key) -> None:
        self._counters.add("repeated", lane.camera)
        first = lane.unfinished.get(key)
        if first is None:
            self._signal(identity, n, free=True, done=True)
            return
        first.origins.append((identity, n))
        if first.freed:
            self._signal(identity, n, free=True)

    def _make_room(self, lane: Lane) -> None:
        """On an edge that drops: no more than `depth` unread messages of a camera."""
        if lane.edge.policy == "block":
            return
        unread = [r for r in lane.mailbox if not (r.is_end or r.is_tombstone)]
        if len(unread) > lane.edge.depth:
            victim = unread[0] if lane.edge.policy == "drop_oldest" else unread[-1]
            lane.mailbox.remove(victim)
            self._counters.add(lane.edge.overflow, lane.camera)
            self.finish_received(victim)

    # ---- taking

    def waiting(self, camera: str | None = None) -> int:
        """Messages not yet taken, of one camera or of all."""
        lanes = self._lanes.values() if camera is None else self._camera_lanes.get(camera, [])
        joined = self._joins.values() if camera is None else [self._joins[camera]] if camera in self._joins else []
        return sum(len(lane.mailbox) for lane in lanes) + sum(len(join) for join in joined)

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
        while not ready and (self._join_next(camera, ready) if self._ports else self._merge_next(camera, ready)):
            pass
        if not ready or (not first and (ready[0].is_mark or ready[0].suspect)):
            return None
        return ready.popleft()

    def _merge_next(self, camera: str, ready: deque[Item]) -> bool:
        """Move the lowest message of this camera's lanes to `ready`; its end only when all lanes have ended."""
        lanes = [lane for lane in self._camera_lanes[camera] if lane.mailbox]
        if not lanes or (self._in_order and len(lanes) < len(self._edges)):
            return False  # what comes late on the other lane may belong before
        order = list(self._edges)
        lane = min(lanes, key=lambda lane: (lane.mailbox[0].key, order.index(lane.edge.name)))
        received = lane.mailbox[0]
        if received.is_end:
            heads = [other.mailbox[0] for other in lanes if other.mailbox[0].is_end]
            if len(heads) < len(self._edges):
                return False
            for other in lanes:
                other.mailbox.popleft()
            ready.append(Item(camera, received.key, _build(received, self._types), "", tuple(heads)))
            return True
        lane.mailbox.popleft()
        self._ready_one(camera, received, ready)
        return True

    def _ready_one(self, camera: str, received: Received, ready: deque[Item]) -> None:
        try:
            payload = _build(received, self._types)
        except WireError as error:
            self._refuse((received,), error)
            return
        edge = received.lane.edge
        key = merged_key(received.key, edge, list(self._edges.values()))
        ready.append(Item(camera, key, payload, edge.sender, (received,), received.deaths, received.tries))

    def _join_next(self, camera: str, ready: deque[Item]) -> bool:
        """Feed the join with what has come; True if something came out that is worth another look."""
        join = self._joins[camera]
        for lane in self._camera_lanes[camera]:
            while lane.mailbox:
                received = lane.mailbox.popleft()
                join.push(lane.edge.port, received.key, received)
        for matched in join.matched():
            if matched.kind == "joined":
                self._ready_row(camera, matched.key, matched.row, ready)
            elif matched.kind == "end":
                end = _build(matched.first, self._types)
                ready.append(Item(camera, matched.key, end, "", tuple(matched.row.values())))
            else:
                self._pass_over(camera, matched, ready)
        return False

    def _ready_row(self, camera: str, key: Key, row: dict[str, Received], ready: deque[Item]) -> None:
        try:
            built = {port: _build(received, self._types) for port, received in row.items()}
            deaths, tries = max(r.deaths for r in row.values()), max(r.tries for r in row.values())
            ready.append(Item(camera, key, built, "", tuple(row.values()), deaths, tries))
        except WireError as error:
            self._refuse(tuple(row.values()), error)

    def _pass_over(self, camera: str, matched: Matched[Received], ready: deque[Item]) -> None:
        """A frame that will not be joined: what came of it goes on as one tombstone."""
        if matched.kind == "unpaired":
            # On edges that drop, the partner has been counted where it was dropped.
            blocking = all(edge.policy == "block" for edge in self._edges.values())
            self._counters.add("dropped.unpaired" if blocking else "skipped.unpaired", camera)
        stone = matched.tombstone(matched.first.header.stamp)
        ready.append(Item(camera, matched.key, stone, "", tuple(matched.row.values())))

    def _refuse(self, row: tuple[Received, ...], error: WireError) -> None:
        self._counters.add("dropped.wire", row[0].lane.camera)
        self._tell_refused(str(error))
        for received in row:
            self.finish_received(received)

    # ---- signals

    def free(self, item: Item) -> None:
        """The item's memory is no longer read."""
        for received in item.received:
            assert isinstance(received, Received)
            if not received.freed:
                received.freed = True
                for identity, n in received.origins:
                    self._signal(identity, n, free=True)

    def done(self, item: Item) -> None:
        """All that was made of the item is done."""
        for received in item.received:
            assert isinstance(received, Received)
            self.finish_received(received)

    def finish_received(self, received: Received) -> None:
        """Free and done in one: its senders forget it."""
        received.lane.unfinished.pop(received.key, None)
        for identity, n in received.origins:
            self._signal(identity, n, free=not received.freed, done=True)
        received.freed = True

    def trying(self, item: Item) -> None:
        """Say, before it is processed alone, that the item is: should this process die of it, its senders know."""
        self._tell_tried(item, survived=False)
        self.flush()

    def survived(self, item: Item) -> None:
        """Say that this process did not die of the item."""
        self._tell_tried(item, survived=True)

    def _tell_tried(self, item: Item, *, survived: bool) -> None:
        for received in item.received:
            assert isinstance(received, Received)
            for identity, n in received.origins:
                self._signal(identity, 0 if survived else n, tried=True)

    def _signal(self, identity: bytes, n: int, *, free: bool = False, done: bool = False, tried: bool = False) -> None:
        if identity in self._peers:
            lists = self._signals.setdefault(identity, ([], [], []))
            for wanted, numbers in zip((free, done, tried), lists, strict=True):
                if wanted:
                    numbers.append(n)

    def flush(self) -> None:
        """Send the signals that have come together."""
        for identity, numbers in self._signals.items():
            self._send(identity, SIGNAL, pack(numbers))
        self._signals.clear()

    def _send(self, identity: bytes, kind: bytes, body: bytes) -> None:
        # A peer that is gone needs no signal: its successor attaches anew.
        with contextlib.suppress(zmq.ZMQError):
            self.socket.send_multipart([identity, kind, body], zmq.NOBLOCK)

    def close(self) -> None:
        self.socket.close(0)
        with contextlib.suppress(OSError):
            os.unlink(self.endpoint.removeprefix("ipc://"))  # noqa: PTH108 - may be an abstract name


def _build(received: Received, types: Mapping[str, Mapping[str, type[Message]]]) -> Message:
    """The message with its arrays as views of the sender's memory."""
    accepted = dict(types[received.lane.edge.name])
    return build(received.header, accepted, read_arrays(received.header, received.mapping))
