"""Files beyond Python's own calls: locks, writes that surely reach the disk, regular files only, on every system.

A folder may be shared with people who mean harm, and a name in it may stand for something else than a moment ago: a
symbolic link to a file that must not be written, or a pipe that is never read. `open_regular` opens neither.

Locks belong to a process and end with it (flock). Windows has none: there `try_lock` always succeeds and keeps nobody
out, and `HAS_LOCKS` is False.
"""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_CAREFULLY = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
"""Follow no link, do not block on a pipe; Windows would change the ends of lines."""
_AT_ONCE = _CAREFULLY & ~getattr(os, "O_NOFOLLOW", 0)
"""The same, following links: to read a file that the user names."""

_MOUNTS = Path("/proc/self/mountinfo")
_KERNEL_FILE_SYSTEMS = frozenset(
    {"proc", "sysfs", "debugfs", "tracefs", "securityfs", "configfs", "bpf", "cgroup", "cgroup2", "pstore", "efivarfs"}
)
_FOLDER_TRIES = 100
_PIECE = 1 << 20
MOST_TEXT_BYTES = 64 << 20
"""Of any file that a person writes by hand."""

HAS_LOCKS = importlib.util.find_spec("fcntl") is not None


def try_lock(descriptor: int) -> bool:
    """Lock the file for this process; False if another has it. Raises OSError if its file system has no locks."""
    if HAS_LOCKS:
        import fcntl  # noqa: PLC0415 - there is none on Windows

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def lock(descriptor: int) -> None:
    """Lock the file for this process, and wait for the present holder. Raises OSError as `try_lock` does."""
    if HAS_LOCKS:
        import fcntl  # noqa: PLC0415 - as above

        fcntl.flock(descriptor, fcntl.LOCK_EX)


def sync_data(descriptor: int) -> None:
    """Return when everything written is on the disk. Raises OSError."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def ends_within_line(descriptor: int, size: int) -> bool:
    """Whether the last line of a file of `size` bytes has no end: a power cut or a full disk left a part."""
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def append_line(descriptor: int, line: bytes) -> None:
    """Append `line`, which ends with a newline, whole and durably, or not at all. Raises OSError.

    A part of a line at the end of the file is ended first. No other process may write to the file meanwhile.
    """
    size = os.fstat(descriptor).st_size
    data = b"\n" * ends_within_line(descriptor, size) + line
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync_data(descriptor)
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def sync_folder(folder: Path) -> None:
    """Return when the names of a folder's files are on the disk; Windows does not tell. Raises OSError."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def kind_of(mode: int) -> str:
    """The name of this kind of file in messages ("a pipe"); "" for a regular file."""
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "no file")


def is_of_kernel(found: os.stat_result) -> bool:
    """Whether a file lies in /proc, /sys and the like: it counts as a regular one, and reading it may never end."""
    if found.st_size and getattr(found, "st_blocks", 1):
        return False
    try:
        mounts = _MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return False
    device = f"{os.major(found.st_dev)}:{os.minor(found.st_dev)}"
    lines = (line.partition(" - ") for line in mounts)
    return any(
        place.split()[2] == device and kind.split()[0] in _KERNEL_FILE_SYSTEMS for place, _, kind in lines if kind
    )


def read_text(path: Path, *, pipe: bool = False, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """The text of a small file, read to an end that surely comes. `pipe`: it may be one, which is waited for.

    Ends of lines are those of Python. Raises UnicodeDecodeError, and OSError, also if it is no regular file, is too
    large or does not end; its `strerror` says so.
    """
    return read_small(path, pipe=pipe, most_bytes=most_bytes).decode().replace("\r\n", "\n").replace("\r", "\n")


def read_small(path: Path, *, pipe: bool = False, most_bytes: int = MOST_TEXT_BYTES) -> bytes:
    """As `read_text`, for bytes."""
    waiting = pipe and stat.S_ISFIFO(path.stat().st_mode)
    descriptor = os.open(path, os.O_RDONLY | (0 if waiting else _AT_ONCE))
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - it is open already
        found = os.fstat(descriptor)
        kind = "a file of the kernel" if is_of_kernel(found) else kind_of(found.st_mode)
        if kind and not waiting:
            raise _no_file(path, kind)
        data = bytearray()
        while piece := file.read(min(_PIECE, most_bytes + 1 - len(data))):
            data += piece
            if len(data) > most_bytes:
                raise OSError(errno.EFBIG, f"it is larger than {most_bytes} bytes", str(path))
        if piece is None:
            raise OSError(errno.EAGAIN, "its end does not come", str(path))
    return bytes(data)


def open_regular(path: Path, flags: int, mode: int = 0o600) -> int:
    """As os.open, but only for a regular file: a link is not followed, and no pipe or device is opened.

    Raises OSError, also for these; its `strerror` then says which of them the path names.
    """
    try:
        descriptor = os.open(path, flags | _CAREFULLY, mode)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise _no_file(path, kind_of(_mode_of(path)) or "no file") from None
    kind = kind_of(os.fstat(descriptor).st_mode)
    if kind:
        os.close(descriptor)
        raise _no_file(path, kind)
    return descriptor


def open_locked(path: Path) -> int:
    """A descriptor of a regular file, made if there is none, that holds its lock; -1 if another process has it.

    Raises OSError as `open_regular` and `try_lock` do.
    """
    descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    try:
        if try_lock(descriptor):
            return descriptor
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return -1


def why_no_links(folder: Path) -> str:
    """Why files of this folder can have no second name, as on exFAT and on some shares; "" if they can.

    Tries an empty file, which is removed, in the folder or its nearest existing parent. Also "" if that folder cannot
    be written.
    """
    nearest = next((place for place in (folder, *folder.parents) if place.is_dir()), folder)
    try:
        descriptor, name = tempfile.mkstemp(prefix=".camgraph-", dir=nearest)
    except OSError:
        return ""
    os.close(descriptor)
    one, other = Path(name), Path(f"{name}-2")
    try:
        os.link(one, other)
    except OSError as error:
        return error.strerror or str(error)
    finally:
        for path in (one, other):
            with suppress(OSError):
                path.unlink()
    return ""


def link_or_copy(source: Path, target: Path) -> str:
    """Give a regular file a second name, in place of what `target` names: a hard link, or a copy if there are no links.

    Returns why it is a copy, "" if it is a link. Raises OSError; then nothing half copied is left.
    """
    target.unlink(missing_ok=True)
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError as error:
        _copy(source, target)
        return error.strerror or str(error)
    return ""


def _copy(source: Path, target: Path) -> None:
    part = target.with_name(f"{target.name}.{secrets.token_hex(8)}.part")
    try:
        with (
            open(open_regular(source, os.O_RDONLY), "rb") as old,
            open(open_regular(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "wb") as new,
        ):
            shutil.copyfileobj(old, new, _PIECE)
        part.replace(target)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def _mode_of(path: Path) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _no_file(path: Path, kind: str) -> OSError:
    return OSError(errno.EINVAL, f"is {kind}, expected a regular file", str(path))


def is_at(descriptor: int, path: Path) -> bool:
    """True while the path names the file that is open, not through a link."""
    try:
        found, own = os.lstat(path), os.fstat(descriptor)
    except OSError:
        return False
    return (found.st_ino, found.st_dev) == (own.st_ino, own.st_dev)


def write_whole(path: Path, data: bytes, *, durable: bool = False, mode: int | None = None) -> None:
    """Replace the file by one with this content; a link is replaced, not followed.

    It is written beside, under a name that nobody can know before. Raises OSError; then `path` is as it was.
    `durable`: it outlives a power cut. `mode`: its permissions, which it has before anything is in it; by default the
    usual ones.
    """
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        descriptor = open_regular(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else mode)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - it is open already
            if mode is not None:
                with suppress(OSError):  # disks without permissions refuse this; the file has no more than `mode`
                    os.fchmod(descriptor, mode)
            file.write(data)
            if durable:
                file.flush()
                sync_data(file.fileno())
        part.replace(path)
        if durable:
            sync_folder(path.parent)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def write_with_folder(path: Path, data: bytes, *, durable: bool = False) -> None:
    """As `write_whole`, and make the folder if it is missing. Raises OSError.

    Others remove folders that are empty, also this one between the moments when it is made and when the file is in it.
    """
    for tries_left in reversed(range(_FOLDER_TRIES)):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, data, durable=durable)
        except (FileNotFoundError, FileExistsError):  # the latter of `mkdir`, if the folder goes between its two looks
            if not tries_left:
                raise
        else:
            return


def read_kept(path: Path, read: Callable[[Any], T], warn: Callable[..., object]) -> T | None:
    """What `read` makes of the JSON that an earlier process has left in a file; None if there is no such file.

    A damaged file is None as well, so that no process dies of it again and again; `warn` (of a log) is told. Raises
    OSError if the file cannot be read.
    """
    try:
        return read(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        warn("state_damaged", file=str(path), why=f"{type(error).__name__}: {error}")
        return None
