"""Assignment against trying everything."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from camgraph.stages.vision.tracking.matching import assignment, match, similarity

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


def test_the_solver_comes_without_the_rest_of_scipy() -> None:
    asked = "from camgraph.stages.vision.tracking import matching; matching.assignment()"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {asked}; print('scipy' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


def test_a_scipy_that_is_laid_out_otherwise_has_the_solver_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.optimize import linear_sum_assignment

    alone = assignment()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert assignment.__wrapped__() is linear_sum_assignment
    scores = np.random.default_rng(1).random((6, 9))
    assert np.array_equal(alone(scores, maximize=True), linear_sum_assignment(scores, maximize=True))
