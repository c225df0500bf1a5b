"""A ring gives out, takes back and grows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadItem, EnvironmentProblem
from pipeline.slots import SlotRing

PREFIX = f"camgraph-{os.getuid()}-test{os.getpid()}-ring.1"


@pytest.fixture
def ring() -> Iterator[SlotRing]:
    ring = SlotRing(PREFIX, 3)
    yield ring
    ring.close()


def test_all_slots_in_use_is_said_and_a_release_helps(ring: SlotRing) -> None:
    slots = [ring.allocate(100) for _ in range(3)]
    with pytest.raises(BadItem, match="no_slot"):
        ring.allocate(100)
    ring.release(slots[1])
    assert ring.allocate(100).index == slots[1].index


def test_a_slot_is_free_when_the_last_one_lets_go(ring: SlotRing) -> None:
    slot = ring.allocate(1)
    ring.keep(slot)
    ring.keep(slot)
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
