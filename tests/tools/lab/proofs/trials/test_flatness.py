"""Flat or not: series that leak and series that do not, made up, and the shapes that runs really have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.tools.lab.proofs.trials.flatness import Bound, judge

BOUND = Bound(0.03, 1.0)
TIMES = [5.0 * n for n in range(360)]
NOISE = np.random.default_rng(1).normal(0, 2, len(TIMES))


def test_noise_around_a_level_is_flat() -> None:
    assert judge(TIMES, 700 + NOISE, BOUND, warm_up_s=300).flat


def test_a_slow_leak_under_noise_is_not_flat() -> None:
    leaking = 700 + NOISE + np.array(TIMES) * 60 / 3600
    found = judge(TIMES, leaking, BOUND, warm_up_s=300)
    assert not found.flat
    assert found.per_hour == pytest.approx(60, rel=0.1)


def test_a_leak_in_steps_is_not_flat() -> None:
    """One descriptor for each of twenty faults."""
    assert not judge(TIMES, [100 + n // 18 for n in range(360)], Bound(0.02, 4), warm_up_s=300).flat


def test_what_grows_while_it_warms_up_is_flat() -> None:
    warming = [700 - 100 * max(0.0, 1 - t / 300) for t in TIMES]
    assert judge(TIMES, warming, BOUND, warm_up_s=300).flat
    assert not judge(TIMES[:90], warming[:90], BOUND, warm_up_s=0).flat


def test_restarts_neither_hide_nor_mimic_a_leak() -> None:
    holes = np.where(np.arange(360) % 12 == 0, -60, 0)
    assert judge(TIMES, 700 + NOISE + holes, BOUND, warm_up_s=300).flat
    assert not judge(TIMES, 700 + NOISE + holes + np.array(TIMES) / 60, BOUND, warm_up_s=300).flat


def test_what_shrinks_has_not_leaked() -> None:
    assert judge(TIMES, 700 - np.array(TIMES) / 60, BOUND, warm_up_s=300).flat


@given(st.floats(-50, 50), st.integers(300, 3000))
def test_slope_of_a_line_is_exact(slope: float, count: int) -> None:
    times = np.arange(count) * 5.0
    found = judge(times.tolist(), (1000 + slope * times).tolist(), BOUND, warm_up_s=0)
    assert found.per_hour == pytest.approx(slope * 3600, rel=1e-6, abs=1e-3)
    assert found.rise == pytest.approx(slope * times[-1], rel=1e-6, abs=1e-3)


def test_the_interval_holds_the_slope_that_it_was_made_with() -> None:
    """Noise that remembers itself, as memory does: formulas for independent samples would miss in most runs."""
    held = 0
    for seed in range(40):
        chance, noise = np.random.default_rng(seed), [0.0]
        for step in chance.normal(0, 1, len(TIMES) - 1):
            noise.append(0.9 * noise[-1] + step)
        found = judge(TIMES, 700 + np.array(noise) + np.array(TIMES) * 5 / 3600, BOUND, warm_up_s=0)
        held += found.least_per_hour <= 5 <= found.most_per_hour
        assert found.least_per_hour <= found.per_hour <= found.most_per_hour
    assert held >= 34


def test_one_step_shows_that_little_is_known() -> None:
    step = judge(TIMES, [700.0 + (n > 180) for n in range(360)], BOUND, warm_up_s=0)
    line = judge(TIMES, 700 + np.array(TIMES) * 2 / 3600, BOUND, warm_up_s=0)
    assert line.finest_per_hour == pytest.approx(0, abs=1e-6)
    assert step.per_hour == 0, "the median of slopes does not see it"
    assert step.least_per_hour == 0
    assert step.most_per_hour > 2


def test_too_little_is_said_to_be_too_little() -> None:
    with pytest.raises(ValueError, match="expected three points or more after 10 s of warm-up, got 2"):
        judge([0, 5, 10, 15], [1, 1, 1, 1], BOUND, warm_up_s=10)
    with pytest.raises(ValueError, match="got 0"):
        judge([], [], BOUND, warm_up_s=10)
