"""Formats of models that suppress overlaps themselves or speak in fractions, by arrays built to their contracts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.decoding.end2end import joined_rows, rows_by_image
from camgraph.stages.vision.decoding.formats import Asked, detections_of
from camgraph.stages.vision.decoding.movenet import HEAD_CHANNELS
from camgraph.stages.vision.decoding.promised import WrongShape

POINTS = [[10.0, 20.0, 0.9]] * 17
BOX = [8.0, 16.0, 48.0, 96.0]
OTHER = [200.0, 16.0, 248.0, 96.0]
FLAT = [value for point in POINTS for value in point]
F32 = np.float32

SAID: dict[str, list[Any]] = {
    "yolo_end2end": [[[*OTHER, 0.5, 0, *FLAT], [*BOX, 0.75, 0, *FLAT], [0.0] * 57]],
    "nas_pose_flat": [[[0, *OTHER, 0.5, *FLAT], [0, *BOX, 0.75, *FLAT]]],
    "nas_pose_batch": [[2], [OTHER, BOX, BOX], [0.5, 0.75, 0.9], [POINTS] * 3],
    "rtmo": [[[*OTHER, 0.5], [*BOX, 0.75], [0.0] * 5], [POINTS] * 3],
}


def outputs(name: str) -> list[np.ndarray]:
    return [
        np.array(value, np.int64 if name == "nas_pose_batch" and at == 0 else F32)
        for at, value in enumerate(SAID[name])
    ]


@pytest.mark.parametrize("name", SAID)
def test_poses_come_best_first_and_unused_rows_are_nobody(name: str) -> None:
    found = detections_of(name, outputs(name), (640, 640), Asked())
    assert found.boxes_xyxy.tolist() == [BOX, OTHER]
    assert found.scores.tolist() == [0.75, 0.5]
    assert found.classes.tolist() == [0, 0]
    np.testing.assert_array_equal(found.keypoints, np.array([POINTS, POINTS], F32))
    few = detections_of(name, outputs(name), (640, 640), Asked(min_score=0.6))
    assert few.scores.tolist() == [0.75]
    assert len(detections_of(name, outputs(name), (640, 640), Asked(most=1)).scores) == 1
    assert detections_of(name, outputs(name), (640, 640), Asked(min_score=0.99)).keypoints.shape == (0, 17, 3)


@pytest.mark.parametrize("name", SAID)
def test_end_to_end_models_are_not_suppressed_again(name: str) -> None:
    given = outputs(name)
    for array in given:
        array[array == 200.0] = 9.0
        array[array == 248.0] = 49.0
    assert len(detections_of(name, given, (640, 640), Asked(iou=0.1)).scores) == 2


def test_detectors_give_classes() -> None:
    v7 = np.array([[0, *OTHER, 2, 0.5], [0, *BOX, 0, 0.75]], F32)
    found = detections_of("yolo_v7_rows", [v7], (640, 640), Asked(classes=80, keypoints=0))
    assert (found.boxes_xyxy.tolist(), found.classes.tolist()) == ([BOX, OTHER], [0, 2])
    nas = np.array([[0, *OTHER, 0.5, 2], [0, *BOX, 0.75, 0], [0, *BOX, np.nan, 0]], F32)
    found = detections_of("nas_flat", [nas], (640, 640), Asked(classes=80, keypoints=0))
    assert (found.boxes_xyxy.tolist(), found.classes.tolist()) == ([BOX, OTHER], [0, 2])
    assert found.scores.tolist() == [0.75, 0.5]
    labelled = [np.array([3, 1]), np.array([OTHER, BOX], F32), np.array([0.5, 0.75], F32)]
    found = detections_of("torchvision", labelled, (640, 640), Asked(classes=91, keypoints=0))
    assert (found.boxes_xyxy.tolist(), found.classes.tolist()) == ([BOX, OTHER], [1, 3])
    paddle = np.array([[2, 0.5, *OTHER], [0, 0.75, *BOX], [0, 0.9, *BOX]], F32)
    found = detections_of("ppyoloe", [paddle, np.array([2])], (640, 640), Asked(classes=80, keypoints=0))
    assert (found.boxes_xyxy.tolist(), found.classes.tolist()) == ([BOX, OTHER], [0, 2])
    fractions = np.array(BOX, F32)[[1, 0, 3, 2]] / np.array([320, 640, 320, 640], F32)
    tf = [np.array(1.0, F32), np.stack([fractions, fractions]), np.array([0.75, 0.9], F32), np.array([1, 3], F32)]
    found = detections_of("tf_ssd", tf, (640, 320), Asked(classes=91, keypoints=0))
    np.testing.assert_allclose(found.boxes_xyxy, [BOX], rtol=1e-6)
    assert (found.classes.tolist(), found.scores.tolist()) == ([1], [0.75])
    counted = [np.array([1]), np.array([BOX, OTHER], F32), np.array([0.75, 0.9], F32), np.array([3, 0], np.int32)]
    found = detections_of("efficient_nms", counted, (640, 640), Asked(classes=80, keypoints=0))
    assert (found.boxes_xyxy.tolist(), found.classes.tolist()) == ([BOX], [3])


@pytest.mark.parametrize("name", ["nas_pose_batch", "efficient_nms", "tf_ssd"])
@pytest.mark.parametrize("count", [[-1], [4], [np.nan], [np.inf], [], [1, 1]])
def test_a_count_that_counts_no_rows_is_refused(name: str, count: list[float]) -> None:
    given = [np.array(count), *outputs("nas_pose_batch")[1:]]
    if name != "nas_pose_batch":
        given[3] = np.zeros(3, F32)
    with pytest.raises(WrongShape, match=r"expected (a|one) count") as caught:
        detections_of(name, given, (640, 640), Asked(keypoints=17 if name == "nas_pose_batch" else 0))
    assert caught.value.output == 0


@pytest.mark.parametrize("count", [0, 3])
def test_a_count_may_be_none_or_all(count: int) -> None:
    given = [np.array(count), *outputs("nas_pose_batch")[1:]]
    assert len(detections_of("nas_pose_batch", given, (640, 640), Asked()).scores) == count


def test_a_class_that_is_no_number_is_none_at_all() -> None:
    """What reads them leaves such rows out."""
    kinds = np.array([np.nan, np.inf, -np.inf, 1e30, -2, 1.2], F32)
    given = [np.array([6]), np.array([BOX] * 6, F32), np.full(6, 0.5, F32), kinds]
    found = detections_of("efficient_nms", given, (640, 640), Asked(keypoints=0))
    assert found.classes.tolist() == [-1, -1, -1, -1, -1, 1]


@pytest.mark.parametrize("count", [-1, 4, np.nan])
def test_paddle_counts_the_rows_there_are(count: float) -> None:
    with pytest.raises(WrongShape, match="expected a count from 0 to the 3 rows") as caught:
        detections_of("ppyoloe", [np.zeros((3, 6), F32), np.array([count])], (640, 640), Asked(keypoints=0))
    assert caught.value.output == 1


@given(st.integers(0, 30), st.integers(1, 4), st.integers(0, 50))
def test_scores_of_paddle_stand_the_other_way_round(anchors: int, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    boxes = rng.uniform(0, 99, (anchors, 4)).astype(F32)
    scores = rng.uniform(0, 1, (classes, anchors)).astype(F32)
    scores[:, rng.uniform(size=anchors) < 0.1] = np.nan
    found = detections_of("ppyoloe_raw", [boxes, scores], (640, 640), Asked(classes=classes, keypoints=0, iou=1.0))
    expected = []
    for anchor in range(anchors):
        each = scores[:, anchor].tolist()
        if max(each) >= 0.3:
            expected.append((max(each), boxes[anchor].tolist(), each.index(max(each))))
    expected.sort(key=lambda one: -one[0])
    assert found.boxes_xyxy.tolist() == [box for _, box, _ in expected]
    assert found.classes.tolist() == [kind for _, _, kind in expected]


def test_what_ppyoloe_leaves_is_suppressed() -> None:
    boxes = np.array([BOX, BOX, OTHER], F32)
    scores = np.array([[0.5, 0.75, 0], [0, 0, 0.5]], F32)
    found = detections_of("ppyoloe_raw", [boxes, scores], (640, 640), Asked(classes=2, keypoints=0))
    assert (found.scores.tolist(), found.classes.tolist()) == ([0.75, 0.5], [0, 1])


def test_movenet_speaks_of_fractions_and_y_first() -> None:
    row = np.zeros((6, 56), F32)
    row[2] = [*([0.25, 0.5, 0.9] * 17), 0.2, 0.1, 0.4, 0.3, 0.75]
    found = detections_of("movenet_people", [row], (320, 160), Asked())
    np.testing.assert_allclose(found.boxes_xyxy, [[32, 32, 96, 64]], rtol=1e-6)
    np.testing.assert_allclose(found.keypoints[0, 0], [160, 40, 0.9], rtol=1e-6)


def test_movenet_single_is_one_person_or_nobody() -> None:
    points = np.full((1, 17, 3), 0.5, F32)
    points[0, 0] = [0.25, 0.75, 0.5]
    found = detections_of("movenet_single", [points], (200, 100), Asked(min_score=0.5))
    assert found.boxes_xyxy.tolist() == [[100, 25, 150, 50]]
    assert found.scores.tolist() == [0.5]
    assert len(detections_of("movenet_single", [points], (200, 100), Asked(min_score=0.6)).scores) == 0


def test_rows_of_several_images_are_told_apart() -> None:
    rows = np.array([[1, 10], [0, 11], [1, 12], [3, 13]], F32)
    parts = rows_by_image(rows, 4)
    assert [part[0, :, 1].tolist() for part in parts] == [[11], [10, 12], [], [13]]
    assert joined_rows(parts)[:, :, 1].tolist() == [[11, -1], [10, 12], [-1, -1], [13, -1]]
    assert joined_rows([np.array([[0.5]], F32), np.empty((1, 0), F32)]).tolist() == [[0.5], [-1]]


def test_a_row_of_no_image_is_refused() -> None:
    for number in (np.nan, -1, 2, np.inf):
        with pytest.raises(ValueError, match="none of the 2 images"):
            rows_by_image(np.array([[0, 10], [number, 11]], F32), 2)


def test_what_is_not_wanted_takes_no_place() -> None:
    """Three chairs score higher than the one person, and must not take its place."""
    rows = np.array(
        [[0, 0, 9, 9, 0.9, 1], [50, 0, 59, 9, 0.8, 1], [90, 0, 99, 9, 0.7, 1], [200, 0, 209, 9, 0.4, 0]], F32
    )
    found = detections_of("yolo_end2end", [rows], (640, 640), Asked(classes=2, kept=(0,), keypoints=0, most=1))
    assert found.classes.tolist() == [0]
    heads = np.zeros((6, 4), F32)
    heads[:4] = [[5, 55, 95, 205], [5, 5, 5, 5], [9, 9, 9, 9], [9, 9, 9, 9]]
    heads[4:] = [[0, 0, 0, 0.4], [0.9, 0.8, 0.7, 0]]
    found = detections_of("yolo", [heads], (640, 640), Asked(classes=2, kept=(0,), keypoints=0, most=1))
    assert (found.classes.tolist(), found.boxes_xyxy[:, 0].tolist()) == ([0], [200.5])


def test_people_of_heads_are_the_best_of_their_kind() -> None:
    people = [(50, 0.625), (51, 0.875), (90, 0.75), (10, 0.25)]
    heads = np.array([[x, 50, 20, 40, score] + [x, 50, 0.9] * 17 for x, score in people], F32).T
    found = detections_of("yolo_pose", [heads], (640, 640), Asked(min_score=0.3, iou=0.5, most=10))
    assert found.scores.tolist() == [0.875, 0.75]
    assert found.boxes_xyxy.tolist() == [[41, 30, 61, 70], [80, 30, 100, 70]]
    assert detections_of("yolo_pose", [heads], (640, 640), Asked(iou=0.5, most=1)).scores.tolist() == [0.875]
    assert detections_of("yolo_pose", [heads], (640, 640), Asked(min_score=0.95)).keypoints.shape == (0, 17, 3)


@pytest.mark.parametrize("most", [1, 2, 100])
def test_peaks_that_are_nobody_take_no_place_of_people(most: int) -> None:
    """Of MoveNet MultiPose: the highest center has no joints, the next is of the same person as the third."""
    heads = {name: np.zeros((channels, 48, 48), F32) for name, channels in HEAD_CHANNELS.items()}
    for (row, column), center, confidence in (
        ((24, 24), 0.95, 0.0),
        ((27, 12), 0.9, 0.5),
        ((24, 12), 0.85, 0.9),
        ((24, 36), 0.8, 0.9),
    ):
        heads["center"][0, row, column] = center
        heads["box_scale"][:, row, column] = (20, 10)
        heads["kpt_heatmap"][:, row, column] = confidence
    found = detections_of("movenet_multipose", list(heads.values()), (192, 192), Asked(min_score=0.05, most=most))
    assert found.boxes_xyxy[:, 0].tolist() == [28, 124][:most]


WRONG = {
    "yolo_pose": [np.zeros((57, 8400), F32)],
    "yolox": [np.zeros((8400, 6), F32)],
    "yolo_end2end": [np.zeros((300, 6), F32)],
    "nas_pose_batch": [np.zeros(1), np.zeros((5, 4), F32), np.zeros(5, F32), np.zeros((5, 3, 3), F32)],
    "efficient_nms": [np.zeros(1), np.zeros((5, 4), F32), np.zeros(5, F32), np.zeros(4, F32)],
    "rtmo": [np.zeros((5, 4), F32), np.zeros((5, 17, 3), F32)],
    "movenet_single": [np.zeros((1, 16, 3), F32)],
}


@pytest.mark.parametrize("name", WRONG)
def test_outputs_of_other_shapes_are_refused(name: str) -> None:
    with pytest.raises(WrongShape, match=r"expected .* got"):
        detections_of(name, WRONG[name], (416, 416), Asked())
