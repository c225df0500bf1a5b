"""Ends the wait of a loop from a signal handler or another thread."""

from __future__ import annotations

import os
import weakref
from contextlib import suppress


class Wakeup:
    """A descriptor for a poller, readable from `wake` until `clear`.

    The descriptor is closed with the last reference, and not earlier: a call of `wake` after the end of the loop must
    not write into another file that got the same number.
    """

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, self._fd).atexit = False  # then, a run may still have to be stopped

    def fileno(self) -> int:
        return self._fd

    def wake(self) -> None:
        """End the present wait of the loop, or the next one. Call it from any thread, or from a signal handler."""
        os.eventfd_write(self._fd, 1)

    def clear(self) -> None:
        """Let the loop wait again."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._fd)
