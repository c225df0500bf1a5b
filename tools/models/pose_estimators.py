"""A pose model and the size at which it looks at pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from camgraph.stages.vision.decoding.formats import Asked, detections_of
from camgraph.stages.vision.decoding.movenet import HEAD_CHANNELS, decode_multipose
from camgraph.stages.vision.letterbox import (
    Fit,
    Size,
    boxes_to_frame,
    inner_size,
    keypoints_to_frame,
    letterbox_fit,
    native_size,
)
from camgraph.stages.vision.yuv import bgr_to_rgb

F32 = NDArray[np.float32]
U8 = NDArray[np.uint8]

PAD = 114
IOU = 0.6
YOLO_SIZE: Size = (640, 640)


class Poses(NamedTuple):
    """N people in pixels of the picture, best first: `boxes_xyxy` (N, 4), `scores` (N,), `keypoints` (N, 17, 3)."""

    boxes_xyxy: F32
    scores: F32
    keypoints: F32


Estimator = Callable[[U8], Poses]
"""People in a picture (H, W, 3) BGR."""


def session(model: Path, threads: int = 2) -> Any:
    """The model on the CPU."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    return ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def multipose_heads(model: Any, pictures: U8) -> dict[str, F32]:
    """All heads for (B, H, W, 3) RGB pictures with sides that are multiples of 32."""
    return dict(zip(HEAD_CHANNELS, model.run(list(HEAD_CHANNELS), {"images": pictures}), strict=True))


def multipose(model: Any, long_side: int, min_score: float) -> Estimator:
    """Pictures are scaled to `long_side` and padded at the right and the bottom to multiples of 32."""

    def estimate(bgr: U8) -> Poses:
        frame_size, size, fit = scaled(bgr, long_side)
        heads = multipose_heads(model, placed(bgr, size, fit)[None])
        poses = decode_multipose({name: head[0] for name, head in heads.items()}, min_score=min_score, iou=IOU)
        return _in_picture(poses.boxes_xyxy, poses.scores, poses.keypoints, fit, frame_size)

    return estimate


def yolo(model: Any, min_score: float) -> Estimator:
    """Pictures are letterboxed to 640 x 640."""
    name = model.get_inputs()[0].name
    asked = Asked(min_score=min_score, iou=IOU, most=300)

    def estimate(bgr: U8) -> Poses:
        frame_size: Size = (bgr.shape[1], bgr.shape[0])
        fit = letterbox_fit(frame_size, YOLO_SIZE)
        picture = placed(bgr, YOLO_SIZE, fit).transpose(2, 0, 1)[None].astype(np.float32) / np.float32(255)
        found = detections_of("yolo_pose", [model.run(None, {name: picture})[0][0]], YOLO_SIZE, asked)
        return _in_picture(found.boxes_xyxy, found.scores, found.keypoints, fit, frame_size)

    return estimate


def scaled(bgr: U8, long_side: int) -> tuple[Size, Size, Fit]:
    """(the picture's size, the model's size, how one lies in the other) for a picture scaled to `long_side`."""
    frame_size: Size = (bgr.shape[1], bgr.shape[0])
    scale = long_side / max(frame_size)
    inner: Size = (round(frame_size[0] * scale), round(frame_size[1] * scale))
    return frame_size, native_size(inner), Fit(inner[0] / frame_size[0], inner[1] / frame_size[1], 0.0, 0.0)


def placed(bgr: U8, size: Size, fit: Fit) -> U8:
    """The model's picture (H, W, 3) RGB."""
    out = np.full((size[1], size[0], 3), PAD, np.uint8)
    inner = inner_size((bgr.shape[1], bgr.shape[0]), fit)
    left, top = int(fit.pad_x), int(fit.pad_y)
    bgr_to_rgb(bgr, inner, out[top : top + inner[1], left : left + inner[0]])
    return out


def _in_picture(boxes: F32, scores: F32, keypoints: F32, fit: Fit, frame_size: Size) -> Poses:
    return Poses(boxes_to_frame(boxes, fit, frame_size), scores, keypoints_to_frame(keypoints, fit))
