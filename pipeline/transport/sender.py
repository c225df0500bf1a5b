"""The sending side of a process: the readers of each edge, and the connections to them.

`pipeline.transport.in_flight` keeps the messages that a reader has not finished, `pipeline.transport.protocol` has
their format. A reader that starts again has a new endpoint; a connection that is lost while the reader lives is
replaced. Either way the reader sends hello, and gets its unfinished messages again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import zmq

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.items import Key
from camgraph.pipeline.messages import MARKS, End, Message, Stamp
from camgraph.pipeline.plan import EdgePlan, ProcessPlan
from camgraph.pipeline.shm.slots import SlotRing
from camgraph.pipeline.transport.connection import Connection
from camgraph.pipeline.transport.in_flight import Delivery, InFlight, Queue, Ticket
from camgraph.pipeline.transport.protocol import (
    AGAIN,
    DATA,
    HELLO,
    SIGNAL,
    WATERMARKS,
    Known,
    SenderId,
    Signals,
    Watermark,
    packed_data,
    packed_watermarks,
    plain_row,
    read_hello,
)
from camgraph.pipeline.transport.refusals import Refusals
from camgraph.pipeline.transport.wire import encode

_RECEIVE_AT_ONCE = 256
_AGAIN_S = 1.0
_TOGETHER = 256
_TOGETHER_BYTES = 256 << 10
"""So many messages, and bytes of them, travel as one at most; a larger one goes by itself."""


@dataclass(slots=True, eq=False)
class _Link:
    """One reading process. `greeted`: the endpoint that has said hello; `attached_at`: when the connection was made."""

    process: str
    in_flight: InFlight
    endpoint: str = ""
    greeted: str = ""
    connection: Connection | None = None
    connections: int = 0
    attached_at: float = 0.0
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    """Data messages that go out with the next `Sender.flush`."""
    first: int = 1
    """The number of the first of them."""
    size: int = 0
    """Bytes of them."""

    def collect(self, n: int, delivery: Delivery) -> None:
        """One more data message; the earlier ones go out first if it would be too much for one."""
        body, queue = delivery.body, delivery.queue
        if self.rows and (self.size + len(body) > _TOGETHER_BYTES or len(self.rows) >= _TOGETHER):
            self.flush()
        if not self.rows:
            self.first = n
        blamed = delivery.deaths, delivery.tries
        self.rows.append(plain_row(queue.name, queue.camera, delivery.key, blamed, body))
        self.size += len(body)

    def flush(self) -> None:
        """Send the collected messages."""
        rows, self.rows, self.size = self.rows, [], 0
        if rows and self.connection is not None:
            self.connection.send(DATA, packed_data(self.first, rows))

    def send_watermarks(self, watermarks: Sequence[Watermark]) -> None:
        """Send them behind all messages that were to be sent before."""
        if watermarks and self.connection is not None:
            self.flush()
            self.connection.send(WATERMARKS, packed_watermarks(watermarks))


class Sender:
    """All outgoing edges of a process. Memory for the messages comes from `ring`; `poller` hears the readers."""

    def __init__(self, plan: ProcessPlan, ring: SlotRing, poller: zmq.Poller, parts: ProcessParts) -> None:
        self._process = plan.name
        self._incarnation = parts.incarnation
        self._ring = ring
        self._poller = poller
        self._log = parts.log
        self._refusals = Refusals(parts.counters, parts.log)
        self._links: dict[str, _Link] = {}
        self._by_camera: dict[str, list[Queue]] = {}
        self._routes: dict[tuple[str, str], tuple[_Link, Queue]] = {}
        self._known: dict[tuple[str, str], Known] = {}
        self._edges = plan.outgoing
        self._counters = parts.counters
        self.revise(plan.routes)

    def revise(self, routes: Mapping[str, Mapping[str, str]]) -> None:
        """Messages take these routes from now on: edge name -> camera -> the process that reads it.

        A camera that is no longer in them has nothing left on its way.
        """
        wanted = {
            (edge.name, camera): (edge, reader) for edge in self._edges for camera, reader in routes[edge.name].items()
        }
        for place in self._routes.keys() - wanted.keys():
            self._drop(place)
        for place in wanted.keys() - self._routes.keys():
            edge, reader = wanted[place]
            link = self._links.setdefault(reader, _Link(reader, InFlight(self._counters, self._ring.release)))
            queue = link.in_flight.queue(edge, place[1])
            self._by_camera.setdefault(place[1], []).append(queue)
            self._routes[place] = (link, queue)

    def _drop(self, place: tuple[str, str]) -> None:
        link, queue = self._routes.pop(place)
        link.in_flight.drop(queue)
        self._known.pop(place, None)
        self._by_camera[place[1]].remove(queue)
        if not self._by_camera[place[1]]:
            del self._by_camera[place[1]]

    # ---- readers come and go

    def connect(self, endpoints: Mapping[str, str]) -> None:
        """The readers' endpoints, by process; a new one means a new incarnation, which gets all reports again."""
        for process, endpoint in endpoints.items():
            link = self._links.get(process)
            if link is not None and link.endpoint != endpoint:
                link.endpoint = endpoint
                self._attach(link)

    def _attach(self, link: _Link) -> None:
        self._detach(link)
        link.connections += 1
        link.attached_at = time.monotonic()
        sender = SenderId(self._process, self._incarnation, link.connections)
        link.connection = Connection(link.endpoint, sender, self._poller)

    def _detach(self, link: _Link) -> None:
        link.in_flight.pause()
        link.rows, link.size = [], 0
        if link.connection is not None:
            link.connection.close()
            link.connection = None

    def _attach_again(self, link: _Link) -> None:
        """At most once a second: a reader that cannot bear its messages would otherwise be tried without end."""
        if link.endpoint and time.monotonic() >= link.attached_at + _AGAIN_S:
            self._attach(link)

    @property
    def attached(self) -> bool:
        """True when every reader has said hello to this process."""
        return all(link.in_flight.attached for link in self._links.values())

    def _hello(self, link: _Link, body: memoryview) -> None:
        known = {(row.edge, row.camera): row for row in read_hello(body)}
        for place in [place for place, (other, _) in self._routes.items() if other is link]:
            self._known.pop(place, None)
            if place in known:
                self._known[place] = known[place]
        same_reader = link.greeted == link.endpoint
        link.greeted = link.endpoint
        # First: messages that come again have holes for those that are done, of which another sender may not know.
        link.send_watermarks(link.in_flight.watermarks())
        again = link.in_flight.begin(link.collect, same_reader=same_reader)
        if same_reader:
            self._log.warning("attached_again", reader=link.process, messages=again)

    def done_by_all(self, camera: str) -> Stamp | None:
        """The frame of a camera up to which every reader is done, None if one of them has finished none."""
        known = [self._known.get(place) for place in self._routes if place[1] == camera]
        done = [row.done for row in known if row is not None and row.done is not None]
        return min(done, key=lambda stamp: stamp.place) if done and len(done) == len(known) else None

    def seen_by_any(self, camera: str) -> Stamp | None:
        """The last frame of a camera that any reader had when it said hello."""
        seen = [row.seen for (_, other), row in self._known.items() if other == camera]
        return max(seen, key=lambda stamp: stamp.place, default=None)

    # ---- sending

    def blocked(self, camera: str) -> bool:
        """True while something of this camera waits on an edge that must not lose it."""
        for queue in self._by_camera.get(camera, ()):  # noqa: SIM110 - asked for each camera and item: no generator
            if queue.waiting and queue.blocking:
                return True
        return False

    def submit(self, edges: Sequence[EdgePlan], camera: str, key: Key, message: Message, ticket: Ticket | None) -> None:
        """Send a message on these edges as soon as there is credit; `ticket` is called when it is done.

        Raises BadItem if there is no memory for it.
        """
        if not edges:
            return
        encoded = encode(message, self._ring)
        is_end, is_mark = isinstance(message, End), isinstance(message, MARKS)
        for edge in edges:
            link, queue = self._routes[edge.name, camera]
            counted = ticket if queue.blocking or is_end else None
            if encoded.slot:
                self._ring.keep(encoded.slot)
            if counted:
                counted.opened()
            link.in_flight.submit(Delivery(queue, key, encoded.body, encoded.slot, counted, is_mark))
        if encoded.slot:
            self._ring.release(encoded.slot)

    def raise_watermarks(self, cameras: Iterable[tuple[str, Mapping[str, Key]]], *, final: bool) -> None:
        """Report to the readers the low watermarks of each camera by edge (`pipeline.transport.watermark`).

        Only a reader that took a dead process's place needs the report: others see it from the messages. A reader that
        is away gets it with its hello.
        """
        risen: dict[str, list[Queue]] = {}
        for camera, keys in cameras:
            for queue in self._by_camera.get(camera, ()):
                if queue.name in keys:
                    link, _ = self._routes[queue.name, camera]
                    queue.watermark.rise(keys[queue.name], final=final)
                    if queue.watermark.is_news and link.in_flight.attached:
                        risen.setdefault(link.process, []).append(queue)
        for process, queues in risen.items():
            link = self._links[process]
            link.send_watermarks(link.in_flight.watermarks(queues))

    def flush(self) -> None:
        """Send the messages collected for each reader since the last call."""
        for link in self._links.values():
            if link.rows:
                link.flush()

    # ---- receiving

    def receive(self, ready: Collection[object]) -> bool:
        """Receive the signals of the readers whose sockets are `ready`; True if there are more."""
        more = False
        for link in self._links.values():
            connection = link.connection
            if connection is None:
                self._attach_again(link)
            elif connection.socket in ready and self._receive_all(link, connection):
                more = True
            elif connection.lost(ready):
                self._detach(link)
                self._attach_again(link)
        return more

    def _receive_all(self, link: _Link, connection: Connection) -> bool:
        for _ in range(_RECEIVE_AT_ONCE):
            parts = connection.receive()
            if parts is None:
                return False
            try:
                self._receive_one(link, connection, parts)
            except WireError as error:
                self._refusals.add(error, sender=link.process, counted="refused.signal")
        return True

    def _receive_one(self, link: _Link, connection: Connection, parts: Sequence[bytes]) -> None:
        kind, attached = parts[0][:1] if len(parts) == 1 else b"", link.in_flight.attached
        if kind == SIGNAL and attached:
            link.in_flight.receive(Signals.read(memoryview(parts[0])[1:]))
        elif kind == HELLO and not attached:
            self._hello(link, memoryview(parts[0])[1:])
        elif kind == AGAIN:
            connection.give_up()
        else:
            expected = SIGNAL if attached else HELLO
            raise WireError(f"a message of kind {parts[0][:1]!r} in {len(parts)} parts; expected {expected!r} in 1")

    # ---- looking

    @property
    def in_flight(self) -> int:
        """Messages sent or waiting that are not done."""
        return sum(len(link.in_flight) for link in self._links.values())

    def room(self, edge_name: str, camera: str) -> int:
        """How many more messages this edge takes now without letting one wait."""
        link, queue = self._routes[edge_name, camera]
        return max(0, queue.credits - len(queue.waiting)) if link.in_flight.attached else 0

    def close(self) -> None:
        """Close the connections; unacknowledged messages are not reported."""
        for link in self._links.values():
            self._detach(link)
