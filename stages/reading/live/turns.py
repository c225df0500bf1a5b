"""Processes that open decoders on a GPU take turns: the driver makes many at once wait for each other for long.

A decoder is opened under Python's lock, by its first picture, so that its process gives no sign of life meanwhile: 64
cameras that began at once on an H100 were all taken for hung. One after the other, each takes a fraction of a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.system.disk import try_lock

WAIT_S = 60.0
_LOOK_S = 0.05


class Turns:
    """``file``: the same for all that take turns; ``alive`` is called while others have theirs."""

    def __init__(self, file: Path, alive: Callable[[], None], wait_s: float = WAIT_S) -> None:
        self._file = file
        self._alive = alive
        self._wait_s = wait_s

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold the turn alone; after ``wait_s``, or if the lock cannot be made, begin without it."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            file = self._file.open("a")
        except OSError:
            yield
            return
        with file:  # closing it lets the lock go
            late = time.monotonic() + self._wait_s
            while not _taken(file.fileno()) and time.monotonic() < late:
                self._alive()
                time.sleep(_LOOK_S)
            yield


def _taken(descriptor: int) -> bool:
    try:
        return try_lock(descriptor)
    except OSError:  # a file system without locks
        return True
