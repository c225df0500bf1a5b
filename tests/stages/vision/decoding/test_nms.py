"""Non-maximum suppression against a slow reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from camgraph.stages.vision.decoding.nms import BLOCK, nms


def iou_of(a: Any, b: Any) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return shared / union if union > 0 else 0.0


def slow_nms(boxes: Any, scores: Any, iou: float) -> list[int]:
    kept: list[int] = []
    for index in sorted(range(len(boxes)), key=lambda i: (-scores[i], i)):
        if all(iou_of(boxes[index].tolist(), boxes[other].tolist()) <= iou for other in kept):
            kept.append(index)
    return kept


def some_boxes(n: int, span: int) -> st.SearchStrategy[Any]:
    """Boxes of whole pixels, so that the reference in double precision and float32 agree exactly."""
    corners = arrays.arrays(np.int64, (n, 4), elements=st.integers(0, span))
    return corners.map(lambda c: np.concatenate([c[:, :2], c[:, :2] + c[:, 2:]], 1).astype(np.float32))


@given(st.integers(0, 30).flatmap(lambda n: st.tuples(some_boxes(n, 12), st.just(n))), st.data())
def test_agrees_with_the_slow_reference(boxes_and_n: tuple[Any, int], data: st.DataObject) -> None:
    boxes, n = boxes_and_n
    scores = data.draw(arrays.arrays(np.float32, n, elements=st.sampled_from([0.25, 0.5, 0.75, 1.0])))
    iou = data.draw(st.sampled_from([0.0, 0.25, 0.5, 0.75]))
    assert nms(boxes, scores, iou=iou).tolist() == slow_nms(boxes, scores, iou)


def test_more_boxes_than_one_block() -> None:
    rng = np.random.default_rng(7)
    corner = rng.integers(0, 90, (3 * BLOCK + 5, 2))
    boxes = np.concatenate([corner, corner + rng.integers(1, 40, corner.shape)], 1).astype(np.float32)
    scores = rng.choice(np.linspace(0, 1, 40, dtype=np.float32), len(boxes))
    assert nms(boxes, scores, iou=0.5).tolist() == slow_nms(boxes, scores, 0.5)


def test_equal_boxes_with_equal_scores_keep_the_first() -> None:
    boxes = np.tile(np.array([[0, 0, 10, 10]], np.float32), (4, 1))
    assert nms(boxes, np.full(4, 0.5, np.float32), iou=0.5).tolist() == [0]


def test_boxes_without_area_overlap_nothing() -> None:
    boxes = np.zeros((3, 4), np.float32)
    assert nms(boxes, np.array([0.1, 0.3, 0.2], np.float32), iou=0.0).tolist() == [1, 2, 0]


def test_nothing_gives_nothing() -> None:
    kept = nms(np.empty((0, 4), np.float32), np.empty(0, np.float32), iou=0.5)
    assert kept.shape == (0,)
    assert kept.dtype == np.int64
