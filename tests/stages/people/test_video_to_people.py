"""The stages from a clip to people, one after the other, on real clips and models."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.testing import HandContext, feed, opened
from camgraph.stages.messages import Frame, People, Tensor
from camgraph.stages.people.decode_yolo_pose import DecodeYoloPose
from camgraph.stages.people.infer import Infer
from camgraph.stages.people.preprocess import Preprocess
from camgraph.stages.video.capture import Camera, Capture
from camgraph.stages.vision.decoding.nms import overlaps

CROWD = "videos/opencv4nodejs_people.mp4"
YOLO11 = "models/yolo11n-pose_640.onnx"
YOLO8 = "models/yolov8n-pose_float.onnx"


def frames_of(data: Path, clip: str, **settings: Any) -> list[Frame]:
    camera = Camera(url=clip, **settings)
    return list(Capture(Settings(), "cam", camera, HandContext(data, data)).frames(threading.Event(), None))


def tensors(data: Path, frames: list[Frame], model: str, batch: int = 1, **prepare: Any) -> list[Tensor]:
    with opened(Preprocess, prepare, folder=data) as preprocess, opened(Infer, {"model": model}, folder=data) as infer:
        return [out for out in feed(infer, feed(preprocess, frames), batch=batch) if isinstance(out, Tensor)]


def people(data: Path, frames: list[Frame], model: str = YOLO11, **settings: Any) -> list[People]:
    with opened(DecodeYoloPose, settings, folder=data) as decode:
        return [out for out in feed(decode, tensors(data, frames, model)) if isinstance(out, People)]


def matched(one: People, other: People) -> int:
    """How many of `one` have a box in `other` that covers nearly the same."""
    return int(overlaps(one.boxes, other.boxes, iou=0.8).any(axis=1).sum())


@pytest.mark.slow
@pytest.mark.parametrize("model", [YOLO11, YOLO8])
def test_the_crowd_is_found(test_data: Path, model: str) -> None:
    found = people(test_data, frames_of(test_data, CROWD, max_fps=0.25), model)
    assert len(found) == 5
    for each in found:
        assert 5 <= int((each.scores >= 0.3).sum()) <= 14
        assert each.skeleton == "coco-17"
        assert each.boxes.min() >= 0
        assert (each.boxes[:, 2:] <= [800, 450]).all()
        assert np.array_equal(each.scores, np.sort(each.scores)[::-1])


@pytest.mark.slow
def test_the_cheap_way_to_rgb_finds_the_same_people(test_data: Path) -> None:
    cheap = frames_of(test_data, CROWD, max_fps=0.5)
    long_way = [Frame.of_bgr(frame.stamp, frame.bgr()) for frame in cheap]
    assert all(frame.format == "yuv420p" for frame in cheap)
    one, other = people(test_data, cheap), people(test_data, long_way)
    total = sum(map(len, one))
    assert total > 50
    # Those that are not found both ways score near the limit of 0.3.
    assert sum(matched(a, b) for a, b in zip(one, other, strict=True)) >= total * 0.97
    assert abs(total - sum(map(len, other))) <= total * 0.03


@pytest.mark.slow
def test_multipose_takes_the_clip_at_its_own_size(test_data: Path) -> None:
    frames = frames_of(test_data, "videos/mmaction2_test_video_structuralize.mp4", max_fps=1, duration_s=3)
    outputs = tensors(test_data, frames, "models/multipose_heads.onnx", batch=3, size="native")
    assert len(outputs) == 3
    for output in outputs:
        assert output.arrays_by_name["center"].shape == (1, 1, 64, 112)
        assert output.fit.tolist() == [[1, 1, 0, 0]]
        # Somebody stands in every one of these frames.
        assert output.arrays_by_name["center"].max() > 0.2


@pytest.mark.slow
def test_a_detector_is_no_pose_model(test_data: Path) -> None:
    frames = frames_of(test_data, CROWD, duration_s=0.01)
    outputs = tensors(test_data, frames, "models/yolox_nano_bigisland.onnx", size=[416, 416])
    with opened(DecodeYoloPose, {}, folder=test_data) as decode:
        with pytest.raises(UserError, match=r"its outputs .*3549, 85\]\) are not those of `format: yolo_pose`"):
            feed(decode, outputs)
    with pytest.raises(UserError, match="takes pictures of 416 x 416"):
        tensors(test_data, frames, "models/yolox_nano_bigisland.onnx")
