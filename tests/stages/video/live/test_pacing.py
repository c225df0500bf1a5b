"""Portions are spread over the time that they show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.video.live.connection import LONGEST_GAP_S, Pacer


def test_a_portion_is_spread() -> None:
    pacer = Pacer()
    assert [pacer.wait_s(100 + at, 7.0) for at in (0, 0.5, 1.0)] == [0, 0.5, 1.0]


def test_who_runs_dry_starts_anew() -> None:
    pacer = Pacer()
    assert pacer.wait_s(0.0, 0.0) == 0
    assert pacer.wait_s(0.5, 3.0) == 0
    assert pacer.wait_s(1.0, 3.0) == 0.5


def test_a_jump_is_not_waited_for() -> None:
    pacer = Pacer()
    pacer.wait_s(0.0, 0.0)
    assert pacer.wait_s(5.0, 0.1) == 0
    assert pacer.wait_s(2.0, 0.2) == 0
    assert pacer.wait_s(2.5, 0.2) == pytest.approx(0.5)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 3)), min_size=1))
def test_wait_is_bounded_by_media_without_a_gap(steps: list[tuple[float, float]]) -> None:
    pacer, media_s, now_s, ahead_s = Pacer(), 0.0, 0.0, 0.0
    for media_step_s, step_s in steps:
        media_s, now_s = media_s + media_step_s, now_s + step_s
        ahead_s += LONGEST_GAP_S
        assert 0 <= pacer.wait_s(media_s, now_s) <= ahead_s + 1e-6
