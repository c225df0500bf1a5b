"""The sending side of a process: credits, custody and what waits, for each reading process.

A message on an edge goes through three places, in its camera's order:

    waiting --credit in hand--> sent --free--> sent, credit given back --done--> forgotten

The loop never waits in send: what has no credit waits here, and the loop takes no more of that camera (`blocked`).
On edges that drop, nothing is kept for a dead reader and nothing but the newest waits. When a reader starts again,
what it had not done goes back to `waiting`, before all else. Marks need no credit, but keep their place in the order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import zmq

from pipeline.errors import WireError
from pipeline.inlet import ATTACH, DATA, HELLO, SIGNAL
from pipeline.items import Key
from pipeline.messages import MARKS, End, Message, Stamp
from pipeline.metrics import Counters
from pipeline.plan import EdgePlan
from pipeline.slots import Slot, SlotRing
from pipeline.stage import Logger
from pipeline.wire import MAX_PART, encode, pack, unpack

_RECEIVE_AT_ONCE = 256
_MOST_WAITING = 64


class Ticket:
    """What was made of one taken item, until all of it is done; then `on_done` is called, once."""

    __slots__ = ("_on_done", "_open")

    def __init__(self, on_done: Callable[[], None]) -> None:
        self._open = 1
        self._on_done = on_done

    def opened(self) -> None:
        """One more delivery."""
        self._open += 1

    def closed(self) -> None:
        """One delivery is done, or the item itself has been processed."""
        self._open -= 1
        if self._open == 0:
            self._on_done()


@dataclass(slots=True, eq=False)
class Delivery:
    """One message on its way to one reader."""

    edge: EdgePlan
    camera: str
    key: Key
    body: bytes
    slot: Slot | None
    ticket: Ticket | None
    is_mark: bool
    freed: bool = False
    deaths: int = 0
    tries: int = 0


@dataclass(slots=True, eq=False)
class _Queue:
    """The deliveries of one edge and camera that wait for a credit."""

    credits: int
    waiting: deque[Delivery] = field(default_factory=deque)


class _Link:
    """One reading process, in its present incarnation."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.socket: zmq.Socket[bytes] | None = None
        self.endpoint = ""
        self.attached = False
        self.next_n = 1
        self.sent: dict[int, Delivery] = {}
        self.trying = 0
        self.queues: dict[tuple[str, str], _Queue] = {}


class Outlet:
    """All outgoing edges of a process. `routes`: edge name -> camera -> unit that reads it."""

    def __init__(
        self,
        *,
        unit: str,
        incarnation: int,
        edges: Sequence[EdgePlan],
        routes: Mapping[str, Mapping[str, str]],
        ring: SlotRing,
        counters: Counters,
        poller: zmq.Poller,
        log: Logger,
    ) -> None:
        self._log = log
        self._unit = unit
        self._incarnation = incarnation
        self._edges = {edge.name: edge for edge in edges}
        self._ring = ring
        self._counters = counters
        self._poller = poller
        self._links: dict[str, _Link] = {}
        self._by_camera: dict[str, list[_Queue]] = {}
        self._routes: dict[tuple[str, str], tuple[_Link, _Queue]] = {}
        self._done: dict[tuple[str, str], Stamp | None] = {}
        for name, edge in self._edges.items():
            for camera, reader in routes[name].items():
                link = self._links.setdefault(reader, _Link(reader))
                queue = link.queues[name, camera] = _Queue(edge.credits)
                self._by_camera.setdefault(camera, []).append(queue)
                self._routes[name, camera] = (link, queue)

    # ---- readers come and go

    def connect(self, endpoints: Mapping[str, str]) -> None:
        """The readers' present endpoints, by unit; a new one means a new incarnation, to be told everything again."""
        for unit, endpoint in endpoints.items():
            link = self._links.get(unit)
            if link is not None and link.endpoint != endpoint:
                self._connect(link, endpoint)

    def _connect(self, link: _Link, endpoint: str) -> None:
        self._drop_socket(link)
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SNDHWM, 0)
        socket.setsockopt(zmq.RCVHWM, 0)
        socket.setsockopt(zmq.MAXMSGSIZE, MAX_PART)
        socket.setsockopt(zmq.ROUTING_ID, f"{self._unit}#{self._incarnation}".encode())
        socket.connect(endpoint)
        socket.send_multipart([ATTACH, pack([self._unit, self._incarnation])])
        self._poller.register(socket, zmq.POLLIN)
        link.socket, link.endpoint, link.attached = socket, endpoint, False

    def _drop_socket(self, link: _Link) -> None:
        if link.socket is not None:
            self._poller.unregister(link.socket)
            link.socket.close(0)
            link.socket = None

    @property
    def attached(self) -> bool:
        """True when every reader has said hello to this process."""
        return all(link.attached for link in self._links.values())

    def _hello(self, link: _Link, received: list[Any]) -> None:
        """The reader is there: all that it has not done goes out again, in order, before what is new."""
        link.attached = True
        for queue in link.queues.values():
            queue.credits = 0
        for name, camera in link.queues:
            link.queues[name, camera].credits = self._edges[name].credits
        if link.trying in link.sent:
            link.sent[link.trying].tries += 1
        link.trying = 0
        again: dict[tuple[str, str], list[Delivery]] = {}
        for delivery in link.sent.values():
            again.setdefault((delivery.edge.name, delivery.camera), []).append(delivery)
        link.sent = {}
        for place, deliveries in again.items():
            self._requeue(link.queues[place], deliveries)
        self._note_done(link, received)
        for queue in link.queues.values():
            self._pump(link, queue)

    def _requeue(self, queue: _Queue, deliveries: list[Delivery]) -> None:
        for delivery in reversed(deliveries):
            if delivery.edge.policy == "block" or delivery.is_mark:
                delivery.freed = False
                delivery.deaths += 1
                queue.waiting.appendleft(delivery)
            else:
                self._counters.add("dropped.reader_lost", delivery.camera)
                self._forget(delivery)

    def _note_done(self, link: _Link, received: list[Any]) -> None:
        stamps: dict[tuple[str, str], Stamp] = {}
        for edge, camera, last in received:
            stamps[edge, camera] = Stamp.from_wire(last[1])
        for place in link.queues:
            self._done[place] = stamps.get(place)

    def done_by_all(self, camera: str) -> Stamp | None:
        """The frame of a camera up to which every reader is done, None where one of them has finished none."""
        stamps = [stamp for (_, name), stamp in self._done.items() if name == camera]
        known = [stamp for stamp in stamps if stamp is not None]
        return min(known, key=lambda stamp: stamp[1:3]) if known and len(known) == len(stamps) else None

    # ---- sending

    def blocked(self, camera: str) -> bool:
        """True while something of this camera waits on an edge that must not lose it."""
        return any(q.waiting and q.waiting[0].edge.policy == "block" for q in self._by_camera.get(camera, ()))

    def submit(self, edges: Sequence[EdgePlan], camera: str, key: Key, message: Message, ticket: Ticket | None) -> None:
        """Send a message on these edges as soon as there is credit; `ticket` hears when it is done.

        Raises BadItem where there is no memory for it.
        """
        if not edges:
            return
        encoded = encode(message, self._ring)
        for edge in edges:
            link, queue = self._routes[edge.name, camera]
            counted = ticket if edge.policy == "block" or isinstance(message, End) else None
            delivery = Delivery(edge, camera, key, encoded.body, encoded.slot, counted, isinstance(message, MARKS))
            if encoded.slot:
                self._ring.keep(encoded.slot)
            if counted:
                counted.opened()
            queue.waiting.append(delivery)
            self._pump(link, queue)
            self._thin(queue, edge)
        if encoded.slot:
            self._ring.release(encoded.slot)

    def _thin(self, queue: _Queue, edge: EdgePlan) -> None:
        """On an edge that drops, only the newest waits."""
        if edge.policy == "block":
            return
        while len(queue.waiting) > _MOST_WAITING and queue.waiting[0].ticket is None:
            self._forget(queue.waiting.popleft())  # tombstones for a reader that is away
        unsent = [delivery for delivery in queue.waiting if not delivery.is_mark]
        for victim in unsent[:-1] if edge.policy == "drop_oldest" else unsent[1:]:
            queue.waiting.remove(victim)
            self._counters.add(edge.overflow, victim.camera)
            self._forget(victim)

    def _pump(self, link: _Link, queue: _Queue) -> None:
        while link.attached and queue.waiting and (queue.credits > 0 or queue.waiting[0].is_mark):
            delivery = queue.waiting.popleft()
            if not delivery.is_mark:
                queue.credits -= 1
            n, link.next_n = link.next_n, link.next_n + 1
            link.sent[n] = delivery
            place = (n, delivery.edge.name, delivery.camera, *delivery.key)
            head = pack([*place, delivery.deaths, delivery.tries])
            assert link.socket is not None
            link.socket.send_multipart([DATA, head, delivery.body], zmq.NOBLOCK)

    # ---- signals

    def receive(self, ready: Collection[object]) -> bool:
        """Hear what the readers say whose sockets are `ready`; True when there is more to hear."""
        more = [self._receive_from(link) for link in self._links.values() if link.socket in ready]
        return any(more)

    def _receive_from(self, link: _Link) -> bool:
        assert link.socket is not None
        for _ in range(_RECEIVE_AT_ONCE):
            try:
                kind, body = link.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return False
            if kind == HELLO and not link.attached:
                self._hello(link, unpack(body))
            elif kind == SIGNAL and link.attached:
                self._signals(link, *unpack(body))
            else:
                raise WireError(f"{link.unit} sent a message of kind {kind!r}")
        return True

    def _signals(self, link: _Link, freed: list[int], finished: list[int], tried: list[int]) -> None:
        if tried:
            link.trying = tried[-1]
        touched: dict[int, _Queue] = {}
        for n in freed:
            delivery = link.sent.get(n)
            if delivery is None or delivery.freed:
                continue
            delivery.freed = True
            queue = link.queues[delivery.edge.name, delivery.camera]
            if not delivery.is_mark:
                queue.credits += 1
            touched[id(queue)] = queue
            if delivery.edge.policy != "block" and not delivery.is_mark:
                del link.sent[n]
                self._forget(delivery)
        for n in finished:
            done = link.sent.pop(n, None)
            if done is not None:
                self._forget(done)
        for queue in touched.values():
            self._pump(link, queue)

    def _forget(self, delivery: Delivery) -> None:
        if delivery.slot:
            self._ring.release(delivery.slot)
            delivery.slot = None
        if delivery.ticket:
            ticket, delivery.ticket = delivery.ticket, None
            ticket.closed()

    # ---- looking

    @property
    def in_custody(self) -> int:
        """Messages sent or waiting that are not done."""
        return sum(len(link.sent) + sum(len(q.waiting) for q in link.queues.values()) for link in self._links.values())

    def room(self, edge_name: str, camera: str) -> int:
        """How many more messages this edge takes now without letting one wait."""
        link, queue = self._routes[edge_name, camera]
        return max(0, queue.credits - len(queue.waiting)) if link.attached else 0

    def close(self) -> None:
        """Close the connections; what is in custody stays unsaid."""
        for link in self._links.values():
            self._drop_socket(link)
