"""Shared memory for frames and tensors: rings of slots, each owned by one process.

    /dev/shm/camgraph-<uid>-<run>-<unit>.<incarnation>.<k>

      0        magic "CGS1" | slots u32 | stride u64
      64       generation of slot 0, 1, ...           u64 each, written by the owner alone
      4096 n   slot 0 | slot 1 | ...                  stride bytes each

A slot's life, all of it decided by the owner:

    free --allocate: generation + 1--> written --sent: one reference a reader--> read --last reference gone--> free

A descriptor (segment, slot, generation) travels in a message. A reader compares the generation before it believes
the bytes and again after it has used them; a mismatch means that the slot was taken back meanwhile, and what
was read is thrown away. There are no atomics: on x86 stores become visible in order, so a new generation is seen
before the bytes that follow it. Other processors need a barrier here, which Python cannot give: there, a graph
runs in one process (`require_ordered_stores`).

The owner holds a lock (flock) on each of its files for life; a file that nobody locks is left over and may go.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import platform
import struct
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import BadItem, EnvironmentProblem, WireError

SHM = Path("/dev/shm")  # noqa: S108 - shared memory, names are checked and files are 0600
_MAGIC = b"CGS1"
_HEADER = struct.Struct("<4sIQ")
_GENERATIONS_AT = 64
_PAGE = 4096
ALIGN = 64
MAX_SLOTS = 65_536
MAX_STRIDE = 1 << 32
_MAX_SEGMENTS = 4


class SegmentGone(WireError):
    """The owner of a segment is dead; its successor will say everything again."""


class Descriptor(NamedTuple):
    """Where the bytes of a message lie, as it travels."""

    segment: str
    slot: int
    generation: int


def require_ordered_stores() -> None:
    """Refuse a processor on which the generation check could be fooled."""
    if platform.machine() not in ("x86_64", "AMD64", "i686"):
        raise EnvironmentProblem(
            f"shared memory between processes needs an x86 processor, this is {platform.machine()}: "
            "write `processes: one` in the graph file"
        )


def _round_up(value: int, to: int) -> int:
    return -(-value // to) * to


def segment_bytes(slots: int, slot_bytes: int) -> int:
    """The size of a segment file with this many slots."""
    return _data_at(slots) + slots * _round_up(max(slot_bytes, 1), _PAGE)


def _data_at(slots: int) -> int:
    return _round_up(_GENERATIONS_AT + 8 * slots, _PAGE)


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
        self.data_at = _data_at(slots)
        size = self.data_at + slots * stride
        self.fd = _create_locked(SHM / name, size)
        self.map = mmap.mmap(self.fd, size, flags=mmap.MAP_SHARED)
        self.memory: NDArray[np.uint8] = np.frombuffer(self.map, np.uint8)
        self.address: int = self.memory.__array_interface__["data"][0]
        self.generations: NDArray[np.uint64] = self.memory[_GENERATIONS_AT : _GENERATIONS_AT + 8 * slots].view(
            np.uint64
        )
        self.map[: _HEADER.size] = _HEADER.pack(_MAGIC, slots, stride)
        self.free = list(range(slots - 1, -1, -1))
        self.used: dict[int, Slot] = {}

    def unlink(self) -> None:
        (SHM / self.name).unlink(missing_ok=True)
        os.close(self.fd)


def _create_locked(path: Path, size: int) -> int:
    while True:
        path.unlink(missing_ok=True)  # no living process has this name: it holds the supervisor's id
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if not path.exists():  # a sweep came between the creation and the lock
                os.close(fd)
                continue
            # Reserves the pages now: without them the first write would end in a bus error.
            os.posix_fallocate(fd, 0, size)
        except OSError as error:
            path.unlink(missing_ok=True)
            os.close(fd)
            raise EnvironmentProblem(
                f"no room for {size / 1e6:.0f} MB in {SHM} ({error.strerror}): "
                "make it larger, or give the graph fewer cameras, a smaller batch or a smaller picture"
            ) from None
        return fd


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
            if len(self._segments) >= _MAX_SEGMENTS or (self._segments and nbytes <= self._segments[0].stride):
                raise BadItem("no_slot", f"all {self._slots} slots are in use")
            return self._take(self._grow(nbytes))

    def _grow(self, nbytes: int) -> _OwnedSegment:
        stride = _round_up(nbytes, _PAGE)
        segment = _OwnedSegment(f"{self._prefix}.{self._made}", self._slots, stride)
        self._made += 1
        self._segments.insert(0, segment)
        self._retire()
        return segment

    def _retire(self) -> None:
        largest = self._segments[0].stride
        for segment in [s for s in self._segments[1:] if s.stride < largest and not s.used]:
            self._segments.remove(segment)
            segment.unlink()

    @staticmethod
    def _take(segment: _OwnedSegment) -> Slot:
        index = segment.free.pop()
        generation = int(segment.generations[index]) + 1
        segment.generations[index] = generation
        slot = segment.used[index] = Slot(segment, index, generation)
        return slot

    def keep(self, slot: Slot, n: int = 1) -> None:
        """`n` more need the slot."""
        with self._lock:
            slot.references += n

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


class Mapping:
    """A reader's view of one segment of another process."""

    def __init__(self, name: str) -> None:
        if "/" in name or not name.startswith("camgraph-"):
            raise WireError(f"no segment of ours: {name!r}")
        try:
            fd = os.open(SHM / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
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
        magic, self.slots, self.stride = _HEADER.unpack_from(self._map, 0)
        expected = _data_at(self.slots) + self.slots * self.stride
        if magic != _MAGIC or not 0 < self.slots <= MAX_SLOTS or len(self._map) < expected:
            raise WireError(f"segment {name} is damaged")
        self._data_at = _data_at(self.slots)
        end = _GENERATIONS_AT + 8 * self.slots
        self._generations: NDArray[np.uint64] = self._memory[_GENERATIONS_AT:end].view(np.uint64)

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
        self._open: dict[str, Mapping] = {}

    def get(self, name: str) -> Mapping:
        """The mapping of this segment. Raises WireError when it is gone or damaged."""
        mapping = self._open.get(name)
        if mapping is None:
            mapping = self._open[name] = Mapping(name)
            while len(self._open) > 2 * _MAX_SEGMENTS:
                del self._open[next(iter(self._open))]
        return mapping


def segments_bytes(prefix: str) -> int:
    """The size of all segments of one owner."""
    total = 0
    for path in SHM.glob(f"{prefix}.*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


def unlink_prefix(prefix: str) -> int:
    """Remove the files of a dead owner; how many there were."""
    found = [path for path in SHM.glob(f"{prefix}.*") if path.is_file()]
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def sweep() -> list[str]:
    """Remove this user's segments whose owner is dead; their names."""
    removed = []
    for path in SHM.glob(f"camgraph-{os.getuid()}-*"):
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
            removed.append(path.name)
        except BlockingIOError:
            pass
        finally:
            os.close(fd)
    return removed
