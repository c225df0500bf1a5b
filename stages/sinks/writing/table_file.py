"""A CSV file that only grows, by whole rows, and is never mixed with rows of other columns.

The part of a row that a killed writer left is removed. Only one process writes to a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.system.disk import ends_within_line, open_regular, sync_data, try_lock

_BOM = b"\xef\xbb\xbf"
"""Spreadsheets read a file without a byte-order mark in an old encoding."""
_LONGEST_ROW = 1 << 16
_MOST_READ = 16 << 20


class TableFile:
    """The file at `path`, made with its header if it is missing or empty."""

    def __init__(self, path: Path, header: str) -> None:
        """Raises UserError if the file is another table or is in use; EnvironmentProblem, OSError."""
        self.path = path
        self.kept_bytes = 0
        """The length of another program's unfinished last line, which was ended and kept."""
        self._end = 0
        self._descriptor = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if not try_lock(self._descriptor):
                raise UserError(
                    f"{path}: another sink or run is writing to this file: give this one another path",
                    error_id="file-in-use",
                )
            self._begin(_BOM + header.encode())
        except BaseException:
            self.close()
            raise

    def _begin(self, head: bytes) -> None:
        there = os.pread(self._descriptor, len(head), 0)
        if there != head:
            if not head.startswith(there):
                raise UserError(
                    f"{self.path}: has other columns, or is no such table: name another path, or move it away",
                    error_id="file-kind",
                )
            os.ftruncate(self._descriptor, 0)
            self.append(head)
        size = self.size
        last = os.pread(self._descriptor, _LONGEST_ROW, max(0, size - _LONGEST_ROW))
        torn = len(last) - (last.rfind(b"\n") + 1)
        if torn:
            os.ftruncate(self._descriptor, size - torn)
        self._end = self.size

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def append(self, rows: bytes) -> None:
        """Append rows; all rows are on the disk when this returns. Raises OSError, and then no row is in the file."""
        before = self.size
        if before != self._end and ends_within_line(self._descriptor, before):
            self.kept_bytes = before - self._end
            rows = b"\n" + rows
        try:
            rest = memoryview(rows)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            sync_data(self._descriptor)
            self._end = before + len(rows)
        except OSError:
            os.ftruncate(self._descriptor, before)
            raise

    def rows_from(self, start: int) -> Iterator[str]:
        """The lines behind the byte `start`, but of more than 16 MB only the last 16 MB."""
        start = max(start, self.size - _MOST_READ)
        pieces = []
        while piece := os.pread(self._descriptor, 1 << 20, start):
            pieces.append(piece)
            start += len(piece)
        yield from b"".join(pieces).decode(errors="replace").splitlines()

    def is_whole(self) -> bool:
        """False once another program has moved, removed or shortened the file, which may lack its header then."""
        try:
            found, own = self.path.stat(), os.fstat(self._descriptor)
        except OSError:
            return False
        return (found.st_ino, found.st_dev) == (own.st_ino, own.st_dev) and own.st_size >= self._end

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def cannot_write(path: Path, error: OSError) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"{path}: cannot be written: {error.strerror}; the events wait: free some space, or mend it",
        error_id="cannot-write",
    )
