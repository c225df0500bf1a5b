"""A reader's view of other processes' segments (`pipeline.shm.segments`): read-only, checked before it is believed."""

from __future__ import annotations

import mmap
import os

import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.shm.segments import GENERATIONS_AT, HEADER, MAGIC, MAX_SLOTS, data_at, open_segment

_MOST_OPEN = 8
"""Open segments of one sender: it has one segment as a rule, and more only while the size of its messages changes."""


class SegmentGone(WireError):
    """The owner of a segment is dead; its successor will send everything again."""


class MappedSegment:
    """A reader's view of one segment of another process."""

    def __init__(self, name: str) -> None:
        if "/" in name or not name.startswith("camgraph-"):
            raise WireError(f"no segment of ours: {name!r}")
        try:
            fd = open_segment(name)
        except FileNotFoundError:
            raise SegmentGone(f"segment {name} is gone with its owner") from None
        except OSError as error:
            raise WireError(f"segment {name} cannot be opened: {error.strerror}") from None
        try:
            self._map = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        finally:
            os.close(fd)
        self._memory: NDArray[np.uint8] = np.frombuffer(self._map, np.uint8)
        self._read_header(name)

    def _read_header(self, name: str) -> None:
        magic, self.slots, self.stride = HEADER.unpack_from(self._map, 0)
        expected = data_at(self.slots) + self.slots * self.stride
        if magic != MAGIC or not 0 < self.slots <= MAX_SLOTS or len(self._map) < expected:
            raise WireError(f"segment {name} is damaged")
        self._data_at = data_at(self.slots)
        end = GENERATIONS_AT + 8 * self.slots
        self._generations: NDArray[np.uint64] = self._memory[GENERATIONS_AT:end].view(np.uint64)

    def holds(self, slot: int, generation: int) -> bool:
        """True while the slot still has the content that the descriptor means."""
        return 0 <= slot < self.slots and int(self._generations[slot]) == generation

    def bytes(self, slot: int) -> NDArray[np.uint8]:
        """All of a slot, read-only."""
        start = self._data_at + slot * self.stride
        return self._memory[start : start + self.stride]


class Mappings:
    """The segments of one sender that a reader has open; the oldest are let go."""

    def __init__(self) -> None:
        self._open: dict[str, MappedSegment] = {}

    def get(self, name: str) -> MappedSegment:
        """The mapping of this segment. Raises WireError when it is gone or damaged."""
        mapping = self._open.get(name)
        if mapping is None:
            mapping = self._open[name] = MappedSegment(name)
            while len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]
        return mapping
