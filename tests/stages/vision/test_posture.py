"""Windows for `looks_like`: what moves them, what does not, and when the network is asked about whom."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.vision.posture import CLASSES, POINTS, STEPS, Posture, Postures, normalised, window_of
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.pose_model import PERFECT
from camgraph.tools.scenes.animator.scenes import motion_alone

F32 = NDArray[np.float32]
SIZE = (640, 480)
SCORES = np.ones(1, np.float32)
CAMERA = Camera(height_m=2.2).at(5.0, 30.0)


@pytest.fixture(scope="module")
def window() -> F32:
    """(1, T, 19, 3) of somebody who falls, in pixels."""
    look = Posture()
    for seen in motion_alone("falling sideways").frames(10, 1, CAMERA, PERFECT):
        if seen.time_ns <= 2_500_000_000:
            look.note(seen.time_ns, seen.boxes[0], seen.keypoints[0])
    return window_of(look.record)[None]


def changed(window: F32, size: float, to: tuple[float, float]) -> F32:
    found = window.copy()
    found[..., :2] = (found[..., :2] * size + to) * (found[..., 2:] > 0)
    return found


def test_place_and_size_in_the_picture_change_nothing(window: F32) -> None:
    assert normalised(changed(window, 0.5, (300, 40))) == pytest.approx(normalised(window), abs=1e-3)


def test_a_body_is_about_one_high(window: F32) -> None:
    standing = normalised(window)[0, 0]
    assert 0.8 < standing[-1, 1] - standing[-2, 1] < 1.2


def test_a_joint_that_points_nowhere_is_no_number(window: F32) -> None:
    window = window.copy()
    window[0, 3, 9] = 0
    assert not normalised(window)[0, 3, 9].any()
    assert not normalised(np.zeros((2, STEPS, POINTS, 3), np.float32)).any()


def test_joints_that_are_not_sure_or_no_numbers_are_left_out() -> None:
    joints = np.full((17, 3), 0.9, np.float32)
    joints[3, 2], joints[4, 0] = 0.1, np.nan
    look = Posture()
    look.note(0, np.array([1, 2, 3, 4], np.float32), joints)
    last = window_of(look.record)[-1]
    assert not last[[3, 4]].any()
    assert last[[0, 17, 18]].tolist() == [pytest.approx([0.9, 0.9, 1]), [1, 2, 1], [3, 4, 1]]


@dataclass(frozen=True)
class At:
    time_ns: int


class Asked:
    """A network that keeps the windows that it is asked about."""

    def __init__(self) -> None:
        self.windows: list[F32] = []

    def __call__(self, windows: F32) -> F32:
        self.windows.append(windows[0])
        return np.full((1, len(CLASSES)), len(self.windows) / 100, np.float32)


def see(
    postures: Postures, at_s: float, ids: list[int], continues: Mapping[int, int] | None = None
) -> dict[int, Posture]:
    keypoints = np.full((len(ids), 17, 3), 0.9, np.float32)
    boxes = np.array([[track, at_s * 50, track + 10, at_s * 50 + 20] for track in ids], np.float32).reshape(-1, 4)
    moment = At(round(at_s * 1e9))
    return postures.seen(
        moment.time_ns,
        SIZE,
        Picture(moment, np.array(ids, np.int64), boxes, SCORES, keypoints, SIZE, continues=continues or {}),
    )


def test_the_network_is_asked_five_times_a_second() -> None:
    postures, asked = Postures(), Asked()
    for number in range(100):
        for look in see(postures, number / 25, [1, 2]).values():
            look.score("fall", asked)
            look.score("lying", asked)
    assert len(asked.windows) == 2 * 17  # not in the first 0.4 s


def test_nobody_asks_it_for_nothing() -> None:
    postures, asked = Postures(), Asked()
    for number in range(100):
        seen = see(postures, number / 25, [1])
    seen[1].score("fall", asked)
    assert len(asked.windows) == 1


@pytest.mark.parametrize("rate", [5, 25, 30, 50, 60, 120])
def test_when_it_is_asked_changes_no_answer(rate: int) -> None:
    """Also with the clock of a live camera, and frames that do not come at equal times."""
    rng, asked = np.random.default_rng(rate), Asked()
    often, seldom = Postures(), Postures()
    for number in range(4 * rate):
        at_s = 86_437.123 + (number + float(rng.uniform(0, 0.6))) / rate
        early, late = see(often, at_s, [1])[1], see(seldom, at_s, [1])[1]
        early.score("fall", asked)
        if number % 3 == 2:
            before = len(asked.windows)
            late.score("fall", asked)
            if len(asked.windows) > before:
                assert any(np.array_equal(asked.windows[-1], one) for one in asked.windows[:-1][-3:])


def test_nobody_can_tell_from_a_moment() -> None:
    postures, asked = Postures(), Asked()
    for number in range(4):
        assert math.isnan(see(postures, number / 10, [1])[1].score("fall", asked))
    assert see(postures, 0.6, [1])[1].score("fall", asked) > 0


def test_frames_that_come_once_a_second_tell_nothing() -> None:
    postures, asked = Postures(), Asked()
    assert all(math.isnan(see(postures, second, [1])[1].score("fall", asked)) for second in range(6))


def test_another_size_of_the_frame_begins_anew() -> None:
    postures, asked = Postures(), Asked()
    for number in range(20):
        posture = see(postures, number / 10, [1])[1]
    keypoints, boxes = np.full((1, 17, 3), 0.9, np.float32), np.ones((1, 4), np.float32)
    picture = Picture(At(2_000_000_000), np.array([1]), boxes, SCORES, keypoints, (320, 240))
    assert not math.isnan(posture.score("fall", asked))
    assert math.isnan(postures.seen(2_000_000_000, (320, 240), picture)[1].score("fall", asked))


def test_who_is_there_keeps_their_record() -> None:
    postures = Postures()
    for number in range(10):
        see(postures, number / 10, [1])
    seen = see(postures, 1.0, [2, 1], {2: 1})
    assert [len(seen[track].record) for track in (1, 2)] == [11, 1]


def test_odd_numbers_are_no_errors() -> None:
    odd = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 0, 1e9], np.float32)
    rng = np.random.default_rng(0)
    posture = Posture()
    for number in range(30):
        posture.note(number * 100_000_000 % 1_700_000_000, rng.choice(odd, 4), rng.choice(odd, (17, 3)))
        assert normalised(window_of(posture.record, posture._at_ns)[None]).shape == (1, STEPS, POINTS, 3)


def test_a_track_that_goes_on_has_the_past_of_the_lost_one() -> None:
    postures = Postures()
    for number in range(10):
        see(postures, number / 10, [1])
    assert len(see(postures, 1.0, [2], {2: 1})[2].record) == 11
    assert len(see(postures, 1.1, [3])[3].record) == 1


def test_who_is_out_of_sight_is_forgotten() -> None:
    postures = Postures()
    see(postures, 0, [1])
    see(postures, 10, [2])
    assert list(postures._people) == [2]
