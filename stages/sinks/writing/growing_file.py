"""A file that is unfinished until it has its name, and grows by whole pieces.

front.txt.part   locked by its writer; a part without a lock was left by a writer that was killed
     |
front.txt        complete
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.system.disk import is_at, open_regular, sync_data, try_lock
from camgraph.stages.sinks.writing.output_names import named, part_of


class GrowingFile:
    """The part of `target`, held under a lock that ends with the process."""

    def __init__(self, target: Path, *, fresh: bool, replace: bool = False) -> None:
        """Make the part (`fresh`), or go on with one that is there. `replace`: a fresh one may replace another.

        Raises FileExistsError if somebody was faster, FileNotFoundError if there is none to go on with, OSError, and
        EnvironmentProblem if another process writes it.
        """
        self.target = target
        self.part = part_of(target)
        self._replace = replace
        self._cut_to: int | None = None
        """The length to cut the file to, if a failed write could not be taken back."""
        made = os.O_CREAT | (0 if replace else os.O_EXCL) if fresh else 0
        self._descriptor = open_regular(self.part, os.O_RDWR | os.O_APPEND | made, 0o644)
        try:
            self._hold()
            if fresh:
                os.ftruncate(self._descriptor, 0)
        except BaseException:
            self.close()
            raise

    def _hold(self) -> None:
        if not (try_lock(self._descriptor) and is_at(self._descriptor, self.part)):
            raise EnvironmentProblem(
                f"{self.part}: another run is writing this file; stop it, or give this one another path",
                error_id="file-in-use",
            )

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._descriptor).st_size

    @property
    def is_gone(self) -> bool:
        """Whether the path of the part no longer names this file: it would grow on, and never get its name."""
        return not is_at(self._descriptor, self.part)

    def append(self, data: bytes) -> None:
        """Add `data`. Raises EnvironmentProblem if that fails; then nothing of it stays in the file."""
        before: int | None = None
        try:
            self._take_back()
            before = self.size
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            self._cut_to = before if self._cut_to is None else self._cut_to
            with contextlib.suppress(OSError):
                self._take_back()
            raise EnvironmentProblem(
                f"{self.part}: cannot write {len(data)} bytes: {error.strerror}; free some space, or mend the disk",
                error_id="cannot-write",
            ) from error

    def _take_back(self) -> None:
        """Cut off the rest of a failed write. Raises OSError; then the next call does it."""
        if self._cut_to is not None:
            os.ftruncate(self._descriptor, self._cut_to)
            self._cut_to = None

    def cut(self, size: int) -> None:
        """Keep the first `size` bytes. Raises OSError."""
        os.ftruncate(self._descriptor, size)

    def tail(self, most: int) -> bytes:
        """The last `most` bytes, or all of a shorter file. Raises OSError."""
        at = max(0, self.size - most)
        return os.pread(self._descriptor, most, at)

    def head(self, most: int) -> bytes:
        """The first `most` bytes, or all of a shorter file. Raises OSError."""
        return os.pread(self._descriptor, most, 0)

    def take_over(self, descriptor: int) -> None:
        """Another file, which is open and locked, has the name of the part now."""
        self.close()
        self._descriptor = descriptor

    def complete(self) -> Path:
        """Let go of the file and give it its name, or the next free one if that is taken. Raises OSError."""
        sync_data(self._descriptor)
        name = named(self.target, replace=self._replace)
        self.close()
        return name

    def close(self) -> None:
        """Let go of the file and its lock; once is enough."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
