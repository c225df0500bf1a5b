"""Runs batches beside the loop, in threads; results come back in the order in which the batches went in."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING

from camgraph.pipeline.items import Item
from camgraph.pipeline.messages import Message

if TYPE_CHECKING:
    from camgraph.pipeline.shm.slots import Slot


POOL_THREAD = "pool"
"""How the names of these threads begin."""


@dataclass(slots=True, eq=False)
class Batch:
    """Items that are processed together. `mark`: a tombstone or end that only keeps its place in the order."""

    items: Sequence[Item]
    mark: bool = False
    rows: list[list[Message]] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    error: BaseException | None = None
    started_ns: int = 0
    finished: bool = False


class Pool:
    """`threads` threads that call `work(batch)`; `wake` is called from them after each batch."""

    def __init__(self, threads: int, work: Callable[[Batch], None], wake: Callable[[], None]) -> None:
        self.threads = threads
        self._work = work
        self._wake = wake
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._order: deque[Batch] = deque()
        self._current = threading.local()
        self._threads = [
            threading.Thread(target=self._run, name=f"{POOL_THREAD} {n}", daemon=True) for n in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while (batch := self._queue.get()) is not None:
            self._current.batch = batch
            self.begin_again()
            try:
                self._work(batch)
            except BaseException as error:  # noqa: BLE001 - handed to the loop, which decides
                batch.error = error
            batch.finished = True
            self._wake()

    def begin_again(self) -> None:
        """Called in one of the threads: it has waited, and starts its batch again."""
        self._current.batch.started_ns = time.monotonic_ns()

    def put(self, batch: Batch) -> None:
        """Queue a batch; a mark is finished at once, but not before the batches ahead of it."""
        self._order.append(batch)
        if batch.mark:
            batch.finished = True
        else:
            self._queue.put(batch)

    def finished(self) -> list[Batch]:
        """The batches at the head of the order that are finished."""
        out = []
        while self._order and self._order[0].finished:
            out.append(self._order.popleft())
        return out

    @property
    def unfinished(self) -> int:
        """Batches queued or running."""
        return sum(1 for batch in self._order if not batch.finished)

    @property
    def working_since_ns(self) -> int:
        """When the oldest running batch began (monotonic), 0 when none runs."""
        return min((b.started_ns for b in self._order if b.started_ns and not b.finished), default=0)

    @property
    def empty(self) -> bool:
        """True when nothing is in it, finished or not."""
        return not self._order

    def close(self, timeout_s: float) -> bool:
        """Let the threads end after their batches, and wait for them, but not for ever; returns whether they have
        ended.
        """
        for _ in self._threads:
            self._queue.put(None)
        until = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)
