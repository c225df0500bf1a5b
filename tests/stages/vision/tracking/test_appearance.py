"""Looks beside place: who goes on as whom where boxes alone cannot tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from camgraph.stages.vision.tracking import Tracker, TrackerOptions
from camgraph.stages.vision.tracking.appearance import LooksScale, mixed

F64 = NDArray[np.float64]
OPTIONS = TrackerOptions(sure_score=0.8, max_lost_s=1.0)
STEP = 100_000_000
NAN = float("nan")


def looks(*angles: float) -> F64:
    """Unit vectors in a plane, by their angle in degrees."""
    return np.array([[np.cos(np.radians(a)), np.sin(np.radians(a))] for a in angles]).reshape(-1, 2)


class Camera:
    """People of 40 x 120 pixels on one line, by their left edge and looks."""

    def __init__(self, options: TrackerOptions = OPTIONS) -> None:
        self.tracker = Tracker(options)
        self.frames = 0

    def sees(self, *people: tuple[float, float]) -> list[tuple[int, int]]:
        """(id, continues) of each."""
        boxes = np.array([[x, 0, x + 40, 120] for x, _ in people], np.float64).reshape(-1, 4)
        appearance = looks(*(angle for _, angle in people)) if people else np.empty((0, 0))  # as `People` has it
        found = self.tracker.follow(self.frames * STEP, boxes, np.full(len(people), 0.9), appearance=appearance)
        self.frames += 1
        assert found.rows.tolist() == list(range(len(people)))
        return list(zip(found.ids.tolist(), found.continues.tolist(), strict=True))

    def learns(self) -> None:
        """Two people who look different stand far from each other and from all others."""
        for _ in range(60):
            self.sees((0, 0), (2000, 60))


def test_nothing_is_said_before_enough_is_known() -> None:
    scale = LooksScale()
    two = looks(0, 60)
    for _ in range(14):
        scale.learn(two, two)
    assert np.isnan(scale.likeness(two, two)).all()
    for _ in range(20):
        scale.learn(two, two)
    np.testing.assert_allclose(scale.likeness(two, two[::-1]), 0, atol=1e-9)
    np.testing.assert_allclose(scale.likeness(two, two), 1)
    assert 0.2 < scale.likeness(looks(0), looks(40))[0] < 0.8
    assert np.isnan(scale.likeness(looks(0), looks(NAN))[0])


def test_uniforms_tell_nothing() -> None:
    scale = LooksScale()
    for _ in range(100):
        scale.learn(looks(0, 5), looks(0, 5))
    assert np.isnan(scale.likeness(looks(0), looks(90))).all()


def test_the_memory_follows_slowly_and_stays_without_news() -> None:
    now = mixed(looks(0, 0, NAN), looks(90, NAN, 90), np.full(3, 0.5))
    np.testing.assert_allclose(np.linalg.norm(now, axis=1), 1)
    assert 10 < np.degrees(np.arctan2(*now[0, ::-1])) < 45
    np.testing.assert_allclose(now[1:], looks(0, 90), atol=1e-9)


@pytest.mark.parametrize("weight", [0.0, 0.4])
def test_two_who_meet_keep_their_ids_by_their_looks(weight: float) -> None:
    """They come out where boxes alone would name each by the other's id."""
    camera = Camera(replace(OPTIONS, look_weight=weight))
    camera.learns()
    for _ in range(5):
        camera.sees((500, 0), (540, 60))
    before = [one for one, _ in camera.sees((500, 0), (540, 60))]
    after = [one for one, _ in camera.sees((518, 60), (522, 0))]
    assert after == (before[::-1] if weight else before)


@pytest.mark.parametrize("others", [((0, 0), (2000, 60)), ()], ids=["beside-others", "alone"])
def test_a_new_track_does_not_continue_one_of_other_looks(others: tuple[tuple[float, float], ...]) -> None:
    for angle, goes_on in ((0, True), (60, False)):
        camera = Camera()
        camera.learns()
        for _ in range(20):
            camera.sees(*others)
        for x in range(500, 560, 10):
            (*_, (hidden, _)) = camera.sees(*others, (x, 0))
        for _ in range(15):
            camera.sees(*others)
        *_, (_, continues) = camera.sees(*others, (700, angle))
        assert continues == (hidden if goes_on else 0)


def test_a_frame_without_people_forgets_no_looks_or_joints() -> None:
    """Its arrays are empty, and do not say how many joints and values somebody would have."""
    tracker, box, joints = Tracker(OPTIONS), np.array([[0.0, 0, 40, 120]]), np.full((1, 17, 3), 0.5)
    tracker.follow(0, box, np.array([0.9]), keypoints=joints, appearance=looks(30))
    tracker.follow(STEP, box[:0], np.empty(0))
    assert tracker._known.looks.tolist() == looks(30).tolist()
    assert tracker._known.keypoints.tolist() == joints.tolist()


def test_looks_of_another_length_forget_those_before() -> None:
    camera = Camera()
    camera.learns()
    camera.sees((500, 0))
    box = np.array([[500.0, 0, 540, 120]])
    for appearance in (np.ones((1, 5)) / np.sqrt(5), None, looks(0)):
        found = camera.tracker.follow(camera.frames * STEP, box, np.array([0.9]), appearance=appearance)
        camera.frames += 1
        assert len(found.ids) == 1
