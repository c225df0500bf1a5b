"""Smooth joints: still where they rest, without lag where they move fast, at any frame rate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from camgraph.stages.vision.tracking.smoothing import Smoother

F64 = NDArray[np.float64]
HEIGHT = 200.0


def run(places: F64, fps: float, confidence: float = 0.9) -> F64:
    """The x of one joint after smoothing; ``places`` (T,) before."""
    smoother, out = Smoother(), []
    for index, x in enumerate(places):
        points = np.array([[[x, 50.0, confidence]]])
        found = smoother.smoothed(round(index * 1e9 / fps), np.array([1]), points, np.array([HEIGHT]))
        assert found[0, 0, 1:].tolist() == [50.0, confidence]
        out.append(found[0, 0, 0])
    return np.array(out)


@pytest.mark.parametrize(("fps", "part"), [(8.0, 0.9), (25.0, 0.75), (60.0, 0.5)])
def test_a_joint_at_rest_trembles_less(fps: float, part: float) -> None:
    noise = np.random.default_rng(1).normal(0, 0.008 * HEIGHT, 400)
    smooth = run(100 + noise, fps)
    assert smooth[20:].std() < part * noise[20:].std()
    assert smooth[20:].mean() == pytest.approx(100, abs=1)


@pytest.mark.parametrize("fps", [12.5, 25.0, 60.0])
def test_a_fast_hand_is_not_held_back(fps: float) -> None:
    """A hand raised by half a height in 0.3 s arrives with less than a tenth of a height behind."""
    times = np.arange(0, 2, 1 / fps)
    places = HEIGHT * 0.5 * np.clip((times - 1) / 0.3, 0, 1)
    late = np.abs(run(places, fps) - places)
    assert late.max() < 0.1 * HEIGHT
    assert late[-1] < 0.01 * HEIGHT


def test_unknown_joints_pass_and_begin_anew() -> None:
    smoother, ids, heights = Smoother(), np.array([1]), np.array([HEIGHT])
    for index, (x, confidence, expected) in enumerate([(0, 0.9, 0), (90, 0.0, 90), (0, 0.9, 0)]):
        points = np.array([[[float(x), 0.0, confidence]]])
        assert smoother.smoothed(index * 40_000_000, ids, points, heights)[0, 0, 0] == expected
    far = np.array([[[90.0, 0.0, 0.9]]])
    assert smoother.smoothed(2_000_000_000, ids, far, heights)[0, 0, 0] == 90


@pytest.mark.parametrize("place", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("first", [0, 3])
def test_a_place_that_is_no_number_is_none(place: float, first: int) -> None:
    """The joint goes on from where it was, and no other joint notices."""
    smoother, ids, heights = Smoother(), np.array([1]), np.array([HEIGHT])
    for index in range(8):
        points = np.full((1, 2, 3), 0.9)
        points[0, :, :2] = 100 + index
        if first <= index < first + 2:
            points[0, 0, 0] = place
        found = smoother.smoothed(index * 100_000_000, ids, points, heights)[0]
        assert np.isfinite(found[1]).all()
        if first <= index < first + 2:
            np.testing.assert_array_equal(found[0], points[0, 0])
        else:
            assert found[0, 0] == pytest.approx(100 + index, abs=2)


def test_tracks_do_not_mix_and_are_forgotten() -> None:
    smoother, heights = Smoother(), np.full(2, HEIGHT)
    points = np.array([[[0.0, 0, 0.9]], [[500.0, 0, 0.9]]])
    smoother.smoothed(0, np.array([1, 2]), points, heights)
    found = smoother.smoothed(40_000_000, np.array([2, 1]), points[::-1], heights)
    assert found[:, 0, 0].tolist() == [500.0, 0.0]
    smoother.smoothed(5_000_000_000, np.array([3]), points[:1], heights[:1])
    assert list(smoother._states) == [3]


def test_it_scales_with_the_person() -> None:
    noise = np.random.default_rng(2).normal(0, 3, 50)
    smoother, big = Smoother(), []
    for index, x in enumerate(noise):
        points = np.array([[[3 * x, 150.0, 0.9]]])
        big.append(smoother.smoothed(round(index * 4e7), np.array([1]), points, np.array([3 * HEIGHT]))[0, 0, 0])
    assert np.allclose(big, 3 * run(noise, 25.0))
