"""A reader believes only what still has its generation, opens nothing but segments, and writes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.shm.mappings import MappedSegment, Mappings
from camgraph.pipeline.shm.slots import SlotRing

PREFIX = f"camgraph-{os.getuid()}-test{os.getpid()}-mappings.1"


@pytest.fixture
def ring() -> Iterator[SlotRing]:
    ring = SlotRing(PREFIX, 3)
    yield ring
    ring.close()


@pytest.mark.parametrize("name", ["../etc/passwd", "passwd", "camgraph-none-such.0", "camgraph-/x"])
def test_no_other_file_is_opened(name: str) -> None:
    with pytest.raises(WireError):
        Mappings().get(name)


def test_a_damaged_segment_is_refused() -> None:
    path = Path("/dev/shm") / f"{PREFIX}x.9"
    path.write_bytes(b"CGS1" + b"\xff" * 60)
    try:
        with pytest.raises(WireError, match="damaged"):
            MappedSegment(path.name)
    finally:
        path.unlink()


def test_reader_sees_slot_until_it_is_reused(ring: SlotRing) -> None:
    slot = ring.allocate(5000)
    slot.bytes()[:4] = (1, 2, 3, 4)
    mapping = MappedSegment(slot.descriptor.segment)
    assert mapping.holds(slot.index, slot.generation)
    assert mapping.bytes(slot.index)[:4].tolist() == [1, 2, 3, 4]
    ring.release(slot)
    again = ring.allocate(5000)
    assert again.index == slot.index
    assert not mapping.holds(slot.index, slot.generation)
    assert mapping.holds(again.index, again.generation)


def test_a_reader_cannot_write(ring: SlotRing) -> None:
    slot = ring.allocate(10)
    with pytest.raises(ValueError, match="read-only"):
        MappedSegment(slot.descriptor.segment).bytes(slot.index)[0] = 1
