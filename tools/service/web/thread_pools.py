"""Threads for blocking work. Each kind has a few of its own (bulkheads), so that one that hangs keeps no other waiting.

Blocking work hangs if a disk does (a network share that is away, for ever), if the run does (a change takes up to
40 s), or if another process does (a picture takes up to 6 s). With one pool for all, forty requests for clips would
take every thread, and nobody would learn how the run is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from camgraph.pipeline.errors import Unavailable

T = TypeVar("T")
_WAIT_S = 5.0
"""For a free thread. Longer than a run that hangs is waited for (4 s), so that who asks for its health is answered."""


class ThreadPool:
    """At most `threads` for one kind of work. `what`: who is waited for, in words for errors."""

    def __init__(self, what: str, threads: int, *, wait_s: float = _WAIT_S) -> None:
        self._what, self._threads, self._wait_s = what, threads, wait_s
        self._executor = ThreadPoolExecutor(threads, what)

    async def run(self, work: Callable[..., T], *values: object, **more: object) -> T:
        """Do the work in a thread. Raises Unavailable if none is free within `wait_s`: the work is not begun then.

        A caller that is cancelled waits for work that has begun, so that none goes on behind its back.
        """
        future = self._executor.submit(partial(work, *values, **more))
        done = asyncio.wrap_future(future)
        try:
            await asyncio.wait([done], timeout=self._wait_s)
            if not done.done() and future.cancel():  # only work that has not begun can be cancelled
                raise self._busy()
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            if not future.cancel():
                await asyncio.wait([done])
            raise

    def _busy(self) -> Unavailable:
        return Unavailable(
            f"all {self._threads} threads that wait for {self._what} are busy: try again in some seconds. If that does "
            f"not help, see whether {self._what} still answers",
            error_id="threads-busy",
        )

    def run_later(self, work: Callable[..., object], *values: object) -> None:
        """Do the work when a thread is free, however long that takes. After `close`, do it at once."""
        try:
            self._executor.submit(work, *values)
        except RuntimeError:
            work(*values)

    def close(self) -> None:
        """End the threads that are free now, and each other one after its work, which is not waited for."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class ThreadPools:
    """The threads of one service, from its start until `close`. A thread is started when it is first needed."""

    def __init__(self) -> None:
        self.health = ThreadPool("the run", 4)
        """Probes, metrics and the whole status."""
        self.run = ThreadPool("the run", 16)
        """All other questions about its state."""
        self.changes = ThreadPool("the run", 4)
        self.pictures = ThreadPool("the newest pictures", 8)
        self.decoder = ThreadPool("the process that makes live pictures", 4)
        self.model = ThreadPool("the model", 8)
        self.history = ThreadPool("the history of events", 8)
        self.footage = ThreadPool("the disk with the incidents and clips", 16)
        self.rules = ThreadPool("the disk with the rules", 8)

    def close(self) -> None:
        """See `ThreadPool.close`."""
        for one in vars(self).values():
            one.close()
