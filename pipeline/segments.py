"""Shared memory as files: what owner and reader of a segment agree on, and what becomes of a dead owner's.

    /dev/shm/camgraph-<uid>-<run>-<unit>.<incarnation>.<k>

      0        magic "CGS1" | slots u32 | stride u64
      64       generation of slot 0, 1, ...           u64 each, written by the owner alone
      4096 n   slot 0 | slot 1 | ...                  stride bytes each

The owner holds a lock (flock) on each of its files for life; a file that nobody locks is left over and may go.
Who may write when is said in `pipeline.slots`.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import platform
import struct
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.disk import lock, try_lock
from pipeline.errors import EnvironmentProblem, Shortage
from pipeline.paths import SHARED_MEMORY
from pipeline.scarcity import shortage_of

MAGIC = b"CGS1"
HEADER = struct.Struct("<4sIQ")
GENERATIONS_AT = 64
PAGE = 4096
ALIGN = 64
MAX_SLOTS = 65_536
MAX_STRIDE = 1 << 32
MAX_SEGMENTS = 4
"""How many segments an owner has at once."""


class Descriptor(NamedTuple):
    """Where the bytes of a message lie, as it travels."""

    segment: str
    slot: int
    generation: int

    @classmethod
    def from_wire(cls, values: Any) -> Descriptor:
        """A descriptor out of the list that msgpack makes of it. Raises ValueError or TypeError where it is none."""
        segment, slot, generation = values
        if not (isinstance(segment, str) and isinstance(slot, int) and isinstance(generation, int)):
            raise ValueError(f"no descriptor: {values!r:.200}")
        return cls(segment, slot, generation)


def require_ordered_stores() -> None:
    """Refuse a processor on which the generation check could be fooled."""
    if platform.machine() not in ("x86_64", "AMD64", "i686"):
        raise EnvironmentProblem(
            f"shared memory between processes needs an x86 processor, this is {platform.machine()}: "
            "write `processes: one` in the graph file"
        )


def round_up(value: int, to: int) -> int:
    """The lowest multiple of `to` that is not below `value`."""
    return -(-value // to) * to


def data_at(slots: int) -> int:
    """Where slot 0 begins in a file with this many slots."""
    return round_up(GENERATIONS_AT + 8 * slots, PAGE)


def create_locked(path: Path, size: int) -> int:
    """A new file of `size` bytes with its pages reserved and its owner's lock on it: its descriptor.

    Raises EnvironmentProblem where the memory does not suffice: Shortage where others may give some back.
    """
    while True:
        path.unlink(missing_ok=True)  # no living process has this name: it holds the supervisor's id
        try:
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _refused(error, size) from None
        try:
            lock(fd)
            if not path.exists():  # a sweep came between the creation and the lock
                os.close(fd)
                continue
            # Reserves the pages now: without them the first write would end in a bus error.
            os.posix_fallocate(fd, 0, size)
        except OSError as error:
            path.unlink(missing_ok=True)
            os.close(fd)
            raise _refused(error, size) from None
        return fd


def _refused(error: OSError, size: int) -> EnvironmentProblem:
    told = (
        f"no room for {size / 1e6:.1f} MB in {SHARED_MEMORY} ({error.strerror}): "
        "make it larger, or give the graph fewer cameras, a smaller batch or a smaller picture"
    )
    if error.errno == errno.ENOSPC:
        return Shortage(told, is_over=lambda: free_bytes() >= size)
    return shortage_of(error) or EnvironmentProblem(told)


def map_locked(path: Path, fd: int, size: int) -> mmap.mmap:
    """Map a file of `create_locked`, which is removed where that cannot be. Raises EnvironmentProblem."""
    try:
        return mmap.mmap(fd, size, flags=mmap.MAP_SHARED)
    except OSError as error:
        path.unlink(missing_ok=True)
        os.close(fd)
        raise _refused(error, size) from None


def free_bytes() -> int:
    """What is left for segments; 0 where there is no such place."""
    try:
        found = os.statvfs(SHARED_MEMORY)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def segments_bytes(prefix: str) -> int:
    """The size of all segments of one owner."""
    total = 0
    with contextlib.suppress(OSError):  # no descriptor to look with: that must not end a run
        for path in SHARED_MEMORY.glob(f"{prefix}.*"):
            with contextlib.suppress(OSError):
                total += path.stat().st_size
    return total


def unlink_prefix(prefix: str) -> int:
    """Remove the files of a dead owner; how many there were."""
    found = [path for path in SHARED_MEMORY.glob(f"{prefix}.*") if path.is_file()]
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def sweep() -> list[str]:
    """Remove this user's segments whose owner is dead; their names."""
    removed = []
    for path in SHARED_MEMORY.glob(f"camgraph-{os.getuid()}-*"):
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if try_lock(fd):
                path.unlink(missing_ok=True)
                removed.append(path.name)
        finally:
            os.close(fd)
    return removed
