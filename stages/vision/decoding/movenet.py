"""MoveNet's outputs. Of MultiPose cut at its heads, people as its own graph finds them but without its limit of six:

    center       peaks of a 5 x 5 neighbourhood are candidates
      box_offset, box_scale at the peak   -> box
      kpt_regress at the peak             -> about where each keypoint should be
        kpt_heatmap inside the box, times a Gaussian around that place: its maximum -> cell and confidence
          kpt_offset at that cell         -> keypoint
    score = center * mean of the confidences that count;   then non-maximum suppression, which the graph lacks

Heads count in cells of 4 x 4 pixels, y before x. Source: the graph of the TF.js model; the tests run the nodes of that
graph and compare. One thing differs on purpose: if several people's keypoints fall into the same cell, the graph gives
all of them the largest of their confidences, while here each keeps its own, so that nobody's keypoints depend on the
others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.decoding.detections import Detections, person_of
from camgraph.stages.vision.decoding.nms import nms
from camgraph.stages.vision.decoding.promised import WrongShape

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]

CELL_PIXELS = 4
KEYPOINTS = 17
HEAD_CHANNELS: Mapping[str, int] = {
    "center": 1,
    "kpt_heatmap": KEYPOINTS,
    "kpt_regress": 2 * KEYPOINTS,
    "kpt_offset": 2 * KEYPOINTS,
    "box_scale": 2,
    "box_offset": 2,
}

# Constants of the graph, which keeps them as float16.
PEAK_TOLERANCE = np.float32(np.float16(1.0132789611816406e-06))
SPREAD = np.float32(np.float16(0.3))
MIN_KEYPOINT = float(np.float16(0.127))

_NEIGHBOURHOOD = np.ones((5, 5), np.uint8)
_EVERY = np.arange(KEYPOINTS)
_Y, _X = 2 * _EVERY, 2 * _EVERY + 1


class Poses(NamedTuple):
    """N people in pixels of the model's picture, best score first.

    `boxes_xyxy` (N, 4), `scores` (N,) in [0, 1], `keypoints` (N, 17, 3) x, y, confidence in [0, 1] in COCO's order.
    """

    boxes_xyxy: F32
    scores: F32
    keypoints: F32


class NotFinite(ValueError):
    """The heads hold infinities or NaNs."""


def _checked(heads: Mapping[str, NDArray[Any]]) -> Mapping[str, F32]:
    """The heads in float32. Raises WrongShape if these are not the heads of MultiPose for one frame."""
    missing = [name for name in HEAD_CHANNELS if name not in heads]
    if missing:
        raise WrongShape(0, f"expected the outputs {', '.join(HEAD_CHANNELS)}, got {', '.join(heads) or 'none'}")
    rows, columns = heads["center"].shape[-2:] if heads["center"].ndim == 3 else (0, 0)
    for place, (name, channels) in enumerate(HEAD_CHANNELS.items()):
        head = heads[name]
        if head.shape != (channels, rows, columns) or not head.size or head.dtype.kind != "f":
            expected = f"({channels}, rows, columns) of floats, rows and columns those of center"
            raise WrongShape(place, f"{name} must be {expected}, got {head.shape} {head.dtype}")
    return {name: heads[name].astype(np.float32, copy=False) for name in HEAD_CHANNELS}


def decode_multipose(
    heads: Mapping[str, NDArray[Any]],
    *,
    min_score: float,
    iou: float,
    min_keypoint: float = MIN_KEYPOINT,
    max_candidates: int = 300,
) -> Poses:
    """The people in one frame's heads, each (channels, rows, columns) of floats as in ``HEAD_CHANNELS``.

    Only keypoints of a confidence above ``min_keypoint`` count for a score; of two people whose boxes overlap by more
    than ``iou`` the better one stays. ``max_candidates`` bounds the work: those with the highest centers are looked at,
    some of which are doubles, or nobody. Equal ones come in order of row, then column. Raises WrongShape if outputs are
    missing or of another shape, NotFinite if values that matter are not finite.
    """
    heads = _checked(heads)
    # A person's score is never above its center's value, so that nobody is lost here who would pass later.
    centers, rows, columns = _peaks(_finite("center", heads["center"][0]), min_score, max_candidates)
    boxes = _boxes(heads, rows, columns)
    keypoints = _finite("kpt_heatmap or kpt_offset", _keypoints(heads, rows, columns, boxes))
    poses = Poses(boxes * CELL_PIXELS, _scores(centers, keypoints[..., 2], min_keypoint), keypoints)
    return _best(poses, min_score, iou)


def _finite(what: str, array: F32) -> F32:
    if not np.isfinite(array).all():
        raise NotFinite(f"expected finite numbers, got others in {what}")
    return array


def _at(heads: Mapping[str, F32], name: str, rows: I64, columns: I64) -> F32:
    """The values of a head at these cells: (channels, N)."""
    return _finite(name, heads[name][:, rows, columns])


def _peaks(center: F32, floor: float, limit: int) -> tuple[F32, I64, I64]:
    """(values, rows, columns) of the cells at or above ``floor`` that nothing in their 5 x 5 cells exceeds."""
    highest = cv2.dilate(center, _NEIGHBOURHOOD)
    cells = np.flatnonzero((center >= floor) & (highest - center < PEAK_TOLERANCE))
    values = center.reshape(-1)[cells]
    order = np.argsort(-values, kind="stable")[:limit]
    rows, columns = np.divmod(cells[order], center.shape[1])
    return values[order], rows, columns


def _boxes(heads: Mapping[str, F32], rows: I64, columns: I64) -> F32:
    """(N, 4) xyxy in cells, clipped to the picture."""
    limit_y, limit_x = heads["center"].shape[1:]
    y, x = np.stack((rows, columns)).astype(np.float32) + _at(heads, "box_offset", rows, columns)
    half_y, half_x = np.maximum(_at(heads, "box_scale", rows, columns), 0) * np.float32(0.5)
    boxes = np.stack((x - half_x, y - half_y, x + half_x, y + half_y), axis=-1)
    return np.asarray(np.clip(boxes, 0, np.array((limit_x, limit_y, limit_x, limit_y), np.float32)))


def _keypoints(heads: Mapping[str, F32], rows: I64, columns: I64, boxes_xyxy: F32) -> F32:
    """(N, 17, 3) x, y in pixels of the model's picture, confidence."""
    regress = _at(heads, "kpt_regress", rows, columns).T
    places = np.stack((regress[:, _Y] + rows[:, None], regress[:, _X] + columns[:, None]), axis=1).astype(np.float32)
    y, x, confidences = _likeliest_cells(heads["kpt_heatmap"], places, boxes_xyxy)
    offset_y, offset_x = heads["kpt_offset"][_Y, y, x], heads["kpt_offset"][_X, y, x]
    keypoints = ((x + offset_x) * CELL_PIXELS, (y + offset_y) * CELL_PIXELS, confidences)
    return np.stack(keypoints, axis=-1).astype(np.float32)


def _likeliest_cells(heatmap: F32, places: F32, boxes_xyxy: F32) -> tuple[I64, I64, F32]:
    """(rows, columns, confidences), each (N, 17): the likeliest cell for a keypoint in its box, near its place.

    ``places`` is (N, 2, 17) y, x. The first of equal cells. A box without a cell has its keypoints in cell (0, 0), with
    no confidence.
    """
    cells = np.zeros((2, len(places), KEYPOINTS), np.int64)
    confidences = np.zeros((len(places), KEYPOINTS), np.float32)
    width_squared = SPREAD * np.float32(min(heatmap.shape[1:]))
    for person, (left, top, right, bottom) in enumerate(np.ceil(boxes_xyxy).astype(np.int64).tolist()):
        if left < right and top < bottom:
            y, x = places[person]
            likely = heatmap[:, top:bottom, left:right] * _gaussian(top, bottom, y, width_squared)[:, :, None]
            likely *= _gaussian(left, right, x, width_squared)[:, None, :]
            by_cell = likely.reshape(KEYPOINTS, -1)
            best = by_cell.argmax(axis=1)
            confidences[person] = by_cell[_EVERY, best]
            cells[:, person] = np.divmod(best, right - left)
            cells[:, person] += ((top,), (left,))
    return cells[0], cells[1], confidences


def _gaussian(first: int, end: int, middles: F32, width_squared: np.float32) -> F32:
    """(17, end - first): the weight of each row or column around the ``middles`` (17,)."""
    distances = np.arange(first, end, dtype=np.float32) - middles[:, None]
    return np.asarray(np.exp(distances * distances / -width_squared), np.float32)


def _scores(centers: F32, confidences: F32, min_keypoint: float) -> F32:
    counted = confidences > min_keypoint
    total = np.where(counted, confidences, np.float32(0)).sum(axis=1)
    return np.asarray(centers * total / np.maximum(counted.sum(axis=1), 1), np.float32)


def _best(poses: Poses, min_score: float, iou: float) -> Poses:
    enough = np.flatnonzero(poses.scores >= min_score)
    kept = enough[nms(poses.boxes_xyxy[enough], poses.scores[enough], iou=iou)]
    return Poses(*(array[kept] for array in poses))


# ---- MoveNet as TensorFlow Hub has it: keypoints as rows of y, x, confidence in fractions of the picture
#
# movenet_single   (1, 17, 3)   y, x, confidence: one person; Lightning (192 x 192), Thunder (256 x 256)
# movenet_people   (6, 56)      17 x (y, x, confidence), ymin, xmin, ymax, xmax, score: MultiPose and its own decoder
#
# Source: the model cards.

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
    return person_of(_pixels(points_yxc.reshape(KEYPOINTS, 3).astype(np.float32), size), min_score)


def _pixels(points_yxc: F32, size: tuple[int, int]) -> F32:
    """y, x, confidence in fractions -> x, y, confidence in pixels."""
    return points_yxc[..., [1, 0, 2]] * np.array([*size, 1], np.float32)
