"""Times that never run backwards, and frames chosen by time alone."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.video.timeline import SECOND_NS, MediaClock, Selection, ticks_to_ns

MS = 1_000_000


def shown(pts: list[int | None], clock: MediaClock[int], dts: list[int | None] | None = None) -> list[int]:
    """The time of each frame in nanoseconds; frames leave in the order in which they came."""
    decoded = dts or [None] * len(pts)
    pairs = [pair for i, p in enumerate(pts) for pair in clock.show(i, p, decoded[i])] + list(clock.remaining())
    assert [index for index, _ in pairs] == list(range(len(pts)))
    return [time_ns for _, time_ns in pairs]


def times(
    pts: list[int | None],
    dts: list[int | None] | None = None,
    *,
    time_base: Fraction = Fraction(1, 1000),
    interval_ms: int = 40,
) -> list[float]:
    return [time_ns / MS for time_ns in shown(pts, MediaClock(time_base, interval_ms * MS), dts)]


def test_time_counts_from_the_first_frame() -> None:
    assert times([90_000, 93_600, 97_200], time_base=Fraction(1, 90_000)) == [0, 40, 80]


def test_ticks_are_rounded_not_cut() -> None:
    assert ticks_to_ns(1, Fraction(1, 30)) == 33_333_333
    assert ticks_to_ns(2, Fraction(1, 30)) == 66_666_667


def test_a_missing_pts_is_one_interval_later() -> None:
    assert times([None, None, 80, None, 160]) == [0, 40, 80, 120, 160]
    assert times([0, 40, None, 120]) == [0, 40, 80, 120]
    assert times([0, None, None, None]) == [0, 40, 80, 120]


def test_missing_times_share_what_room_there_is() -> None:
    assert times([0, None, None, None, 80]) == [0, 20, 40, 60, 80]


def test_repeated_and_backward_times_are_interpolated() -> None:
    assert times([0, 40, 40, 80]) == [0, 40, 60, 80]
    assert times([0, 40, 80, 60, 60, 120]) == pytest.approx([0, 40, 80, 93.333333, 106.666666, 120])


def test_a_large_step_back_starts_a_new_time_line() -> None:
    assert times([5000, 5040, 0, 40, 80]) == [0, 40, 80, 120, 160]
    assert times([5000, 5040, 5040, 0, 40, 80]) == [0, 40, 80, 120, 160, 200]


def test_too_low_a_declared_rate_does_not_stretch_the_film() -> None:
    """Every second time is a repetition: 50 frames a second where 25 are declared."""
    pts: list[int | None] = [number // 2 * 40 for number in range(100)]
    assert times(pts)[-2] == 49 * 40


def test_a_long_run_of_one_time_is_left_behind_in_the_end() -> None:
    repeated: list[int | None] = [0] * 50
    after: list[int | None] = [number * 40 for number in range(1, 200)]
    assert times(repeated + after)[-1] == 199 * 40


def test_decoding_times_take_the_place_of_missing_ones() -> None:
    assert times([None] * 4, [80, 120, 200, 240]) == [0, 40, 120, 160]
    assert times([None, 120, None, None], [80, 120, 160, None]) == [0, 40, 80, 120]


def test_decoding_times_take_the_place_of_disordered_ones() -> None:
    disordered: list[int | None] = [0, 160, 40, 80, 120, 320, 200, 240, 280]
    seen = times(disordered, [40 * number for number in range(9)])
    assert seen[-4:] == [200, 240, 280, 320]
    assert all(earlier < later for earlier, later in pairwise(seen))


def test_a_new_time_line_is_no_disorder() -> None:
    pts: list[int | None] = [5080, 5120, 80, 120, 220]
    assert times(pts, [5000, 5040, 0, 40, 80]) == [0, 40, 80, 120, 220]


@pytest.mark.parametrize(("step_ms", "first"), [(40, 25), (40, 15), (200, 5), (100, 10), (100, 4)])
def test_recordings_of_less_than_a_second_follow_each_other(step_ms: int, first: int) -> None:
    """Two of them in one file: time must not stand still until the second has caught up with the first."""
    pts: list[int | None] = [step_ms * number for number in (*range(first), *range(25))]
    dts: list[int | None] = [None if at is None else at - step_ms for at in pts]
    assert times(pts, dts, interval_ms=step_ms) == [step_ms * number for number in range(first + 25)]


def test_new_time_line_keeps_its_own_steps() -> None:
    pts: list[int | None] = [0, 40, 80, 120, 160, 200, 0, 30, 90, 130, 160, 190, 220]
    assert times(pts, pts)[6:] == [240, 270, 330, 370, 400, 430, 460]


def test_frames_out_of_order_begin_no_time_line() -> None:
    """Two late frames with late decoding times, as of a recorder whose clock jitters: the next is where it belongs."""
    pts: list[int | None] = [0, 40, 80, 120, 30, 70, 240, 280]
    seen = times(pts, pts)
    assert seen[-2:] == [240, 280]


@pytest.mark.parametrize("far_ms", [2**43, -(2**43), 2**62])
def test_timestamp_half_a_century_away_begins_a_time_line(far_ms: int) -> None:
    """In nanoseconds since 1970 it would not fit into 64 bits."""
    pts: list[int | None] = [0, 40, 80, far_ms, far_ms + 40, far_ms + 80]
    assert times(pts) == [0, 40, 80, 120, 160, 200]


def test_absurd_frame_interval_is_bounded() -> None:
    assert times([None] * 3, interval_ms=2**41) == [0, 60_000, 120_000]


Stamps = st.lists(st.none() | st.integers(-(2**40), 2**40))


@given(Stamps, Stamps, st.sampled_from([Fraction(1, 1000), Fraction(1, 90_000)]))
def test_time_only_goes_forward(pts: list[int | None], dts: list[int | None], time_base: Fraction) -> None:
    padded = (dts + [None] * len(pts))[: len(pts)]
    seen = shown(pts, MediaClock(time_base, 40 * MS), padded)
    assert all(earlier < later for earlier, later in pairwise(seen))
    assert not seen or seen[0] == 0


@given(st.lists(st.integers(0, 400), min_size=2, unique=True), st.data())
def test_a_resumed_clock_goes_on_as_the_first_would_have(steps: list[int], data: st.DataObject) -> None:
    pts: list[int | None] = [*sorted(steps)]
    whole = shown(pts, MediaClock(Fraction(1, 1000), 40 * MS))
    cut = data.draw(st.integers(1, len(pts) - 1))
    again: MediaClock[int] = MediaClock(Fraction(1, 1000), 40 * MS)
    again.resume(min(steps), whole[cut - 1])
    assert shown(pts[cut:], again) == whole[cut:]


def taken(selection: Selection, at_ms: list[float]) -> list[float]:
    return [t for t in at_ms if selection.takes(round(t * MS))]


def test_everything_is_taken_without_limits() -> None:
    assert taken(Selection(), [0, 40, 40, 80]) == [0, 40, 40, 80]


def test_start_and_end_are_half_open() -> None:
    assert taken(Selection(start_ns=80 * MS, end_ns=160 * MS), [0, 40, 80, 120, 160, 200]) == [80, 120]


def test_every_second_frame_at_half_the_rate() -> None:
    assert taken(Selection(max_fps=12.5), [40 * i for i in range(6)]) == [0, 80, 160]


def test_milliseconds_of_matroska_lose_no_frame() -> None:
    at_ms: list[float] = [int(i * 1000 / 30) for i in range(100)]
    assert taken(Selection(max_fps=30), at_ms) == at_ms
    assert len(taken(Selection(max_fps=15), at_ms)) == 50


@given(st.lists(st.integers(0, 10_000)), st.floats(0.1, 60), st.integers(0, 5_000))
def test_never_more_than_one_frame_for_a_point_of_the_grid(at_ms: list[int], max_fps: float, start_ms: int) -> None:
    got = taken(Selection(start_ns=start_ms * MS, max_fps=max_fps), [float(t) for t in sorted(at_ms)])
    if got:
        assert len(got) <= (got[-1] - got[0] + 1) * max_fps / 1000 + 2


@given(st.lists(st.integers(0, 5_000), min_size=1), st.floats(0.1, 60), st.data())
def test_the_choice_after_a_restart_is_the_same(at_ms: list[int], max_fps: float, data: st.DataObject) -> None:
    at_ms.sort()
    whole = taken(Selection(max_fps=max_fps), [float(t) for t in at_ms])
    cut = data.draw(st.integers(0, len(whole) - 1))
    again = Selection(max_fps=max_fps, last_ns=round(whole[cut] * MS))
    behind = [float(t) for t in at_ms if t > whole[cut]]
    assert taken(again, behind) == whole[cut + 1 :]


def test_the_end_is_known() -> None:
    assert Selection(end_ns=SECOND_NS).is_over(SECOND_NS)
    assert not Selection(end_ns=SECOND_NS).is_over(SECOND_NS - 1)
    assert not Selection().is_over(10**18)
