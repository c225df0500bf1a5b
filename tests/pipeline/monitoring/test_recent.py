"""How fast sums have grown in the last seconds."""

from __future__ import annotations

import pytest

from pipeline.monitoring.recent import KEPT_S, Recent


def test_a_rate_is_that_of_the_window() -> None:
    recent = Recent()
    assert recent.rates(2.0) == {}
    for second in range(30):
        recent.note(float(second), {"frames": 10.0 * min(second, 20)})
        assert recent.noted_s == second
    assert recent.rates(2.0) == {"frames": 0.0}
    seconds, grown = recent.over(KEPT_S)
    assert (seconds, grown) == (KEPT_S, {"frames": 10.0})


def test_it_is_as_long_as_what_is_known() -> None:
    recent = Recent()
    recent.note(0.0, {"frames": 5.0})
    recent.note(0.5, {"frames": 10.0})
    assert recent.rates(2.0) == {"frames": pytest.approx(10.0)}


def test_new_counters_have_not_grown_and_fallen_restarted() -> None:
    recent = Recent()
    recent.note(0.0, {"cpu": 50.0})
    recent.note(1.0, {"cpu": 0.5, "frames of a camera that came back": 1000.0})
    assert recent.over(1.0) == (1.0, {"cpu": 0.5, "frames of a camera that came back": 0.0})


def test_it_does_not_grow() -> None:
    recent = Recent()
    for n in range(10_000):
        recent.note(n / 10, {"a": float(n)})
    assert len(recent._marks) <= KEPT_S * 10 + 2
