"""Pass 3 of the tracker: whoever is the only one near goes on in any shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from camgraph.stages.vision.tracking import Tracker, TrackerOptions
from camgraph.stages.vision.tracking.matching import only_ones, turned_round

Box = tuple[float, float, float, float]
UPRIGHT: Box = (100, 0, 160, 180)
LYING: Box = (130, 130, 310, 185)
"""Of the same person: their boxes overlap by less than a tenth."""


def followed(frames: Sequence[Sequence[Box]], fps: float = 8.0, score: float = 0.9) -> list[list[int]]:
    """The ids of the boxes in each frame."""
    tracker, ids = Tracker(TrackerOptions()), []
    for index, boxes in enumerate(frames):
        people = np.array(boxes, np.float64).reshape(-1, 4)
        found = tracker.follow(round(index * 1e9 / fps), people, np.full(len(people), score))
        row_ids = dict(zip(found.rows.tolist(), found.ids.tolist(), strict=True))
        ids.append([row_ids.get(row, 0) for row in range(len(people))])
    return ids


@pytest.mark.parametrize("fps", [3.0, 5.0, 12.5, 25.0])
def test_who_falls_from_one_frame_to_the_next_stays_the_same(fps: float) -> None:
    assert followed([[UPRIGHT]] * 5 + [[LYING]] * 5, fps) == [[1]] * 10


def test_they_stay_the_same_though_frames_miss_them_meanwhile() -> None:
    found = followed([[UPRIGHT]] * 5 + [[]] * 2 + [[LYING]] * 5)
    assert found[-1] == [1]


def test_after_a_longer_time_somebody_of_another_shape_is_new() -> None:
    found = followed([[UPRIGHT]] * 5 + [[]] * 8 + [[LYING]] * 5)
    assert found[-1] == [2]


def test_seldom_frames_leave_time_for_somebody_else() -> None:
    assert followed([[UPRIGHT]] * 5 + [[LYING]] * 5, fps=0.5)[-1] == [2]


def test_somebody_far_away_is_new() -> None:
    away: Box = (400, 130, 580, 185)
    assert followed([[UPRIGHT]] * 5 + [[away]] * 5)[-1] == [2]


NURSE: Box = (165, 0, 225, 185)


@pytest.mark.parametrize("fps", [3.0, 8.0])
def test_a_companion_who_stays_is_no_rival(fps: float) -> None:
    """One of two falls to the side: less than lying down at once, for the boxes must still overlap."""
    bent: Box = (100, 90, 200, 185)
    assert followed([[UPRIGHT, NURSE]] * 5 + [[bent, NURSE]] * 5, fps) == [[1, 2]] * 10


@pytest.mark.parametrize(("fps", "expected"), [(8.0, 1), (3.0, 3)])
def test_beside_others_a_stranger_may_come_between_two_frames(fps: float, expected: int) -> None:
    """Their box overlaps by a sixth with that of the one who was there."""
    sitting: Box = (120, 110, 240, 185)
    assert followed([[UPRIGHT, NURSE]] * 5 + [[sitting, NURSE]] * 5, fps)[-1] == [expected, 2]


def test_of_two_who_may_be_it_neither_is_taken() -> None:
    other: Box = (-50, 130, 130, 185)
    assert 1 not in followed([[UPRIGHT]] * 5 + [[LYING, other]] * 5)[-1]


def test_who_comes_in_while_another_goes_out_is_somebody_else() -> None:
    """One walks out at the left border; the next comes in there, smaller, and goes to the right."""
    out: list[list[Box]] = [[(x, 0, x + 60, 180)] for x in range(200, 0, -20)]
    inwards: list[list[Box]] = [[(x, 20, x + 50, 160)] for x in range(50, 110, 12)]
    assert followed(out + inwards)[-1] == [2]


def test_who_falls_to_a_side_and_stops_did_not_turn() -> None:
    """The boxes of a real fall, ten frames a second: the feet slide back when the body is down."""
    upright: list[Box] = [(156, 9, 247, 240), (152, 14, 252, 240), (147, 16, 255, 240), (142, 27, 262, 240)]
    down: list[Box] = [(136, 54, 261, 240), (128, 82, 261, 240), (122, 109, 256, 240), (109, 135, 247, 239)]
    still: list[Box] = [(96, 142, 242, 239), (94, 139, 243, 239), (106, 138, 249, 238), (106, 142, 252, 237)]
    assert followed([[box] for box in upright + down + still], fps=10.0) == [[1]] * 12


def test_a_weak_detection_at_their_border_is_no_rival() -> None:
    """Of somebody who is hard to see while they fall."""
    bent: Box = (100, 90, 200, 185)
    ghost: Box = (90, 140, 120, 200)
    tracker = Tracker(TrackerOptions())
    for index in range(5):
        tracker.follow(index * 125_000_000, np.array([UPRIGHT]), np.array([0.9]))
    found = tracker.follow(625_000_000, np.array([bent, ghost]), np.array([0.2, 0.1]))
    assert (found.ids.tolist(), found.rows.tolist()) == ([1], [0])


def test_only_pairs_without_rivals_are_alone() -> None:
    overlap = np.array([[0.5, 0, 0, 0], [0, 0.6, 0.4, 0], [0, 0, 0, 0.3], [0.1, 0, 0, 0]])
    assert np.argwhere(only_ones(overlap)).tolist() == [[0, 0], [2, 3]]


def test_a_single_track_and_person_are_alone_if_they_overlap() -> None:
    assert only_ones(np.array([[0.1]])).tolist() == [[True]]
    assert only_ones(np.array([[0.0]])).tolist() == [[False]]


@pytest.mark.parametrize(("velocity", "x", "expected"), [(-100, 40, True), (-100, -40, False), (-20, 40, False)])
def test_to_go_back_takes_speed_and_a_way(velocity: float, x: float, expected: bool) -> None:
    before = np.array([[0.0, 0, 40, 120]])
    turned = turned_round(before, np.array([float(velocity)]), before + np.array([x, 0, x, 0]))
    assert turned.tolist() == [[expected]]
