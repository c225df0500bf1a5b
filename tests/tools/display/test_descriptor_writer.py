"""Where nothing can be written for a while, whole lines are left out, counted, and told of later."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator

import pytest

from camgraph.tools.display import descriptor_writer
from camgraph.tools.display.descriptor_writer import LossyWriter, WaitingFile, write_all

LIMIT_S = 60.0


class Disk:
    """Takes so many bytes; `os.write` of the module under test."""

    def __init__(self) -> None:
        self.room = 0
        self.has = b""
        self.error = errno.ENOSPC

    def write(self, _: int, data: bytes) -> int:
        if not self.room:
            raise OSError(self.error, os.strerror(self.error))
        taken = bytes(data)[: self.room]
        self.room -= len(taken)
        self.has += taken
        return len(taken)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(descriptor_writer, "write_some", disk.write)
    return disk


def writer() -> LossyWriter:
    return LossyWriter(-1, lambda lines, why: f"{lines} left out: {why}")


def test_lines_that_do_not_fit_are_told_of_when_there_is_room(disk: Disk) -> None:
    out = writer()
    out.write(b"one\ntwo\n")
    out.write(b"three\n")
    assert out.owes
    assert disk.has == b""
    disk.room = 100
    out.write(b"four\n")
    assert disk.has == b"3 left out: No space left on device\nfour\n"
    assert not out.owes
    out.write(b"five\n")
    assert disk.has.endswith(b"four\nfive\n")


@pytest.mark.parametrize("rooms", [[room, *more] for room in range(1, 45) for more in ([], [1], [3], [0, 7], [38])])
def test_no_line_is_torn_wherever_the_room_ends(disk: Disk, rooms: list[int]) -> None:
    """Whatever is written in between, each line arrives whole or is counted."""
    out = writer()
    lines = [f"line {number}" for number in range(12)]
    for number, line in enumerate(lines):
        disk.room = rooms[number] if number < len(rooms) else 0
        out.write(f"{line}\n".encode())
    disk.room = 10_000
    out.write(b"")
    assert not out.owes
    come = disk.has.decode().splitlines()
    logged = [line for line in come if line not in lines]
    assert all(line.endswith(" left out: No space left on device") for line in logged), come
    assert sum(int(line.split()[0]) for line in logged) + len(come) - len(logged) == len(lines), come


def test_nobody_who_reads_is_told_to_the_caller(disk: Disk) -> None:
    disk.error = errno.EPIPE
    with pytest.raises(BrokenPipeError):
        writer().write(b"one\n")


# ---- a descriptor that does not wait


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    out, into = os.pipe()
    os.set_blocking(into, False)
    yield out, into
    os.close(out)


def test_one_that_is_full_is_waited_for(pipe: tuple[int, int]) -> None:
    out, into = pipe
    data = os.urandom(1 << 20)
    found = bytearray()

    def read() -> None:
        while piece := os.read(out, 1 << 16):
            found.extend(piece)

    reader = threading.Thread(target=read)
    reader.start()
    write_all(into, data)
    os.close(into)
    reader.join(LIMIT_S)
    assert bytes(found) == data


def test_a_file_of_it_takes_all(pipe: tuple[int, int]) -> None:
    out, into = pipe
    reader = threading.Thread(target=lambda: [None for _ in iter(lambda: os.read(out, 1 << 16), b"")])
    reader.start()
    with WaitingFile(into) as file:
        data, at = bytes(1 << 20), 0
        while at < len(data):
            at += file.write(data[at:])
    os.close(into)
    reader.join(LIMIT_S)
    assert not reader.is_alive()
