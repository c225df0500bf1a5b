"""Two looks at one frame: each person once, from the look that shows more of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from camgraph.pipeline.errors import BadItem
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import People
from camgraph.stages.people.combine_people import CombinePeople, combined


def people(*rows: tuple[float, float, int], classes: tuple[int, ...] = (), joints: int = 17) -> People:
    """People of (left, score, certain joints), 300 pixels tall."""
    boxes = np.array([(left, 0, left + 100, 300) for left, _, _ in rows], np.float32).reshape(-1, 4)
    keypoints = np.zeros((len(rows), joints, 3), np.float32)
    for row, (left, _, certain) in enumerate(rows):
        keypoints[row, :, 0], keypoints[row, :, 1] = left + 50, np.linspace(0, 300, joints)
        keypoints[row, :certain, 2] = 0.9
    scores = np.array([score for _, score, _ in rows], np.float32)
    kinds = np.array(classes or [0] * len(rows), np.int64)
    return People(stamp(), boxes, scores, keypoints, (800, 300), kinds, f"coco-{joints}")


def test_each_person_once_from_the_better_look(tmp_path: Path) -> None:
    near = people((0, 0.7, 17), (200, 0.3, 9))
    far = people((4, 0.6, 8), (203, 0.5, 17), (500, 0.4, 17))
    with opened(CombinePeople, {}, folder=tmp_path) as stage:
        [both] = feed(stage, [{"near": near, "far": far}])
    assert isinstance(both, People)
    assert both.boxes[:, 0].tolist() == [0, 203, 500]
    assert both.scores.tolist() == pytest.approx([0.7, 0.5, 0.4])
    assert both.keypoints[1].tolist() == far.keypoints[1].tolist()


def test_one_look_may_show_nobody() -> None:
    assert combined(people(), people()).boxes.shape == (0, 4)
    assert combined(people(), people((0, 0.5, 17))).boxes[:, 0].tolist() == [0]


def test_things_of_other_classes_stay_apart() -> None:
    both = combined(people((0, 0.7, 17), classes=(0,)), people((0, 0.6, 17), classes=(1,)))
    assert both.classes.tolist() == [0, 1]


def test_looks_of_different_skeletons_are_refused() -> None:
    with pytest.raises(BadItem, match=r"got coco-17 \(17\) and coco-5 \(5\)"):
        combined(people((0, 0.7, 17)), people((0, 0.7, 5), joints=5))
