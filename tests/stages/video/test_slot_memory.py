"""Pictures that need more shared memory than their camera may take."""

from __future__ import annotations

import pytest

from camgraph.stages.video.pixels import Picture
from camgraph.stages.video.slot_memory import SlotMemory

FULL_HD = Picture("bgr24", 1920, 1080)  # 6.2 MB
ULTRA_HD = Picture("yuv420p", 3840, 2160)  # 12.4 MB


def nothing_declared() -> int:
    return 0


@pytest.mark.parametrize(("slots", "fits"), [(0, True), (10, True), (11, False)])
def test_all_slots_of_a_camera_count(slots: int, fits: bool) -> None:
    memory = SlotMemory(64, slots, nothing_declared)
    assert (memory.why_too_large(FULL_HD) == "") == fits


def test_it_is_said_what_is_needed_and_what_helps() -> None:
    why = SlotMemory(64, 14, nothing_declared).why_too_large(FULL_HD)
    assert why == (
        "a picture of 1920x1080 needs 14 slots of 6.2 MB in shared memory, more than 64 MB (memory_mb); "
        "if this size is right, write memory_mb: 84 for its camera"
    )
    assert SlotMemory(84, 14, nothing_declared).why_too_large(FULL_HD) == ""


def test_each_picture_that_is_too_large_is_refused_again() -> None:
    memory = SlotMemory(64, 6, nothing_declared)
    found = [memory.why_too_large(picture) != "" for picture in (FULL_HD, ULTRA_HD, ULTRA_HD, FULL_HD, ULTRA_HD)]
    assert found == [False, True, True, False, True]


def test_declared_size_is_always_accepted() -> None:
    asked = []

    def declared() -> int:
        asked.append(1)
        return FULL_HD.nbytes

    memory = SlotMemory(64, 100, declared)
    assert memory.why_too_large(FULL_HD) == ""
    assert memory.why_too_large(ULTRA_HD) != ""
    assert asked == [1]
