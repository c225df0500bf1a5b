"""Memory of the host that a GPU reads and writes by itself: page-locked ("pinned") by the CUDA runtime.

A copy between a GPU and ordinary memory goes through a buffer of the driver, which costs a second copy on the CPU and
keeps the caller waiting. If there is no more of it, arrays lie in ordinary memory: slower, and right.

    new_array ──> a block of page-locked memory ──> an array over it ──nobody holds it any more──> free blocks

Getting a block takes about as long as a copy, so blocks are used again. They are given back to the runtime when there
are more than `MOST_FREE` of one size, and when nobody uses the memory or an array of it any more.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np

from pipeline.messages import Array

NewArray = Callable[[int, str], Array]
"""(elements, dtype) -> a flat array, uninitialised."""

MOST_FREE = 8
"""Free blocks of one size that are kept; as many as batches can be on their way behind a model."""
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
        self.bytes = (ctypes.c_uint8 * size).from_address(address)
        weakref.finalize(self, source.free_host_memory, address).atexit = False


class PinnedMemory:
    """Arrays that a GPU reads and writes by itself, as far as `source` gives memory for them.

    Any thread may ask for arrays, and any may drop them.
    """

    def __init__(self, source: HostMemory) -> None:
        self._source = source
        self._free: dict[int, deque[_Block]] = {}

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
        weakref.finalize(array, self._give_back, block, size).atexit = False
        return array

    def _block(self, size: int) -> _Block | None:
        try:
            return self._free[size].pop()
        except (KeyError, IndexError):
            address = self._source.host_memory(size)
            return None if address is None else _Block(self._source, address, size)

    def _give_back(self, block: _Block, size: int) -> None:
        free = self._free.setdefault(size, deque())
        if len(free) < MOST_FREE:
            free.append(block)
