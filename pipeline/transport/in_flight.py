"""Keeps the messages for one reading process, each until it is acknowledged as done.

A message on an edge goes through three places, in its camera's order:

    waiting --credit in hand--> sent --credit--> sent, credit given back --ack--> forgotten

Sending never waits: messages without a credit wait here, and the process takes no more of that camera. On edges that
drop, nothing is kept for a dead reader and only the newest message waits. When a reader attaches again, its unfinished
messages go back to `waiting`, before all others. Marks need no credit, but keep their place in the order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from camgraph.pipeline.items import Key
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import EdgePlan
from camgraph.pipeline.shm.slots import Slot
from camgraph.pipeline.transport.protocol import Signals, Watermark
from camgraph.pipeline.transport.watermark import SentWatermark

_MOST_WAITING = 64


class Ticket:
    """Counts the messages made of one taken item; when all of them are done, it calls `on_done(*of)`, once."""

    __slots__ = ("_of", "_on_done", "_open")

    def __init__(self, on_done: Callable[..., object], *of: object) -> None:
        self._open = 1
        self._on_done = on_done
        self._of = of

    def opened(self) -> None:
        """One more delivery."""
        self._open += 1

    def closed(self) -> None:
        """One delivery is done, or the item itself has been processed."""
        self._open -= 1
        if self._open == 0:
            self._on_done(*self._of)


@dataclass(slots=True, eq=False)
class Delivery:
    """One message on its way to one reader. It holds a reference to its slot, and keeps its ticket open."""

    queue: Queue
    key: Key
    body: bytes
    slot: Slot | None
    ticket: Ticket | None
    is_mark: bool
    credited: bool = False
    deaths: int = 0
    tries: int = 0


@dataclass(slots=True, eq=False)
class Queue:
    """The deliveries of one edge and camera that wait for a credit."""

    edge: EdgePlan
    camera: str
    credits: int
    waiting: deque[Delivery] = field(default_factory=deque)
    watermark: SentWatermark = field(default_factory=SentWatermark)
    name: str = field(init=False)
    blocking: bool = field(init=False)
    """Nothing that waits may be lost."""

    def __post_init__(self) -> None:
        self.name = self.edge.name
        self.blocking = self.edge.policy == "block"

    @property
    def blocked(self) -> bool:
        """True while something waits that must not be lost."""
        return self.blocking and bool(self.waiting)


Send = Callable[[int, Delivery], None]


class InFlight:
    """One reading process. `release` lets go of a slot. Nothing is sent between `pause` and `begin`."""

    def __init__(self, counters: Counters, release: Callable[[Slot], None]) -> None:
        self._counters = counters
        self._release = release
        self._queues: list[Queue] = []
        self._sent: dict[int, Delivery] = {}
        self._trying: Delivery | None = None
        self._send: Send | None = None
        self._next_n = 1

    def queue(self, edge: EdgePlan, camera: str) -> Queue:
        """A new queue, for an edge and camera that go to this reader."""
        queue = Queue(edge, camera, edge.credits)
        self._queues.append(queue)
        return queue

    def drop(self, queue: Queue) -> None:
        """Nothing goes that way any more; its messages are forgotten."""
        self._queues.remove(queue)
        for n in [n for n, delivery in self._sent.items() if delivery.queue is queue]:
            self._forget(self._sent.pop(n))
        while queue.waiting:
            self._forget(queue.waiting.popleft())

    def __len__(self) -> int:
        """Messages sent or waiting that are not done."""
        return len(self._sent) + sum(len(queue.waiting) for queue in self._queues)

    @property
    def attached(self) -> bool:
        """True while there is somebody to send to."""
        return self._send is not None

    # ---- readers come and go

    def pause(self) -> None:
        """The connection is gone."""
        self._send = None

    def begin(self, send: Send, *, same_reader: bool) -> int:
        """The reader is there: send all its unfinished messages again by `send`, counted from 1, before new ones.

        `same_reader`: it is the same process as before, which still has the messages that reached it, and did not die
        of them. Returns how many messages go out again.
        """
        self._send, self._next_n = send, 1
        sent, self._sent = self._sent, {}
        if not same_reader:
            if self._trying is not None and self._trying in sent.values():
                self._trying.tries += 1
            self._trying = None
        for queue in self._queues:
            queue.credits = queue.edge.credits
        for delivery in reversed(sent.values()):
            self._put_back(delivery, same_reader=same_reader)
        for queue in self._queues:
            self._pump(queue)
        return len(self._sent)

    def watermarks(self, queues: Iterable[Queue] | None = None) -> list[Watermark]:
        """The report of these queues; None: of all, for a reader that may know nothing yet. It counts as sent now.

        Edges that drop have none: nothing comes again on them.
        """
        last = {delivery.queue: delivery.key for delivery in self._sent.values()}
        last |= {queue: queue.waiting[-1].key for queue in self._queues if queue.waiting}
        blocking = [queue for queue in (self._queues if queues is None else queues) if queue.blocking]
        return [row for queue in blocking for row in queue.watermark.report(queue.name, queue.camera, last.get(queue))]

    def _put_back(self, delivery: Delivery, *, same_reader: bool) -> None:
        queue = delivery.queue
        if same_reader or queue.edge.policy == "block" or delivery.is_mark:
            delivery.credited = False
            delivery.deaths += not same_reader
            queue.waiting.appendleft(delivery)
        else:
            self._counters.add("dropped.reader_lost", queue.camera)
            self._forget(delivery)

    # ---- sending

    def submit(self, delivery: Delivery) -> None:
        """Send as soon as there is a credit."""
        queue = delivery.queue
        queue.watermark.submitted = delivery.key
        if self._send and not queue.waiting and (queue.credits > 0 or delivery.is_mark):
            self._send_now(self._send, queue, delivery)
            return
        queue.waiting.append(delivery)
        self._pump(queue)
        if not queue.blocking:
            self._drop_surplus(queue)

    def _drop_surplus(self, queue: Queue) -> None:
        """On an edge that drops, only the newest waits."""
        while len(queue.waiting) > _MOST_WAITING and queue.waiting[0].ticket is None:
            self._forget(queue.waiting.popleft())  # tombstones for a reader that is away
        unsent = [delivery for delivery in queue.waiting if not delivery.is_mark]
        for victim in unsent[:-1] if queue.edge.policy == "drop_oldest" else unsent[1:]:
            queue.waiting.remove(victim)
            self._counters.add(queue.edge.drop_counter, queue.camera)
            self._forget(victim)

    def _pump(self, queue: Queue) -> None:
        while self._send and queue.waiting and (queue.credits > 0 or queue.waiting[0].is_mark):
            self._send_now(self._send, queue, queue.waiting.popleft())

    def _send_now(self, send: Send, queue: Queue, delivery: Delivery) -> None:
        if not delivery.is_mark:
            queue.credits -= 1
        n = self._next_n
        self._next_n = n + 1
        self._sent[n] = delivery
        send(n, delivery)

    # ---- signals

    def receive(self, signals: Signals) -> None:
        """Take in the reader's signals about the messages sent on this connection."""
        if signals.tried:
            self._trying = self._sent.get(signals.tried[-1])
        may_send: set[Queue] = set()
        for n in signals.credits:
            delivery = self._sent.get(n)
            if delivery is not None:
                self._credit(delivery, may_send)
                if not delivery.queue.blocking and not delivery.is_mark:  # on an edge that drops, that was all
                    self._forget(self._sent.pop(n))
        for n in signals.acks:
            delivery = self._sent.pop(n, None)
            if delivery is not None:
                self._credit(delivery, may_send)
                self._forget(delivery)
        for queue in may_send:
            self._pump(queue)

    def _credit(self, delivery: Delivery, may_send: set[Queue]) -> None:
        """Give the credit of a message back, unless that was done."""
        if not delivery.credited:
            delivery.credited = True
            delivery.queue.credits += not delivery.is_mark
            if delivery.queue.waiting:
                may_send.add(delivery.queue)

    def _forget(self, delivery: Delivery) -> None:
        if delivery.slot:
            self._release(delivery.slot)
            delivery.slot = None
        if delivery.ticket:
            ticket, delivery.ticket = delivery.ticket, None
            ticket.closed()
