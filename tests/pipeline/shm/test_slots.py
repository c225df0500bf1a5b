"""A ring gives out, takes back and grows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, Shortage
from camgraph.pipeline.shm import slots
from camgraph.pipeline.shm.mappings import MappedSegment
from camgraph.pipeline.shm.segments import segments_bytes
from camgraph.pipeline.shm.slots import SlotRing

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


def test_larger_messages_get_a_larger_segment(ring: SlotRing) -> None:
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


# --- memory that is given back

MB = 1 << 20
LARGE = 10 * MB
HEADER = 4096


def held() -> int:
    """Bytes of shared memory that the ring holds."""
    return segments_bytes(PREFIX)


def after(ring: SlotRing, seconds: float) -> None:
    """So much time passes."""
    for second in range(int(seconds) + 1):
        ring.trim(float(second))


def test_memory_is_returned_when_messages_shrink(ring: SlotRing) -> None:
    """Also while a reader has it mapped: it may hear nothing for long by which it could see that it may let go."""
    large = ring.allocate(LARGE)
    large.bytes()[:] = 7
    reader = MappedSegment(large.descriptor.segment)
    assert reader.bytes(large.index)[-1] == 7
    ring.release(large)
    assert held() == HEADER + 3 * LARGE
    small = ring.allocate(MB)
    small.bytes()[:MB] = 9
    after(ring, 10)
    assert held() == HEADER + 3 * LARGE, "it was needed not long ago"
    ring.release(small)
    small = ring.allocate(MB)
    small.bytes()[:MB] = 9
    ring.trim(20.0)
    assert held() == HEADER + LARGE + 2 * MB, "one slot is still in use"
    assert (reader.bytes(small.index)[:MB] == 9).all()
    assert reader.holds(small.index, small.generation)
    ring.release(small)
    assert held() == HEADER + 3 * MB


def test_returned_memory_is_reserved_before_reuse(ring: SlotRing) -> None:
    ring.release(ring.allocate(LARGE))
    after(ring, 20)
    assert held() == HEADER
    taken = [ring.allocate(LARGE) for _ in range(2)]
    assert held() == HEADER + 2 * LARGE
    for slot in taken:
        slot.bytes()[:] = 5
    assert held() == HEADER + 2 * LARGE
    assert len({slot.descriptor.segment for slot in taken}) == 1


def test_a_slot_that_gets_no_memory_again_stays_free(ring: SlotRing, monkeypatch: pytest.MonkeyPatch) -> None:
    ring.release(ring.allocate(LARGE))
    after(ring, 20)
    with monkeypatch.context() as patch:
        patch.setattr(slots, "reserve", lacking())
        with pytest.raises(Shortage):
            ring.allocate(LARGE)
    assert ring.in_use == 0
    for _ in range(3):
        ring.allocate(LARGE)


def lacking() -> Callable[..., object]:
    """In the place of what reserves memory."""

    def refuse(*_: object) -> None:
        raise Shortage("no room", is_over=lambda: False)

    return refuse


def test_a_few_megabytes_stay(ring: SlotRing) -> None:
    """Stages whose messages are small make them of all sizes: that must not cost system calls."""
    ring.release(ring.allocate(MB))
    after(ring, 60)
    assert held() == HEADER + 3 * MB


def test_smaller_slots_return_memory_one_by_one(ring: SlotRing) -> None:
    small = ring.allocate(LARGE)
    small.bytes()[:] = 3
    ring.allocate(2 * LARGE)
    assert held() == 2 * HEADER + LARGE + 3 * 2 * LARGE
    assert (small.bytes() == 3).all()
    ring.release(small)
    assert held() == HEADER + 3 * 2 * LARGE


def test_slot_limit_spans_all_sizes(ring: SlotRing) -> None:
    """So a ring whose messages grow holds less than twice what it would hold for the largest alone."""
    alive = [ring.allocate(LARGE + step * MB) for step in range(3)]
    assert held() < 2 * 3 * (LARGE + 2 * MB)
    with pytest.raises(BadItem, match="no_slot"):
        ring.allocate(MB)
    with pytest.raises(BadItem, match="no_slot"):
        ring.allocate(2 * LARGE)
    for slot in alive:
        ring.release(slot)
    assert held() == HEADER + 3 * (LARGE + 2 * MB)


def test_shortage_keeps_the_smaller_slots(ring: SlotRing, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ring.allocate(LARGE)
    with monkeypatch.context() as patch:
        patch.setattr(slots, "create_locked", lacking())
        with pytest.raises(Shortage):
            ring.allocate(2 * LARGE)
    assert held() == HEADER + 3 * LARGE
    ring.release(small)
    assert held() == HEADER + 3 * LARGE
    assert ring.allocate(LARGE).descriptor.segment == small.descriptor.segment


def test_their_memory_makes_room_for_larger_slots(ring: SlotRing, monkeypatch: pytest.MonkeyPatch) -> None:
    ring.release(ring.allocate(LARGE))
    free_before: list[int] = []
    create = slots.create_locked

    def create_after_a_look(prefix: str, size: int) -> tuple[str, int]:
        free_before.append(held())
        return create(prefix, size)

    monkeypatch.setattr(slots, "create_locked", create_after_a_look)
    ring.allocate(2 * LARGE)
    assert free_before == [HEADER]


SIZES = st.one_of(st.integers(1, 20_000), st.integers(MB, 8 * MB))


@given(st.lists(st.tuples(st.sampled_from(["take", "release", "wait"]), SIZES), max_size=60))
def test_no_two_messages_share_memory_and_none_loses_its_own(steps: list[tuple[str, int]]) -> None:
    ring = SlotRing(f"{PREFIX}p", 4)
    now_s = 0.0
    alive: dict[int, tuple[object, np.ndarray]] = {}
    try:
        for number, (step, size) in enumerate(steps):
            if step == "wait":
                now_s += 10.0
                ring.trim(now_s)
            elif step == "take":
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
