"""Keeps a part of the disk free, to get out of a full one.

SQLite must write before it can delete anything, so it cannot free space on a full disk. The reserve is a file of zeros
that is removed for that moment.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from camgraph.pipeline.system.disk import open_regular


class DiskReserve:
    """A file of `size` bytes at `path`, which exists while the reserve is taken."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self._held = False

    def hold(self) -> bool:
        """Take the reserve, if it is not taken yet; False if the disk has no room for it now."""
        if not self._held:
            self.release()  # the file of a killed process may be shorter
            try:
                self._take()
                self._held = True
            except OSError:
                self.release()
        return self._held

    def release(self) -> None:
        """Free the reserve for the next writer."""
        self._held = False
        with suppress(OSError):
            self._path.unlink()

    def _take(self) -> None:
        descriptor = open_regular(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, self._size)
            else:
                os.write(descriptor, bytes(self._size))
        finally:
            os.close(descriptor)
