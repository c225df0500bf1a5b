"""A file of lines that only grows, and only by whole lines.

open      the file is locked against a second writer; a torn last line of a killed writer goes
append    one write, then fdatasync; after a failure the file is as long as before. If another program has left a line
          without an end meanwhile, the write begins with that end
rotated   the path names another file now (logrotate): the next append opens that one

Only regular files are written. A symbolic link is followed if it was there when the run began, and only while its
target stays the same: otherwise anybody who may write in the folder could choose any file of this user.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import stat
from collections.abc import Iterator
from pathlib import Path

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.system.disk import open_regular, sync_data, sync_folder, try_lock

CHUNK = 1 << 16
LONGEST_LINE = 1 << 24
_PIECE = 1 << 20
_CUT = -1
"""Value of `_end` after another program has shortened the file."""
_HEADS = (b'{"specversion":"1.0","id":"', b'{"specversion": "1.0", "id": "')
_BEHIND_ID = (b'","source":"camgraph/', b'", "source": "camgraph/')
"""How the lines of a run begin, whichever run it was: with and without spaces."""


def link_of(path: Path) -> str:
    """The target of a symbolic link, as written in it; "" if the path is none."""
    try:
        return str(path.readlink())
    except OSError:
        return ""


class LineFile:
    """The file at `path`, made if it is missing (its folder is not)."""

    def __init__(self, path: Path, *, sync: bool = True, link: str = "") -> None:
        """Open, lock and repair. `link`: follow the symbolic link at `path` as long as it says this (`link_of`).

        Raises UserError if it is no file of JSON lines, or EnvironmentProblem.
        """
        self.path = path
        self.cut_bytes = 0
        """How much of a torn last line was cut off."""
        self.kept_bytes = 0
        """The length of an unfinished last line of another program: it was ended and kept."""
        self._torn = b""
        """A last line without its end, whose writer is not known yet."""
        self._cut_to: int | None = None
        """The length to cut the file to, if a failed write could not be taken back."""
        self._end = 0
        """Size of the file after the last write of this object, or `_CUT`."""
        self._sync = sync
        self.link = link
        self._descriptor = -1
        self._open()

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._descriptor).st_size

    @property
    def whole_size(self) -> int:
        """Bytes in the lines that have an end."""
        return self.size - len(self._torn)

    @property
    def inode(self) -> int:
        """The identity of the file, independent of its name."""
        return os.fstat(self._descriptor).st_ino

    def append(self, data: bytes) -> None:
        """Add whole lines; they are on the disk when this returns.

        Raises EnvironmentProblem if that fails; then nothing of `data` stays in the file. That holds for a failed
        fdatasync too: the kernel has marked its pages clean, so only writing them again gets them to the disk.
        """
        before: int | None = None
        try:
            self._take_back()
            before = self.size
            if self._torn:
                before = self._end_torn_line(data)
            elif before != self._end:
                before = self._end_line_of_others()
            _write_all(self._descriptor, data)
            if self._sync:
                sync_data(self._descriptor)
            self._end = before + len(data)
        except OSError as error:
            self._cut_to = before if self._cut_to is None else self._cut_to
            with contextlib.suppress(OSError):
                self._take_back()
            raise EnvironmentProblem(
                f"{self.path}: cannot write {len(data)} bytes: {error.strerror}; "
                "nothing is lost, the events are kept and tried again: free some space, or mend the disk",
                error_id="cannot-write",
            ) from error

    def _take_back(self) -> None:
        """Cut off the rest of a failed write. Raises OSError; then the next call does it."""
        if self._cut_to is not None:
            os.ftruncate(self._descriptor, self._cut_to)
            self._cut_to = None

    def _end_torn_line(self, data: bytes) -> int:
        """Remove the beginning of one of these lines that a killed writer left, because it comes whole now; keep
        anything else.

        Returns the size of the file then.
        """
        before = self.size
        if any(line.startswith(self._torn) for line in data.split(b"\n")):
            self.cut_bytes = len(self._torn)
            os.ftruncate(self._descriptor, before - len(self._torn))
        else:
            _write_all(self._descriptor, b"\n")
            self.kept_bytes = len(self._torn)
        self._torn = b""
        return self.size

    def _end_line_of_others(self) -> int:
        """After somebody else has changed the file: end its last line if that has no end, so that ours begins anew.

        A piece that a cut has left of a line of ours goes. Returns the size of the file then.
        """
        size = self.size
        line = self._unfinished(size)
        if line and self._end == _CUT and _is_own(line):
            self.cut_bytes = len(line)
            os.ftruncate(self._descriptor, size - len(line))
        elif line:
            _write_all(self._descriptor, b"\n")
            self.kept_bytes = len(line)
        return self.size

    def _unfinished(self, size: int) -> bytes:
        """The last line if it has no end, else nothing."""
        if not size or _read_at(self._descriptor, 1, size - 1) == b"\n":
            return b""
        start = _last_line_start(self._descriptor, size)
        return _read_at(self._descriptor, size - start, start)

    def follow(self) -> bool:
        """Open the file that the path names now; True if that is another file or an emptied one.

        Raises EnvironmentProblem.
        """
        try:
            current = self.path.stat()
            same = (current.st_ino, current.st_dev) == (self.inode, os.fstat(self._descriptor).st_dev)
        except OSError:
            same = False
        if same:
            shorter = self.size < self._end
            self._end = _CUT if shorter else self._end
            return shorter
        old = self._descriptor
        try:
            self._open()
        except UserError as error:  # it was right when the run began
            raise EnvironmentProblem(str(error), error_id="cannot-write") from error
        os.close(old)
        return True

    @property
    def last_write_s(self) -> float:
        """Seconds since 1970."""
        return os.fstat(self._descriptor).st_mtime

    @property
    def followed(self) -> Path:
        """The path of the file itself, if a symbolic link leads to it."""
        return self._followed()

    def move_to(self, target: Path) -> None:
        """Give the file another name; the next `follow` begins a new one. Raises OSError; then it is as it was."""
        self._followed().rename(target)
        if self._sync:
            sync_folder(target.parent)

    def empty(self) -> None:
        """Forget all lines."""
        os.ftruncate(self._descriptor, 0)
        self._torn = b""
        self._end = 0

    def tail(self, start: int, most: int, lines: int) -> Iterator[bytes]:
        """The lines from byte `start` on (0 if someone has shortened the file), the last `most` bytes and `lines` lines
        at most, and an unfinished one, or b"", behind them.

        Read piece by piece: a process that has held them all at once stays as large as that for life.
        """
        start = start if start <= self.size else 0
        least = max(start, self.size - most)
        at = self._start_of_last(lines, least)
        whole, rest = at == start or at > least, b""
        while piece := _read_at(self._descriptor, _PIECE, at):
            at += len(piece)
            *ended, rest = (rest + piece).split(b"\n")
            yield from ended if whole else ended[1:]
            whole = whole or bool(ended)
        if whole:
            yield rest

    def _start_of_last(self, lines: int, least: int) -> int:
        """Where the last `lines` lines that have an end begin; `least` if there are no more behind that byte."""
        at, missing = self.size, lines + 1
        while at > least:
            first = max(least, at - _PIECE)
            piece = _read_at(self._descriptor, at - first, first)
            ends = piece.count(b"\n")
            if ends >= missing:
                end = len(piece)
                for _ in range(missing):
                    end = piece.rfind(b"\n", 0, end)
                return first + end + 1
            at, missing = first, missing - ends
        return least

    def close(self) -> None:
        """Let go of the file and its lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        try:
            descriptor = open_regular(self._followed(), os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise _cannot_open(self.path, error) from error
        try:
            _lock(descriptor, self.path)
            self._torn = _mended(descriptor, self.path)
            self._cut_own_line(descriptor)
            self._end = os.fstat(descriptor).st_size
            if self._sync:
                sync_folder(self.path.parent)
        except OSError as error:
            os.close(descriptor)
            raise _cannot_open(self.path, error) from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        self._cut_to = None

    def _followed(self) -> Path:
        """The path to open: the target of the link at the start, if it is there; any other link is refused."""
        link = link_of(self.path)
        return Path(os.path.realpath(self.path)) if link and link == self.link else self.path

    def _cut_own_line(self, descriptor: int) -> None:
        if self._torn and _is_own(self._torn):
            self.cut_bytes = len(self._torn)
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - len(self._torn))
            self._torn = b""


def _is_own(torn: bytes) -> bool:
    """Whether a line begins as those of a run do, as far as it goes."""
    for head, behind in zip(_HEADS, _BEHIND_ID, strict=True):
        rest = b'"' + torn[len(head) :].partition(b'"')[2]
        id_ends = b'"' in torn[len(head) :]
        if head.startswith(torn) or (torn.startswith(head) and (not id_ends or _agree(rest, behind))):
            return True
    return False


def _agree(one: bytes, other: bytes) -> bool:
    return one.startswith(other) or other.startswith(one)


class LineStream:
    """Standard output or a device: lines are gone once written, and cannot be taken back or read again."""

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
        """Write whole lines; wait if the reader is slow.

        Raises UserError if the reader is gone, because a pipe never gets another, and EnvironmentProblem otherwise.
        """
        try:
            _write_all(self._descriptor, b"\n" + data if self._torn else data)
        except BrokenPipeError:
            raise UserError(
                f"{self._name}: its reader has closed it, and there are more events for it", error_id="reader-gone"
            ) from None
        except OSError as error:
            self._torn = True
            raise EnvironmentProblem(
                f"{self._name}: cannot write {len(data)} bytes: {error.strerror}; the events are kept and tried again",
                error_id="cannot-write",
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
        raise UserError(
            f"{path}: is no ordinary file; name one, use - for standard output, or use sink_socket",
            error_id="file-kind",
        )
    return stat.S_ISCHR(mode)


def _write_all(descriptor: int, data: bytes) -> None:
    """One write, if the kernel takes all of it; it takes less when a disk is full, and the next one says so."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # someone else has set the shared standard output so
            poll = select.poll()  # `select` takes no descriptors beyond 1023
            poll.register(descriptor, select.POLLOUT)
            poll.poll()


def _cannot_open(path: Path, error: OSError) -> UserError | EnvironmentProblem:
    if isinstance(error, IsADirectoryError):
        return UserError(f"{path}: is a folder, expected a file; add a file name", error_id="file-kind")
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return UserError(
            f"{path.parent}: no such folder; make it, mount its disk, or name another path", error_id="file-missing"
        )
    if error.errno == errno.EINVAL:  # of `open_regular`
        return EnvironmentProblem(
            f"{path}: cannot be written now: {error.strerror}; put a file or nothing there, or name another path",
            error_id="cannot-write",
        )
    return EnvironmentProblem(
        f"{path}: cannot open it for writing: {error.strerror}; change its permissions, or name another path",
        error_id="cannot-write",
    )


def _lock(descriptor: int, path: Path) -> None:
    try:
        locked = try_lock(descriptor)
    except OSError as error:
        raise EnvironmentProblem(
            f"{path}: its file system cannot lock files: {error.strerror}; use another", error_id="cannot-write"
        ) from error
    if not locked:
        raise UserError(
            f"{path}: another sink or run is writing to this file; stop it, or give this one another path",
            error_id="file-in-use",
        )


def _mended(descriptor: int, path: Path) -> bytes:
    """Give whole JSON that only lacks its line's end that end; any other last line without one is returned.

    That may be the beginning that a killed writer left. A file that does not begin with a line of a sink, and whose
    last lines are no JSON, is none of ours, and is left alone: UserError.
    """
    size = os.fstat(descriptor).st_size
    start = _last_line_start(descriptor, size)
    line = _read_at(descriptor, size - start, start)
    whole = _read_at(descriptor, 1, _last_line_start(descriptor, start - 1)) if start else b"{"
    if not line and whole == b"{":
        return b""
    begin = _read_at(descriptor, max(map(len, _HEADS)), 0)
    if not begin.startswith(_HEADS) and (whole != b"{" or not line.startswith(b"{")):
        raise UserError(
            f"{path}: is no file of JSON lines: its last line is none; name another path, or move it away",
            error_id="file-kind",
        )
    try:
        json.loads(line)
    except ValueError:
        return line
    _write_all(descriptor, b"\n")
    return b""


def _last_line_start(descriptor: int, size: int) -> int:
    """The start of the line that has no end yet; `size` if every line has one."""
    at = size
    while at > 0 and size - at < LONGEST_LINE:
        first = max(0, at - CHUNK)
        newline = _read_at(descriptor, at - first, first).rfind(b"\n")
        if newline >= 0:
            return first + newline + 1
        at = first
    return at


def _read_at(descriptor: int, count: int, at: int) -> bytes:
    """As os.pread, which Windows lacks; the read position does not matter, and writes append."""
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.read(descriptor, count)
