"""Somebody's last seconds of keypoints as a classifier of actions wants them: T steps at equal times. Pure.

rows of a record     |.  .   .  .        .   .  .|     at the times of frames, some lost
steps of a window    |^    ^    ^    ^    ^    ^ |     at equal times: between two rows, a joint goes straight
                                0                      no row near: zeros, as for a joint that is not known
"""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.skeleton import COCO_17

F32 = NDArray[np.float32]
Coordinates = Literal["centred", "signed"]
Skeleton = Literal["coco-17", "openpose-18"]

JOINTS: dict[Skeleton, int] = {"coco-17": 17, "openpose-18": 18}
_OPENPOSE_18 = (
    *("nose", "neck", "right_shoulder", "right_elbow", "right_wrist", "left_shoulder", "left_elbow", "left_wrist"),
    *("right_hip", "right_knee", "right_ankle", "left_hip", "left_knee", "left_ankle"),
    *("right_eye", "left_eye", "right_ear", "left_ear"),
)
_NECK = _OPENPOSE_18.index("neck")
_LEFT_SHOULDER, _RIGHT_SHOULDER = COCO_17.index("left_shoulder"), COCO_17.index("right_shoulder")
_FROM_COCO = [COCO_17.index(name if name != "neck" else "nose") for name in _OPENPOSE_18]


def resampled(
    times: NDArray[np.int64], joints: F32, window_ns: int, *, steps: int, gap_ns: int, min_confidence: float
) -> tuple[F32, float]:
    """(T, K, 3): x, y, confidence at T equal times, the last that of the newest row; and the share of steps seen.

    `times` (n,) in nanoseconds and `joints` (n, K, 3): the rows, as a `KeypointRecord` has them.

    A step between two rows that are farther apart than ``gap_ns``, or before the first row, is not seen: zeros. So is
    a joint that is below ``min_confidence`` in one of the two rows, unless the step is at the other one.
    """
    at = times[-1] - _before(window_ns, steps)
    after = np.minimum(np.searchsorted(times, at), len(times) - 1)
    before = np.maximum(after - 1, 0)
    before[times[after] <= at] = after[times[after] <= at]
    apart = times[after] - times[before]
    seen = (at >= times[0]) & (apart <= gap_ns)
    share = np.where(apart > 0, (at - times[before]) / np.maximum(apart, 1), 0.0)[:, None, None].astype(np.float32)
    known = joints[:, :, 2] >= max(min_confidence, 1e-9)
    both = known[before] & known[after] & seen[:, None]
    mixed = joints[before] + (joints[after] - joints[before]) * share
    return np.where(both[:, :, None], mixed, np.float32(0)), float(seen.mean())


@functools.lru_cache(maxsize=16)
def _before(window_ns: int, steps: int) -> NDArray[np.float64]:
    """How long before the last step each one is."""
    return np.linspace(window_ns, 0, steps)


def in_skeleton(window: F32, skeleton: Skeleton) -> F32:
    """(T, 17, 3) of COCO in another order of joints. A neck is the middle of known shoulders."""
    if skeleton == "coco-17":
        return window
    left, right = window[:, _LEFT_SHOULDER], window[:, _RIGHT_SHOULDER]
    known = (left[:, 2:] > 0) & (right[:, 2:] > 0)
    found = window[:, _FROM_COCO]
    found[:, _NECK] = np.where(known, (left + right) / 2, 0)
    return found


def normalised(window: F32, coordinates: Coordinates, size: tuple[int, int]) -> F32:
    """Places as parts of the frame of (width, height): centred -0.5 to 0.5, signed -1 to 1. Unknown joints stay 0."""
    whole = np.array(size, np.float32)
    found = window.copy()
    found[..., :2] = window[..., :2] / whole - 0.5 if coordinates == "centred" else window[..., :2] * 2 / whole - 1
    found[window[..., 2] <= 0] = 0
    return found
