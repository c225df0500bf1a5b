"""Keypoints of a model on crops, given to the people that the crops show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from camgraph_test_stages.crops import SIZE, people

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import People, Tensor
from camgraph.stages.people.add_keypoints import AddKeypoints


def test_undeclared_keypoints_are_refused_on_opening(tmp_path: Path) -> None:
    settings = {"format": "movenet_single", "outputs": ["points"]}
    with pytest.raises(UserError, match="write its `keypoints`"), opened(AddKeypoints, settings, folder=tmp_path):
        pass


def test_who_has_no_crop_has_keypoints_of_no_confidence(tmp_path: Path) -> None:
    points = np.full((2, 1, 17, 3), 0.5, np.float32)
    fit = np.array([[0.5, 0.5, 0, 0], [2, 2, -100, -50]], np.float32)
    crops = Tensor(stamp(), {"points": points}, fit, SIZE, (64, 96), np.array([2, 0]))
    settings = {"format": "movenet_single", "outputs": ["points"], "keypoints": 17}
    given = people((0, 0, 10, 10), (20, 0, 30, 10), (40, 0, 50, 10))
    with opened(AddKeypoints, settings, folder=tmp_path) as stage:
        [posed] = feed(stage, [{"people": given, "crops": crops}])
    assert isinstance(posed, People)
    assert posed.keypoints[:, 0].tolist() == [[66, 49, 0.5], [0, 0, 0], [64, 96, 0.5]]
    assert (posed.skeleton, posed.boxes.tolist()) == ("coco-17", given.boxes.tolist())
