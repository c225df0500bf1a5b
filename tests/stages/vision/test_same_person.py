from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.same_person import best_of_each, wholeness

NOTHING = np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros((0, 17, 3), np.float32)


def body(left: float, top: float, height: float, certain: slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
    """A person's box, and their joints, of which some are certain."""
    box = np.array([left, top, left + height / 3, top + height], np.float32)
    joints = np.zeros((17, 3), np.float32)
    joints[:, 0], joints[:, 1] = left + height / 6, np.linspace(top, top + height, 17)
    joints[certain, 2] = 0.8
    return box, joints


def best(*people: tuple[np.ndarray, np.ndarray], scores: list[float] | None = None) -> list[int]:
    boxes, joints = (np.stack(arrays) for arrays in zip(*people, strict=True))
    whole = wholeness(np.array(scores or [0.5] * len(people), np.float32), joints)
    return best_of_each(boxes, whole, joints).tolist()


def test_nobody() -> None:
    assert best_of_each(*NOTHING).tolist() == []


def test_the_whole_person_stands_for_the_upper_half() -> None:
    box, joints = body(0, 0, 300, slice(0, 8))
    half = np.array([0, 0, 100, 150], np.float32), joints
    assert best(half, body(0, 0, 300)) == [1, 1]
    assert box[3] == 300


def test_a_certain_half_does_not_swallow_the_whole() -> None:
    half = np.array([0, 0, 100, 150], np.float32), body(0, 0, 300, slice(0, 8))[1]
    assert best(half, body(0, 0, 300), scores=[0.9, 0.5]) == [1, 1], "8 of 17 joints at 0.9 are less than 17 at 0.5"


def test_people_beside_and_behind_each_other_stay_apart() -> None:
    assert best(body(0, 0, 300), body(120, 0, 300), body(40, 150, 120)) == [0, 1, 2]


def test_the_same_box_twice_is_one_person() -> None:
    assert best(body(0, 0, 300), body(4, 3, 298), scores=[0.4, 0.6]) == [1, 1]


@given(st.lists(st.tuples(st.floats(0, 900), st.floats(0, 500), st.floats(5, 400)), max_size=8), st.integers(0, 2**32))
def test_order_does_not_matter(people: list[tuple[float, float, float]], seed: int) -> None:
    if not people:
        return
    rng = np.random.default_rng(seed)
    bodies = [body(*one) for one in people]
    scores = rng.permutation(np.linspace(0.3, 0.9, len(bodies))).tolist()
    order = rng.permutation(len(bodies)).tolist()
    straight = best(*bodies, scores=scores)
    mixed = best(*(bodies[row] for row in order), scores=[scores[row] for row in order])
    assert [order[row] for row in mixed] == [straight[row] for row in order]
    assert all(straight[row] == row for row in straight), "the best one of a person is its own best"
