"""Memory of the host that a GPU reads and writes by itself: page-locked ("pinned") by the CUDA runtime.

A copy between a GPU and ordinary memory goes through a buffer of the driver, which costs a second copy on the CPU and
keeps the caller waiting. If there is no more of it, arrays lie in ordinary memory: slower, and right.

    new_array ──> a block of page-locked memory ──> an array over it ──nobody holds it any more──> free blocks

Getting a block takes about as long as a copy, so blocks are used again. They are given back to the runtime when there
are more than `MOST_FREE` of one size or `MOST_FREE_BYTES` of all sizes, and when nobody uses the memory or an array of
it any more.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

import numpy as np

from camgraph.pipeline.messages import Array

NewArray = Callable[[int, str], Array]
"""(elements, dtype) -> a flat array, uninitialised."""

MOST_FREE = 8
"""Free blocks of one size that are kept; as many as batches can be on their way behind a model."""
MOST_FREE_BYTES = 512 << 20
"""Of free blocks of all sizes, which other programs cannot have: eight outputs of YOLO's heads for 32 pictures, 60 MB
each. Pictures, crops and rows of people of many sizes would add up to more and more.
"""
_GRANULE = 4096
"""Sizes are rounded up to this, so that arrays of nearly the same size share blocks."""


@runtime_checkable
class TakesFromHost(Protocol):
    """An engine with a wish of its own for the place of inputs."""

    new_array: NewArray


def plain_array(elements: int, dtype: str) -> Array:
    """Ordinary memory."""
    return np.empty(elements, dtype)


class HostMemory(Protocol):
    """Who gives page-locked memory, and takes it back: the CUDA runtime. Any thread may call."""

    def host_memory(self, size: int) -> int | None: ...
    def free_host_memory(self, address: int) -> None: ...


class _Block:
    """Page-locked memory, freed with its last reference, or by the system at the end of the process."""

    def __init__(self, source: HostMemory, address: int, size: int) -> None:
        self.size = size
        self.bytes = (ctypes.c_uint8 * size).from_address(address)
        weakref.finalize(self, source.free_host_memory, address).atexit = False


class _FreeBlocks:
    """Blocks that nobody uses, by size; those of the size that came back last stay longest.

        put ──> returned ──whoever has the lock──> by size ──too many──> freed

    The end of an array may come in the middle of any line, also of this class in the same thread: so `put` never waits.
    """

    def __init__(self) -> None:
        self._returned: deque[_Block] = deque()
        self._by_size: OrderedDict[int, deque[_Block]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> _Block | None:
        """A block of this size, if there is one."""
        with self._lock:
            block = self._removed(size) if size in self._by_size else None
        self._sort_in()
        return block

    def put(self, block: _Block) -> None:
        """Keep a block, in the place of others if there are too many."""
        self._returned.append(block)
        self._sort_in()

    def _sort_in(self) -> None:
        # Whoever has the lock looks again after it, and finds those that come meanwhile.
        while self._returned and self._lock.acquire(blocking=False):
            try:
                surplus = [*self._surplus()]
            finally:
                self._lock.release()
            del surplus  # without the lock: CUDA takes its time to free them

    def _surplus(self) -> Iterator[_Block]:
        """Keep those that have returned, and yield those that are too many then."""
        while self._returned:
            block = self._returned.popleft()
            blocks = self._by_size.setdefault(block.size, deque())
            blocks.append(block)
            self._by_size.move_to_end(block.size)
            self._bytes += block.size
            if len(blocks) > MOST_FREE:
                yield self._removed(block.size)
        while self._bytes > MOST_FREE_BYTES:
            yield self._removed(next(iter(self._by_size)))

    def _removed(self, size: int) -> _Block:
        blocks = self._by_size[size]
        block = blocks.pop()
        self._bytes -= size
        if not blocks:
            del self._by_size[size]
        return block


class PinnedMemory:
    """Arrays that a GPU reads and writes by itself, as far as `source` gives memory for them.

    Any thread may ask for arrays, and any may drop them.
    """

    def __init__(self, source: HostMemory) -> None:
        self._source = source
        self._free = _FreeBlocks()

    def new_array(self, elements: int, dtype: str) -> Array:
        """A flat, uninitialised array; its memory is used again after its last reference is gone."""
        wanted = elements * np.dtype(dtype).itemsize
        if not wanted:
            return np.empty(elements, dtype)
        size = -(-wanted // _GRANULE) * _GRANULE
        block = self._block(size)
        if block is None:
            return np.empty(elements, dtype)
        array: Array = np.frombuffer(memoryview(block.bytes), dtype, elements)
        weakref.finalize(array, self._free.put, block).atexit = False
        return array

    def _block(self, size: int) -> _Block | None:
        if block := self._free.take(size):
            return block
        address = self._source.host_memory(size)
        return None if address is None else _Block(self._source, address, size)
