"""Reading back the end of a file without ever holding all of it; and lines that are on the disk or are not there."""

from __future__ import annotations

import errno
import os
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.stages.sinks.writing import line_file
from camgraph.stages.sinks.writing.line_file import LineFile

_READ_AT = line_file._read_at


@given(st.lists(st.binary(max_size=6).map(lambda b: b.replace(b"\n", b"")), max_size=12), st.data())
def test_the_tail_is_what_it_would_be_in_one_piece(
    tmp_path_factory: object, lines: list[bytes], data: st.DataObject
) -> None:
    path = Path(tmp_path_factory.mktemp("tail")) / "f"  # type: ignore[attr-defined]
    text = b"".join(b"{%s}\n" % line.hex().encode() for line in lines)
    path.write_bytes(text)
    start, most = data.draw(st.integers(0, len(text) + 3)), data.draw(st.integers(0, len(text) + 3))
    begin = start if start <= len(text) else 0
    first = max(begin, len(text) - most)
    expected = text[first:].split(b"\n")[0 if first == begin else 1 :]
    count = data.draw(st.integers(0, len(lines) + 1))
    expected = [*expected[:-1][-count:], *expected[-1:]] if count else expected[-1:]
    file = LineFile(path, sync=False)
    before, line_file._PIECE = line_file._PIECE, data.draw(st.integers(1, 9))
    try:
        assert [*file.tail(start, most, count)] == expected
    finally:
        line_file._PIECE = before
        file.close()


def test_a_long_tail_is_never_held_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes((b'{"id": "%s"}\n' % (b"x" * 2000)) * 6000)
    file = LineFile(path, sync=False)
    tracemalloc.start()
    count = sum(1 for line in file.tail(0, 1 << 24, 10_000) if line)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    file.close()
    assert count == 6000
    assert peak < 6_000_000, "the file has twelve million bytes"


def test_only_the_last_lines_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"".join(b'{"id": %d}\n' % n for n in range(100_000)))
    file = LineFile(path, sync=False)
    read: list[int] = []
    monkeypatch.setattr(line_file, "_PIECE", 4096)
    monkeypatch.setattr(line_file, "_read_at", lambda *where: read.append(len(got := _READ_AT(*where))) or got)
    assert [*file.tail(0, 1 << 24, 3)] == [b'{"id": 99997}', b'{"id": 99998}', b'{"id": 99999}', b""]
    assert sum(read) < 3 * 4096
    file.close()


def test_full_pipe_with_high_descriptor_is_awaited(many_descriptors: None) -> None:
    source, target = os.pipe()
    assert target > 1023
    os.set_blocking(target, False)
    data = b"{}\n" * 100_000

    def write() -> None:
        try:
            line_file._write_all(target, data)
        finally:
            os.close(target)

    writer = threading.Thread(target=write)
    writer.start()
    read = b""
    while len(read) < len(data) and (more := os.read(source, 1 << 16)):
        read += more
    writer.join()
    os.close(source)
    assert read == data


def test_what_a_failed_write_has_left_goes_before_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    file = LineFile(path, sync=False)
    file.append(b'{"n": 1}\n')

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    def write_half(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[: len(data) // 2])
        fail()

    with monkeypatch.context() as patch:
        patch.setattr(line_file, "_write_all", write_half)
        patch.setattr(line_file.os, "ftruncate", fail)
        for _ in range(2):
            with pytest.raises(EnvironmentProblem, match="nothing is lost"):
                file.append(b'{"n": 2}\n')
    file.append(b'{"n": 2}\n')
    file.close()
    assert path.read_bytes() == b'{"n": 1}\n{"n": 2}\n'


def test_a_line_that_the_disk_does_not_take_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes a write at once, and the disk fails later: only a sync tells."""
    path = tmp_path / "f"
    file = LineFile(path, sync=True)
    file.append(b'{"n": 1}\n')

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(line_file, "sync_data", fail)
        with pytest.raises(EnvironmentProblem, match="nothing is lost"):
            file.append(b'{"n": 2}\n')
        assert path.read_bytes() == b'{"n": 1}\n'
    file.append(b'{"n": 2}\n')
    file.close()
    assert path.read_bytes() == b'{"n": 1}\n{"n": 2}\n'
