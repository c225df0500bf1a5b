"""A table that only grows, by rows that are on the disk or not there."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from camgraph.stages.sinks.writing import table_file
from camgraph.stages.sinks.writing.table_file import TableFile


def test_a_row_that_the_disk_does_not_take_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes a write at once, and the disk fails later: only a sync tells."""
    path = tmp_path / "t.csv"
    file = TableFile(path, "id\r\n")
    file.append(b"e1\r\n")
    before = path.read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(table_file, "sync_data", fail)
        with pytest.raises(OSError, match="Input/output error"):
            file.append(b"e2\r\n")
        assert path.read_bytes() == before
    file.append(b"e2\r\n")
    file.close()
    assert path.read_bytes() == before + b"e2\r\n"
