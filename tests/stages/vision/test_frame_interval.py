"""What counts as nobody having looked: intervals of frames as files, live cameras and networks make them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stages.vision.live_times import MS, SECOND, slow_cameras

from camgraph.stages.vision.frame_interval import REMEMBERED, UNPROVEN_NS, FrameInterval

LIMIT_NS = 500 * MS


def holes(times_ns: Iterable[int]) -> list[int]:
    """The times of the frames before which nobody looked, in ms."""
    interval, last_ns, found = FrameInterval(), None, []
    for time_ns in times_ns:
        interval.note(time_ns)
        if last_ns is not None and time_ns - last_ns > interval.at_least(LIMIT_NS):
            found.append(time_ns // MS)
        last_ns = time_ns
    return found


def after(*intervals_ms: int) -> list[int]:
    times = [0]
    for interval_ms in intervals_ms:
        times.append(times[-1] + interval_ms * MS)
    return times


@given(slow_cameras())
def test_a_slow_camera_has_no_holes(times_ns: Sequence[int]) -> None:
    assert holes(times_ns) == []


@pytest.mark.parametrize(
    "intervals",
    [
        [1000] * 12,
        [600, 400] * 8,
        [400, 600] * 8,
        [5000] * 4,
        [1000] * 10 + [2100] + [1000] * 10,
        [20, 30, 10, 1000, 1000, 1000],
        [476] * 9 + [952] + [476] * 9,
    ],
    ids=["1 fps", "long first", "short first", "0.2 fps", "one lost", "burst first", "2.1 fps to 2"],
)
def test_regular(intervals: list[int]) -> None:
    assert holes(after(*intervals)) == []


@pytest.mark.parametrize("usual", [40, 200, 500, 1000])
def test_a_stall_is_a_hole_and_so_is_the_next(usual: int) -> None:
    regular = [usual] * (REMEMBERED + 1)
    times = after(*regular, 10_000, *regular, 10_000, usual)
    assert holes(times) == [times[REMEMBERED + 2] // MS, times[-2] // MS]


def test_a_stall_soon_after_the_start_is_a_hole() -> None:
    assert holes(after(100, 100, UNPROVEN_NS // MS + 1)) == [200 + UNPROVEN_NS // MS + 1]


@given(st.sampled_from([8, 10, 12.5, 25, 30]), st.lists(st.integers(0, 60), min_size=12, max_size=40))
def test_at_higher_rates_limits_stay_as_they_are(fps: float, jitter_ms: list[int]) -> None:
    interval = FrameInterval()
    for index, late_ms in enumerate(jitter_ms):
        interval.note(round(index * SECOND / fps) + late_ms * MS)
        assert interval.at_least(LIMIT_NS) == LIMIT_NS


def test_times_that_stand_still_or_run_back_are_no_intervals() -> None:
    interval = FrameInterval()
    for time_ns in [0, 40 * MS, 40 * MS, 20 * MS, 60 * MS]:
        interval.note(time_ns)
    assert interval.at_least(0) == 100 * MS


@pytest.mark.parametrize(
    ("intervals_ms", "usual_ms"),
    [
        ((), 0),
        ((40,), 40),
        ((40, 60, 40), 40),
        ((40, 40, 6000, 40), 40),
        ((600, 400, 600, 400), 600),
        ((1000, 1000, 2000, 1000), 1000),
    ],
)
def test_one_stall_is_not_usual(intervals_ms: tuple[int, ...], usual_ms: int) -> None:
    interval = FrameInterval()
    for time_ns in after(*intervals_ms):
        interval.note(time_ns)
    assert interval.usual_ns == usual_ms * MS


def test_a_stall_counts_as_one_usual_interval() -> None:
    interval = FrameInterval()
    for time_ns in after(*[40] * 10, 6000, *[40] * 10, 90, 3000):
        interval.note(time_ns)
    assert interval.stalled_ns == (6000 - 40 + 3000 - 40) * MS


def test_a_burst_says_nothing_of_the_intervals_behind_it() -> None:
    """Eight frames that were held up come together; then the usual ones follow, 0.76, 0.24 and 0.601 s apart."""
    interval = FrameInterval()
    for time_ns in (*(3 * SECOND + late for late in range(8)), 3760 * MS, 4000 * MS, 4601 * MS):
        interval.note(time_ns)
    assert interval.at_least(500 * MS) > 601 * MS
