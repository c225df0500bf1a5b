"""Heads with several classes and any points, against a slow reading of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.decoding.promised import WrongShape
from camgraph.stages.vision.decoding.yolo_heads import decode_yolo_heads, upright


def heads(anchors: int, classes: int, points: int, values: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0, 100, (4 + classes + points * values, anchors)).astype(np.float32)
    rows[4 : 4 + classes] = rng.uniform(0, 1, (classes, anchors))
    return rows


@given(
    st.integers(0, 40), st.integers(1, 5), st.integers(0, 6), st.sampled_from([2, 3]), st.floats(0, 1, width=32),
    st.integers(0, 9),
)  # fmt: skip
def test_every_candidate_above_the_score(
    anchors: int, classes: int, points: int, values: int, min_score: float, seed: int
) -> None:
    rows = heads(anchors, classes, points, values, seed)
    found = decode_yolo_heads(rows, classes=classes, point_values=values, min_score=min_score)
    scores = rows[4 : 4 + classes]
    expected = [a for a in range(anchors) if scores[:, a].max() >= np.float32(min_score)]
    assert found.scores.tolist() == [scores[:, a].max() for a in expected]
    assert found.classes.tolist() == [int(scores[:, a].argmax()) for a in expected]
    assert found.keypoints.shape == (len(expected), points, 3)
    for box, shown, a in zip(found.boxes_xyxy, found.keypoints, expected, strict=True):
        cx, cy, w, h = rows[:4, a]
        np.testing.assert_allclose(box, [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], rtol=1e-6, atol=1e-5)
        for k in range(points):
            at = 4 + classes + values * k
            assert shown[k].tolist() == [*rows[at : at + values, a].tolist(), 1.0][:3]


def test_the_memory_of_the_heads_is_not_kept() -> None:
    rows = heads(10, 1, 17, 3, 0)
    found = decode_yolo_heads(rows, classes=1, min_score=0)
    assert not any(np.shares_memory(rows, array) for array in found)


@pytest.mark.parametrize(("shape", "turned"), [((84, 8400), False), ((8400, 84), True)])
def test_which_way_round(shape: tuple[int, int], turned: bool) -> None:
    array = np.zeros(shape, np.float32)
    assert upright(array, 84).shape == (shape[::-1] if turned else shape)
    with pytest.raises(WrongShape, match=r"expected \(56, anchors\)"):
        upright(array, 56)
