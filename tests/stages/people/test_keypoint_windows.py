"""The stage that makes windows of keypoints: of whom, how often, and whose they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from camgraph.pipeline.testing import feed, opened
from camgraph.stages import testing
from camgraph.stages.messages import Tensor, Tracks
from camgraph.stages.people.keypoint_windows import KeypointWindows

SETTINGS = {"window_s": 1.0, "every_s": 0.5, "steps": 5}


def tracks(seq: int, ids: Sequence[int] = (1,), *, epoch: int = 0, **given: Any) -> Tracks:
    """People whose joints all lie at x = 10 times the number of the frame, a tenth of a second apart."""
    joints = np.full((17, 3), (10 * seq, 50, 0.9))
    made = testing.tracks(dict.fromkeys(ids, (0, 0, 0, 0)), seq, epoch=epoch, frame_size=(400, 100), keypoints=joints)
    return replace(made, **{name: np.array(one) if name == "continues" else one for name, one in given.items()})


def windows(items: Sequence[Tracks], folder: Path, **more: Any) -> list[Tensor]:
    with opened(KeypointWindows, {**SETTINGS, **more}, folder=folder) as stage:
        made = feed(stage, items, end=True)
    assert [one.stamp.seq for one in made] == [one.stamp.seq for one in items], "one for each frame, for joins"
    for one in made:
        assert isinstance(one, Tensor)
        Tensor.build(one.stamp, one.fields(), one.arrays())
    return [one for one in made if isinstance(one, Tensor)]


def due(made: Sequence[Tensor]) -> dict[int, list[int]]:
    return {one.stamp.seq: one.owner.tolist() for one in made if one.rows}


def test_a_window_is_due_once_full_and_then_at_each_stride(tmp_path: Path) -> None:
    made = windows([tracks(seq) for seq in range(20)], tmp_path)
    # Of five steps in a second, four reach 0.75 s back: seen in frame 8 for the first time.
    assert due(made) == {8: [0], 13: [0], 18: [0]}
    assert made[13].arrays_by_name["keypoints"].shape == (1, 5, 17, 3)
    x = made[13].arrays_by_name["keypoints"][0, :, 0, 0]
    assert np.allclose(x, np.array([30, 55, 80, 105, 130]) / 400 - 0.5, atol=1e-6)
    assert (made[13].picture_size, made[13].frame_size) == ((17, 5), (400, 100))


def test_the_owner_of_a_window_is_a_row_of_the_tracks(tmp_path: Path) -> None:
    """The second person comes later, and stands first in each frame from then on."""
    made = windows([tracks(seq, [1] if seq < 4 else [2, 1]) for seq in range(14)], tmp_path, every_s=0)
    assert due(made)[8] == [1]
    assert due(made)[12] == [0, 1]


def test_a_track_that_goes_on_another_one_has_its_past(tmp_path: Path) -> None:
    items = [tracks(seq, [1] if seq < 6 else [2], continues=[0] if seq < 6 else [1]) for seq in range(9)]
    assert due(windows(items, tmp_path)) == {8: [0]}


def test_a_new_epoch_has_no_past(tmp_path: Path) -> None:
    assert due(windows([tracks(seq, epoch=seq // 7) for seq in range(14)], tmp_path)) == {}


def test_other_skeletons_have_no_windows(tmp_path: Path) -> None:
    assert due(windows([tracks(seq, skeleton="kpts-17") for seq in range(20)], tmp_path)) == {}


def test_a_slow_camera_has_windows_too(tmp_path: Path) -> None:
    """One frame a second: no gap is too long that is usual for the camera."""
    made = windows([tracks(seq) for seq in range(0, 120, 10)], tmp_path, window_s=4.0, every_s=0)
    assert set(due(made)) == set(range(30, 120, 10))
