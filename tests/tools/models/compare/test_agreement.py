"""How far two models agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from camgraph.pipeline.testing import stamp
from camgraph.stages.messages import People
from camgraph.tools.models.compare.agreement import COCO_SPREADS, Agreement, counterparts, oks_of, pairs, spread


def people(*boxes: tuple[float, ...], shift: float = 0.0, sure: float = 0.9) -> People:
    box = np.array(boxes, np.float32).reshape(-1, 4)
    keypoints = np.zeros((len(box), 17, 3), np.float32)
    keypoints[..., :2] = (box[:, None, :2] + box[:, None, 2:]) / 2 + shift
    keypoints[..., 2] = sure
    return People(stamp(), box, np.ones(len(box), np.float32), keypoints, (640, 480), np.zeros(len(box), np.int64))


def things(classes: dict[tuple[float, ...], int]) -> People:
    found = people(*classes)
    return replace(found, classes=np.array(list(classes.values()), np.int64))


LEFT, RIGHT, OFF = (0, 0, 100, 200), (300, 0, 400, 200), (500, 100, 600, 300)


def test_the_same_is_the_same() -> None:
    found = Agreement()
    found.add(people(LEFT, RIGHT), people(RIGHT, LEFT))
    found.add(people(), people())
    assert (found.recall, found.precision, found.f1, found.mean_oks, found.confidences) == (1, 1, 1, 1, 1)
    assert (found.frames, found.both, max(found.apart_px)) == (2, 2, 0)


def test_who_is_missing_and_who_is_too_many() -> None:
    found = Agreement()
    found.add(people(LEFT, RIGHT), people(RIGHT, OFF, (0, 0, 20, 20)))
    assert (found.first, found.other, found.both) == (2, 3, 1)
    assert (found.recall, found.precision, found.f1) == (0.5, pytest.approx(1 / 3), 0.4)


def test_where_nobody_is_nothing_agrees() -> None:
    found = Agreement()
    found.add(people(), people())
    assert (found.recall, found.precision, found.f1, found.mean_oks, found.confidences) == (None,) * 5
    assert found.scores is found.classes is None


def test_joints_that_the_other_is_not_sure_of_are_no_agreement() -> None:
    found, lost, bold = Agreement(), Agreement(), Agreement()
    half = people(LEFT)
    half.keypoints[0, ::2, 2] = 0.4
    found.add(half, half)
    lost.add(half, people(LEFT, sure=0.0))
    bold.add(half, people(LEFT))
    assert (found.confidences, lost.confidences) == (1, 0)
    assert bold.confidences == pytest.approx(2 * 8 / (8 + 17))
    assert lost.mean_oks == bold.mean_oks == 1


def test_a_box_is_matched_once() -> None:
    same, alike = np.array([LEFT, LEFT], np.float32), np.ones((2, 2), bool)
    assert pairs(same, same[:1], alike[:, :1]) == [(0, 0)]
    assert pairs(same, np.empty((0, 4), np.float32), alike[:, :0]) == []
    assert pairs(same, same, alike) == [(0, 0), (1, 1)]


def test_overlapping_boxes_match_by_class() -> None:
    near = (2, 0, 102, 200)
    found = Agreement()
    found.add(things({LEFT: 3, near: 5}), things({near: 3, LEFT: 5}))
    assert (found.both, found.classes, found.kinds) == (2, 1, {3: 1, 5: 1})


def test_what_is_called_otherwise_is_found_and_yet_another_thing() -> None:
    found = Agreement()
    found.add(things({LEFT: 0, RIGHT: 1}), things({LEFT: 0, RIGHT: 2}))
    assert (found.f1, found.classes) == (1, 0.5)


def test_scores_are_compared() -> None:
    found, low = Agreement(), people(LEFT, RIGHT)
    low.scores[:] = 0.9, 0.4
    found.add(people(LEFT, RIGHT), low)
    assert found.scores == pytest.approx(1 - (0.1 + 0.6) / 2)


def test_classes_match_by_name_else_by_number() -> None:
    assert counterparts(("person", "car"), ("car", "dog", "person")).tolist() == [1, -1, 0]
    assert counterparts(("helmet", "vest"), ("class0", "class1", "class2")).tolist() == [0, 1, -1]
    assert counterparts(("class0", "class1"), ("helmet",)).tolist() == [0]
    assert counterparts(("thing", "thing"), ("thing",)).tolist() == [0]


def test_oks_falls_with_distance_ignoring_unsure_joints() -> None:
    near, far, unsure = Agreement(), Agreement(), Agreement()
    near.add(people(LEFT), people(LEFT, shift=2))
    far.add(people(LEFT), people(LEFT, shift=20))
    unsure.add(people(LEFT, sure=0.2), people(LEFT, shift=20))
    assert 0 < far.mean_oks < near.mean_oks < 1
    assert near.apart_px[0] == pytest.approx(np.sqrt(8))
    assert near.apart_of_size[0] == pytest.approx(np.sqrt(8) / np.sqrt(100 * 200))
    assert len(unsure.apart_px) == 0
    assert (unsure.mean_oks, unsure.oks) == (None, [])


def test_joints_apart_are_told_by_their_median_and_their_worst() -> None:
    found = Agreement()
    for shift in range(21):
        found.add(people(LEFT, sure=0.9), people(LEFT, shift=shift))
    apart = spread(found.apart_px)
    assert apart == pytest.approx((10 * np.sqrt(2), 19 * np.sqrt(2)))
    assert spread(found.apart_of_size) == pytest.approx(np.array(apart) / np.sqrt(100 * 200))
    assert spread(Agreement().apart_px) is None


def test_oks_is_that_of_coco() -> None:
    apart = np.full(17, 3.0, np.float32)
    expected = np.exp(-(3.0**2) / (2 * 5000 * (2 * COCO_SPREADS) ** 2))
    np.testing.assert_allclose(oks_of(apart, 5000), expected)
    assert oks_of(np.zeros(5, np.float32), 100).tolist() == [1] * 5
