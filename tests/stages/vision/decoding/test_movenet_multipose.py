from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.decoding.movenet import HEAD_CHANNELS, KEYPOINTS, SPREAD, NotFinite, decode_multipose

SHAPE = (24, 32)
PARTS = range(KEYPOINTS)


def empty_heads(shape=SHAPE):
    return {name: np.zeros((channels, *shape), np.float32) for name, channels in HEAD_CHANNELS.items()}


def put_person(heads, y, x, *, center=0.9, size=(8, 6), confidence=0.8):
    """A person whose box has its middle at cell (y, x), all keypoints there."""
    heads["center"][0, y, x] = center
    heads["box_scale"][:, y, x] = size
    heads["kpt_heatmap"][:, y, x] = confidence


def random_heads(seed, shape=SHAPE):
    rng = np.random.default_rng(seed)
    heads = {name: rng.random((channels, *shape), np.float32) for name, channels in HEAD_CHANNELS.items()}
    heads["center"] **= 8
    heads["box_scale"] = 2 + 18 * heads["box_scale"]
    heads["kpt_regress"] = (heads["kpt_regress"] - 0.5) * 16
    return heads


def slow_candidates(heads, min_score, min_keypoint):
    """The same by the book, cell by cell: [(score, box, keypoints)], without suppression."""
    rows, columns = heads["center"].shape[1:]
    spread = float(SPREAD) * min(rows, columns)
    for y in range(rows):
        for x in range(columns):
            value = heads["center"][0, y, x]
            around = heads["center"][0, max(0, y - 2) : y + 3, max(0, x - 2) : x + 3]
            if value < min_score or around.max() - value >= 1e-6:
                continue
            middle = y + heads["box_offset"][0, y, x], x + heads["box_offset"][1, y, x]
            half = heads["box_scale"][:, y, x] / 2
            top, bottom = (np.clip(middle[0] + side * half[0], 0, rows) for side in (-1, 1))
            left, right = (np.clip(middle[1] + side * half[1], 0, columns) for side in (-1, 1))
            keypoints = []
            for part in PARTS:
                place = y + heads["kpt_regress"][2 * part, y, x], x + heads["kpt_regress"][2 * part + 1, y, x]
                best = max(
                    (
                        heads["kpt_heatmap"][part, i, j]
                        * math.exp(-((i - place[0]) ** 2 + (j - place[1]) ** 2) / spread),
                        i,
                        j,
                    )
                    for i in range(math.ceil(top), math.ceil(bottom))
                    for j in range(math.ceil(left), math.ceil(right))
                )
                offset = heads["kpt_offset"][2 * part : 2 * part + 2, best[1], best[2]]
                keypoints.append((4 * (best[2] + offset[1]), 4 * (best[1] + offset[0]), best[0]))
            counted = [c for _, _, c in keypoints if c > min_keypoint]
            score = value * sum(counted) / max(1, len(counted))
            yield score, (4 * left, 4 * top, 4 * right, 4 * bottom), keypoints


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_a_slow_reference(seed):
    heads = random_heads(seed)
    expected = sorted((c for c in slow_candidates(heads, 0.25, 0.127) if c[0] >= 0.25), key=lambda c: -c[0])
    poses = decode_multipose(heads, min_score=0.25, iou=1.0, min_keypoint=0.127)
    assert len(expected) > 6
    np.testing.assert_allclose(poses.scores, [score for score, _, _ in expected], rtol=1e-4)
    np.testing.assert_allclose(poses.boxes_xyxy, [box for _, box, _ in expected], rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(poses.keypoints, [keypoints for _, _, keypoints in expected], rtol=1e-4, atol=1e-3)


@given(places=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 7)), max_size=12))
def test_finds_as_many_as_there_are_each_at_its_place(places):
    heads = empty_heads((36, 48))
    for row, column in places:
        put_person(heads, 6 * row + 3, 6 * column + 3, size=(4, 4))
    poses = decode_multipose(heads, min_score=0.3, iou=0.5)
    middles = (poses.boxes_xyxy[:, :2] + poses.boxes_xyxy[:, 2:]) / 2
    expected = sorted((24 * column + 12, 24 * row + 12) for row, column in places)
    assert sorted(map(tuple, middles.tolist())) == expected
    np.testing.assert_allclose(poses.keypoints[..., :2], np.repeat(middles[:, None], KEYPOINTS, axis=1))
    np.testing.assert_allclose(poses.scores, 0.9 * 0.8, rtol=1e-6)


@given(seed=st.integers(0, 2**32 - 1), min_score=st.floats(0.01, 0.9), iou=st.floats(0, 1))
def test_what_comes_out_is_in_bounds(seed, min_score, iou):
    heads = random_heads(seed, (12, 16))
    poses = decode_multipose(heads, min_score=min_score, iou=iou, max_candidates=20)
    assert len(poses.scores) <= 20
    assert (np.diff(poses.scores) <= 0).all()
    assert (poses.scores >= np.float32(min_score)).all()
    assert (poses.scores <= 1).all()
    assert (poses.boxes_xyxy >= 0).all()
    assert (poses.boxes_xyxy <= (64, 48, 64, 48)).all()
    assert ((poses.keypoints[..., 2] >= 0) & (poses.keypoints[..., 2] <= 1)).all()
    assert all(array.dtype == np.float32 for array in poses)


def test_keypoints_do_not_depend_on_who_else_is_there():
    alone = empty_heads()
    put_person(alone, 10, 10, size=(20, 20))
    alone["kpt_heatmap"][:] = 0
    alone["kpt_heatmap"][3, 12, 14] = 0.9
    alone["kpt_regress"][6:8, 10, 10] = (2, 3)
    both = {name: head.copy() for name, head in alone.items()}
    both["center"][0, 12, 16] = 0.8
    both["box_scale"][:, 12, 16] = (20, 20)
    both["kpt_regress"][6:8, 12, 16] = (0, -2)
    one = decode_multipose(alone, min_score=0.1, iou=1.0)
    two = decode_multipose(both, min_score=0.1, iou=1.0)
    assert (len(one.scores), len(two.scores)) == (1, 2)
    first = int(np.argmin(two.boxes_xyxy[:, 0]))
    np.testing.assert_array_equal(two.keypoints[first], one.keypoints[0])


def test_a_keypoint_is_looked_for_near_its_place():
    heads = empty_heads()
    put_person(heads, 12, 12, size=(20, 20))
    heads["kpt_regress"][0:2, 12, 12] = (-4, 5)
    heads["kpt_heatmap"][0] = 0
    heads["kpt_heatmap"][0, 8, 17] = 0.7
    heads["kpt_heatmap"][0, 20, 4] = 0.8
    heads["kpt_offset"][0:2, 8, 17] = (0.25, 0.5)
    poses = decode_multipose(heads, min_score=0.1, iou=0.5)
    np.testing.assert_allclose(poses.keypoints[0, 0], (4 * 17.5, 4 * 8.25, 0.7))


def test_the_better_of_two_overlapping_people_stays():
    heads = empty_heads()
    put_person(heads, 12, 12, center=0.6, size=(10, 10))
    put_person(heads, 12, 15, center=0.9, size=(10, 10))
    both = decode_multipose(heads, min_score=0.1, iou=0.6)
    better = decode_multipose(heads, min_score=0.1, iou=0.5)
    assert len(both.scores) == 2
    np.testing.assert_allclose(better.boxes_xyxy, [(40, 28, 80, 68)])


def test_equal_people_come_in_order_of_row_then_column():
    heads = empty_heads()
    for y, x in ((16, 4), (4, 20), (4, 4)):
        put_person(heads, y, x)
    poses = decode_multipose(heads, min_score=0.1, iou=0.5)
    assert poses.boxes_xyxy[:, :2].tolist() == [[4, 0], [68, 0], [4, 48]]


def test_the_candidates_are_those_with_the_highest_centers():
    heads = empty_heads()
    for i, x in enumerate((4, 12, 20, 28)):
        put_person(heads, 12, x, center=0.5 + 0.1 * i, size=(4, 4))
    poses = decode_multipose(heads, min_score=0.1, iou=0.5, max_candidates=2)
    assert poses.boxes_xyxy[:, 0].tolist() == [104, 72]


def test_a_box_outside_of_the_picture_is_nobody():
    heads = empty_heads()
    put_person(heads, 12, 12)
    heads["box_offset"][:, 12, 12] = 500
    assert len(decode_multipose(heads, min_score=0.01, iou=0.5).scores) == 0


@pytest.mark.parametrize("head", HEAD_CHANNELS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_refused(head, value):
    heads = empty_heads()
    put_person(heads, 12, 12)
    heads[head][:, 12, 12] = value
    if head == "kpt_heatmap" and value == -np.inf:
        # The maximum lies elsewhere: nothing that is not finite is read.
        assert np.isfinite(decode_multipose(heads, min_score=0.1, iou=0.5).keypoints).all()
        return
    with pytest.raises(NotFinite, match=r"expected finite numbers, got others in .*(center|box|kpt)"):
        decode_multipose(heads, min_score=0.1, iou=0.5)


def test_other_models_are_refused_with_what_was_expected():
    with pytest.raises(ValueError, match=r"expected the outputs center, kpt_heatmap, .* got output0"):
        decode_multipose({"output0": np.zeros((56, 8400), np.float32)}, min_score=0.1, iou=0.5)
    heads = empty_heads()
    heads["kpt_offset"] = heads["kpt_offset"][:, :-1]
    with pytest.raises(ValueError, match=r"kpt_offset must be \(34, rows, columns\) of floats.*got \(34, 23, 32\)"):
        decode_multipose(heads, min_score=0.1, iou=0.5)
    with pytest.raises(ValueError, match=r"got .* uint8"):
        decode_multipose({**empty_heads(), "center": np.zeros((1, *SHAPE), np.uint8)}, min_score=0.1, iou=0.5)
    with pytest.raises(ValueError, match="center must be"):
        decode_multipose(empty_heads((0, 4)), min_score=0.1, iou=0.5)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_heads_may_be_floats_of_any_precision(dtype):
    heads = empty_heads()
    put_person(heads, 12, 16)
    expected = decode_multipose(heads, min_score=0.1, iou=0.5)
    found = decode_multipose({name: head.astype(dtype) for name, head in heads.items()}, min_score=0.1, iou=0.5)
    for array, wanted in zip(found, expected, strict=True):
        assert array.dtype == np.float32
        np.testing.assert_allclose(array, wanted, rtol=1e-3)
