"""Shared memory for frames and tensors: rings of slots, each owned by one process.

A slot's life, all of it decided by the owner:

    free --allocate: generation + 1--> written --sent: one reference a reader--> read --last reference gone--> free

A descriptor (segment, slot, generation) travels in a message. A reader (`pipeline.shm.mappings`) compares the
generation before it believes the bytes and again after it has used them. A mismatch means that the slot was taken back
meanwhile, and the reader throws its result away. There are no atomics: on x86 stores become visible in order, so a new
generation is seen before the bytes that follow it. Other processors need a barrier here, which Python cannot give;
there, a graph runs in one process (`pipeline.shm.segments.require_ordered_stores`).

The pages of a segment are reserved when it is made, so that no write ends in a bus error. Free slots can give pages
back (a hole is punched into the file), and get them again when they are taken:

    reserved --trimmed: `keep` bytes stay--> partly reserved --taken for more than that--> reserved

So memory comes back at once, also while readers have the file mapped: an unlinked file would keep its pages as long as
anybody maps it, and a camera that is silent sends nothing by which its readers could see that they may let go.
"""

from __future__ import annotations

import mmap
import os
import threading
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.errors import BadItem, EnvironmentProblem
from camgraph.pipeline.shm.segments import (
    GENERATIONS_AT,
    HEADER,
    MAGIC,
    MAX_STRIDE,
    PAGE,
    Descriptor,
    create_locked,
    data_at,
    map_locked,
    reserve,
    round_up,
)
from camgraph.pipeline.system.paths import SHARED_MEMORY

_TRIM_S = 10.0
"""A camera that is back sooner finds its memory as it was."""
_WORTH_BYTES = 16 << 20
"""Less than that is not given back: the sizes of small messages change all the time."""


class Slot:
    """A piece of the owner's memory while it is in use. `references` counts who still needs it."""

    __slots__ = ("generation", "index", "references", "segment")

    def __init__(self, segment: _OwnedSegment, index: int, generation: int) -> None:
        self.segment = segment
        self.index = index
        self.generation = generation
        self.references = 1

    @property
    def descriptor(self) -> Descriptor:
        return Descriptor(self.segment.name, self.index, self.generation)

    def bytes(self) -> NDArray[np.uint8]:
        """All of the slot, writable."""
        start = self.segment.data_at + self.index * self.segment.stride
        return self.segment.memory[start : start + self.segment.stride]


class _OwnedSegment:
    """`keep`: how many bytes of a free slot stay reserved."""

    def __init__(self, prefix: str, slots: int, stride: int) -> None:
        self.slots, self.stride = slots, stride
        self.data_at = data_at(slots)
        size = self.data_at + slots * stride
        self.name, self.fd = create_locked(prefix, size)
        self.map = map_locked(self.name, self.fd, size)
        self.memory: NDArray[np.uint8] = np.frombuffer(self.map, np.uint8)
        self.address: int = self.memory.__array_interface__["data"][0]
        self.generations: NDArray[np.uint64] = self.memory[GENERATIONS_AT : GENERATIONS_AT + 8 * slots].view(np.uint64)
        self.map[: HEADER.size] = HEADER.pack(MAGIC, slots, stride)
        self.free = list(range(slots - 1, -1, -1))
        self.used: dict[int, Slot] = {}
        self.keep = stride
        self._reserved = [stride] * slots

    def take(self, nbytes: int) -> Slot:
        """A free slot. Raises EnvironmentProblem if memory that was given back cannot be had again."""
        index = self.free[-1]
        if self._reserved[index] < nbytes:
            self._reserve(index, nbytes)
        self.free.pop()
        generation = int(self.generations[index]) + 1
        self.generations[index] = generation
        slot = self.used[index] = Slot(self, index, generation)
        return slot

    def take_back(self, slot: Slot) -> None:
        """The slot is free."""
        del self.used[slot.index]
        self.free.append(slot.index)
        if self._reserved[slot.index] > self.keep:
            self._give_back(slot.index)

    def trim(self, keep: int) -> None:
        """Give back the memory beyond `keep` bytes of each slot: now if the slot is free, else when it becomes free."""
        self.keep = keep
        for index in self.free:
            if self._reserved[index] > keep:
                self._give_back(index)

    def fill(self, keep: int) -> None:
        """Undo `trim`, as far as there is memory."""
        self.keep = keep
        with suppress(EnvironmentProblem):
            for index in self.free:
                if self._reserved[index] < keep:
                    self._reserve(index, keep)

    def _reserve(self, index: int, nbytes: int) -> None:
        wanted = round_up(nbytes, PAGE)
        reserve(self.fd, self.data_at + index * self.stride, wanted)
        self._reserved[index] = wanted
        self.keep = max(self.keep, wanted)

    def _give_back(self, index: int) -> None:
        start = self.data_at + index * self.stride + self.keep
        with suppress(OSError):  # the slot keeps its memory then
            self.map.madvise(mmap.MADV_REMOVE, start, self._reserved[index] - self.keep)
            self._reserved[index] = self.keep

    def unlink(self) -> None:
        with suppress(OSError):  # gone, and another user's may be in its place
            (SHARED_MEMORY / self.name).unlink()
        os.close(self.fd)


class SlotRing:
    """The slots of one owner. Grows to the size of the largest message; may be used from several threads.

    `slots` is how many messages may be alive at once. The segment is made when it is first needed. When a larger
    message comes, a segment of larger slots takes over; the one before gives its memory back slot by slot, as these
    become free, and goes when it is empty. So a ring holds `slots` times the largest message, and beside it, while the
    size changes, the smaller messages that are still alive: together less than twice as much.
    """

    def __init__(self, prefix: str, slots: int) -> None:
        self._prefix = prefix
        self._slots = slots
        self._segments: list[_OwnedSegment] = []
        self._lock = threading.Lock()
        self._largest = 0
        """The bytes of the largest message since the last look of `trim`."""
        self._next_trim_s: float | None = None

    def allocate(self, nbytes: int) -> Slot:
        """A slot of at least `nbytes`.

        Raises BadItem("no_slot") if all are in use, EnvironmentProblem if there is not enough memory.
        """
        if nbytes > MAX_STRIDE:
            raise BadItem("too_large", f"{nbytes} bytes for one message")
        with self._lock:
            self._largest = max(self._largest, nbytes)
            if self._segments:
                segment = self._segments[0]
                if not segment.free or (len(self._segments) > 1 and self.in_use >= segment.slots):
                    raise BadItem("no_slot", f"all {segment.slots} slots are in use")
                if nbytes <= segment.stride:
                    return segment.take(nbytes)
            return self._outgrown(nbytes).take(nbytes)

    def resize(self, slots: int) -> None:
        """Allow this many messages to be alive from now on. Raises EnvironmentProblem if there is not enough memory.

        For more of them a larger segment takes over, and the one before goes when it is empty; for fewer nothing moves.
        """
        with self._lock:
            before, self._slots = self._slots, slots
            try:
                if self._segments and self._segments[0].slots < slots:
                    self._grow(max(1, self._segments[0].keep))
            except EnvironmentProblem:
                self._slots = before
                raise

    def trim(self, now_s: float) -> None:
        """Give back the memory that the messages of the last 10 to 20 seconds did not need. Call it often.

        For a ring whose messages are as large as others want, cameras say: one that has sent a large picture once
        must not keep the memory for as many of them, nor one that is away.
        """
        if self._next_trim_s is None:
            self._next_trim_s = now_s + _TRIM_S
        if now_s < self._next_trim_s:
            return
        self._next_trim_s = now_s + _TRIM_S
        with self._lock:
            largest, self._largest = round_up(self._largest, PAGE), 0
            if self._segments:
                segment = self._segments[0]
                if 2 * largest <= segment.keep and segment.slots * (segment.keep - largest) >= _WORTH_BYTES:
                    segment.trim(largest)

    def _outgrown(self, nbytes: int) -> _OwnedSegment:
        """A segment of larger slots, if need be in the place of the smaller ones."""
        if not self._segments:
            return self._grow(nbytes)
        small = self._segments[0]
        keep = small.keep
        small.trim(0)
        try:
            return self._grow(nbytes)
        except EnvironmentProblem:
            small.fill(keep)
            raise

    def _grow(self, nbytes: int) -> _OwnedSegment:
        segment = _OwnedSegment(self._prefix, self._slots, round_up(nbytes, PAGE))
        for old in self._segments:
            old.trim(0)
        self._segments.insert(0, segment)
        self._retire()
        return segment

    def _retire(self) -> None:
        for segment in [s for s in self._segments[1:] if not s.used]:
            self._segments.remove(segment)
            segment.unlink()

    def keep(self, slot: Slot) -> None:
        """One more needs the slot."""
        with self._lock:
            slot.references += 1

    def release(self, slot: Slot) -> None:
        """One less needs the slot; with the last it is free again."""
        with self._lock:
            slot.references -= 1
            if slot.references == 0:
                segment = slot.segment
                segment.take_back(slot)
                if segment is not self._segments[0]:
                    self._retire()

    def locate(self, address: int) -> tuple[Slot, int] | None:
        """The slot in use that holds this memory address, and the offset within it."""
        for segment in tuple(self._segments):
            at = address - segment.address - segment.data_at
            if 0 <= at < segment.slots * segment.stride:
                slot = segment.used.get(at // segment.stride)
                return (slot, at % segment.stride) if slot else None
        return None

    @property
    def in_use(self) -> int:
        """Slots that are not free."""
        return sum(len(segment.used) for segment in self._segments)

    def close(self) -> None:
        """Remove the files. Readers that have them mapped keep their view."""
        with self._lock:
            for segment in self._segments:
                segment.unlink()
            self._segments.clear()
