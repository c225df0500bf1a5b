"""One try to connect, by its times, and when a camera is tried again."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.stage import CameraState
from camgraph.stages.video.live.retries import LEAST_PAUSE_S, LOST, STEADY_S, Attempt, Retries

STATES: list[CameraState] = ["lost", "gone", "unauthorised"]


def pauses(state: CameraState, count: int, spent_s: float = 0.0, chance: float = 0.0) -> list[float]:
    retries = Retries(lambda: chance)
    return [retries.pause_s(state, spent_s) for _ in range(count)]


def test_retry_pauses_depend_on_the_state() -> None:
    assert pauses("lost", 5) == [0.5, 1, 2, 2, 2]
    assert pauses("gone", 8) == [2, 4, 8, 16, 32, 60, 60, 60]
    assert pauses("unauthorised", 6) == [5, 10, 20, 40, 60, 60]


def test_a_try_that_took_long_is_followed_soon() -> None:
    assert pauses("lost", 4, spent_s=1.5) == [LEAST_PAUSE_S, LEAST_PAUSE_S, 0.5, 0.5]


def test_another_kind_of_failure_begins_anew() -> None:
    retries = Retries(lambda: 0.0)
    reported: list[CameraState] = ["gone", "gone", "lost", "lost", "gone"]
    assert [retries.pause_s(state, 0) for state in reported] == [2, 4, 0.5, 1, 2]


@pytest.mark.parametrize(("live_s", "expected"), [(STEADY_S, [0.5] * 4), (STEADY_S - 0.1, [0.5, 1, 2, 2])])
def test_only_who_was_live_for_a_while_begins_anew(live_s: float, expected: list[float]) -> None:
    retries = Retries(lambda: 0.0)
    assert [retries.pause_s("lost", 0.0, live_s) for _ in range(4)] == expected


@pytest.mark.parametrize("state", STATES)
def test_chance_makes_a_pause_shorter_by_a_fifth_at_most(state: CameraState) -> None:
    for most, least in zip(pauses(state, 9), pauses(state, 9, chance=0.999), strict=True):
        assert 0.8 * most <= least < most


@given(st.sampled_from(STATES), st.floats(0, 30), st.floats(0, 0.999), st.integers(1, 2000))
def test_pauses_are_bounded_and_never_shrink(state: CameraState, spent_s: float, chance: float, count: int) -> None:
    waited = pauses(state, count, spent_s, chance)
    assert all(LEAST_PAUSE_S <= pause_s <= 60 for pause_s in waited)
    assert all(earlier <= later for earlier, later in pairwise(waited))
    if state == "lost":
        assert waited[-1] <= LOST.last_s


def test_without_a_picture_all_of_it_is_opening() -> None:
    attempt = Attempt(10.0)
    assert not attempt.succeeded
    assert (attempt.opening_s(13.5), attempt.live_s(13.5)) == (3.5, 0.0)


def test_from_its_first_picture_on_it_is_live() -> None:
    attempt = Attempt(10.0)
    attempt.picture(10.6)
    attempt.picture(15.0)
    assert attempt.succeeded
    assert round(attempt.opening_s(20.6), 6) == 0.6
    assert round(attempt.live_s(20.6), 6) == 10
