"""Detections that show a part of somebody who is detected as a whole as well.

Models find the lower half of a person beside the whole one now and then. Its box overlaps by too little to be
suppressed, and its joints are those of the whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

_INSIDE = 0.9
"""A box of which so much lies in another may show a part of the same person."""
_SURE = 0.2
"""The confidence from which on a joint is compared."""
_NEAR = 0.06
"""Joints of one person agree to this part of the height of the larger box."""
_AGREE = 0.7
"""The part of the joints that both know which must agree."""
_LEAST_JOINTS = 3


def doubles(boxes_xyxy: F64, scores: F64, keypoints: F64) -> NDArray[np.bool_]:
    """Which of N people are a part of another one, (N,).

    ``boxes_xyxy`` (N, 4), ``scores`` (N,), ``keypoints`` (N, K, 3). A part scores lower than the whole, lies in its
    box, and has its joints where the whole has them; without joints, nobody is one.
    """
    found = np.zeros(len(boxes_xyxy), bool)
    if len(boxes_xyxy) < 2 or not keypoints.shape[1]:
        return found
    left, top, right, bottom = boxes_xyxy.T
    width = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    height = np.minimum.outer(bottom, bottom) - np.maximum.outer(top, top)
    shared = np.maximum(width, 0) * np.maximum(height, 0)
    areas = np.maximum(right - left, 1e-9) * np.maximum(bottom - top, 1e-9)
    nested = (shared >= _INSIDE * areas[:, None]) & (scores[:, None] < scores[None])
    parts, wholes = np.nonzero(nested)
    if len(parts):
        heights = boxes_xyxy[wholes, 3] - boxes_xyxy[wholes, 1]
        found[parts[_joints_agree(keypoints[parts], keypoints[wholes], _NEAR * heights)]] = True
    return found


def _joints_agree(ones: F64, others: F64, within: F64) -> NDArray[np.bool_]:
    """Of P pairs (P, K, 3), (P,): whether enough of the joints that both are sure of lie together."""
    both = (ones[:, :, 2] >= _SURE) & (others[:, :, 2] >= _SURE)
    apart = np.hypot(*np.moveaxis(ones[:, :, :2] - others[:, :, :2], 2, 0))
    known = both.sum(axis=1)
    agree = (both & (apart <= within[:, None])).sum(axis=1)
    return np.asarray((known >= _LEAST_JOINTS) & (agree >= _AGREE * known))
