from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from camgraph.pipeline.errors import BadItem, UserError
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.decode_movenet_multipose import DecodeMovenetMultipose, DecodeMovenetMultiposeSettings
from camgraph.stages.vision.decoding.movenet import HEAD_CHANNELS

IDENTITY = (1.0, 1.0, 0.0, 0.0)


def tensor(people, *, seq=0, fit=IDENTITY, frame_size=(128, 96), shape=(24, 32)):
    """What the model says of people at the cells `people`, boxes 8 x 8 cells."""
    heads = {name: np.zeros((1, channels, *shape), np.float32) for name, channels in HEAD_CHANNELS.items()}
    for y, x in people:
        heads["center"][0, 0, y, x] = 0.9
        heads["box_scale"][0, :, y, x] = 8
        heads["kpt_heatmap"][0, :, y, x] = 0.8
    return Tensor(stamp(seq), heads, np.array([fit], np.float32), frame_size, frame_size)


def decoded(items, folder, *, batch=1, **settings):
    with opened(DecodeMovenetMultipose, settings, folder=folder) as stage:
        return feed(stage, items, batch=batch)


def test_people_are_in_pixels_of_the_frame(tmp_path):
    [people] = decoded([tensor([(12, 16)], fit=(0.5, 0.25, 10, 4), frame_size=(1000, 1000))], tmp_path)
    np.testing.assert_allclose(people.boxes, [((48 - 10) * 2, (32 - 4) * 4, (80 - 10) * 2, (64 - 4) * 4)])
    np.testing.assert_allclose(people.keypoints[0, :, :2], [((64 - 10) * 2, (48 - 4) * 4)] * 17)
    assert people.skeleton == "coco-17"
    assert people.frame_size == (1000, 1000)
    assert people.classes.tolist() == [0]


def test_nothing_lies_outside_of_the_frame(tmp_path):
    in_padding, at_border = (20, 16), (12, 30)
    [people] = decoded([tensor([in_padding, at_border], frame_size=(118, 60))], tmp_path)
    assert people.boxes.tolist() == [[104, 32, 118, 60]]
    assert people.keypoints[0, :, 0].tolist() == [118] * 17


def test_a_frame_without_people_and_one_without_a_picture(tmp_path):
    nothing = tensor([(12, 16)])
    no_rows = Tensor(
        nothing.stamp,
        {k: v[:0] for k, v in nothing.arrays_by_name.items()},
        np.empty((0, 4), np.float32),
        (128, 96),
        (128, 96),
    )
    for people in decoded([tensor([]), no_rows], tmp_path):
        assert len(people) == 0
        assert people.boxes.shape == (0, 4)
        assert people.keypoints.shape == (0, 17, 3)
        assert people.boxes.dtype == people.keypoints.dtype == people.scores.dtype == np.float32


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_the_batch_changes_nothing(tmp_path, batch):
    items = [tensor([(4 + i, 6 + i), (18, 24)], seq=i) for i in range(8)]
    one_by_one, together = decoded(items, tmp_path), decoded(items, tmp_path, batch=batch)
    assert [people.stamp for people in together] == [item.stamp for item in items]
    for one, other in zip(one_by_one, together, strict=True):
        for name, array in one.arrays().items():
            assert array.tobytes() == other.arrays()[name].tobytes()


def test_a_model_that_is_not_multipose_is_named(tmp_path):
    yolo = Tensor(
        stamp(),
        {"output0": np.zeros((1, 56, 8400), np.float32)},
        np.array([IDENTITY], np.float32),
        (128, 96),
        (128, 96),
    )
    expected = (
        r"outputs \(output0 \[None, 56, 8400\]\) are not those of MoveNet MultiPose cut at its heads, for which this "
        r"stage is: write `use: decode`, which can read them as yolo_pose \(56 rows"
    )
    with pytest.raises(UserError, match=expected):
        decoded([yolo], tmp_path)


def test_the_heads_of_a_run_that_change_are_no_more_multipose(tmp_path):
    other = tensor([(12, 16)], seq=1)
    other.arrays_by_name["kpt_offset"] = other.arrays_by_name["kpt_offset"][:, :-1]
    with pytest.raises(
        BadItem, match=r"shape: .*kpt_offset must be \(34, rows, columns\) of floats.*got \(33, 24, 32\)"
    ):
        decoded([tensor([(12, 16)]), other], tmp_path)


def test_keypoints_below_the_minimum_do_not_count_for_a_score(tmp_path):
    item = tensor([(12, 16)])
    item.arrays_by_name["kpt_heatmap"][0, 0, 12, 16] = 0.3
    [usual] = decoded([item], tmp_path)
    [strict] = decoded([item], tmp_path, min_keypoint=0.5)
    assert usual.scores.tolist() == [pytest.approx(0.9 * (16 * 0.8 + 0.3) / 17)]
    assert strict.scores.tolist() == [pytest.approx(0.9 * 0.8)]
    np.testing.assert_array_equal(usual.keypoints, strict.keypoints)


def test_numbers_that_are_none_cost_the_frame(tmp_path):
    broken = tensor([(12, 16)])
    broken.arrays_by_name["box_scale"][0, :, 12, 16] = np.nan
    with pytest.raises(BadItem, match="finite") as caught:
        decoded([broken], tmp_path)
    assert caught.value.reason == "nonfinite"


@pytest.mark.parametrize(
    "settings", [{"min_score": -0.1}, {"iou": 1.5}, {"max_people": 0}, {"min_keypoint": -1}, {"x": 1}]
)
def test_settings_out_of_bounds_are_refused(settings):
    with pytest.raises(ValidationError):
        DecodeMovenetMultiposeSettings.model_validate(settings)
