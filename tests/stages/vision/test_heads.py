"""The areas of heads hold the whole head, however people turn, and the whole person if nobody knows where it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.heads import Heads, PeopleInFrame, head_areas

HEAD = 40.0
"""From the chin to the hair; a body is 7.5 times as long."""
BOX = (100.0, 50.0, 180.0, 50.0 + 7.5 * HEAD)
MIDDLE = (140.0, 50.0 + HEAD / 2)
S = 1_000_000_000


def person(*, head: float = 0.9, yaw: float = 0.0, shoulders: float = 0.9) -> np.ndarray:
    """(17, 3): upright, the head turned by so many degrees; its joints have this confidence."""
    x, y = MIDDLE
    across = 0.35 * HEAD
    places = {0: 90.0, 1: 60.0, 2: 120.0, 3: 0.0, 4: 180.0}  # degrees around the head, seen from above
    joints = np.zeros((17, 3), np.float32)
    for joint, at in places.items():
        joints[joint] = (x + across * math.cos(math.radians(at + yaw)), y + (3.0 if joint == 0 else 0.0), head)
    joints[5:7] = [[x + HEAD, y + 1.0 * HEAD, shoulders], [x - HEAD, y + 1.0 * HEAD, shoulders]]
    joints[7:] = (x, y + 3 * HEAD, 0.9)
    return joints


def area_of(joints: np.ndarray, box: tuple[float, ...] = BOX) -> tuple[float, ...]:
    [area] = head_areas(np.array([box], np.float32), joints[None])
    return area


@given(st.floats(0, 360), st.sampled_from([0.0, 0.9]), st.sampled_from([0.3, 0.9]))
def test_the_head_is_within_and_the_rest_is_not(yaw: float, shoulders: float, head: float) -> None:
    left, top, right, bottom = area_of(person(yaw=yaw, shoulders=shoulders, head=head))
    x, y = MIDDLE
    assert left <= x - 0.4 * HEAD
    assert right >= x + 0.4 * HEAD
    assert top <= y - HEAD / 2
    assert bottom >= y + HEAD / 2
    assert right - left < 2.5 * HEAD


def test_a_single_joint_tells_enough() -> None:
    joints = person(shoulders=0.0)
    joints[1:5, 2] = 0.0
    left, top, right, bottom = area_of(joints)
    assert top <= MIDDLE[1] - HEAD / 2
    assert bottom >= MIDDLE[1] + HEAD / 2
    assert right - left > 0.8 * HEAD


def without_numbers() -> np.ndarray:
    joints = person()
    joints[:5, 0] = math.nan
    return joints


@pytest.mark.parametrize(
    "joints",
    [person(head=0.0), person(head=0.29), without_numbers(), person()[:13], person()[:0]],
    ids=["unseen", "unsure", "no numbers", "other joints", "no joints"],
)
def test_all_of_a_person_whose_head_nobody_knows(joints: np.ndarray) -> None:
    assert area_of(joints) == BOX


def test_a_suspected_joint_belongs_to_a_head_that_is_sure() -> None:
    joints = person()
    joints[4] = (MIDDLE[0] - 3 * HEAD, MIDDLE[1], 0.15)
    assert area_of(joints)[0] < MIDDLE[0] - 3 * HEAD
    joints[4, 2] = 0.05
    assert area_of(joints)[0] > MIDDLE[0] - 3 * HEAD


NOBODY = PeopleInFrame(np.empty((0, 4), np.float32), np.empty((0, 17, 3), np.float32))
"""The boxes and joints of no people."""


def somebody(across: float = 0.0) -> PeopleInFrame:
    """So many pixels farther right than `BOX`."""
    moved = np.float32([across, 0, 0])
    return PeopleInFrame(np.array([BOX], np.float32) + np.float32([across, 0, across, 0]), person()[None] + moved)


def test_lost_heads_are_kept_for_a_second_and_may_move() -> None:
    heads, size = Heads(), BOX[3] - BOX[1]
    [seen] = heads.seen([1], somebody(), NOBODY, 0)
    [soon] = heads.seen([], NOBODY, NOBODY, S // 10)
    [late] = heads.seen([], NOBODY, NOBODY, S)
    for area, at_s in ((soon, 0.1), (late, 1.0)):
        for sign in (-1, 1):
            walked = MIDDLE[0] + sign * 0.8 * size * at_s
            assert area[0] <= walked - 0.4 * HEAD
            assert area[2] >= walked + 0.4 * HEAD
    assert soon[2] - soon[0] < 2.3 * (seen[2] - seen[0]), "a lost frame costs little of the picture"
    assert heads.seen([], NOBODY, NOBODY, S + 1) == []


def test_who_is_seen_again_is_where_he_is_now() -> None:
    heads, both = Heads(), PeopleInFrame(*(np.repeat(one, 2, 0) for one in somebody()))
    before, _ = heads.seen([1, 2], both, NOBODY, 0)
    first, second = heads.seen([1], somebody(30.0), NOBODY, S // 2)
    assert first[0] == pytest.approx(before[0] + 30)
    assert second[0] < before[0]


def test_people_without_a_track_stay_hidden_until_a_head_is_seen() -> None:
    heads, far = Heads(), somebody(500.0)
    [seen] = heads.seen([], NOBODY, somebody(), 0)
    assert seen == head_areas(*somebody())[0]
    elsewhere, lost = heads.seen([9], far, NOBODY, S // 10)
    assert elsewhere == head_areas(*far)[0]
    assert lost[0] < seen[0]
    assert len(heads.seen([9], far, somebody(5.0), S // 5)) == 2, "found again"
    both = PeopleInFrame(np.concatenate([far.boxes, somebody().boxes]), np.concatenate([far.joints, somebody().joints]))
    assert len(heads.seen([9, 10], both, NOBODY, S // 4)) == 2, "tracked by now"
    heads = Heads()
    heads.seen([], NOBODY, somebody(), 0)
    assert heads.seen([], NOBODY, NOBODY, S + 1) == []
