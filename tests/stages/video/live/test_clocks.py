"""The times of live pictures, whatever a camera says of them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.video.live.clocks import MOST_AHEAD_NS, SETTLE_NS, Pace, Rate, Reading, WallClock
from camgraph.stages.video.timeline import Selection

MS = 1_000_000
SECOND = 1000 * MS
BASE = Fraction(1, 90_000)
TICKS = 90_000
NOON = 1_800_000_000 * SECOND

STEPS = st.lists(st.integers(0, 3000), min_size=1, max_size=80)
STAMPS = st.none() | st.integers(-(2**33), 2**33)


@given(STEPS, st.data())
def test_pace_never_runs_backwards_and_stays_near_the_arrival(steps_ms: list[int], data: st.DataObject) -> None:
    pace, arrived, times = Pace(BASE), 7 * SECOND, [0]
    pace.at(data.draw(STAMPS), arrived)
    for step in steps_ms:
        arrived += step * MS
        times.append(pace.at(data.draw(STAMPS), arrived))
        assert abs(times[-1] + 7 * SECOND - arrived) <= MOST_AHEAD_NS
    assert times == sorted(times)


@given(st.lists(st.integers(-30, 30), min_size=2, max_size=60))
def test_pace_follows_stamps_despite_arrival_jitter(jitter_ms: list[int]) -> None:
    pace = Pace(BASE)
    times = [pace.at(n * TICKS // 10, n * 100 * MS + jitter * MS) for n, jitter in enumerate(jitter_ms)]
    assert all(later - earlier == 100 * MS for earlier, later in pairwise(times))


@pytest.mark.parametrize(
    "stamp",
    [
        lambda n: n * 9000 + (3600 * TICKS if n >= 100 else 0),
        lambda n: n * 9000 - (3600 * TICKS if n >= 100 else 0),
        lambda n: n * 9000 - (2**32 if n >= 100 else 0),
        lambda n: 4711,
        lambda n: n // 2 * 18000,
        lambda n: None,
        lambda n: n * 9000 if n % 7 else None,
        lambda n: n * 6000,
    ],
    ids=["forward", "back", "wrap", "constant", "duplicate", "missing", "some missing", "slow"],
)
def test_the_rate_is_kept_whatever_the_stamps_do(stamp: object) -> None:
    assert callable(stamp)
    pace, selection = Pace(BASE), Selection(max_fps=2)
    taken = [n for n in range(600) if selection.takes(pace.at(stamp(n), n * 100 * MS))]
    assert 600 / 10 * 2 * 0.6 <= len(taken) <= 600 / 10 * 2 + 22
    assert max(later - earlier for earlier, later in pairwise(taken)) <= 10


def test_a_burst_after_a_stall_gives_few_too_many() -> None:
    pace, selection = Pace(BASE), Selection(max_fps=2)
    arrivals = [max(n * 100 * MS, 30 * SECOND if n >= 100 else 0) for n in range(600)]
    taken = [n for n, arrived in enumerate(arrivals) if selection.takes(pace.at(n * 9000, arrived))]
    assert 60 <= len(taken) <= 125


def test_the_cameras_clock_is_believed_at_once() -> None:
    clock = WallClock()
    assert clock.at(None, 0, NOON) == Reading(NOON, "wall")
    assert clock.at(NOON - 3600 * SECOND, 0, NOON) == Reading(NOON - 3600 * SECOND, "ntp")


@pytest.mark.parametrize("reported_ns", [0, 5 * SECOND, 2 * NOON], ids=["1970", "since boot", "far"])
def test_a_clock_that_was_never_set_is_not_believed(reported_ns: int) -> None:
    assert WallClock().at(reported_ns, 0, NOON) == Reading(NOON, "wall")


def test_a_clock_that_jumps_must_be_steady_again() -> None:
    clock = WallClock()
    ahead = 60 * SECOND
    seen = []
    for n in range(100):
        now = n * 100 * MS
        reported = NOON + now + (ahead if n >= 20 else 0)
        seen.append(clock.at(reported, now, NOON + now).clock)
    settled = 20 + SETTLE_NS // (100 * MS)
    assert seen == ["ntp"] * 20 + ["wall"] * (settled - 20) + ["ntp"] * (100 - settled)


def test_a_clock_that_jumps_all_the_time_is_never_believed_again() -> None:
    clock = WallClock()
    seen = [clock.at(NOON + n * (100 + 3000) * MS, n * 100 * MS, NOON + n * 100 * MS).clock for n in range(50)]
    assert seen == ["ntp"] + ["wall"] * 49


def test_the_rate_is_measured() -> None:
    rate = Rate()
    reported = [(n, value) for n in range(1000) if (value := rate.came(n * SECOND // 21)) is not None]
    assert [n for n, _ in reported][:2] == [105, 210]
    assert all(value == pytest.approx(21, rel=0.01) for _, value in reported)


def test_there_is_no_rate_of_one_picture() -> None:
    rate = Rate()
    rate.came(7)
    assert rate.per_second is None
