"""YOLO-pose heads into people, against a slow reading of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.vision.decoding.yolo_pose import NotPose, decode_yolo_pose, people_of, upright


def heads(anchors: int, keypoints: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0, 100, (5 + 3 * keypoints, anchors)).astype(np.float32)
    rows[4] = rng.uniform(0, 1, anchors)
    return rows


@given(st.integers(0, 40), st.integers(1, 20), st.floats(0, 1, width=32), st.integers(0, 9))
def test_every_candidate_above_the_score(anchors: int, keypoints: int, min_score: float, seed: int) -> None:
    rows = heads(anchors, keypoints, seed)
    found = decode_yolo_pose(rows, min_score=min_score)
    expected = [a for a in range(anchors) if rows[4, a] >= np.float32(min_score)]
    assert found.keypoints.shape == (len(expected), keypoints, 3)
    assert found.scores.tolist() == [rows[4, a] for a in expected]
    for box, points, a in zip(found.boxes_xyxy, found.keypoints, expected, strict=True):
        cx, cy, w, h = rows[:4, a]
        np.testing.assert_allclose(box, [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], rtol=1e-6, atol=1e-5)
        for k in range(keypoints):
            assert points[k].tolist() == rows[5 + 3 * k : 8 + 3 * k, a].tolist()


def test_the_memory_of_the_heads_is_not_kept() -> None:
    rows = heads(10, 17)
    found = decode_yolo_pose(rows, min_score=0)
    assert not any(np.shares_memory(rows, array) for array in found)


def one_person(x: float, score: float) -> list[float]:
    return [x, 50, 20, 40, score] + [x, 50, 0.9] * 17


def test_people_are_the_best_of_their_kind() -> None:
    rows = np.array(
        [one_person(50, 0.625), one_person(51, 0.875), one_person(90, 0.75), one_person(10, 0.25)], np.float32
    ).T
    found = people_of(rows, min_score=0.3, iou=0.5, most=10)
    assert found.scores.tolist() == [0.875, 0.75]
    assert found.boxes_xyxy.tolist() == [[41, 30, 61, 70], [80, 30, 100, 70]]
    assert people_of(rows, min_score=0.3, iou=0.5, most=1).scores.tolist() == [0.875]
    assert people_of(rows, min_score=0.95, iou=0.5, most=1).keypoints.shape == (0, 17, 3)


@pytest.mark.parametrize(("shape", "turned"), [((56, 8400), False), ((8400, 56), True), ((8, 8400), False)])
def test_which_way_round(shape: tuple[int, int], turned: bool) -> None:
    array = np.zeros(shape, np.float32)
    assert upright(array).shape == (shape[::-1] if turned else shape)
    assert np.shares_memory(upright(array), array)


@pytest.mark.parametrize("shape", [(3549, 85), (84, 8400), (5, 8400), (56,), (1, 56, 8400)])
def test_what_is_no_pose_model(shape: tuple[int, ...]) -> None:
    with pytest.raises(NotPose):
        upright(np.zeros(shape, np.float32))


def test_both_ways_round_need_a_word() -> None:
    array = np.zeros((56, 11), np.float32)
    with pytest.raises(NotPose, match="may be read both ways"):
        upright(array)
    assert upright(array, 17).shape == (56, 11)
    assert upright(array, 2).shape == (11, 56)
    with pytest.raises(NotPose, match="44 \\(5 \\+ 3 x 13 keypoints\\)"):
        upright(array, 13)
