"""What a dead owner leaves goes, what a living one has stays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.mappings import MappedSegment
from pipeline.segments import sweep, unlink_prefix
from pipeline.slots import SlotRing

PREFIX = f"camgraph-{os.getuid()}-test{os.getpid()}-segments.1"


@pytest.fixture
def ring() -> Iterator[SlotRing]:
    ring = SlotRing(PREFIX, 3)
    yield ring
    ring.close()


def test_what_a_killed_owner_leaves_is_swept_and_what_a_living_one_has_is_not(ring: SlotRing) -> None:
    mine = ring.allocate(1).descriptor.segment
    code = f"from os import *; from pipeline.slots import *; SlotRing('{PREFIX}dead', 1).allocate(1); kill(getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    assert list(Path("/dev/shm").glob(f"{PREFIX}dead*"))
    removed = sweep()
    assert f"{PREFIX}dead.0" in removed
    assert mine not in removed
    assert (Path("/dev/shm") / mine).exists()


def test_a_dead_owners_files_are_unlinked_by_prefix(ring: SlotRing) -> None:
    ring.allocate(1)
    mapping = MappedSegment(f"{PREFIX}.0")
    assert unlink_prefix(PREFIX) == 1
    assert mapping.holds(0, 1)
