"""Watches from outside how much memory FFmpeg takes for a camera: data sent to it, or a file, makes it grow.

Only the growth of the process is visible, and a model may live in it as well, which takes gigabytes when it first runs.
So growth within one call of FFmpeg counts; if only cameras are in the process, growth since the beginning of the
connection or file counts too.

Memory that is taken at once is not seen before it is taken: a file may claim a length for a list, and 100 bytes of an
MP4 stand for gigabytes. So for files FFmpeg gets a limit for one block; it reports refusals.
"""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

import av._core

_STATM = Path("/proc/self/statm")
_LONG_S = 0.5
"""A call of a camera that is well is shorter, unless it is connecting or silent."""

_MOST_BLOCK = (1 << 31) - 1
"""Of FFmpeg, by default."""

_lock = threading.Lock()
_limits: dict[int, int] = {}
"""Of the connections and files of this process that are open now, by their guards."""
_files: set[int] = set()
"""Those of them for which blocks are bounded."""


class MemoryGuard:
    """Watches one connection or file: meanwhile the process must not grow by more than all of its cameras may.

    ``alone``: there is nothing but cameras in the process. ``is_file``: FFmpeg takes no block of more than the largest
    of its cameras may have.
    """

    def __init__(self, memory_mb: int, *, alone: bool, is_file: bool = False) -> None:
        self._limit = memory_mb << 20
        self._alone = alone
        self._is_file = is_file
        self._begin = self._call = own_bytes()
        self._call_begun_s: float | None = None

    def __enter__(self) -> Self:
        with _lock:
            _limits[id(self)] = self._limit
            if self._is_file:
                _files.add(id(self))
            _bound_blocks()
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            _limits.pop(id(self), None)
            _files.discard(id(self))
            _bound_blocks()

    def is_over(self, call_begun_s: float | None, now_s: float) -> bool:
        """Whether this connection or file has to end. To be asked a few times a second.

        ``call_begun_s``: since when its thread is in FFmpeg, by the clock of ``now_s``; None if it is not.
        """
        has = own_bytes()
        if call_begun_s != self._call_begun_s:
            self._call_begun_s, self._call = call_begun_s, has
        elif call_begun_s is not None and now_s - call_begun_s > _LONG_S and has - self._call > _allowed():
            return True
        return self.has_grown()

    def has_grown(self) -> bool:
        """Whether this connection or file, alone in its process, has made it grow by more than it may."""
        if not self._alone or len(_limits) > 1:
            return False
        return own_bytes() - self._begin > _allowed()


def _allowed() -> int:
    with _lock:
        return sum(_limits.values())


def _bound_blocks() -> None:
    """To be called under the lock."""
    most = min(_MOST_BLOCK, max(_limits.values())) if _files else _MOST_BLOCK
    with suppress(OSError, AttributeError):  # an FFmpeg that is linked otherwise: then the growth alone is watched
        ctypes.CDLL(av._core.__file__).av_max_alloc(ctypes.c_size_t(most))


def own_bytes() -> int:
    """Of this process, without memory that it shares with others; 0 if the system does not report it."""
    try:
        _, resident, shared, *_ = map(int, _STATM.read_text().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0
