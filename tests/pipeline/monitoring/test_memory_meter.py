"""The memory of processes: whole measurements now and then, and the growth of their pages in between."""

from __future__ import annotations

import os
from mmap import PAGESIZE
from pathlib import Path

import pytest

from camgraph.pipeline.monitoring.memory_meter import MemoryMeter


class Proc:
    """A folder like /proc. A test sets what processes occupy: pages that are theirs, and the share that counts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.meter = MemoryMeter(folder)

    def set(self, pid: int, *, pages: int, share: int | None) -> None:
        folder = self.folder / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "statm").write_text(f"9000 {pages + 50} 50 1 0 700 0\n")
        if share is None:
            (folder / "smaps_rollup").unlink(missing_ok=True)
        else:
            lines = [
                "5581-7ffe ---p 00000000 00:00 0 [rollup]",
                "Rss: 9999 kB",
                f"Pss_Anon: {share * PAGESIZE // 1024} kB",
            ]
            (folder / "smaps_rollup").write_text("\n".join(lines) + "\n")

    def pages(self, *pids: int, at_s: float) -> float:
        return self.meter.measure(pids, at_s) / PAGESIZE


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


def test_of_shared_pages_each_counts_its_share(proc: Proc) -> None:
    proc.set(7, pages=1000, share=400)
    proc.set(8, pages=1000, share=600)
    assert proc.pages(7, 8, at_s=0) == 1000


def test_growth_shows_at_once(proc: Proc) -> None:
    proc.set(7, pages=1000, share=400)
    assert proc.pages(7, at_s=0) == 400
    proc.set(7, pages=1250, share=650)
    assert proc.pages(7, at_s=1) == 650
    proc.set(7, pages=900, share=300)
    assert proc.pages(7, at_s=2) == 300


def test_pages_no_more_shared_show_at_the_next_whole_measurement(proc: Proc) -> None:
    """Such a page was resident before, so the number of pages stays the same."""
    proc.set(7, pages=1000, share=400)
    assert proc.pages(7, at_s=0) == 400
    proc.set(7, pages=1000, share=700)
    assert proc.pages(7, at_s=14) == 400
    assert proc.pages(7, at_s=16) == 700


def test_an_old_process_is_measured_wholly_every_five_minutes(proc: Proc) -> None:
    proc.set(7, pages=1000, share=400)
    for at_s in range(0, 7200, 5):
        proc.pages(7, at_s=at_s)
    proc.set(7, pages=1000, share=700)
    seen = [proc.pages(7, at_s=at_s) for at_s in range(7200, 7200 + 305, 5)]
    assert seen[0] == 400
    assert seen[-1] == 700


def test_a_process_with_secrets_shows_its_pages_alone(proc: Proc) -> None:
    proc.set(7, pages=1000, share=None)
    assert proc.pages(7, at_s=0) == 1000
    proc.set(7, pages=1100, share=None)
    assert proc.pages(7, at_s=1) == 1100


def test_a_dead_process_counts_for_nothing(proc: Proc) -> None:
    proc.set(7, pages=1000, share=400)
    assert proc.pages(7, 999, at_s=0) == 400
    for file in (proc.folder / "7").iterdir():
        file.unlink()
    assert proc.pages(7, at_s=1) == 0


def test_this_process_has_a_size() -> None:
    meter = MemoryMeter()
    before = meter.measure([os.getpid()], 0.0)
    block = bytearray(64 << 20)
    block[::4096] = b"x" * len(block[::4096])
    assert before > 5 << 20
    assert meter.measure([os.getpid()], 1.0) - before > 48 << 20
