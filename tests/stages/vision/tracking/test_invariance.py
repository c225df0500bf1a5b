"""Things that must not matter to a tracker: the order of people, scale, mirror, the hour, frames that are dropped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from camgraph.stages.vision.tracking import Tracker, TrackerOptions

F64 = NDArray[np.float64]
Story = list[tuple[int, F64, F64, F64]]
"""Of each frame: time, boxes, scores, keypoints."""


def story(seed: int, frames: int = 60, people: int = 6, fps: float = 10.0) -> Story:
    """People who walk through each other at uneven frames, with noise, and are missed now and then."""
    random = np.random.default_rng(seed)
    places = random.uniform((0, 100), (600, 300), (people, 2))
    speeds = random.normal(0, 60, (people, 2))
    heights = random.uniform(100, 180, people)
    poses = random.uniform(-0.5, 0.5, (people, 17, 2)) * (0.4, 1.0)
    result: Story = []
    times = np.cumsum(random.uniform(0.4, 1.6, frames)) / fps
    for at in times:
        middles = places + speeds * at + random.normal(0, 2, (people, 2))
        half = np.stack((0.2 * heights, 0.5 * heights), axis=1) * random.normal(1, 0.02, (people, 2))
        joints = middles[:, None] + poses * heights[:, None, None] + random.normal(0, 1, (people, 17, 2))
        keypoints = np.concatenate((joints, random.uniform(0.2, 0.9, (people, 17, 1))), axis=2)
        seen = random.random(people) < 0.9
        boxes = np.concatenate((middles - half, middles + half), axis=1)
        scores = np.round(random.uniform(0.06, 0.95, people), 3)
        result.append((round(at * 1e9), boxes[seen], scores[seen], keypoints[seen]))
    return result


def ids_of(frames: Story, order: Callable[[int], NDArray[np.int64]] = np.arange) -> list[list[int]]:
    """The ids of each frame's people, 0 for those who have none, in the order of the story."""
    tracker, result = Tracker(TrackerOptions()), []
    for time_ns, boxes, scores, keypoints in frames:
        rows = order(len(boxes))
        found = tracker.follow(time_ns, boxes[rows], scores[rows], None, keypoints[rows])
        ids = np.zeros(len(boxes), np.int64)
        ids[rows[found.rows]] = found.ids
        result.append(ids.tolist())
    return result


def named_by_first(ids: list[list[int]]) -> list[list[int]]:
    """The same ids, numbered as they first come: people who begin in one frame get ids in the order they come in."""
    names = {0: 0}
    return [[names.setdefault(one, len(names)) for one in row] for row in ids]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.slow
def test_the_order_of_people_does_not_matter(seed: int) -> None:
    random = np.random.default_rng(seed)
    shuffled = ids_of(story(seed), random.permutation)
    assert named_by_first(shuffled) == named_by_first(ids_of(story(seed)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.slow
def test_scale_mirror_place_and_hour_do_not_matter(seed: int) -> None:
    frames = story(seed)
    expected = ids_of(frames)
    assert len({one for row in expected for one in row}) > 4
    double = [(t, 2 * b, s, k * (2, 2, 1)) for t, b, s, k in frames]
    mirrored = [(t, b[:, [2, 1, 0, 3]] * (-1, 1, -1, 1), s, k * (-1, 1, 1)) for t, b, s, k in frames]
    moved = [(t, b + 512, s, k + np.array((512, 512, 0))) for t, b, s, k in frames]
    later = [(t + 3_600_000_000_000, b, s, k) for t, b, s, k in frames]
    for name, other in {"scale": double, "mirror": mirrored, "place": moved, "hour": later}.items():
        assert ids_of(other) == expected, name


@pytest.mark.parametrize("dropped", [0.2, 0.5])
def test_dropped_frames_cost_lone_walkers_no_id(dropped: float) -> None:
    random, tracker, ids = np.random.default_rng(4), Tracker(TrackerOptions()), set()
    for index in range(200):
        if random.random() < dropped:
            continue
        lanes = np.arange(4) * 150.0
        left = 300 + 250 * np.sin(index / 25 + np.arange(4))
        boxes = np.stack((left, lanes, left + 40, lanes + 120), axis=1)
        ids |= set(tracker.follow(index * 40_000_000, boxes, np.full(4, 0.8)).ids.tolist())
    assert ids == {1, 2, 3, 4}


def test_unknown_joints_are_as_good_as_none() -> None:
    frames = story(1)
    unknown = [(t, b, s, np.full_like(k, np.nan)) for t, b, s, k in frames]
    none = [(t, b, s, np.empty((len(b), 0, 3))) for t, b, s, k in frames]
    assert ids_of(unknown) == ids_of(none)


def test_models_of_two_skeletons_may_take_turns() -> None:
    tracker, box = Tracker(TrackerOptions()), np.array([[0.0, 0, 40, 120]])
    for index in range(12):
        keypoints = np.full((1, 17 if index % 2 else 5, 3), 0.5)
        found = tracker.follow(index * 100_000_000, box, np.full(1, 0.9), None, keypoints)
        assert found.ids.tolist() == [1]


def test_a_walker_behind_a_pillar_goes_on_under_a_new_id() -> None:
    """They come out after the track is forgotten, where they would be by now: the new id says whose it goes on."""
    tracker = Tracker(TrackerOptions(max_lost_s=1.0))
    reported = {}
    for index in range(80):
        left = index * 6.0
        visible = not 200 <= left <= 340
        boxes = np.array([[left, 0, left + 40, 120]])[: int(visible)]
        found = tracker.follow(index * 100_000_000, boxes, np.full(len(boxes), 0.8))
        reported.update(zip(found.ids.tolist(), found.continues.tolist(), strict=True))
    assert reported == {1: 0, 2: 1}
