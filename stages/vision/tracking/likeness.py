"""How alike people are, as tracks remember them and as they are found: poses and sizes.

A crowd is one patch of boxes that overlap; joints tell who is who in it. The size of a person tells who cannot be whom:
it changes slowly, and differs between people and between places.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

# Of the joints of coco-17, from the nose to the ankles, by the square root of a person's area: COCO's own figures for
# how far apart two people mark them.
_COCO_17 = 2 * np.array(
    [26, 25, 25, 35, 35, 79, 79, 72, 72, 62, 62, 107, 107, 87, 87, 89, 89], np.float64
) / 1000  # fmt: skip
_OTHER_SPREAD = 0.15
"""Of the joints of other skeletons."""
_LEAST_CONFIDENCE = 0.1
_LEAST_KNOWN = 0.5
"""The sum of the confidences of the joints from which on two poses can be compared."""
_TORSO = np.array([5, 6, 11, 12])
_TORSO_CONFIDENCE = 0.2


def pose_likeness(remembered: F64, moved: F64, found: F64, areas: F64, doubt: F64) -> F64:
    """Object keypoint similarity of P pairs in [0, 1]; NaN where too few joints are known.

    ``remembered`` and ``found`` (P, K, 3) are x, y, confidence; ``moved`` (P, 2): how far the remembered one has moved
    since; ``areas`` (P,) in square pixels; ``doubt`` (P, 2): the standard deviation of its place along x and y, by
    which joints may be farther apart.
    """
    points = found.shape[1]
    spread = _COCO_17 if points == len(_COCO_17) else np.full(points, _OTHER_SPREAD)
    variance, apart = areas[:, None] * spread**2, np.zeros(found.shape[:2])
    for axis in (0, 1):  # one after the other: NumPy is slow along an axis of two
        way = remembered[:, :, axis] + moved[:, axis, None] - found[:, :, axis]
        apart += way**2 / (variance + doubt[:, axis, None] ** 2)
    both = remembered[:, :, 2] * found[:, :, 2]
    weight = np.where(both > _LEAST_CONFIDENCE**2, np.sqrt(np.maximum(both, 0)), 0.0)
    known = weight.sum(axis=1)
    likeness = (np.exp(-0.5 * apart) * weight).sum(axis=1) / np.maximum(known, 1e-9)
    return np.where(known >= _LEAST_KNOWN, likeness, np.nan)


def torso_lengths(keypoints: F64) -> F64:
    """From the middle of the shoulders to that of the hips, (N, K, 3) -> (N,) in pixels; NaN where it is not known.

    A desk or another person hides legs, and so makes a box shorter, but not the torso.
    """
    if keypoints.shape[1] != len(_COCO_17):
        return np.full(len(keypoints), np.nan)
    x, y, confidence = keypoints[:, _TORSO].transpose(2, 1, 0)
    length = np.hypot(x[0] + x[1] - x[2] - x[3], y[0] + y[1] - y[2] - y[3]) / 2
    return np.where((confidence.min(axis=0) > _TORSO_CONFIDENCE) & (length > 0), length, np.nan)


def size_likeness(heights: F64, torsos: F64, other_heights: F64, other_torsos: F64, spread: float) -> F64:
    """How well the sizes of P pairs agree, (P,) each, in [0, 1]: a Gaussian of the ratio of heights.

    Where both torsos are known (not NaN), it is the mean of the ratios of heights and torsos. ``spread`` is the
    standard deviation of the ratio's logarithm.
    """
    apart = np.abs(np.log(heights / other_heights))
    by_torso = np.abs(np.log(torsos / other_torsos))
    apart = np.where(np.isnan(by_torso), apart, (apart + by_torso) / 2)
    return np.asarray(np.exp(-0.5 * (apart / spread) ** 2))
