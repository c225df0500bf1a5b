"""Somebody's boxes and keypoints of the last seconds, in arrays of a fixed size.

rows    0         1         2    ...   n - 1      sorted by time; the newest is always kept
        [------- window, in `parts` --------]     a part keeps its first row, so a high frame rate is thinned evenly
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]


class KeypointRecord:
    """The last `window_ns` nanoseconds, in at most `parts` + 2 rows."""

    __slots__ = ("_boxes", "_count", "_first", "_joints", "_parts", "_scores", "_times", "window_ns")

    def __init__(self, window_ns: int, joints: int, parts: int = 254) -> None:
        room = 2 * (parts + 2)
        self.window_ns = window_ns
        self._parts = parts
        self._first = self._count = 0
        self._times: I64 = np.empty(room, np.int64)
        self._boxes: F32 = np.empty((room, 4), np.float32)
        self._scores: F32 = np.empty(room, np.float32)
        self._joints: F32 = np.empty((room, joints, 3), np.float32)

    def __len__(self) -> int:
        return self._count

    def add(self, time_ns: int, box: ArrayLike, score: float, joints: ArrayLike) -> None:
        """The next row: `box` (4,), `joints` (K, 3), or lists of these shapes."""
        part_ns = max(1, self.window_ns // self._parts)
        end = self._first + self._count
        if self._count > 1 and self._times[end - 1] // part_ns == self._times[end - 2] // part_ns:
            self._count -= 1
        self._leave(time_ns - self.window_ns)
        if self._first + self._count == len(self._times):
            self._move_to_front()
        at = self._first + self._count
        self._times[at], self._scores[at] = time_ns, score
        self._boxes[at], self._joints[at] = np.asarray(box, np.float32), np.asarray(joints, np.float32)
        self._count += 1

    def _leave(self, begin_ns: int) -> None:
        while self._count and self._times[self._first] < begin_ns:
            self._first += 1
            self._count -= 1

    def _move_to_front(self) -> None:
        rows = slice(self._first, self._first + self._count)
        for array in (self._times, self._boxes, self._scores, self._joints):
            array[: self._count] = array[rows].copy()
        self._first = 0

    @property
    def times_ns(self) -> I64:
        """(n,), read-only, as all of these; valid until the next row."""
        return self._rows(self._times)

    @property
    def boxes(self) -> F32:
        """(n, 4)."""
        return self._rows(self._boxes)

    @property
    def scores(self) -> F32:
        """(n,)."""
        return self._rows(self._scores)

    @property
    def joints(self) -> F32:
        """(n, K, 3)."""
        return self._rows(self._joints)

    def _rows(self, array: NDArray[Any]) -> NDArray[Any]:
        view = array[self._first : self._first + self._count]
        view.flags.writeable = False
        return view
