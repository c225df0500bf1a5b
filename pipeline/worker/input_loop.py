"""Takes messages of other processes in batches, runs the first stage, sends the outputs on, and acknowledges.

mailboxes --batcher--> batch --[pool, or the loop]--> rows --process--> sender --all of it done--> ack
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from camgraph.pipeline.execution.pool import Batch, Pool
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.execution.stage_chain import Made, StageChain
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import End, Message
from camgraph.pipeline.transport.receiver import Receiver
from camgraph.pipeline.transport.sender import Sender
from camgraph.pipeline.worker.batcher import Batcher
from camgraph.pipeline.worker.emitter import Emitter

_BATCHES_A_TURN = 16
"""For files. On an edge that drops, newly arrived messages are received before each batch: they may be newer."""
_TOGETHER_S = 0.01
_TOGETHER_LIVE_S = 0.001
"""Outputs made within this time travel together; nobody waits longer for them because the turn goes on."""


class InputLoop:
    """For a process that others send to. All methods are for the loop's thread, but for `begin_again`.

    `on_end(item)` is called when all of a camera is done.
    """

    def __init__(
        self,
        chain: StageChain,
        receiver: Receiver,
        sender: Sender,
        emitter: Emitter,
        parts: ProcessParts,
        *,
        on_end: Callable[[Item], None],
    ) -> None:
        self._chain = chain
        self._receiver = receiver
        self._mailboxes = receiver.mailboxes
        self._sender = sender
        self._emitter = emitter
        self._collector = parts.collector
        self._counters = parts.counters
        self._wake = parts.wake
        self._on_end = on_end
        head = chain.head
        beside = head.stage.own_thread or head.plan.threads > 1
        self._pool = Pool(head.plan.threads, self._work, parts.wake) if beside else None
        self._batcher = Batcher(chain, receiver, sender, self._pool, parts)
        self._goes_on_inside = chain.goes_on_inside(chain.order[0])
        blocking = all(edge.policy == "block" for edge in chain.plan.incoming)
        self._batches_a_turn = _BATCHES_A_TURN if blocking else 1
        self._together_s = _TOGETHER_LIVE_S if chain.plan.live else _TOGETHER_S

    def turn(self) -> bool:
        """Send finished outputs on, or else take more; True if there may be more to do."""
        # Readers must know which messages do not come before they get those behind them.
        self._raise_watermarks(self._mailboxes.take_provisional(), final=False)
        # Finishing takes its time: newly arrived messages are received before more is taken.
        busy = self.finish() or self.take()
        self._raise_watermarks(self._mailboxes.take_final(self._batcher.has_in_hand), final=True)
        return busy

    def take(self) -> bool:
        """Take all batches that are ready and allowed; True if there may be more."""
        send_s = time.monotonic() + self._together_s
        for _ in range(self._batches_a_turn):
            if time.monotonic() > send_s:
                self._send()
                send_s = time.monotonic() + self._together_s
            batch = self._batcher.next()
            if batch is None:
                return False
            if self._pool is None:
                if not batch.mark:
                    self._work(batch)
                self._finish(batch)
                continue
            self._pool.put(batch)
            if batch.mark:
                self._wake()  # it is finished already
        return True

    def _send(self) -> None:
        """Send others the messages that have come together for them within this turn."""
        self._sender.flush()
        self._receiver.flush()

    def finish(self) -> bool:
        """Send on the batches that the pool has finished; True if there were any. Raises the error of a batch."""
        finished = self._pool.finished() if self._pool else []
        if finished:
            self.take()  # the device first: the rest can run beside it
        for batch in finished:
            if batch.error is not None:
                raise batch.error
            self._finish(batch)
        return bool(finished)

    def _raise_watermarks(self, risen: Sequence[tuple[str, Key]], *, final: bool) -> None:
        """Pass the watermarks of the senders on to the readers."""
        if risen:
            watermarks = [(camera, self._chain.watermarks_behind(key)) for camera, key in risen]
            self._sender.raise_watermarks(watermarks, final=final)

    def _work(self, batch: Batch) -> None:
        """Run the first stage on a batch; in a thread of the pool, or in the loop."""
        with self._collector.collecting() as slots:
            batch.slots = slots
            batch.rows = self._chain.run_head(batch.items)

    def _finish(self, batch: Batch) -> None:
        """Send the outputs of a batch on, and let go of its inputs."""
        slots = batch.slots
        if self._goes_on_inside or batch.mark:
            with self._collector.collecting() as taken:
                made = self._made_of(batch)
            slots += taken
        else:
            made = self._made_of(batch)
        self._emitter.submit(batch.items, made, self._item_done)
        self._batcher.sent_on(batch.items)
        for item in batch.items:
            self._receiver.credit(item)
            if item.possible_poison:
                self._receiver.survived(item)
        if slots:
            self._collector.let_go(slots)

    def _made_of(self, batch: Batch) -> list[Made]:
        """Take the outputs of a batch through the stages behind the first."""
        first, head = batch.items[0], self._chain.order[0]
        if isinstance(first.payload, End):
            made = self._chain.end(head, first)
            self._batcher.ended()
            return made
        if batch.mark:
            return self._chain.pass_on(head, first)
        pairs = zip(batch.items, batch.rows, strict=True)
        kept = [row if item.intact() else self._torn(item) for item, row in pairs]
        return self._chain.spread(head, batch.items, kept)

    def _torn(self, item: Item) -> list[Message]:
        self._counters.add("dropped.torn", item.camera)
        return []

    def _item_done(self, item: Item) -> None:
        self._batcher.finished(item)
        self._receiver.ack(item)
        if not item.is_mark:
            self._chain.frame_done(item.stamp)
        elif isinstance(item.payload, End):
            self._on_end(item)

    def wait_ms(self) -> int:
        """How much longer a batch that is not full waits for more items; 0 when it does not."""
        return self._batcher.wait_ms()

    @property
    def working_since_ns(self) -> int:
        """When the oldest batch that is at work in a thread began (monotonic), 0 when none is."""
        return self._pool.working_since_ns if self._pool else 0

    def begin_again(self) -> None:
        """Called in a thread of the pool: its stage waits for the outside, and tries again."""
        assert self._pool
        self._pool.begin_again()

    def close(self, timeout_s: float) -> bool:
        """Let the threads end, and wait for them, but not for ever; whether they have ended."""
        return self._pool is None or self._pool.close(timeout_s)
