"""The DETR family: each query by itself, compared with plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.decoding.detections import Detections
from camgraph.stages.vision.decoding.formats import Asked, detections_of
from camgraph.stages.vision.decoding.promised import WrongShape

SIZE = (640, 320)
F32 = np.float32
NAMES = ("rtdetr_rows", "rtdetr_end2end", "rtdetr", "detr", "detr_softmax")
Found = list[tuple[list[float], float, int]]


def said(name: str, queries: int, classes: int, seed: int) -> list[np.ndarray[Any, Any]]:
    """Outputs of so many queries."""
    rng = np.random.default_rng(seed)
    boxes = rng.uniform(0.1, 0.5, (queries, 4)).astype(F32)
    if name == "rtdetr_rows":
        return [np.concatenate([boxes, rng.uniform(0, 1, (queries, classes))], axis=1).astype(F32)]
    if name == "rtdetr_end2end":
        kinds = rng.integers(0, classes, (queries, 1))
        return [np.concatenate([boxes, rng.uniform(0, 1, (queries, 1)), kinds], axis=1).astype(F32)]
    if name == "rtdetr":
        return [rng.integers(0, classes, queries), boxes * 100, rng.uniform(0, 1, queries).astype(F32)]
    return [boxes, rng.normal(0, 3, (queries, classes + (name == "detr_softmax"))).astype(F32)]


def candidates(name: str, outputs: list[np.ndarray[Any, Any]]) -> Found:
    """Every detection that a query may be: box in pixels, score, class."""
    found: Found = []
    for query in range(len(outputs[0])):
        if name == "rtdetr":
            found.append((outputs[1][query].tolist(), float(outputs[2][query]), int(outputs[0][query])))
            continue
        x, y, w, h = (float(value) for value in outputs[0][query][:4])
        box = [(x - w / 2) * SIZE[0], (y - h / 2) * SIZE[1], (x + w / 2) * SIZE[0], (y + h / 2) * SIZE[1]]
        if name == "rtdetr_end2end":
            found.append((box, float(outputs[0][query][4]), int(outputs[0][query][5])))
            continue
        if name == "rtdetr_rows":
            scores = [float(score) for score in outputs[0][query][4:]]
        else:
            powers = [math.exp(logit) for logit in outputs[1][query]]
            total = sum(powers)
            scores = [power / (1 + power) if name == "detr" else power / total for power in powers]
        if name == "detr":
            found += [(box, score, kind) for kind, score in enumerate(scores)]
            continue
        scores = scores[:-1] if name == "detr_softmax" else scores
        found.append((box, max(scores), scores.index(max(scores))))
    return found


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(0, 12), st.integers(1, 5), st.sampled_from([0.0, 0.3, 0.7]), st.integers(0, 99))
def test_queries_are_what_plain_loops_find(name: str, queries: int, classes: int, min_score: float, seed: int) -> None:
    outputs = said(name, queries, classes, seed)
    found = detections_of(name, outputs, SIZE, Asked(classes=classes, keypoints=0, min_score=min_score))
    expected = sorted((one for one in candidates(name, outputs) if one[1] >= min_score), key=lambda one: -one[1])
    assert found.classes.tolist() == [kind for _, _, kind in expected]
    np.testing.assert_allclose(found.scores, [score for _, score, _ in expected], rtol=1e-4)
    boxes = np.array([box for box, _, _ in expected], F32).reshape(-1, 4)
    np.testing.assert_allclose(found.boxes_xyxy, boxes, rtol=1e-4, atol=1e-3)


def kept(name: str, outputs: list[np.ndarray[Any, Any]], classes: int = 2) -> Detections:
    return detections_of(name, outputs, SIZE, Asked(classes=classes, keypoints=0, min_score=0.3))


def test_a_query_of_detr_may_be_of_two_classes() -> None:
    """As its projects have it: a wanted class is not lost because another one scores more."""
    found = kept("detr", [np.full((1, 4), 0.5, F32), np.array([[1.0, 2.0]], F32)])
    assert found.classes.tolist() == [1, 0]
    assert len(np.unique(found.boxes_xyxy, axis=0)) == 1


def test_logits_of_rfdetr_may_have_one_of_no_object() -> None:
    found = kept("detr", [np.full((1, 4), 0.5, F32), np.array([[1.0, -9.0, 9.0]], F32)])
    assert found.classes.tolist() == [0]
    for classes in (1, 4):
        with pytest.raises(WrongShape, match=r"expected logits of . classes, and perhaps of no object, got"):
            kept("detr", [np.full((1, 4), 0.5, F32), np.zeros((1, 3), F32)], classes)


def test_no_object_is_nobody() -> None:
    found = kept("detr_softmax", [np.full((2, 4), 0.5, F32), np.array([[1, 2, 9], [5, 0, 0]], F32)])
    assert found.classes.tolist() == [0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", [np.nan, -np.inf])
def test_queries_whose_scores_are_no_numbers_are_nobody(name: str, wrong: float) -> None:
    outputs = [output.astype(F32) for output in said(name, 3, 2, 0)]
    scores = outputs[0][:, 4:] if name.startswith("rtdetr_") else outputs[-1]
    scores[:] = wrong
    assert len(kept(name, outputs).scores) == 0


@pytest.mark.parametrize("name", ["detr", "detr_softmax"])
def test_logits_beyond_all_bounds_are_certain(name: str) -> None:
    logits = np.array([[-1e30, 1e30, -1e30]], F32)[:, : 2 + (name == "detr_softmax")]
    found = kept(name, [np.full((1, 4), 0.5, F32), logits])
    assert (found.scores.tolist(), found.classes.tolist()) == ([1], [1])
