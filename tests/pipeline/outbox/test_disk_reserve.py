"""The reserve takes room that is there, gives it back, and leaves nothing half taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from camgraph.pipeline.outbox.disk_reserve import DiskReserve

SIZE = 2 << 20


def test_the_reserve_takes_blocks_of_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "reserve"
    reserve = DiskReserve(path, SIZE)
    assert reserve.hold()
    assert path.stat().st_blocks * 512 >= SIZE, "a file with a hole would reserve nothing"
    reserve.release()
    assert not path.exists()
    reserve.release()


def test_the_short_file_of_a_killed_process_is_no_reserve(tmp_path: Path) -> None:
    path = tmp_path / "reserve"
    path.write_bytes(b"0" * 10)
    assert DiskReserve(path, SIZE).hold()
    assert path.stat().st_size == SIZE


def test_a_reserve_that_is_held_is_not_taken_again(tmp_path: Path) -> None:
    path = tmp_path / "reserve"
    reserve = DiskReserve(path, SIZE)
    assert reserve.hold()
    with path.open("rb") as held:
        assert reserve.hold()
        assert os.fstat(held.fileno()).st_nlink == 1, "for a moment another process could take its room"


def test_a_full_disk_has_no_reserve_and_keeps_no_part_of_it(small_disk: Path) -> None:
    reserve = DiskReserve(small_disk / "reserve", SIZE)
    (small_disk / "others").write_bytes(bytes(5 << 20))
    assert not reserve.hold()
    assert not (small_disk / "reserve").exists()
    (small_disk / "others").unlink()
    assert reserve.hold()


def test_a_folder_that_is_gone_has_no_reserve(tmp_path: Path) -> None:
    assert not DiskReserve(tmp_path / "gone" / "reserve", SIZE).hold()


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_is_no_file_of_ours_is_not_written_to(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "reserve", tmp_path / "other"
    other.write_text("mine")
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(other)
    assert DiskReserve(path, SIZE).hold() is (kind == "link"), "a link is removed, a folder stays"
    assert other.read_text() == "mine"
