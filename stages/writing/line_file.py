"""A file of lines that only grows, and only by whole lines.

open      a torn last line of a killed writer is cut off; the file is locked against a second writer
append    one write, then fdatasync; after a failure the file is as long as before
rotated   the path names another file now (logrotate): the next append opens that one
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import stat
from collections.abc import Iterator
from pathlib import Path

from pipeline.disk import sync_data, sync_folder, try_lock
from pipeline.errors import EnvironmentProblem, UserError

CHUNK = 1 << 16
LONGEST_LINE = 1 << 24
_PIECE = 1 << 20
_BINARY = getattr(os, "O_BINARY", 0)
"""Windows would change the ends of lines."""


class LineFile:
    """The file at `path`, made where it is missing (its folder is not)."""

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        """Open, lock and repair. Raises UserError for what is no file of JSON lines, or EnvironmentProblem."""
        self.path = path
        self.cut_bytes = 0
        """How much of a torn last line was cut off on opening."""
        self._sync = sync
        self._descriptor = -1
        self._open()

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._descriptor).st_size

    @property
    def inode(self) -> int:
        """Which file this is, whatever it is called."""
        return os.fstat(self._descriptor).st_ino

    def append(self, data: bytes) -> None:
        """Add whole lines; they are on the disk when this returns.

        Raises EnvironmentProblem when that fails; then nothing of `data` stays in the file. That holds for a failed
        fdatasync too: the kernel has marked its pages clean, so only writing them anew gets them to the disk.
        """
        before = self.size
        try:
            _write_all(self._descriptor, data)
            if self._sync:
                sync_data(self._descriptor)
            self._end = before + len(data)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, before)
            raise EnvironmentProblem(
                f"{self.path}: cannot write {len(data)} bytes: {error.strerror}; "
                "nothing is lost, the events are kept and tried again: free some space, or mend the disk"
            ) from error

    def follow(self) -> bool:
        """Open what the path names now; True where that is another file or an emptied one.

        Raises EnvironmentProblem.
        """
        try:
            current = self.path.stat()
            same = (current.st_ino, current.st_dev) == (self.inode, os.fstat(self._descriptor).st_dev)
        except OSError:
            same = False
        if same:
            shorter, self._end = self.size < self._end, self.size
            return shorter
        old = self._descriptor
        try:
            self._open()
        except UserError as error:  # it was right when the run began
            raise EnvironmentProblem(str(error)) from error
        os.close(old)
        return True

    def empty(self) -> None:
        """Forget all lines."""
        os.ftruncate(self._descriptor, 0)
        self._end = 0

    def tail(self, start: int, most: int) -> Iterator[bytes]:
        """The lines from byte `start` on (0 where someone has shortened the file), the last `most` bytes at most.

        Read piece by piece: a process that has held them all at once stays as large as that for life.
        """
        start = start if start <= self.size else 0
        at = max(start, self.size - most)
        whole, rest = at == start, b""
        while piece := _read_at(self._descriptor, _PIECE, at):
            at += len(piece)
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines if whole else lines[1:]
            whole = whole or bool(lines)
        if whole:
            yield rest

    def close(self) -> None:
        """Let go of the file and its lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _BINARY, 0o644)
        except OSError as error:
            raise _cannot_open(self.path, error) from error
        try:
            _lock(descriptor, self.path)
            self.cut_bytes = _mend(descriptor, self.path)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        self._end = self.size
        if self._sync:
            sync_folder(self.path.parent)


class LineStream:
    """Standard output or a device: what is written is gone, and cannot be taken back or read again."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name
        self._torn = False

    @classmethod
    def device(cls, path: Path) -> LineStream:
        """A character device such as /dev/null. Raises EnvironmentProblem."""
        try:
            return cls(os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0)), str(path))
        except OSError as error:
            raise _cannot_open(path, error) from error

    def append(self, data: bytes) -> None:
        """Write whole lines; waits where the reader is slow.

        Raises UserError when the reader is gone, for a pipe never gets another, and EnvironmentProblem otherwise.
        """
        try:
            _write_all(self._descriptor, b"\n" + data if self._torn else data)
        except BrokenPipeError:
            raise UserError(f"{self._name}: nobody reads it any more, and there are events for it") from None
        except OSError as error:
            self._torn = True
            raise EnvironmentProblem(
                f"{self._name}: cannot write {len(data)} bytes: {error.strerror}; the events are kept and tried again"
            ) from error
        self._torn = False

    def close(self) -> None:
        """Let go of a device; standard output stays open."""
        if self._descriptor > 2:
            os.close(self._descriptor)


def is_device(path: Path) -> bool:
    """Whether the path names a character device. Raises UserError for a pipe or a socket, on which a write may hang."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
        raise UserError(f"{path}: is no ordinary file; name one, use - for standard output, or use sink_socket")
    return stat.S_ISCHR(mode)


def _write_all(descriptor: int, data: bytes) -> None:
    """One write where the kernel takes all of it; it takes less when a disk is full, and the next one says so."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # someone else has set the shared standard output so
            select.select([], [descriptor], [])


def _cannot_open(path: Path, error: OSError) -> UserError | EnvironmentProblem:
    if isinstance(error, IsADirectoryError):
        return UserError(f"{path}: is a folder, expected a file; add a file name")
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return UserError(f"{path.parent}: no such folder; make it, mount its disk, or name another path")
    return EnvironmentProblem(
        f"{path}: cannot open it for writing: {error.strerror}; change its permissions, or name another path"
    )


def _lock(descriptor: int, path: Path) -> None:
    try:
        locked = try_lock(descriptor)
    except OSError as error:
        raise EnvironmentProblem(f"{path}: its file system cannot lock files: {error.strerror}; use another") from error
    if not locked:
        raise UserError(f"{path}: another sink or run is writing to this file; stop it, or give this one another path")


def _mend(descriptor: int, path: Path) -> int:
    """Make the file end with a line's end; the number of bytes cut off for it.

    A last line without its end is whole JSON that only lacks the newline, or what a killed writer had begun. Anything
    else, also before it, was not written by a sink, and is left alone: UserError.
    """
    size = os.fstat(descriptor).st_size
    start = _last_line_start(descriptor, size)
    line = _read_at(descriptor, size - start, start)
    whole = _read_at(descriptor, 1, _last_line_start(descriptor, start - 1)) if start else b"{"
    if not line and whole == b"{":
        return 0
    if whole != b"{" or not line.startswith(b"{"):
        raise UserError(f"{path}: is no file of JSON lines: its last line is none; name another path, or move it away")
    try:
        json.loads(line)
    except ValueError:
        os.ftruncate(descriptor, start)
        return len(line)
    os.write(descriptor, b"\n")
    return 0


def _last_line_start(descriptor: int, size: int) -> int:
    """Where the line begins that has no end yet; `size` where every line has one."""
    at = size
    while at > 0 and size - at < LONGEST_LINE:
        first = max(0, at - CHUNK)
        newline = _read_at(descriptor, at - first, first).rfind(b"\n")
        if newline >= 0:
            return first + newline + 1
        at = first
    return at


def _read_at(descriptor: int, count: int, at: int) -> bytes:
    """As os.pread, which Windows has not; where the file is read next is nobody's business, and writes append."""
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.read(descriptor, count)
