"""Locks on files, and what happens where a system has none."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph.env_file import read_env_file
from camgraph.pipeline.graph.loading import read_graph
from camgraph.pipeline.graph.secret_files import secret_file
from camgraph.pipeline.system import disk
from camgraph.pipeline.system.paths import instead_of_file

_HOLDS = """
import os, sys
from camgraph.pipeline.system.disk import lock
lock(os.open(sys.argv[1], os.O_RDWR))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_another_process_until_that_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    with path.open() as own:
        command = [sys.executable, "-c", _HOLDS, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout
            assert other.stdout.readline() == "held\n"
            assert not disk.try_lock(own.fileno())
            other.kill()
        disk.lock(own.fileno())  # waits for nobody now
        with path.open() as second:
            assert not disk.try_lock(second.fileno())


def test_without_locks_nobody_is_kept_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    path.touch()
    with path.open() as first, path.open() as second:
        assert disk.try_lock(first.fileno())
        assert not disk.try_lock(second.fileno())
        monkeypatch.setattr(disk, "HAS_LOCKS", False)
        assert disk.try_lock(second.fileno())
        disk.lock(second.fileno())


@pytest.mark.parametrize("absent", [(), ("fdatasync", "O_DIRECTORY")])
def test_what_is_written_is_on_the_disk_with_what_the_system_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: tuple[str, ...]
) -> None:
    synced: list[int] = []
    for name in absent:
        monkeypatch.delattr(os, name)
    monkeypatch.setattr(os, "fsync", synced.append)
    with (tmp_path / "file").open("wb") as file:
        disk.sync_data(file.fileno())
        assert synced == ([file.fileno()] if absent else [])
    disk.sync_folder(tmp_path)
    assert len(synced) == 1, "either the file, or the folder"


def test_an_appended_line_ends_a_torn_one_first(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    for before, after in ((b"", b"new\n"), (b"one\n", b"one\nnew\n"), (b"one\ntw", b"one\ntw\nnew\n")):
        path.write_bytes(before)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        disk.append_line(descriptor, b"new\n")
        os.close(descriptor)
        assert path.read_bytes() == after


def test_a_file_that_the_disk_does_not_take_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its content is on the disk before the name is its own: after a power cut, one of the two is there as a whole."""
    path = tmp_path / "state"
    path.write_bytes(b"old")

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(disk, "sync_data", fail)
    with pytest.raises(OSError, match="Input/output error"):
        disk.write_whole(path, b"new", durable=True)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def _link(path: Path) -> None:
    path.with_name("other").write_text("precious")
    path.symlink_to("other")


@pytest.mark.parametrize(
    ("make", "message"), [(_pipe, "is a pipe"), (_socket, "is a socket"), (_link, "is a symbolic link")]
)
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_TRUNC])
def test_only_a_regular_file_is_opened_and_nobody_is_waited_for(
    tmp_path: Path, make: Callable[[Path], None], message: str, flags: int
) -> None:
    make(tmp_path / "file")
    with pytest.raises(OSError, match=f"{message}, expected a regular file"):
        disk.open_regular(tmp_path / "file", flags)
    if make is _link:
        assert (tmp_path / "other").read_text() == "precious"


def test_write_whole_never_shows_more_than_its_mode_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    change = os.fchmod
    monkeypatch.setattr(
        disk.os,
        "fchmod",
        lambda descriptor, mode: (modes.append(os.fstat(descriptor).st_size), change(descriptor, mode)),
    )
    disk.write_whole(tmp_path / "a", b"secret", mode=0o600)
    assert modes == [0], "while nothing is in it"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_write_whole_writes_where_permissions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As exFAT, SMB and some FUSE do."""

    def refuse(_: int, __: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refuse)
    disk.write_whole(tmp_path / "a", b"secret", mode=0o600)
    assert (tmp_path / "a").read_bytes() == b"secret"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_write_whole_replaces_links_and_keeps_folders(tmp_path: Path) -> None:
    path = tmp_path / "file"
    _link(path)
    disk.write_whole(path, b"new")
    assert not path.is_symlink()
    assert path.read_bytes() == b"new"
    assert (tmp_path / "other").read_text() == "precious"
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        disk.write_whole(path, b"newer")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "other"]


# ---- reading what somebody names

KERNEL_FILE = Path("/proc/self/status")
"""One that ends, unlike /proc/kmsg, so that a test fails and does not hang."""


def test_kernel_files_are_not_regular(tmp_path: Path) -> None:
    empty, link = tmp_path / "empty", tmp_path / "link"
    empty.touch()
    link.symlink_to(KERNEL_FILE)
    assert instead_of_file(empty) == ""
    assert disk.read_small(empty) == b""
    for path in (KERNEL_FILE, link, Path("/sys/kernel/mm/transparent_hugepage/enabled")):
        if path.exists():
            assert instead_of_file(path) == "a file of the kernel"
            with pytest.raises(OSError, match="is a file of the kernel, expected a regular file"):
                disk.read_small(path)


def test_a_descriptor_by_its_name_is_what_it_stands_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with (tmp_path / "file").open() as file:
        path = Path(f"/proc/self/fd/{file.fileno()}")
        assert instead_of_file(path) == ""
        assert disk.read_text(path) == "text"


def test_a_text_is_read_as_python_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes("ä\r\nb\rc\n".encode())
    assert disk.read_text(path) == path.read_text("utf-8") == "ä\nb\nc\n"
    path.write_bytes(b"\xff")
    with pytest.raises(UnicodeDecodeError):
        disk.read_text(path)


def test_no_more_is_read_than_may_be(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    assert len(disk.read_small(path, most_bytes=100)) == 100
    with pytest.raises(OSError, match="it is larger than 99 bytes"):
        disk.read_small(path, most_bytes=99)
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="it is larger than"):
        disk.read_small(path)


def test_pipes_are_read_only_if_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match="is a pipe, expected a regular file"):
        disk.read_small(path)
    command = [sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write('a: b')", str(path)]
    with subprocess.Popen(command):
        assert disk.read_text(path, pipe=True) == "a: b"
    # As a regular file whose end does not come.
    writer = os.open(path, os.O_RDWR)
    with monkeypatch.context() as patch:
        patch.setattr(disk, "kind_of", lambda _: "")
        with pytest.raises(OSError, match="its end does not come"):
            disk.read_small(path)
    os.close(writer)


def test_kernel_files_are_refused_as_configuration() -> None:
    with pytest.raises(GraphError, match="is a file of the kernel: expected a graph file"):
        read_graph(KERNEL_FILE)
    with pytest.raises(GraphError, match="is a file of the kernel: expected a file of NAME=VALUE lines"):
        read_env_file(KERNEL_FILE)
    assert "is a file of the kernel: expected a file that holds the secret" in secret_file(str(KERNEL_FILE)).problem
