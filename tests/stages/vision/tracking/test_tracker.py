"""The life of a track, on boxes made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camgraph.stages.vision.tracking import Tracker, TrackerOptions

OPTIONS = TrackerOptions(sure_score=1.0, confirm_s=0.15, max_lost_s=1.0)
STEP = 100_000_000
Person = tuple[float, float]
"""Left edge and score; everybody is 20 x 60 pixels, and stands on one line."""


def frame(tracker: Tracker, index: int, people: Sequence[Person]) -> list[tuple[int, float]]:
    """The (id, left edge) of the frame's confirmed tracks."""
    boxes = np.array([[x, 0, x + 20, 60] for x, _ in people], np.float64).reshape(-1, 4)
    found = tracker.follow(index * STEP, boxes, np.array([score for _, score in people], np.float64))
    return [(int(i), float(boxes[row, 0])) for i, row in zip(found.ids, found.rows, strict=True)]


def test_an_id_comes_after_the_time_to_confirm() -> None:
    """The first frame stands for no time, the others for that since the frame before."""
    tracker = Tracker(OPTIONS)
    assert frame(tracker, 0, [(0, 0.9)]) == []
    assert frame(tracker, 1, [(2, 0.9)]) == []
    assert frame(tracker, 2, [(4, 0.9), (300, 0.9)]) == [(1, 4)]
    assert frame(tracker, 3, [(6, 0.9), (300, 0.9)]) == [(1, 6), (2, 300)]


@pytest.mark.parametrize("options", [{"confirm_s": 0.0}, {"sure_score": 0.9}])
def test_confirmed_at_once_where_the_options_say_so(options: dict[str, float]) -> None:
    assert frame(Tracker(replace(OPTIONS, **options)), 0, [(0, 0.9)]) == [(1, 0)]


@pytest.mark.parametrize("fps", [3.0, 5.0, 12.5, 25.0, 60.0])
def test_confirmation_takes_the_same_time_at_any_rate(fps: float) -> None:
    tracker, box, times = Tracker(OPTIONS), np.array([[0.0, 0, 20, 60]]), []
    for index in range(40):
        people = box if index >= 2 else box[:0]
        if len(tracker.follow(round(index * 1e9 / fps), people, np.full(len(people), 0.9)).ids):
            times.append((index - 1) / fps)
    assert 0.15 <= times[0] < 0.15 + 1 / fps + 1e-6


def test_a_flash_uses_no_id() -> None:
    tracker = Tracker(OPTIONS)
    frame(tracker, 0, [(0, 0.9)])
    frame(tracker, 1, [])
    assert frame(tracker, 2, [(0, 0.9)]) == []
    assert frame(tracker, 3, [(0, 0.9)]) == [(1, 0)]


def test_a_weak_score_goes_on_but_begins_nothing() -> None:
    tracker = Tracker(OPTIONS)
    for index in range(3):
        frame(tracker, index, [(0, 0.9), (300, 0.15)])
    assert frame(tracker, 3, [(0, 0.15), (300, 0.15)]) == [(1, 0)]
    assert frame(tracker, 4, [(0, 0.04)]) == []


def test_a_weak_score_takes_a_lost_track_up_again() -> None:
    tracker = Tracker(OPTIONS)
    for index in range(4):
        frame(tracker, index, [(0, 0.9)])
    for index in range(4, 7):
        assert frame(tracker, index, []) == []
    assert frame(tracker, 7, [(0, 0.15)]) == [(1, 0)]


def test_nobody_of_another_size_takes_a_track_up_again() -> None:
    """A child in the place of an adult who was lost 0.8 s ago is somebody else; the adult is known again."""
    for height, expected in ((90.0, 1), (50.0, 2)):
        tracker, adult = Tracker(OPTIONS), np.array([[0.0, 0, 30, 90]])
        for index in range(10):
            tracker.follow(index * STEP, adult, np.full(1, 0.9))
        for index in range(10, 18):
            tracker.follow(index * STEP, adult[:0], np.empty(0))
        there = np.array([[0.0, 90 - height, 30, 90]])
        for index in range(18, 24):
            ids = tracker.follow(index * STEP, there, np.full(1, 0.9)).ids.tolist()
        assert ids == [expected], height


@pytest.mark.parametrize(("gap", "expected"), [(2, 1), (13, 2)])
def test_a_track_lost_for_longer_asks_for_more_likeness(gap: int, expected: int) -> None:
    """The same overlap of a quarter is enough after a moment, and not after more than a second."""
    tracker = Tracker(replace(OPTIONS, widen=0.0, max_lost_s=5.0))
    for index in range(10):
        frame(tracker, index, [(0, 0.9)])
    for index in range(10, 13 + gap):
        seen = frame(tracker, index, [(12, 0.9)] if index >= 9 + gap else [])
    assert seen == [(expected, 12)]


def test_poses_tell_two_people_in_one_place_apart() -> None:
    """Their boxes are one patch, their joints are not: each keeps the id of the own joints."""
    random = np.random.default_rng(3)
    poses = [random.uniform((0, 0), (20, 60), (17, 2)) for _ in range(2)]
    tracker, ids = Tracker(OPTIONS), []
    for index in range(30):
        boxes = np.array([[0.0, 0, 20, 60], [4, 0, 24, 60]]) + random.normal(0, 2, (2, 4))
        keypoints = np.stack([np.c_[pose + random.normal(0, 0.5, (17, 2)), np.full(17, 0.8)] for pose in poses])
        order = random.permutation(2)
        found = tracker.follow(index * STEP, boxes[order], np.full(2, 0.9), None, keypoints[order])
        ids.append({int(order[row]): int(i) for row, i in zip(found.rows, found.ids, strict=True)})
    assert len({tuple(sorted(one.items())) for one in ids if len(one) == 2}) == 1


def test_found_again_where_it_was_going() -> None:
    tracker = Tracker(OPTIONS)
    for index in range(10):
        frame(tracker, index, [(index * 8.0, 0.9)])
    for index in range(10, 15):
        assert frame(tracker, index, []) == []
    assert frame(tracker, 15, [(120.0, 0.9)]) == [(1, 120.0)]


def test_forgotten_after_a_while_and_never_named_so_again() -> None:
    tracker = Tracker(OPTIONS)
    for index in range(3):
        frame(tracker, index, [(0, 0.9)])
    for index in range(3, 15):
        frame(tracker, index, [])
    frame(tracker, 15, [(0, 0.9)])
    assert frame(tracker, 16, [(0, 0.9)]) == [(2, 0)]


def test_a_gap_in_the_stream_counts_as_time() -> None:
    tracker = Tracker(OPTIONS)
    for index in range(3):
        frame(tracker, index, [(0, 0.9)])
    frame(tracker, 60, [(900, 0.9)])
    assert frame(tracker, 61, [(0, 0.9), (900, 0.9)]) == [(2, 900)]


@pytest.mark.parametrize("gap_s", [1.2, 5.0, 600.0])
@pytest.mark.parametrize("moved", [0.0, 900.0])
def test_a_longer_gap_leaves_nobody_their_id(gap_s: float, moved: float) -> None:
    """Without any frame in between: whoever is there then is a new track, which may go on the lost one's."""
    tracker, box = Tracker(replace(OPTIONS, confirm_s=0.0)), np.array([[0.0, 0, 20, 60]])
    for index in range(10):
        tracker.follow(index * STEP, box, np.full(1, 0.9))
    found = tracker.follow(9 * STEP + round(gap_s * 1e9), box + moved * np.array([1, 0, 1, 0]), np.full(1, 0.9))
    stayed = not moved and gap_s < OPTIONS.continue_s
    assert (found.ids.tolist(), found.continues.tolist()) == ([2], [1 if stayed else 0])


@pytest.mark.parametrize("max_lost_s", [0.0, 1.0])
def test_within_the_time_a_gap_costs_nobody_their_id(max_lost_s: float) -> None:
    """If it is 0, whoever is missed in one frame is forgotten; a frame that is lost misses nobody."""
    tracker = Tracker(replace(OPTIONS, max_lost_s=max_lost_s))
    for index in (0, 1, 2, 3, 5, 6):
        seen = frame(tracker, index, [(0, 0.9)])
    assert seen == [(1, 0)]
    frame(tracker, 7, [])
    assert len(tracker) == (1 if max_lost_s else 0)


@pytest.mark.parametrize("step_s", [0.5, 1.0, 5.0])
def test_of_a_slow_camera_one_missed_frame_forgets_nobody(step_s: float) -> None:
    tracker, box = Tracker(OPTIONS), np.array([[0.0, 0, 20, 60]])
    ids = []
    for index in range(24):
        seen = 0 if index % 3 == 2 or index > 18 else 1
        ids += tracker.follow(round(index * step_s * 1e9), box[:seen], np.full(seen, 0.9)).ids.tolist()
    assert set(ids) == {1}
    assert len(tracker) == 0


def test_two_who_pass_each_other_keep_their_ids() -> None:
    tracker = Tracker(OPTIONS)
    for index in range(41):
        seen = frame(tracker, index, [(index * 5.0, 0.9), (200 - index * 5.0, 0.9)])
        if index == 2:
            assert seen == [(1, 10.0), (2, 190.0)]
    assert seen == [(1, 200.0), (2, 0.0)]


def test_a_track_keeps_its_class() -> None:
    tracker, box, score = Tracker(OPTIONS), np.array([[0.0, 0, 20, 60]]), np.array([0.9])
    for index, kind in enumerate([0, 0, 0, 1, 1]):
        found = tracker.follow(index * STEP, box, score, np.array([kind]))
    assert found.ids.tolist() == [2]


frames_of_people = st.lists(
    st.tuples(
        st.integers(0, 900),
        st.lists(st.tuples(st.floats(0, 700), st.floats(0, 1)), max_size=5),
    ),
    max_size=25,
)


@settings(max_examples=100)
@given(frames_of_people, st.integers(1, 10**12))
def test_whatever_comes(story: list[tuple[int, list[Person]]], first_id: int) -> None:
    """Ids are unique in a frame, new ones are in order and never come back once forgotten; and it is repeatable."""
    runs = []
    for _ in range(2):
        tracker, time, reported, known = Tracker(OPTIONS, first_id), 0, [], first_id - 1
        for step, people in story:
            time += step
            seen = frame(tracker, time, people)
            ids = [i for i, _ in seen]
            assert len(set(ids)) == len(ids)
            fresh = sorted(i for i in ids if i > known)
            assert fresh == list(range(known + 1, known + 1 + len(fresh)))
            known += len(fresh)
            reported.append(seen)
        assert tracker.next_id == known + 1
        runs.append(reported)
    assert runs[0] == runs[1]


@pytest.mark.parametrize("fps", [2.0, 5.0, 25.0])
def test_walkers_at_any_frame_rate(fps: float) -> None:
    """Three people who walk a height in a second, on lanes of their own, keep three ids."""
    tracker, ids = Tracker(OPTIONS), set()
    for index in range(round(6 * fps)):
        t = index / fps
        boxes = np.array([[60 * t + lane, 80.0 * lane, 60 * t + lane + 24, 80.0 * lane + 60] for lane in range(3)])
        ids |= set(tracker.follow(round(t * 1e9), boxes, np.full(3, 0.8)).ids.tolist())
    assert ids == {1, 2, 3}
