"""MoveNet as TensorFlow Hub has it: keypoints as rows of y, x, confidence in fractions of the picture. Pure.

    movenet_single   (1, 17, 3)   y, x, confidence: one person; Lightning (192 x 192), Thunder (256 x 256)
    movenet_people   (6, 56)      17 x (y, x, confidence), ymin, xmin, ymax, xmax, score: MultiPose and its own decoder

Source: the model cards. MultiPose without its decoder, which finds any number of people, is `movenet_multipose`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.vision.decoding.detections import Detections

F32 = NDArray[np.float32]

KEYPOINTS = 17
_POINT_VALUES = 3 * KEYPOINTS


def decode_movenet_people(rows: F32, *, size: tuple[int, int], min_score: float) -> Detections:
    """``rows`` is (N, 56), ``size`` the picture's (width, height) in pixels."""
    taken = rows[rows[:, -1] >= min_score].astype(np.float32)
    boxes = taken[:, [_POINT_VALUES + at for at in (1, 0, 3, 2)]] * np.array([*size, *size], np.float32)
    points = _pixels(taken[:, :_POINT_VALUES].reshape(-1, KEYPOINTS, 3), size)
    return Detections(boxes, taken[:, -1], np.zeros(len(taken), np.int64), points)


def decode_movenet_single(points_yxc: F32, *, size: tuple[int, int], min_score: float) -> Detections:
    """``points_yxc`` is (1, 17, 3), ``size`` the picture's (width, height) in pixels.

    The person's score is the mean of its keypoints', its box spans them; dropped if that is below ``min_score``.
    """
    points = _pixels(points_yxc.reshape(1, KEYPOINTS, 3).astype(np.float32), size)
    scores = points[:, :, 2].mean(axis=1)
    boxes = np.concatenate([points[:, :, :2].min(axis=1), points[:, :, :2].max(axis=1)], axis=1)
    return Detections(boxes, scores, np.zeros(1, np.int64), points).take(scores >= min_score)


def _pixels(points_yxc: F32, size: tuple[int, int]) -> F32:
    """y, x, confidence in fractions -> x, y, confidence in pixels."""
    return points_yxc[..., [1, 0, 2]] * np.array([*size, 1], np.float32)
