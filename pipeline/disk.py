"""What files need beyond Python's own: locks, and being on the disk. Also where a system lacks a call for it.

Locks belong to a process and end with it (flock). Windows has none: there `try_lock` always succeeds and keeps nobody
out, and `HAS_LOCKS` says so.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

HAS_LOCKS = importlib.util.find_spec("fcntl") is not None


def try_lock(descriptor: int) -> bool:
    """Take the file for this process; False where another has it. Raises OSError where its file system has no locks."""
    if HAS_LOCKS:
        import fcntl  # noqa: PLC0415 - there is none on Windows

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def lock(descriptor: int) -> None:
    """Take the file for this process, and wait for whoever has it. Raises OSError as `try_lock` does."""
    if HAS_LOCKS:
        import fcntl  # noqa: PLC0415 - as above

        fcntl.flock(descriptor, fcntl.LOCK_EX)


def sync_data(descriptor: int) -> None:
    """Return when what was written is on the disk. Raises OSError."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def sync_folder(folder: Path) -> None:
    """Return when the names of a folder's files are on the disk; Windows does not tell. Raises OSError."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
