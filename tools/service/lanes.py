"""Threads for work that may wait: each kind has its own, so that one kind that hangs keeps no other waiting.

What hangs: the run (a change takes up to 40 s), the process that makes pictures (6 s each), a disk, for ever. Pages of
past events may take long. All other work is done in the threads that Starlette has for all (`run_in_threadpool`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

import anyio.to_thread
from anyio import CapacityLimiter

T = TypeVar("T")


class Lane:
    """So many threads, of each loop."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._limiters: WeakKeyDictionary[asyncio.AbstractEventLoop, CapacityLimiter] = WeakKeyDictionary()

    async def run(self, work: Callable[..., T], *values: object, **more: object) -> T:
        """Do it in a thread, when one is free."""
        loop = asyncio.get_running_loop()
        limiter = self._limiters.get(loop)
        if limiter is None:
            limiter = self._limiters[loop] = CapacityLimiter(self._threads)
        return await anyio.to_thread.run_sync(partial(work, *values, **more), limiter=limiter)


HEALTH, PICTURES, CHANGES, HISTORY = Lane(4), Lane(8), Lane(4), Lane(8)
