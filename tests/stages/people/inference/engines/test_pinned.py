"""Blocks of page-locked memory: used again, given back, and never more than are needed. tests/gpu asks a whole CUDA."""

from __future__ import annotations

import ctypes
import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.engines.pinned import MOST_FREE, MOST_FREE_BYTES, PinnedMemory, plain_array


class Source:
    """Gives ordinary memory, and knows which of it is still out."""

    def __init__(self) -> None:
        self.given: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.calls = 0
        self.refuses = False

    def host_memory(self, size: int) -> int | None:
        if self.refuses:
            return None
        buffer = ctypes.create_string_buffer(size)
        self.calls += 1
        self.given[ctypes.addressof(buffer)] = buffer
        return ctypes.addressof(buffer)

    def free_host_memory(self, address: int) -> None:
        del self.given[address]


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def memory(source: Source) -> PinnedMemory:
    return PinnedMemory(source)


def test_arrays_lie_in_memory_of_their_own(memory: PinnedMemory, source: Source) -> None:
    arrays = [memory.new_array(10, "float32") for _ in range(20)]
    assert source.calls == len(source.given) == 20
    for number, array in enumerate(arrays):
        array[...] = number
    assert [set(array.tolist()) for array in arrays] == [{float(number)} for number in range(20)]


def test_memory_is_used_again_once_nobody_holds_a_part_of_it(memory: PinnedMemory, source: Source) -> None:
    array = memory.new_array(1000, "float32")
    address = array.ctypes.data
    part = array[10:20].reshape(2, 5)
    del array
    gc.collect()
    other = memory.new_array(1000, "float32")
    assert other.ctypes.data != address, "a part of the first is still held"
    del part
    gc.collect()
    assert memory.new_array(900, "float32").ctypes.data == address
    assert source.calls == 2


def test_free_blocks_are_bounded(memory: PinnedMemory, source: Source) -> None:
    arrays = [memory.new_array(10, "uint8") for _ in range(MOST_FREE + 5)]
    del arrays
    gc.collect()
    assert len(source.given) == MOST_FREE


MB = 1 << 20


def held(source: Source) -> int:
    return sum(map(len, source.given.values()))


def test_free_bytes_of_all_sizes_are_bounded(memory: PinnedMemory, source: Source) -> None:
    """Pictures, crops and rows of people of ever new sizes."""
    for number in range(60):
        memory.new_array(12 * MB + number * 4096, "uint8")
        assert held(source) <= MOST_FREE_BYTES + 14 * MB
    gc.collect()
    assert MOST_FREE_BYTES - 14 * MB < held(source) <= MOST_FREE_BYTES


def test_a_block_larger_than_all_that_are_kept_is_freed(memory: PinnedMemory, source: Source) -> None:
    memory.new_array(MOST_FREE_BYTES + 1, "uint8")
    gc.collect()
    assert source.given == {}


def test_sizes_that_are_in_use_stay(memory: PinnedMemory, source: Source) -> None:
    """A batch that comes again and again finds its block, whatever other sizes there are."""
    for number in range(40):
        memory.new_array(MB, "uint8")
        memory.new_array(20 * MB + number * 4096, "uint8")
    gc.collect()
    calls = source.calls
    memory.new_array(MB, "uint8")
    assert (calls, source.calls) == (41, 41)


def test_threads_lose_and_double_no_block(memory: PinnedMemory, source: Source) -> None:
    def use(thread: int) -> bool:
        kept: list[Array] = []
        for number in range(400):
            array = memory.new_array(1000 * (1 + number % 7), "uint8")
            array[...] = thread
            kept = [*kept[-5:], array]
            if any((one != thread).any() for one in kept):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(8)))
    gc.collect()
    assert len(source.given) <= 2 * MOST_FREE, "of two sizes, after rounding"


def test_all_is_given_back_once_nobody_uses_it(source: Source) -> None:
    memory = PinnedMemory(source)
    kept = memory.new_array(10, "uint8")
    dropped = memory.new_array(10, "uint8")
    kept[...] = 7
    del dropped, memory
    gc.collect()
    assert len(source.given) == 2, "the array that is kept keeps its source's free blocks"
    assert kept.tolist() == [7] * 10
    del kept
    gc.collect()
    assert source.given == {}


def test_if_there_is_no_more_arrays_are_ordinary_ones(memory: PinnedMemory, source: Source) -> None:
    source.refuses = True
    array = memory.new_array(10, "uint8")
    array[...] = 1
    assert array.tolist() == [1] * 10


def test_an_empty_array_needs_no_memory(memory: PinnedMemory, source: Source) -> None:
    assert memory.new_array(0, "uint8").size == 0
    assert source.calls == 0
    assert plain_array(3, "int64").dtype == np.int64
