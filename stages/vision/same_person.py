"""Which detections show the same person: whole at one size of the picture, half or twice at another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
Rows = NDArray[np.int64]

SURE_JOINT = 0.3
SAME_OVERLAP = 0.45
"""Intersection over union from which on two boxes show one person."""
INSIDE = 0.7
"""A box of which so much lies in another may show a part of the same person."""
NEAR = 0.12
"""Joints of one person agree between detections to this share of the height of the person's box."""


def wholeness(scores: F32, keypoints: F32) -> F32:
    """How whole and certain each detection is, (N,) in [0, 1]: its score, times the share of joints that are certain.

    ``scores`` (N,); ``keypoints`` (N, K, 3). Without keypoints it is the score.
    """
    if not keypoints.shape[1]:
        return scores
    return np.asarray(scores * (keypoints[:, :, 2] >= SURE_JOINT).mean(axis=1), np.float32)


def best_of_each(boxes_xyxy: F32, whole: F32, keypoints: F32) -> Rows:
    """For each detection the row of the best one of the same person, (N,); for the best ones their own row.

    ``boxes_xyxy`` (N, 4), ``whole`` (N,) by `wholeness`, ``keypoints`` (N, K, 3), all in the same pixels. Of equally
    whole ones the first is the best. A box inside another is a part of that person if their joints agree: somebody who
    stands before a large person is somebody else.
    """
    best = np.arange(len(boxes_xyxy), dtype=np.int64)
    leaders: list[int] = []
    for row in np.argsort(-whole, kind="stable").tolist():
        same = (leader for leader in leaders if _same(boxes_xyxy[[row, leader]], keypoints[[row, leader]]))
        best[row] = leader = next(same, row)
        if leader == row:
            leaders.append(row)
    return best


def _same(boxes: F32, keypoints: F32) -> bool:
    """Whether the first of two detections shows the person of the second, or a part of them."""
    begin, end = boxes[:, :2].max(axis=0), boxes[:, 2:].min(axis=0)
    shared = float(np.clip(end - begin, 0, None).prod())
    sizes = np.clip(boxes[:, 2:] - boxes[:, :2], 1e-6, None).prod(axis=1).astype(float)
    if shared / (sizes.sum() - shared) >= SAME_OVERLAP:
        return True
    return bool(shared / sizes[0] >= INSIDE) and _joints_agree(keypoints, float(boxes[1, 3] - boxes[1, 1]))


def _joints_agree(keypoints: NDArray[Any], height: float) -> bool:
    """At least half of the joints that both are sure of lie close together; true if there are none."""
    both = (keypoints[:, :, 2] >= SURE_JOINT).all(axis=0)
    if not both.any():
        return True
    apart = np.linalg.norm(keypoints[0, both, :2] - keypoints[1, both, :2], axis=1)
    return bool((apart <= NEAR * height).mean() >= 0.5)
