"""Trails: what is remembered of the ways of people."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from camgraph.pipeline.testing import stamp
from camgraph.stages.messages import Tracks
from camgraph.stages.sinks.writing.trails import STEP_NS, Trails


def seen(seq: int, people: dict[int, tuple[float, float]], *, fps: float = 10, epoch: int = 0) -> Tracks:
    """People by id, with the place of their feet."""
    boxes = np.array([[x - 5, y - 40, x + 5, y] for x, y in people.values()], np.float32).reshape(-1, 4)
    count = len(people)
    return Tracks(
        stamp(seq, fps=fps, epoch=epoch),
        boxes,
        np.full(count, 0.9, np.float32),
        np.zeros((count, 17, 3), np.float32),
        (640, 480),
        np.zeros(count, np.int64),
        "coco-17",
        np.array(list(people), np.int64),
    )


def test_a_trail_leads_along_the_feet_of_the_last_seconds() -> None:
    trails = Trails(1.0)
    for seq in range(30):
        (trail,) = trails.follow(seen(seq, {3: (10.0 * seq, 100)}))
    assert trail.track_id == 3
    assert trail.points.tolist() == [[10.0 * seq, 100] for seq in range(20, 30)]
    assert trail.ages == pytest.approx(np.arange(0.9, -0.05, -0.1), abs=1e-5)
    assert not trail.begins.any()


@pytest.mark.parametrize("fps", [100, 25, 5])
def test_points_are_few_at_any_rate(fps: float) -> None:
    trails = Trails(2.0)
    for seq in range(int(4 * fps)):
        (trail,) = trails.follow(seen(seq, {3: (seq, 100)}, fps=fps))
    assert len(trail.points) <= 2e9 / STEP_NS + 2
    assert trail.points[-1].tolist() == [seq, 100]
    widest = max(after[0] - before[0] for before, after in pairwise(trail.points.tolist()))
    assert widest <= max(1, 2 * STEP_NS / 1e9 * fps)


@pytest.mark.parametrize(("away", "broken"), [(3, False), (9, True)])
def test_no_line_crosses_a_gap(away: int, broken: bool) -> None:
    trails = Trails(5.0)
    trails.follow(seen(0, {3: (10, 100)}))
    trails.follow(seen(1, {3: (20, 100)}))
    for seq in range(2, 2 + away):
        trails.follow(seen(seq, {}))
    (trail,) = trails.follow(seen(2 + away, {3: (90, 100)}))
    assert trail.begins.tolist() == [True, False, broken]


def test_few_frames_a_second_are_no_gaps() -> None:
    trails = Trails(5.0)
    for seq in range(4):
        (trail,) = trails.follow(seen(seq, {3: (10 * seq, 100)}, fps=1))
    assert trail.begins.tolist() == [True, False, False, False]


def test_ids_that_continue_each_other_have_ways_of_their_own() -> None:
    trails = Trails(5.0)
    trails.follow(seen(0, {3: (10, 100)}))
    both = trails.follow(seen(1, {4: (20, 100)}))
    assert [(trail.track_id, len(trail.points)) for trail in both] == [(3, 1), (4, 1)]


def test_people_who_left_are_forgotten() -> None:
    trails = Trails(1.0)
    for seq in range(200):
        shown = trails.follow(seen(seq, {seq: (10, 100)}))
    assert len(shown) == 10
    assert len(trails._cameras["cam"].ways) == 10


def test_nothing_is_drawn_across_epochs_nor_without_a_length() -> None:
    trails = Trails(5.0)
    trails.follow(seen(5, {3: (10, 100)}))
    (trail,) = trails.follow(seen(0, {3: (20, 100)}, epoch=1))
    assert len(trail.points) == 1
    assert Trails(0).follow(seen(0, {3: (10, 100)})) == []
