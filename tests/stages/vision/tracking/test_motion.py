"""The motion model against a textbook Kalman filter, one box at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from camgraph.stages.vision.tracking.motion import FIRST_VELOCITY_STD, MEASURED_STD, PUSH_STD, Motion, to_center

sides = st.floats(5, 300)
places = st.floats(-500, 2000)
boxes = st.tuples(places, places, sides, sides).map(lambda b: [b[0], b[1], b[0] + b[2], b[1] + b[3]])


def textbook(sequence: np.ndarray, steps_s: list[float], axis: int) -> tuple[float, float]:
    """One dimension of a box by matrices; returns the place and velocity after the last measurement."""
    z = to_center(sequence)
    x = np.array([z[0, axis], 0.0])
    p = np.diag([(MEASURED_STD[axis] * z[0, 3]) ** 2, (FIRST_VELOCITY_STD[axis] * z[0, 3]) ** 2])
    height, seen_height = z[0, 3], textbook_heights(sequence, steps_s) if axis != 3 else None
    for i, dt in enumerate(steps_s, 1):
        f = np.array([[1, dt], [0, 1]])
        x = f @ x
        if axis >= 2:
            x[0] = max(x[0], 1.0)
        height = x[0] if axis == 3 else seen_height[i - 1]
        q = (PUSH_STD[axis] * height) ** 2 * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
        p = f @ p @ f.T + q
        gain = p[:, 0] / (p[0, 0] + (MEASURED_STD[axis] * z[i, 3]) ** 2)
        x = x + gain * (z[i, axis] - x[0])
        p = (np.eye(2) - np.outer(gain, [1, 0])) @ p
    return float(x[0]), float(x[1])


def textbook_heights(sequence: np.ndarray, steps_s: list[float]) -> list[float]:
    """The predicted height at each step, which scales the noise of the other dimensions."""
    return [predicted_height(sequence[: i + 1], steps_s[:i], steps_s[i]) for i in range(len(steps_s))]


def predicted_height(sequence: np.ndarray, steps_s: list[float], dt: float) -> float:
    place, velocity = textbook(sequence, steps_s, 3)
    return max(place + velocity * dt, 1.0)


@settings(max_examples=40)
@given(st.lists(st.tuples(boxes, st.floats(0.01, 2.0)), min_size=2, max_size=5))
def test_same_as_the_textbook(steps: list[tuple[list[float], float]]) -> None:
    sequence, times = np.array([box for box, _ in steps]), [dt for _, dt in steps[1:]]
    motion = Motion.begun(sequence[:1])
    for box, dt in zip(sequence[1:], times, strict=True):
        motion = motion.predicted(dt, np.array([True])).corrected(np.array([0]), box[None])
    for axis in range(4):
        place, velocity = textbook(sequence, times, axis)
        np.testing.assert_allclose(motion.place[0, axis], place, rtol=1e-6, atol=1e-5)
        np.testing.assert_allclose(motion.velocity[0, axis], velocity, rtol=1e-6, atol=1e-4)


def test_predicts_a_walk_and_keeps_the_size_of_the_unseen() -> None:
    motion = Motion.begun(np.array([[0.0, 0.0, 20.0, 60.0]]))
    for step in range(1, 30):
        box = np.array([[step * 5.0, 0.0, step * 5.0 + 20, 60.0 + step]])
        motion = motion.predicted(0.1, np.array([True])).corrected(np.array([0]), box)
    unseen = motion.predicted(0.4, np.array([False]))
    assert abs(unseen.place[0, 0] - (29 * 5 + 10 + 20)) < 2
    assert unseen.place[0, 3] == motion.place[0, 3]


def test_tracks_do_not_touch_each_other() -> None:
    motion = Motion.begun(np.array([[0.0, 0, 20, 60], [500.0, 0, 520, 60]]))
    after = motion.predicted(0.1, np.array([True, True])).corrected(np.array([1]), np.array([[510.0, 0, 530, 60]]))
    assert after.place[0].tolist() == motion.place[0].tolist()
    assert after.place[1, 0] > motion.place[1, 0]
