"""Threads that a program starts and waits for, though a signal handler of the program may raise at any moment.

Ctrl-C raises KeyboardInterrupt between any two steps of the main thread, also within the Python code of `threading`. An
`Event` or a `Condition` that is left in this way keeps its lock for ever, and the next thread that calls `set` or
`notify` blocks for ever. The locks themselves are safe in a `with` statement: no handler runs between taking one and
entering the block. So a program's threads share nothing with a run's but such locks and latches.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from contextlib import suppress


class Latch:
    """Opens once and stays open; threads wait for that. `set` never blocks, whatever has happened to those that wait.

    Every thread waits on a lock of its own, so none leaves a lock behind that another needs.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: list[threading.Lock] = []

    def is_set(self) -> bool:
        """Whether `set` has been called."""
        return self._is_set

    def set(self) -> None:
        """Let all waiting threads go on, and all that come later."""
        self._is_set = True
        for one in list(self._waiting):
            with suppress(RuntimeError):  # it was let go already
                one.release()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for `set`; False if it has not been called after `timeout_s`."""
        if not self._is_set and (timeout_s is None or timeout_s > 0):
            self._wait(-1 if timeout_s is None else timeout_s)
        return self._is_set

    def _wait(self, timeout_s: float) -> None:
        own = threading.Lock()
        own.acquire()
        self._waiting.append(own)
        try:
            if not self._is_set:  # else `set` may have come too early to see `own`
                own.acquire(timeout=timeout_s)
        finally:
            with suppress(ValueError):
                self._waiting.remove(own)


def start_thread(target: Callable[[], object], name: str) -> None:
    """Start a daemon thread. If a signal handler raises meanwhile, the thread runs soon, or was never made.

    `Thread.start` leaves a thread that blocks for ever if a handler raises within it. So a thread that gets no signals
    calls it. Raises RuntimeError if the system allows no more threads.
    """
    started = Latch()
    errors: list[RuntimeError] = []

    def start() -> None:
        try:
            threading.Thread(target=target, name=name, daemon=True).start()
        except RuntimeError as error:
            errors.append(error)
        started.set()

    _thread.start_new_thread(start, ())
    started.wait()
    if errors:
        raise errors[0]
