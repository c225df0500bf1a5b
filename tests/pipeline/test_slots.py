"""A ring gives out, takes back and grows; a reader believes only what still has its generation."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadItem, EnvironmentProblem, WireError
from pipeline.slots import Mapping, Mappings, SlotRing, segment_bytes, sweep, unlink_prefix

PREFIX = f"camgraph-{os.getuid()}-test{os.getpid()}-ring.1"


@pytest.fixture
def ring() -> Iterator[SlotRing]:
    ring = SlotRing(PREFIX, 3)
    yield ring
    ring.close()


def test_a_reader_sees_what_was_written_until_the_slot_is_used_again(ring: SlotRing) -> None:
    slot = ring.allocate(5000)
    slot.bytes()[:4] = (1, 2, 3, 4)
    mapping = Mapping(slot.descriptor.segment)
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
        Mapping(slot.descriptor.segment).bytes(slot.index)[0] = 1


def test_all_slots_in_use_is_said_and_a_release_helps(ring: SlotRing) -> None:
    slots = [ring.allocate(100) for _ in range(3)]
    with pytest.raises(BadItem, match="no_slot"):
        ring.allocate(100)
    ring.release(slots[1])
    assert ring.allocate(100).index == slots[1].index


def test_a_slot_is_free_when_the_last_one_lets_go(ring: SlotRing) -> None:
    slot = ring.allocate(1)
    ring.keep(slot, 2)
    ring.release(slot)
    ring.release(slot)
    assert ring.in_use == 1
    ring.release(slot)
    assert ring.in_use == 0


def test_larger_messages_get_a_larger_segment_and_the_old_one_goes_when_empty(ring: SlotRing) -> None:
    small = ring.allocate(100)
    large = ring.allocate(100_000)
    assert large.segment.stride >= 100_000
    assert (Path("/dev/shm") / small.descriptor.segment).exists()
    ring.release(small)
    assert not (Path("/dev/shm") / small.descriptor.segment).exists()
    assert ring.allocate(100).segment is large.segment


def test_an_address_is_found_again(ring: SlotRing) -> None:
    ring.allocate(9000)
    slot = ring.allocate(9000)
    view = slot.bytes()[128:]
    assert ring.locate(view.__array_interface__["data"][0]) == (slot, 128)
    assert ring.locate(np.zeros(4).__array_interface__["data"][0]) is None


def test_a_full_shared_memory_is_said_before_a_bus_error() -> None:
    with pytest.raises(EnvironmentProblem, match="/dev/shm"):
        SlotRing(PREFIX, 60_000).allocate(1 << 32)
    assert not list(Path("/dev/shm").glob(f"{PREFIX}*"))


@pytest.mark.parametrize("name", ["../etc/passwd", "passwd", "camgraph-none-such.0", "camgraph-/x"])
def test_no_other_file_is_opened(name: str) -> None:
    with pytest.raises(WireError):
        Mappings().get(name)


def test_a_damaged_segment_is_refused() -> None:
    path = Path("/dev/shm") / f"{PREFIX}x.9"
    path.write_bytes(b"CGS1" + b"\xff" * 60)
    try:
        with pytest.raises(WireError, match="damaged"):
            Mapping(path.name)
    finally:
        path.unlink()


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
    mapping = Mapping(f"{PREFIX}.0")
    assert unlink_prefix(PREFIX) == 1
    assert mapping.holds(0, 1)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 20_000)), max_size=60))
def test_no_two_messages_share_memory(steps: list[tuple[bool, int]]) -> None:
    ring = SlotRing(f"{PREFIX}p", 4)
    alive: dict[int, tuple[object, np.ndarray]] = {}
    try:
        for number, (take, size) in enumerate(steps):
            if take:
                try:
                    slot = ring.allocate(size)
                except BadItem:
                    assert len(alive) >= 4
                    continue
                memory = slot.bytes()[:size]
                memory[:] = number % 251
                alive[number] = (slot, memory)
            elif alive:
                ring.release(alive.pop(next(iter(alive)))[0])  # type: ignore[arg-type]
            for other, (_, memory) in alive.items():
                assert (memory == other % 251).all()
        assert ring.in_use == len(alive)
    finally:
        ring.close()


def test_the_size_of_a_segment_is_known_beforehand(ring: SlotRing) -> None:
    slot = ring.allocate(70_000)
    assert (Path("/dev/shm") / slot.descriptor.segment).stat().st_size == segment_bytes(3, 70_000)
