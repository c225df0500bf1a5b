"""Which detections stay."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.decoding.detections import Detections, best, highest, points_of
from camgraph.stages.vision.decoding.nms import nms


def made(count: int, classes: int, seed: int) -> Detections:
    rng = np.random.default_rng(seed)
    corners = rng.uniform(0, 60, (count, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(5, 40, (count, 2))], axis=1).astype(np.float32)
    scores = rng.choice(np.linspace(0, 1, 50, dtype=np.float32), count)
    return Detections(boxes, scores, rng.integers(0, classes, count), np.zeros((count, 0, 3), np.float32))


@given(st.integers(0, 60), st.integers(1, 80), st.floats(0.1, 0.9), st.integers(1, 60), st.integers(0, 9))
def test_overlaps_are_suppressed_within_a_class_alone(
    count: int, classes: int, iou: float, most: int, seed: int
) -> None:
    given_ = made(count, classes, seed)
    kept = best(given_, iou=iou, most=10_000)
    for kind in range(classes):
        mine = np.flatnonzero(given_.classes == kind)
        expected = mine[nms(given_.boxes_xyxy[mine], given_.scores[mine], iou=iou)]
        assert kept.take(kept.classes == kind).boxes_xyxy.tolist() == given_.boxes_xyxy[expected].tolist()
    assert (np.diff(kept.scores) <= 0).all()
    assert best(given_, iou=iou, most=most).scores.tolist() == kept.scores[:most].tolist()


@given(st.integers(0, 30), st.integers(1, 40), st.integers(0, 9))
def test_the_highest_come_first_and_equal_ones_in_their_order(count: int, most: int, seed: int) -> None:
    given_ = made(count, 3, seed)
    order = sorted(range(count), key=lambda at: -given_.scores[at])[:most]
    assert highest(given_, most=most).boxes_xyxy.tolist() == given_.boxes_xyxy[order].tolist()


def test_points_without_confidence_are_sure() -> None:
    values = np.arange(8, dtype=np.float32).reshape(1, 8)
    assert points_of(values, 2).tolist() == [[[0, 1, 1], [2, 3, 1], [4, 5, 1], [6, 7, 1]]]
    assert points_of(np.empty((0, 51), np.float32), 3).shape == (0, 17, 3)
    assert points_of(np.empty((4, 0), np.float32), 3).shape == (4, 0, 3)
