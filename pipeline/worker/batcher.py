"""Decides which items a process takes next: how many, of which cameras, when, and whether alone.

mailboxes --room, wait_ms, threads--> batch --> [pool or loop]
                  possible poison --nothing else at work--> tried alone --died of it twice--> quarantined
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.execution.pool import Batch, Pool
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.execution.stage_chain import StageChain
from camgraph.pipeline.items import Item
from camgraph.pipeline.messages import End, Event, Tombstone
from camgraph.pipeline.plan import DROPPING_AT_WORK
from camgraph.pipeline.transport.receiver import Receiver
from camgraph.pipeline.transport.sender import Sender

_SENT_S = 0.05
_BATCHES_TAKEN = 16


class Batcher:
    """Makes batches of the messages in the mailboxes, for the first stage of `chain`. `clock` is in seconds."""

    def __init__(
        self,
        chain: StageChain,
        receiver: Receiver,
        sender: Sender,
        pool: Pool | None,
        parts: ProcessParts,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        head, plan = chain.head.plan, chain.plan
        self._stage = chain.head.stage
        self._head = head
        self._receiver = receiver
        self._mailboxes = receiver.mailboxes
        self._sender = sender
        self._pool = pool
        self._counters = parts.counters
        self._log = parts.log
        self._clock = clock
        self._blocking = all(edge.policy == "block" for edge in plan.incoming)
        self._window = plan.window if self._blocking else min(plan.window, DROPPING_AT_WORK)
        self._unfinished: Counter[str] = Counter()
        self._in_hand: Counter[str] = Counter()
        self._possible_poison: Item | None = None
        # In the loop, batches of waiting messages: the turn need not be decided before each.
        self._most = head.batch_max * (_BATCHES_TAKEN if self._blocking and pool is None else 1)
        self._taken: list[Item] = []
        self._ending = False

    def next(self) -> Batch | None:
        """The next batch, or None when there is none now."""
        if self._taken:
            return Batch(self._next_of_taken())
        if not self._may_begin():
            return None
        if self._possible_poison:
            return self._try_alone()
        self._taken = self._mailboxes.take(self._most, self._room)
        if not self._taken:
            return None
        for item in self._taken:
            self._unfinished[item.camera] += 1
            self._in_hand[item.camera] += 1
        items = self._next_of_taken()
        if items[0].possible_poison:
            self._possible_poison = items[0]
            return self._try_alone()
        # A camera's end runs in the loop: nothing else of a stage that is not made for it may run beside it.
        self._ending = isinstance(items[0].payload, End) and not self._stage.thread_safe
        return Batch(items, mark=items[0].is_mark)

    def _next_of_taken(self) -> list[Item]:
        """As much as goes into one batch."""
        items = self._taken[: self._head.batch_max]
        self._taken = self._taken[self._head.batch_max :]
        return items

    def ended(self) -> None:
        """A camera's end has been dealt with."""
        self._ending = False

    def sent_on(self, items: Sequence[Item]) -> None:
        """All that was made of these has been submitted."""
        for item in items:
            self._in_hand[item.camera] -= 1

    def has_in_hand(self, camera: str) -> bool:
        """Whether an item of a camera was taken whose outputs have not been submitted."""
        return self._in_hand[camera] > 0

    def finished(self, item: Item) -> None:
        """All that was made of an item is done."""
        self._unfinished[item.camera] -= 1

    def wait_ms(self) -> int:
        """How much longer a batch that is not full waits for more items; 0 when it does not."""
        since = self._mailboxes.since(self._head.batch_max, self._room) if self._head.wait_ms else None
        if since is None:
            return 0
        return max(0, math.ceil(self._head.wait_ms - 1000 * (self._clock() - since)))

    def _room(self, camera: str) -> int:
        return 0 if self._sender.blocked(camera) else self._window - self._unfinished[camera]

    def _may_begin(self) -> bool:
        """Whether a batch may be taken now: a thread is free, or, if age is no matter, a full batch may wait."""
        if self._ending:
            return False
        if self._pool and self._pool.unfinished >= self._pool.threads:
            ahead = self._blocking and self._pool.unfinished == self._pool.threads
            return ahead and self._mailboxes.has(self._head.batch_max, self._room)
        return not self.wait_ms()

    def _try_alone(self) -> Batch | None:
        """Process a possible poison message when nothing else is at work; quarantine it if it kills processes alone."""
        if self._pool and not self._pool.empty:
            return None
        item, self._possible_poison = self._possible_poison, None
        assert item
        if not item.poison:
            self._receiver.trying(item)
            time.sleep(_SENT_S)  # the signal leaves in a thread of ZeroMQ's, which must not die before
            return Batch([item])
        self._quarantine(item)
        return Batch([item], mark=True)

    def _quarantine(self, item: Item) -> None:
        """Drop a message that kills processes; an event stays as a dead letter."""
        camera = item.stamp.camera  # to a sink, the events of all cameras come under one name
        self._counters.add("dropped.quarantined", camera)
        self._log.error("item_quarantined", camera=camera, seq=item.stamp.seq, deaths=item.deaths)
        if isinstance(item.payload, Event):
            self._keep_dead_letter(item.payload, item.deaths)
        item.payload = Tombstone(item.stamp, "quarantined")

    def _keep_dead_letter(self, event: Event, deaths: int) -> None:
        why = f"{deaths} processes of the sink died while they worked on it"
        try:
            self._stage.context.dead_letters.add(event, why, attempts=deaths)
        except EnvironmentProblem as error:  # not tried again: the disk may be the reason for the deaths
            self._log.error("dead_letter_not_kept", id=event.own_id, error=str(error), error_id=error.error_id)
