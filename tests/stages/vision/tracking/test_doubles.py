"""The part of somebody beside the whole: known by its joints."""

from __future__ import annotations

import numpy as np

from camgraph.stages.vision.tracking import Tracker, TrackerOptions
from camgraph.stages.vision.tracking.tracker import doubles

WHOLE, HALF = [100.0, 0, 160, 180], [100.0, 80, 160, 180]


def joints(left: float, top: float, scale: float = 1.0) -> np.ndarray:
    """17 joints down a body, all sure."""
    y = top + scale * np.linspace(10, 170, 17)
    x = left + scale * np.where(np.arange(17) % 2, 20, 40)
    return np.stack([x, y, np.full(17, 0.9)], axis=1)


def test_a_part_with_the_joints_of_the_whole() -> None:
    keypoints = np.stack([joints(100, 0), joints(101, 1)])
    found = doubles(np.array([WHOLE, HALF]), np.array([0.9, 0.5]), keypoints)
    assert found.tolist() == [False, True]


def test_a_child_in_front_of_somebody_is_no_part() -> None:
    keypoints = np.stack([joints(100, 0), joints(100, 80, 0.55)])
    found = doubles(np.array([WHOLE, HALF]), np.array([0.9, 0.5]), keypoints)
    assert not found.any()


def test_nobody_is_part_of_somebody_who_scores_less() -> None:
    keypoints = np.stack([joints(100, 0), joints(100, 0)])
    found = doubles(np.array([WHOLE, HALF]), np.array([0.5, 0.9]), keypoints)
    assert found.tolist() == [False, False]


def test_without_joints_nobody_is_a_part() -> None:
    assert not doubles(np.array([WHOLE, HALF]), np.array([0.9, 0.5]), np.empty((2, 0, 3))).any()
    unsure = np.stack([joints(100, 0), joints(100, 0)]) * [1, 1, 0.1]
    assert not doubles(np.array([WHOLE, HALF]), np.array([0.9, 0.5]), unsure).any()


def test_a_part_begins_no_track_and_takes_none() -> None:
    tracker = Tracker(TrackerOptions())
    for index in range(10):
        rows = [0] if index < 3 else [0, 1]
        keypoints = np.stack([joints(100, 0), joints(100, 0)])[rows]
        scores = np.array([0.9, 0.65])[rows]
        found = tracker.follow(index * 100_000_000, np.array([WHOLE, HALF])[rows], scores, None, keypoints)
        assert (found.rows.tolist(), found.ids.tolist()) == ([0], [1])
