"""Who is who: how alike tracks and people are, who is the only one near, and the pairs that belong together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from lap import lapjv
from numpy.typing import NDArray

from camgraph.stages.vision.tracking.known_tracks import heights_of

F64 = NDArray[np.float64]
Rows = NDArray[np.int64]


class Pairs(NamedTuple):
    """`tracks` and `boxes` (P,) are rows that belong together; the others are left over, in ascending order."""

    tracks: Rows
    boxes: Rows
    tracks_left: Rows
    boxes_left: Rows


def similarity(one_xyxy: F64, other_xyxy: F64, margins: F64 | None = None) -> F64:
    """Intersection over union: (N, 4) and (M, 4) -> (N, M) in [0, 1].

    ``margins`` (N, 2): each pair is compared with all sides of both boxes moved outwards by its first one's margins,
    along x and y. So what moved by more than its width between two frames still overlaps. The idea is C-BIoU's
    (Yang et al., WACV 2023), there with a fixed part of the box's size.
    """
    shared = np.ones((1, 1))
    one_area, other_area = np.ones((len(one_xyxy), 1)), np.ones((1, 1))
    for axis in (0, 1):
        twice = 0.0 if margins is None else 2 * margins[:, axis : axis + 1]
        end = np.minimum.outer(one_xyxy[:, axis + 2], other_xyxy[:, axis + 2])
        length = end - np.maximum.outer(one_xyxy[:, axis], other_xyxy[:, axis]) + twice
        shared = shared * np.maximum(length, 0)
        one_area = one_area * (one_xyxy[:, axis + 2, None] - one_xyxy[:, axis, None] + twice)
        other_area = other_area * ((other_xyxy[:, axis + 2] - other_xyxy[:, axis])[None] + twice)
    union = one_area + other_area - shared
    return np.asarray(shared / np.maximum(union, 1e-9))


# ---- who is the only one near: a track and a person without rivals belong together in any shape

_RIVAL = 0.3
"""Who overlaps by at most so much of what the nearest one overlaps is no rival."""
_WALKS, _BACK = 0.4, 0.05
"""Body heights a second, and body heights: who goes so fast to one side is not so far on the other one at once."""


def only_ones(overlap: F64) -> NDArray[np.bool_]:
    """Of tracks and people that overlap each other (T, N), 0 if they are not near, the pairs without a rival."""
    return np.asarray((overlap > 0) & (_next(overlap, 1) <= _RIVAL * overlap) & (_next(overlap, 0) <= _RIVAL * overlap))


def _next(overlap: F64, axis: int) -> F64:
    """Along an axis, the largest of all others, (T, N)."""
    if overlap.shape[axis] < 2:
        return np.zeros_like(overlap)
    order = np.sort(overlap, axis=axis)
    first, second = order.take([-1], axis=axis), order.take([-2], axis=axis)
    return np.where(overlap == first, second, first)


def turned_round(seen_xyxy: F64, velocity_x: F64, found_xyxy: F64) -> NDArray[np.bool_]:
    """Whether each of N people (T, 4) would go the other way at once if they were each of (M, 4): (T, M).

    ``velocity_x`` (T,) in pixels a second. Who walks out of the picture while another one comes in does not turn round.
    """
    heights = heights_of(seen_xyxy)[:, None]
    moved = (found_xyxy[:, 0] + found_xyxy[:, 2])[None] / 2 - (seen_xyxy[:, 0] + seen_xyxy[:, 2])[:, None] / 2
    along = moved * np.sign(velocity_x)[:, None]
    return np.asarray((np.abs(velocity_x)[:, None] > _WALKS * heights) & (along < -_BACK * heights))


# ---- how alike people are, as tracks remember them and as they are found: poses and sizes
#
# A crowd is one patch of boxes that overlap; joints tell who is who in it. The size of a person tells who cannot be
# whom: it changes slowly, and differs between people and between places.

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


# ---- pairs


def match(scores: F64, *, least: float) -> Pairs:
    """The pairs of the largest sum of ``scores`` (N, M), of which those below ``least`` come apart again.

    Pairs below ``least`` weigh nothing in the sum, so that they never cost a good pair its partner.
    """
    allowed = scores >= least
    box_of, _ = lapjv(np.where(allowed, -scores, 0.0), extend_cost=True, return_cost=False)
    tracks = rows_of(box_of >= 0)
    boxes = box_of[tracks]
    good = allowed[tracks, boxes]
    tracks, boxes = tracks[good].astype(np.int64), boxes[good].astype(np.int64)
    return Pairs(tracks, boxes, _others(scores.shape[0], tracks), _others(scores.shape[1], boxes))


def _others(count: int, rows: Rows) -> Rows:
    left = np.ones(count, bool)
    left[rows] = False
    return rows_of(left)


def rows_of(which: NDArray[np.bool_]) -> Rows:
    """The rows that are true, (N,) -> (M,). `np.flatnonzero` takes three times as long for so few."""
    return which.nonzero()[0]
