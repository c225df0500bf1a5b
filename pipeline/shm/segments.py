"""Shared memory as files: the layout that owner and reader agree on, and the removal of dead owners' files.

    /dev/shm/camgraph-<uid>-<run>-<token>-<process>.<incarnation>.<token>

      0        magic "CGS1" | slots u32 | stride u64
      64       generation of slot 0, 1, ...           u64 each, written by the owner alone
      4096 n   slot 0 | slot 1 | ...                  stride bytes each

The owner holds a lock (flock) on each of its files for life; a file that nobody locks is left over and may go.
`pipeline.shm.slots` explains who may write when.

Any user of the machine may put files into /dev/shm. So the name of a segment is random, because a user who
knew it beforehand could take it first. A file of another user is never opened, counted or removed; it is reported once.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import platform
import secrets
import stat
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from camgraph.pipeline.errors import EnvironmentProblem, Shortage
from camgraph.pipeline.system.disk import is_at, lock, open_regular, try_lock
from camgraph.pipeline.system.paths import SHARED_MEMORY
from camgraph.pipeline.system.scarcity import shortage_of

MAGIC = b"CGS1"
HEADER = struct.Struct("<4sIQ")
GENERATIONS_AT = 64
PAGE = 4096
ALIGN = 64
MAX_SLOTS = 65_536
_BLOCK = 512
"""The unit of `st_blocks` on every file system."""
MAX_STRIDE = 1 << 32


class Descriptor(NamedTuple):
    """The place of a message's bytes, as it travels in the message."""

    segment: str
    slot: int
    generation: int

    @classmethod
    def from_wire(cls, values: Any) -> Descriptor:
        """Make a descriptor of the list that msgpack returns. Raises ValueError or TypeError if it is none."""
        segment, slot, generation = values
        if not (isinstance(segment, str) and isinstance(slot, int) and isinstance(generation, int)):
            raise ValueError(f"no descriptor: {values!r:.200}")
        return cls(segment, slot, generation)


def require_ordered_stores() -> None:
    """Refuse a processor on which the generation check could be fooled."""
    if platform.machine() not in ("x86_64", "AMD64", "i686"):
        raise EnvironmentProblem(
            f"shared memory between processes needs an x86 processor, this is {platform.machine()}: "
            "write `processes: one` in the graph file",
            error_id="platform",
        )


def round_up(value: int, to: int) -> int:
    """The lowest multiple of `to` that is not below `value`."""
    return -(-value // to) * to


def data_at(slots: int) -> int:
    """The offset of slot 0 in a file with this many slots."""
    return round_up(GENERATIONS_AT + 8 * slots, PAGE)


def create_locked(prefix: str, size: int) -> tuple[str, int]:
    """A new file of `size` bytes with its pages reserved and its owner's lock on it: its name and its descriptor.

    Raises EnvironmentProblem if there is not enough memory: Shortage if others may give some back.
    """
    while True:
        name = f"{prefix}.{secrets.token_hex(8)}"
        path = SHARED_MEMORY / name
        try:
            fd = open_regular(path, os.O_CREAT | os.O_EXCL | os.O_RDWR)
        except OSError as error:
            raise _refused(error, size) from None
        try:
            lock(fd)
            if not is_at(fd, path):  # a sweep came between the creation and the lock
                os.close(fd)
                continue
            # Reserves the pages now: without them the first write would end in a bus error.
            os.posix_fallocate(fd, 0, size)
        except OSError as error:
            path.unlink(missing_ok=True)
            os.close(fd)
            raise _refused(error, size) from None
        return name, fd


def reserve(fd: int, start: int, size: int) -> None:
    """Reserve bytes of a file of `create_locked` from `start` on. Raises EnvironmentProblem as that does."""
    try:
        os.posix_fallocate(fd, start, size)
    except OSError as error:
        raise _refused(error, size) from None


def _refused(error: OSError, size: int) -> EnvironmentProblem:
    message = (
        f"no room for {size / 1e6:.1f} MB in {SHARED_MEMORY} ({error.strerror}): "
        "make it larger, or give the graph fewer cameras, a smaller batch or a smaller picture"
    )
    if error.errno == errno.ENOSPC:
        return Shortage(message, is_over=lambda: free_bytes() >= size, error_id="shared-memory")
    return shortage_of(error) or EnvironmentProblem(message, error_id="shared-memory")


def map_locked(name: str, fd: int, size: int) -> mmap.mmap:
    """Map a file of `create_locked`; if that fails, remove it and raise EnvironmentProblem."""
    try:
        return mmap.mmap(fd, size, flags=mmap.MAP_SHARED)
    except OSError as error:
        (SHARED_MEMORY / name).unlink(missing_ok=True)
        os.close(fd)
        raise _refused(error, size) from None


def open_segment(name: str) -> int:
    """A descriptor to read a segment with. Raises OSError: FileNotFoundError too if another user has taken its name."""
    try:
        fd = open_regular(SHARED_MEMORY / name, os.O_RDONLY)
    except OSError:
        if _is_own(os.lstat(SHARED_MEMORY / name)):
            raise
    else:
        if _is_own(os.fstat(fd)):
            return fd
        os.close(fd)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def free_bytes() -> int:
    """The bytes that are left for segments; 0 if the machine has no such folder."""
    try:
        found = os.statvfs(SHARED_MEMORY)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def segments_bytes(prefix: str) -> int:
    """The memory that all segments of one owner hold: pages that were given back are no longer among it."""
    total = 0
    for path in _own_files(f"{prefix}."):
        with contextlib.suppress(OSError):
            total += path.lstat().st_blocks * _BLOCK
    return total


def unlink_prefix(prefix: str) -> int:
    """Remove the files of a dead owner; how many there were. Raises nothing."""
    return sum(_remove(path) for path in _own_files(f"{prefix}."))


def sweep() -> list[str]:
    """Remove this user's segments whose owner is dead; their names. Raises nothing."""
    return [path.name for path in _own_files(f"camgraph-{os.getuid()}-") if _is_left_over(path) and _remove(path)]


def _is_left_over(path: Path) -> bool:
    try:
        fd = open_regular(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return try_lock(fd)
    except OSError:
        return False
    finally:
        os.close(fd)


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _own_files(start: str) -> Iterator[Path]:
    """This user's files whose name starts so; those of others are passed over and reported. Raises nothing."""
    try:
        names = [name for name in os.listdir(SHARED_MEMORY) if name.startswith(start)]  # noqa: PTH208 - a hot path
    except OSError:  # no descriptor to look with: that must not end a run
        return
    for name in names:
        try:
            found = os.lstat(SHARED_MEMORY / name)
        except OSError:
            continue
        if _is_own(found) and stat.S_ISREG(found.st_mode):
            yield SHARED_MEMORY / name


def _is_own(found: os.stat_result) -> bool:
    if found.st_uid != os.getuid():
        _report_foreign(found.st_uid)
    return found.st_uid == os.getuid()


@cache
def _report_foreign(owner: int) -> None:
    """Once for each owner: there may be many files, and they are looked at often."""
    structlog.get_logger().warning(
        "foreign_files_left_alone",
        folder=str(SHARED_MEMORY),
        named=f"camgraph-{os.getuid()}-*",
        owner=owner,
        hint="another user has put files there that are named as this user's; nothing of this run is lost by them",
    )
