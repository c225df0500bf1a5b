"""Assignment against trying everything."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment

from camgraph.stages.vision.tracking.matching import match, similarity

shapes = st.tuples(st.integers(1, 4), st.integers(1, 4))
score_tables = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=st.floats(0, 1)))


@settings(max_examples=100)
@given(score_tables, st.floats(0.05, 0.9))
def test_best_sum_of_allowed_pairs(scores: np.ndarray, least: float) -> None:
    pairs = match(scores, least=least)
    values = scores[pairs.tracks, pairs.boxes]
    assert (values >= least).all()
    allowed = np.where(scores >= least, scores, 0.0)
    wide = allowed if allowed.shape[0] <= allowed.shape[1] else allowed.T
    rows = range(wide.shape[0])
    best = max(
        sum(wide[r, c] for r, c in zip(rows, order, strict=False)) for order in permutations(range(wide.shape[1]))
    )
    assert abs(values.sum() - best) < 1e-9
    assert sorted([*pairs.tracks, *pairs.tracks_left]) == list(range(scores.shape[0]))
    assert sorted([*pairs.boxes, *pairs.boxes_left]) == list(range(scores.shape[1]))


def test_a_pair_that_is_not_allowed_costs_no_other_its_partner() -> None:
    """With it, the crosswise sum would be the largest."""
    pairs = match(np.array([[0.5, 0.19], [0.35, 0.0]]), least=0.2)
    assert (pairs.tracks.tolist(), pairs.boxes.tolist()) == ([0], [0])


def test_similarity_is_iou() -> None:
    boxes = np.array([[0.0, 0, 10, 10], [20.0, 0, 30, 10]])
    np.testing.assert_allclose(similarity(boxes, boxes), np.eye(2))
    np.testing.assert_allclose(similarity(boxes[:1], np.array([[0.0, 0, 10, 5]])), [[0.5]])


def test_margins_widen_both_boxes() -> None:
    boxes, beside = np.array([[0.0, 0, 10, 10], [0.0, 0, 10, 10]]), np.array([[12.0, 0.0, 22.0, 10.0]])
    plain, wide = similarity(boxes, beside, np.array([[0.0, 0.0], [4.0, 0.0]]))[:, 0]
    assert plain == 0
    widened = similarity(np.array([[-4.0, 0, 14, 10]]), np.array([[8.0, 0, 26, 10]]))[0, 0]
    assert wide == widened > 0.1


def test_boxes_without_area_are_like_nothing() -> None:
    flat = np.array([[5.0, 5, 5, 5]])
    assert similarity(flat, flat)[0, 0] == 0


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.integers(0, 60), st.floats(0, 1))
def test_crowds_are_paired_as_scipy_pairs_them(seed: int, tracks: int, boxes: int, empty: float) -> None:
    chance = np.random.default_rng(seed)
    scores = chance.random((tracks, boxes)) * (chance.random((tracks, boxes)) >= empty)
    pairs = match(scores, least=0.1)
    rows, columns = linear_sum_assignment(np.where(scores >= 0.1, scores, 0.0), maximize=True)
    expected = {(row, column) for row, column in zip(rows, columns, strict=True) if scores[row, column] >= 0.1}
    assert set(zip(pairs.tracks.tolist(), pairs.boxes.tolist(), strict=True)) == expected
