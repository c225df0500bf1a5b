"""What a dead owner leaves goes, what a living one has stays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from camgraph_test_stages.strangers import Person

from camgraph.pipeline.shm.mappings import MappedSegment
from camgraph.pipeline.shm.segments import sweep, unlink_prefix
from camgraph.pipeline.shm.slots import SlotRing

PREFIX = f"camgraph-{os.getuid()}-test{os.getpid()}-segments.1"


@pytest.fixture
def ring() -> Iterator[SlotRing]:
    ring = SlotRing(PREFIX, 3)
    yield ring
    ring.close()


def test_only_segments_of_dead_owners_are_swept(ring: SlotRing) -> None:
    mine = ring.allocate(1).descriptor.segment
    code = (
        "from os import *; from camgraph.pipeline.shm.slots import *; "
        f"SlotRing('{PREFIX}dead', 1).allocate(1); kill(getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert list(Path("/dev/shm").glob(f"{PREFIX}dead*"))
    removed = sweep()
    assert any(name.startswith(f"{PREFIX}dead.") for name in removed)
    assert mine not in removed
    assert (Path("/dev/shm") / mine).exists()


def test_a_dead_owners_files_are_unlinked_by_prefix(ring: SlotRing) -> None:
    slot = ring.allocate(1)
    mapping = MappedSegment(slot.descriptor.segment)
    assert unlink_prefix(PREFIX) == 1
    assert mapping.holds(0, 1)


def test_segment_names_are_unpredictable(ring: SlotRing) -> None:
    first = ring.allocate(1).descriptor.segment
    second = ring.allocate(1 << 20).descriptor.segment
    assert first.startswith(f"{PREFIX}.")
    assert second.startswith(f"{PREFIX}.")
    ends = [int(name.rpartition(".")[2], 16) for name in (first, second)]
    assert abs(ends[0] - ends[1]) > 1 << 20
    assert all(len(name.rpartition(".")[2]) == 16 for name in (first, second))


FOREIGN = """
import os, sys
for kind, name in enumerate(sys.argv[1:]):
    path = "/dev/shm/" + name
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        os.symlink("/etc/hostname", path)
    else:
        open(path, "w").close()
    if kind != 1:
        os.chmod(path, 0o666)
"""
SWEPT = """
import sys
import structlog
from camgraph.pipeline.shm.mappings import MappedSegment, SegmentGone
from camgraph.pipeline.shm.segments import segments_bytes, sweep, unlink_prefix
from camgraph.pipeline.shm.slots import SlotRing
prefix, *foreign = sys.argv[1:]
ring = SlotRing(prefix, 2)
mine = ring.allocate(1).descriptor.segment
swept = sweep()
for name in foreign:
    try:
        MappedSegment(name)
    except SegmentGone:
        continue
    raise SystemExit(f"{name} was opened")
size = segments_bytes(prefix)
print(mine, swept, size, unlink_prefix(prefix))
ring.close()
"""


def test_files_of_another_user_are_skipped(person: Callable[[], Person]) -> None:
    """They stand where a run once looked: a pipe, a link and a file that everybody may write."""
    owner, stranger = person(), person()
    prefix = f"camgraph-{owner.uid}-run-cafe-a.1"
    foreign = [f"{prefix}.{n}" for n in range(3)]
    try:
        assert stranger.run("-c", FOREIGN, *foreign).returncode == 0
        done = owner.run("-c", SWEPT, prefix, *foreign)
        assert done.returncode == 0, done.stderr
        mine, swept, size, unlinked = done.stdout.splitlines()[-1].split()
        assert mine.startswith(prefix)
        assert (swept, size, unlinked) == ("[]", str(2 * 4096 + 4096), "1")
        assert done.stdout.count("foreign_files_left_alone") == 1
        assert f"owner={stranger.uid}" in done.stdout
        assert all(os.path.lexists(f"/dev/shm/{name}") for name in foreign)
    finally:
        for path in Path("/dev/shm").glob(f"camgraph-{owner.uid}-*"):
            path.unlink()
