"""From a model's output to people in the frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import UserError
from pipeline.testing import feed, opened, stamp
from stages.decode_yolo_pose import DecodeYoloPose
from stages.messages import People, Tensor

# A frame of 1280x720 in 640x640: half the size, 140 rows of padding above.
FIT = np.array([[0.5, 0.5, 0, 140]], np.float32)


def person(cx: float, cy: float, w: float, h: float, score: float, keypoints: int = 17) -> list[float]:
    return [cx, cy, w, h, score] + [cx, cy, 0.8] * keypoints


def tensor(*people: list[float], keypoints: int = 17, **outputs: Any) -> Tensor:
    heads = np.zeros((1, 5 + 3 * keypoints, 21), np.float32)
    for index, column in enumerate(people):
        heads[0, :, index] = column
    return Tensor(stamp(), {"output0": heads, **outputs}, FIT, (1280, 720), (640, 640))


def decoded(item: Tensor, folder: Path, **settings: Any) -> People:
    with opened(DecodeYoloPose, settings, folder=folder, stage="people") as stage:
        [people] = feed(stage, [item])
    assert isinstance(people, People)
    return people


def test_people_lie_in_the_frame(tmp_path: Path) -> None:
    people = decoded(tensor(person(100, 340, 50, 100, 0.875), person(0, 340, 50, 100, 0.5)), tmp_path)
    assert people.boxes.tolist() == [[150, 300, 250, 500], [0, 300, 50, 500]]
    assert people.keypoints[0, 0].tolist() == [200, 400, pytest.approx(0.8)]
    assert people.scores.tolist() == [0.875, 0.5]
    assert people.classes.tolist() == [0, 0]
    assert (people.skeleton, people.frame_size, people.stamp) == ("coco-17", (1280, 720), stamp())


def test_nobody_is_a_message_too(tmp_path: Path) -> None:
    people = decoded(tensor(), tmp_path)
    assert len(people) == 0
    assert people.keypoints.shape == (0, 17, 3)
    People.build(people.stamp, people.fields(), people.arrays())


def test_who_lies_in_the_padding_alone_is_nobody(tmp_path: Path) -> None:
    assert len(decoded(tensor(person(300, 60, 50, 100, 0.9)), tmp_path)) == 0


def test_settings_choose(tmp_path: Path) -> None:
    item = tensor(person(100, 340, 50, 100, 0.9), person(100, 350, 50, 100, 0.8), person(400, 340, 50, 100, 0.4))
    assert len(decoded(item, tmp_path)) == 2
    assert len(decoded(item, tmp_path, iou=0.9)) == 3
    assert len(decoded(item, tmp_path, min_score=0.5)) == 1
    assert len(decoded(item, tmp_path, max_people=1)) == 1


def test_other_skeletons(tmp_path: Path) -> None:
    item = tensor(person(100, 340, 50, 100, 0.9, 5), keypoints=5)
    people = decoded(item, tmp_path)
    assert people.keypoints.shape == (1, 5, 3)
    assert people.skeleton == "kpts-5"
    assert decoded(item, tmp_path, skeleton="face-5").skeleton == "face-5"


def test_a_model_with_several_outputs_needs_a_choice(tmp_path: Path) -> None:
    item = tensor(person(100, 340, 50, 100, 0.9), masks=np.zeros((1, 32, 8), np.float32))
    with pytest.raises(UserError, match="got: output0, masks; choose one with `output`"):
        decoded(item, tmp_path)
    assert len(decoded(item, tmp_path, output="output0")) == 1
    with pytest.raises(UserError, match="no output `heads`"):
        decoded(item, tmp_path, output="heads")


def test_a_model_that_is_no_pose_model(tmp_path: Path) -> None:
    item = Tensor(stamp(), {"output": np.zeros((1, 3549, 85), np.float32)}, FIT, (1280, 720), (640, 640))
    with pytest.raises(UserError, match=r"stage people: this is no YOLO-pose model: .*\(3549, 85\)"):
        decoded(item, tmp_path)


def test_crops_are_for_other_decoders(tmp_path: Path) -> None:
    heads = np.zeros((2, 56, 21), np.float32)
    item = Tensor(stamp(), {"output0": heads}, FIT.repeat(2, 0), (1280, 720), (640, 640), np.arange(2))
    with pytest.raises(UserError, match="got 2 pictures of one frame"):
        decoded(item, tmp_path)
