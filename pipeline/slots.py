"""Shared memory for frames and tensors: rings of slots, each owned by one process.

A slot's life, all of it decided by the owner:

    free --allocate: generation + 1--> written --sent: one reference a reader--> read --last reference gone--> free

A descriptor (segment, slot, generation) travels in a message. A reader (`pipeline.mappings`) compares the generation
before it believes the bytes and again after it has used them; a mismatch means that the slot was taken back
meanwhile, and what was read is thrown away. There are no atomics: on x86 stores become visible in order, so a new
generation is seen before the bytes that follow it. Other processors need a barrier here, which Python cannot give:
there, a graph runs in one process (`pipeline.segments.require_ordered_stores`).
"""

from __future__ import annotations

import os
import threading

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import BadItem, EnvironmentProblem
from pipeline.paths import SHARED_MEMORY
from pipeline.segments import (
    GENERATIONS_AT,
    HEADER,
    MAGIC,
    MAX_SEGMENTS,
    MAX_STRIDE,
    PAGE,
    Descriptor,
    create_locked,
    data_at,
    map_locked,
    round_up,
)


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
    def __init__(self, name: str, slots: int, stride: int) -> None:
        self.name, self.slots, self.stride = name, slots, stride
        self.data_at = data_at(slots)
        size = self.data_at + slots * stride
        self.fd = create_locked(SHARED_MEMORY / name, size)
        self.map = map_locked(SHARED_MEMORY / name, self.fd, size)
        self.memory: NDArray[np.uint8] = np.frombuffer(self.map, np.uint8)
        self.address: int = self.memory.__array_interface__["data"][0]
        self.generations: NDArray[np.uint64] = self.memory[GENERATIONS_AT : GENERATIONS_AT + 8 * slots].view(np.uint64)
        self.map[: HEADER.size] = HEADER.pack(MAGIC, slots, stride)
        self.free = list(range(slots - 1, -1, -1))
        self.used: dict[int, Slot] = {}

    def unlink(self) -> None:
        (SHARED_MEMORY / self.name).unlink(missing_ok=True)
        os.close(self.fd)


class SlotRing:
    """The slots of one owner. Grows to the size of what is put in; may be used from several threads.

    `slots` is how many messages may be alive at once. Segments are made when first needed; when a larger
    message comes, a segment of larger slots takes over and the old one goes when it is empty.
    """

    def __init__(self, prefix: str, slots: int) -> None:
        self._prefix = prefix
        self._slots = slots
        self._segments: list[_OwnedSegment] = []
        self._made = 0
        self._lock = threading.Lock()

    def allocate(self, nbytes: int) -> Slot:
        """A slot of at least `nbytes`. Raises BadItem("no_slot") when all are in use."""
        if nbytes > MAX_STRIDE:
            raise BadItem("too_large", f"{nbytes} bytes for one message")
        with self._lock:
            for segment in self._segments:
                if segment.stride >= nbytes and segment.free:
                    return self._take(segment)
            if len(self._segments) >= MAX_SEGMENTS or (self._segments and nbytes <= self._segments[0].stride):
                raise BadItem("no_slot", f"all {self._slots} slots are in use")
            return self._take(self._grow(nbytes))

    def resize(self, slots: int) -> None:
        """So many messages may be alive from now on. Raises EnvironmentProblem where the memory does not suffice.

        For more of them a larger segment takes over, and the one before goes when it is empty; for fewer nothing moves.
        """
        with self._lock:
            enough = not self._segments or self._segments[0].slots >= slots or len(self._segments) >= MAX_SEGMENTS
            before, self._slots = self._slots, slots
            try:
                if not enough:
                    self._grow(self._segments[0].stride)
            except EnvironmentProblem:
                self._slots = before
                raise

    def _grow(self, nbytes: int) -> _OwnedSegment:
        stride = round_up(nbytes, PAGE)
        segment = _OwnedSegment(f"{self._prefix}.{self._made}", self._slots, stride)
        self._made += 1
        self._segments.insert(0, segment)
        self._retire()
        return segment

    def _retire(self) -> None:
        for segment in [s for s in self._segments[1:] if not s.used]:
            self._segments.remove(segment)
            segment.unlink()

    @staticmethod
    def _take(segment: _OwnedSegment) -> Slot:
        index = segment.free.pop()
        generation = int(segment.generations[index]) + 1
        segment.generations[index] = generation
        slot = segment.used[index] = Slot(segment, index, generation)
        return slot

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
                del segment.used[slot.index]
                segment.free.append(slot.index)
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
