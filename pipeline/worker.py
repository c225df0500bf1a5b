"""One process of a graph: takes from its mailboxes, runs its stages, sends what they make, gives signals.

`pipeline.child` starts it, `pipeline.supervisor` gives it orders. `pipeline.inlet` and `pipeline.outlet` say what
travels between processes,
`pipeline.unit` what happens to an item in here.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import zmq

from pipeline.boot import Boot, build_unit
from pipeline.channel import Channel
from pipeline.context import Collector
from pipeline.dispatch import Dispatch
from pipeline.errors import BadItem, CamgraphError, EnvironmentProblem, Unavailable
from pipeline.feed import Handed, SourceFeed
from pipeline.gatherer import Gatherer
from pipeline.inlet import Inlet
from pipeline.items import END_SEQ, Item, Key
from pipeline.messages import End, Message, Stamp
from pipeline.metrics import Counters
from pipeline.outlet import Outlet, Ticket
from pipeline.plan import UnitPlan
from pipeline.pool import Batch, Pool
from pipeline.segments import require_ordered_stores
from pipeline.slots import Slot, SlotRing
from pipeline.stage import Logger, Source
from pipeline.unit import Made
from pipeline.wire import new_arrays

_BEAT_S = 0.25
_IDLE_MS = 200
_HOLD_S = 1.0
_JOIN_S = 1.0
_BATCHES_A_TURN = 16


def slots_of(plan: UnitPlan) -> int:
    """How many messages of a process may be alive at once, by the rules of flow.

    Of each camera: what its window allows, for each stage whose messages leave; on each edge that drops what a reader
    may hold, what waits for it and what is being replaced; and what each thread is making.
    """
    leaving = max(1, len({edge.sender for edge in plan.outgoing}))
    dropping = sum(edge.credits + 2 for edge in plan.outgoing if edge.policy != "block")
    making = sum(max(1, stage.threads) * stage.batch_max for stage in plan.stages)
    return len(plan.cameras) * (leaving * (plan.window + 1) + dropping) + making


@dataclass(slots=True)
class _Frame:
    """A source's frame on its way through the graph."""

    stamp: Stamp
    done: bool = False


class Worker:
    """The loop. All of its methods run in one thread, but for `_work`."""

    def __init__(self, boot: Boot, channel: Channel, log: Logger) -> None:
        require_ordered_stores()
        self._boot = boot
        self._plan = boot.unit
        self._channel = channel
        self._log = log
        self._counters = Counters()
        self._poller = zmq.Poller()
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._ring = SlotRing(boot.shm_prefix, slots_of(self._plan))
        allocate = partial(new_arrays, self._ring)
        self._collector = Collector()
        self._unit, sources = build_unit(boot, self._counters, log, self._collector, allocate)
        self._feeds = {source.camera: self._feed(source) for source in sources}
        self._inlet = self._make_inlet()
        self._outlet = Outlet(
            unit=self._plan.name,
            incarnation=boot.incarnation,
            edges=self._plan.outgoing,
            routes=self._plan.routes,
            ring=self._ring,
            counters=self._counters,
            poller=self._poller,
            log=log,
        )
        self._pool = self._make_pool()
        self._gatherer = self._make_gatherer()
        self._dispatch = self._make_dispatch()
        self._ages: dict[str, float] = {}
        self._held: tuple[list[Item], float, str] | None = None
        self._on_the_way: dict[str, deque[_Frame]] = defaultdict(deque)
        self._frames_done: dict[str, Stamp] = {}
        self._waits_for = ""
        self._closing = threading.Event()
        self._order: set[str] = set()
        self._next_beat = 0.0
        self._cpu_before = 0.0

    # ---- building

    def _feed(self, source: Source[Any]) -> SourceFeed:
        return SourceFeed(
            source,
            self._collector,
            window=self._plan.window,
            live=source.is_live(source.camera_settings),
            wake=self._wake,
            release=self._ring.release,
        )

    def _make_inlet(self) -> Inlet | None:
        if not self._plan.incoming:
            return None
        accepted = {edge.name: self._boot.accepted(edge) for edge in self._plan.incoming}
        senders = self._plan.senders
        inlet = Inlet(self._boot.endpoint, self._plan.incoming, accepted, senders, self._counters, self._log)
        self._poller.register(inlet.socket, zmq.POLLIN)
        return inlet

    def _make_pool(self) -> Pool | None:
        if not self._inlet:
            return None
        head = self._unit.head
        if not (head.stage.own_thread or head.plan.threads > 1):
            return None
        return Pool(head.plan.threads, self._work_until_taken, self._wake)

    def _make_gatherer(self) -> Gatherer | None:
        if not self._inlet:
            return None
        return Gatherer(
            plan=self._plan,
            head=self._unit.head.plan,
            inlet=self._inlet,
            outlet=self._outlet,
            pool=self._pool,
            thread_safe=self._unit.head.stage.thread_safe,
            counters=self._counters,
            log=self._log,
        )

    def _make_dispatch(self) -> Dispatch | None:
        outbox = self._unit.outbox
        if outbox is None:
            return None
        return Dispatch(
            outbox,
            plan=self._plan,
            incarnation=self._boot.incarnation,
            outlet=self._outlet,
            channel=self._channel,
            log=self._log,
        )

    def _wake(self) -> None:
        os.eventfd_write(self._wake_fd, 1)

    # ---- the loop

    def run(self) -> None:
        """Open the stages, then work until told to close. Raises what ends the process."""
        self._poller.register(self._channel.fileno(), zmq.POLLIN)
        self._poller.register(self._wake_fd, zmq.POLLIN)
        try:
            self._unit.open()
            self._cpu_before = time.process_time()
            self._channel.send("ready", endpoint=self._boot.endpoint if self._inlet else "")
            busy = True
            while "close" not in self._order and not self._channel.closed:
                more = self._wait(busy)
                busy = self._turn() or more
        finally:
            self._close()

    def _wait(self, busy: bool) -> bool:
        """Wait for something to happen and hear it; True when there is more to hear."""
        ready = dict(self._poller.poll(0 if busy else self._idle_ms()))
        if self._wake_fd in ready:
            os.eventfd_read(self._wake_fd)
        if self._channel.fileno() in ready:
            self._obey()
        more = self._inlet.receive() if self._inlet and self._inlet.socket in ready else False
        return self._outlet.receive(ready) or more

    def _idle_ms(self) -> int:
        return (self._gatherer.wait_ms() if self._gatherer else 0) or _IDLE_MS

    def _turn(self) -> bool:
        """One round of everything; True when there is more to do without anything happening."""
        self._start_sources()
        self._take_from_sources()
        self._finish_batches()
        busy = self._take_items()
        if self._dispatch:
            self._dispatch.turn()
        if self._inlet:
            self._inlet.flush()
        self._beat()
        return busy

    def _obey(self) -> None:
        for message in self._channel.receive():
            if message["op"] == "links":
                self._outlet.connect(message["endpoints"])
            elif message["op"] == "stop":
                for feed in self._feeds.values():
                    feed.stop()
            elif message["op"] == "emit":
                assert self._dispatch
                self._dispatch.emit(message)
            else:
                self._order.add(message["op"])

    # ---- sources

    def _start_sources(self) -> None:
        if "start" not in self._order or not self._feeds or not self._outlet.attached:
            return
        for camera, feed in self._feeds.items():
            if not feed.started:
                feed.start(self._resume_of(camera), self._boot.gave_up)

    def _resume_of(self, camera: str) -> Stamp | None:
        """Behind which frame to go on: what the readers are done with, or an earlier incarnation knew to be done."""
        known = [stamp for stamp in (self._outlet.done_by_all(camera), self._boot.resume_of(camera)) if stamp]
        return max(known, key=lambda stamp: stamp[1:3], default=None)

    def _take_from_sources(self) -> bool:
        feeds = [feed for feed in self._feeds.values() if len(self._on_the_way[feed.camera]) < self._plan.window]
        taken = [(feed, handed) for feed in feeds for handed in feed.take()]
        for feed, handed in taken:
            self._send_source(feed, handed)
        return bool(taken)

    def _send_source(self, feed: SourceFeed, handed: Handed) -> None:
        message, camera = handed.message, feed.camera
        if isinstance(message, End):
            item = Item(camera, Key(message.stamp.epoch, END_SEQ, 0), message)
            self._submit([item], self._unit.end(feed.stage, item), partial(self._camera_ended, message))
            return
        item = Item(camera, Key(message.stamp.epoch, message.stamp.seq, 0), message)
        self._counters.add("frames", camera)
        with self._collector.collecting() as slots:
            made = self._unit.spread(feed.stage, [item], [[message]])
        frame = _Frame(message.stamp)
        self._on_the_way[camera].append(frame)
        self._submit([item], made, lambda _: self._frame_done(feed, frame))
        self._let_go([*handed.slots, *slots])

    def _frame_done(self, feed: SourceFeed, frame: _Frame) -> None:
        """Note up to where all frames of the camera are done: there a later incarnation can go on."""
        feed.give_back()
        frame.done = True
        frames = self._on_the_way[feed.camera]
        while frames and frames[0].done:
            self._frames_done[feed.camera] = frames.popleft().stamp

    def _let_go(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            self._ring.release(slot)

    # ---- items

    def _take_items(self) -> bool:
        if not self._gatherer:
            return False
        if self._held:
            return self._try_held()
        for _ in range(_BATCHES_A_TURN):
            batch = self._gatherer.next()
            if batch is None:
                return False
            if self._pool:
                self._pool.put(batch)
                if batch.mark:
                    self._wake()  # it is finished already
            elif not self._work_inline(batch):
                return False
        return True

    def _work(self, batch: Batch) -> None:
        """Run the first stage on a batch; in a thread of the pool, or in the loop."""
        with self._collector.collecting() as slots:
            batch.slots = slots
            batch.rows = self._unit.run_head(batch.items)

    def _work_until_taken(self, batch: Batch) -> None:
        """As `_work`, in a thread: what the outside does not take now is tried again and keeps its place."""
        while True:
            try:
                self._work(batch)
                self._waits_for = ""
                return
            except (Unavailable, EnvironmentProblem) as error:
                self._let_go(batch.slots)
                if not self._waits_for:
                    self._log.error("held_back", error=str(error), items=len(batch.items))
                self._waits_for = str(error)
                if self._closing.wait(_HOLD_S):
                    raise
                batch.started_ns = time.monotonic_ns()

    def _work_inline(self, batch: Batch) -> bool:
        """Process a batch in the loop; False when it had to be held back."""
        if not batch.mark:
            try:
                self._work(batch)
            except (Unavailable, EnvironmentProblem) as error:
                self._hold(batch, error)
                return False
        self._finish(batch)
        return True

    def _finish_batches(self) -> bool:
        if not self._pool:
            return False
        finished = self._pool.finished()
        if finished:
            self._take_items()  # the device first: what follows can run beside it
        for batch in finished:
            if batch.error is not None:
                raise batch.error
            self._finish(batch)
        return bool(finished)

    def _finish(self, batch: Batch) -> None:
        """Send what was made of a batch on, and let go of what it was made of."""
        first, head = batch.items[0], self._unit.order[0]
        with self._collector.collecting() as slots:
            if isinstance(first.payload, End):
                made = self._unit.end(head, first)
                assert self._gatherer
                self._gatherer.ended()
            elif batch.mark:
                made = self._unit.pass_on(head, first)
            else:
                pairs = zip(batch.items, batch.rows, strict=True)
                kept = [row if item.intact() else self._torn(item) for item, row in pairs]
                made = self._unit.spread(head, batch.items, kept)
        self._submit(batch.items, made, self._item_done)
        assert self._inlet
        for item in batch.items:
            self._inlet.free(item)
            if item.suspect:
                self._inlet.survived(item)
        self._let_go([*batch.slots, *slots])

    def _torn(self, item: Item) -> list[Message]:
        self._counters.add("dropped.torn", item.camera)
        return []

    def _submit(self, items: Sequence[Item], made: Iterable[Made], on_done: Callable[[Item], None]) -> None:
        """Send what was made of these items; `on_done(item)` is called when all of an item is done."""
        by_item: dict[int, list[Made]] = defaultdict(list)
        for one in made:
            by_item[id(one.item) if len(items) > 1 else 0].append(one)
        for item in items:
            ticket = Ticket(partial(on_done, item))
            for one in by_item.get(id(item) if len(items) > 1 else 0, ()):
                try:
                    self._outlet.submit(one.edges, item.camera, one.key, one.message, ticket)
                except BadItem as bad:
                    self._counters.add(f"dropped.{bad.reason}", item.camera)
                    self._log.error("message_dropped", camera=item.camera, error=str(bad))
                except (TypeError, ValueError, OverflowError):  # a stage made what no message can hold
                    self._counters.add("dropped.error", item.camera)
                    self._log.exception("message_cannot_be_sent", camera=item.camera, type=one.message.TYPE)
            ticket.closed()

    def _item_done(self, item: Item) -> None:
        assert self._inlet
        assert self._gatherer
        self._gatherer.finished(item)
        self._inlet.done(item)
        if isinstance(item.payload, End):
            self._camera_ended(item.payload, item)
        elif item.stamp.captured_ns:
            self._ages[item.camera] = (time.monotonic_ns() - item.stamp.captured_ns) / 1e6

    def _camera_ended(self, end: End, item: Item) -> None:
        self._channel.send("ended", camera=item.camera, reason=end.reason, error=end.error)

    # ---- what the outside does not take now

    def _hold(self, batch: Batch, error: CamgraphError) -> None:
        if self._held is None:
            self._log.error("held_back", error=str(error), items=len(batch.items))
        self._held = (list(batch.items), time.monotonic() + _HOLD_S, str(error))
        self._let_go(batch.slots)

    def _try_held(self) -> bool:
        assert self._held
        items, again_at, _ = self._held
        if time.monotonic() < again_at:
            return False
        batch = Batch(items)
        try:
            self._work(batch)
        except (Unavailable, EnvironmentProblem) as error:
            self._hold(batch, error)
            return False
        self._log.info("taken_again", items=len(items))
        self._held = None
        self._finish(batch)
        return True

    # ---- reports

    def _beat(self) -> None:
        now = time.monotonic()
        if now >= self._next_beat:
            self._next_beat = now + _BEAT_S
            self._report()

    def _report(self) -> None:
        self._channel.send(
            "beat",
            working_since_ns=self._pool.working_since_ns if self._pool else 0,
            stages={name: runner.times.snapshot() for name, runner in self._unit.runners.items()},
            counts=self._counters.snapshot(),
            ages=self._ages,
            files=self._counters.files,
            frames_done=self._frames_done,
            cpu_s=time.process_time() - self._cpu_before,
            queue=self._inlet.waiting() if self._inlet else 0,
            custody=self._outlet.in_custody,
            slots=self._ring.in_use,
            held=self._held[2] if self._held else self._waits_for,
        )
        self._ages = {}

    def _close(self) -> None:
        self._closing.set()
        for feed in self._feeds.values():
            feed.stop()
        if self._pool is None or self._pool.close(_JOIN_S):
            self._unit.close()
        else:
            self._log.warning("stage_not_closed", why="it is still at work")
        self._outlet.close()
        if self._inlet:
            self._inlet.close()
        for feed in self._feeds.values():
            feed.join(_JOIN_S)
        self._ring.close()
        self._report()
