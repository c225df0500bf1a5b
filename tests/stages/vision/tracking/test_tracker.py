"""The life of a track, on boxes made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.vision.tracking import Tracker, TrackerOptions

OPTIONS = TrackerOptions(confirm_frames=2, max_lost_s=1.0)
STEP = 100_000_000
Person = tuple[float, float]
"""Left edge and score; everybody is 20 x 60 pixels, and stands on one line."""


def frame(tracker: Tracker, index: int, people: Sequence[Person]) -> list[tuple[int, float]]:
    """The (id, left edge) of the frame's confirmed tracks."""
    boxes = np.array([[x, 0, x + 20, 60] for x, _ in people], np.float64).reshape(-1, 4)
    found = tracker.follow(index * STEP, boxes, np.array([score for _, score in people], np.float64))
    return [(int(i), float(boxes[row, 0])) for i, row in zip(found.ids, found.rows, strict=True)]


def test_an_id_comes_with_the_second_sighting() -> None:
    tracker = Tracker(OPTIONS)
    assert frame(tracker, 0, [(0, 0.9)]) == []
    assert frame(tracker, 1, [(2, 0.9)]) == [(1, 2)]


def test_confirmed_at_once_where_the_options_say_so() -> None:
    assert frame(Tracker(replace(OPTIONS, confirm_frames=1)), 0, [(0, 0.9)]) == [(1, 0)]


def test_a_flash_uses_no_id() -> None:
    tracker = Tracker(OPTIONS)
    frame(tracker, 0, [(0, 0.9)])
    frame(tracker, 1, [])
    frame(tracker, 2, [(0, 0.9)])
    assert frame(tracker, 3, [(0, 0.9)]) == [(1, 0)]


def test_a_weak_score_goes_on_but_begins_nothing() -> None:
    tracker = Tracker(OPTIONS)
    for index in range(2):
        frame(tracker, index, [(0, 0.9), (300, 0.15)])
    assert frame(tracker, 2, [(0, 0.15), (300, 0.15)]) == [(1, 0)]
    assert frame(tracker, 3, [(0, 0.05)]) == []


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


@pytest.mark.parametrize("step_s", [0.5, 1.0, 5.0])
def test_of_a_slow_camera_one_missed_frame_forgets_nobody(step_s: float) -> None:
    tracker, box = Tracker(OPTIONS), np.array([[0.0, 0, 20, 60]])
    ids = []
    for index in range(24):
        seen = 0 if index % 3 == 2 or index > 18 else 1
        ids += tracker.follow(round(index * step_s * 1e9), box[:seen], np.full(seen, 0.9)).ids.tolist()
    assert set(ids) == {1}
    assert len(tracker._ids) == 0


def test_two_who_pass_each_other_keep_their_ids() -> None:
    tracker = Tracker(OPTIONS)
    for index in range(41):
        seen = frame(tracker, index, [(index * 5.0, 0.9), (200 - index * 5.0, 0.9)])
        if index == 1:
            assert seen == [(1, 5.0), (2, 195.0)]
    assert seen == [(1, 200.0), (2, 0.0)]


def test_a_track_keeps_its_class() -> None:
    tracker, box, score = Tracker(OPTIONS), np.array([[0.0, 0, 20, 60]]), np.array([0.9])
    for index, kind in enumerate([0, 0, 1, 1]):
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
        tracker, time, said, known = Tracker(OPTIONS, first_id), 0, [], first_id - 1
        for step, people in story:
            time += step
            seen = frame(tracker, time, people)
            ids = [i for i, _ in seen]
            assert len(set(ids)) == len(ids)
            fresh = sorted(i for i in ids if i > known)
            assert fresh == list(range(known + 1, known + 1 + len(fresh)))
            known += len(fresh)
            said.append(seen)
        assert tracker.next_id == known + 1
        runs.append(said)
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
