"""Rows with an objectness: what is dropped, and where YOLOX's cells lie."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.decoding.yolo_heads import cells_of, decode_yolo_objectness, decode_yolox


@given(st.integers(0, 40), st.integers(1, 6), st.floats(0, 1, width=32), st.integers(0, 9))
def test_a_score_is_objectness_times_the_best_class(anchors: int, classes: int, min_score: float, seed: int) -> None:
    rows = np.random.default_rng(seed).uniform(0, 1, (anchors, 5 + classes)).astype(np.float32)
    found = decode_yolo_objectness(rows, classes=classes, min_score=min_score)
    products = rows[:, 5:] * rows[:, 4:5]
    expected = [a for a in range(anchors) if products[a].max() >= np.float32(min_score)]
    assert found.scores.tolist() == [products[a].max() for a in expected]
    assert found.classes.tolist() == [int(products[a].argmax()) for a in expected]
    assert found.keypoints.shape == (len(expected), 0, 3)


@given(st.integers(0, 20), st.integers(1, 3), st.integers(1, 4), st.sampled_from([2, 3]), st.integers(0, 9))
def test_points_stand_behind_the_scores(anchors: int, classes: int, points: int, values: int, seed: int) -> None:
    """Points above 1 are no scores of classes."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate(
        [rng.uniform(0, 1, (anchors, 5 + classes)), rng.uniform(1, 99, (anchors, points * values))], axis=1
    ).astype(np.float32)
    found = decode_yolo_objectness(rows, classes=classes, point_values=values, min_score=0.3)
    expected = []
    for row in rows:
        score = max(row[4] * row[5 + kind] for kind in range(classes))
        if score >= np.float32(0.3):
            each = [row[5 + classes + values * point :][:values].tolist() for point in range(points)]
            expected.append([[*point, 1.0][:3] for point in each])
    assert found.keypoints.tolist() == expected


def test_cells_are_counted_over_all_strides() -> None:
    assert cells_of(416, 416) == 52 * 52 + 26 * 26 + 13 * 13 == 3549
    assert cells_of(640, 640) == 8400
    assert cells_of(1280, 1280, strides=(8, 16, 32, 64)) == 34000


def test_yolox_boxes_are_measured_from_their_cells() -> None:
    """A picture of 64 x 32: 8 x 4 cells of 8 pixels, then 4 x 2 of 16, then 2 x 1 of 32."""
    rows = np.zeros((cells_of(64, 32), 6), np.float32)
    for cell in (0, 8 * 1 + 3, 32 + 4 * 1 + 2, 40 + 1):
        rows[cell] = [0.5, 0.25, np.log(2), np.log(3), 1, 0.75]
    found = decode_yolox(rows, size=(64, 32), min_score=0.5)
    centres_and_sizes = [
        ((x + 0.5) * stride, (y + 0.25) * stride, 2 * stride, 3 * stride)
        for x, y, stride in [(0, 0, 8), (3, 1, 8), (2, 1, 16), (1, 0, 32)]
    ]
    expected = [[cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2] for cx, cy, w, h in centres_and_sizes]
    np.testing.assert_allclose(found.boxes_xyxy, expected, rtol=1e-6)
    assert found.scores.tolist() == [0.75] * 4


def test_a_logarithm_that_is_none_makes_no_infinity() -> None:
    rows = np.zeros((cells_of(32, 32), 6), np.float32)
    rows[0] = [0, 0, 1e30, 1e30, 1, 1]
    assert np.isfinite(decode_yolox(rows, size=(32, 32), min_score=0.5).boxes_xyxy).all()
