"""Locks on files, and what happens where a system has none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import disk

_HOLDS = """
import os, sys
from pipeline.disk import lock
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
