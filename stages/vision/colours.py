"""The colours of people's clothes, as numbers by which the same person is known again.

    person                samples                   numbers of each part
    +-------+
    | o   o | shoulders   8 x 8 points between    how much of which colour (8 x 8 of U and V)
    |       |             the four joints: trunk    how much of which brightness (8 of Y)
    | o   o | hips        8 x 8 points: thighs
    | o   o | knees
    +-------+

The square roots of the shares make a unit vector, so the dot product of two is the mean of their Bhattacharyya
coefficients: 1 for equal colours, 0 for colours that have nothing in common. A fixed number of points is sampled, so a
person costs the same near and far.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.planes import U8, Planes

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

_POINTS = 8
_BINS = 8
_CHROMA_STEP = 12.0
"""Of 256: clothes are mostly pale, so the bins lie around grey, and the outer ones take what is beyond."""
_LUMA_RANGE = (16.0, 235.0)
_COLOUR_PART = 0.6
"""Of the likeness; brightness, which light and shade change, has the rest."""
_KNOWN = 0.2
"""The confidence of a joint from which on it marks a corner."""
_SHOULDERS, _HIPS, _KNEES = (5, 6), (11, 12), (13, 14)
_TRUNK_OF_BOX, _THIGHS_OF_BOX = (0.2, 0.5), (0.55, 0.75)
"""Where these parts of somebody upright lie, in heights of the box, if the joints are not known."""
_SIDES_OF_BOX = (0.3, 0.7)
_LEAST_INSIDE = 0.5
"""The share of a part's points that must lie in the frame."""
_LUMA, _U, _V = (0.299, 0.587, 0.114), (-0.1687, -0.3313, 0.5), (0.5, -0.4187, -0.0813)
"""Of red, green and blue, as in BT.601."""

LENGTH = 2 * (_BINS * _BINS + _BINS)
"""Of the vector of a person."""


def colours_of_planes(planes: Planes, boxes_xyxy: F32, keypoints: F32) -> F32:
    """The colours (N, LENGTH) of people in a YUV 4:2:0 picture, limited range.

    ``boxes_xyxy`` (N, 4) and ``keypoints`` (N, K, 3) in pixels of the picture; 17 joints are taken for those of COCO.
    Who is half or more outside the frame has NaN.
    """
    luma, u, v = planes
    at, inside = _sampled(boxes_xyxy, keypoints, luma.shape)
    y, x = at
    values = np.stack([luma[y, x], u[y // 2, x // 2], v[y // 2, x // 2]], axis=-1).astype(np.float64)
    return _vectors(values, inside)


def colours_of_bgr(bgr: U8, boxes_xyxy: F32, keypoints: F32) -> F32:
    """As `colours_of_planes`, in a (H, W, 3) BGR picture."""
    at, inside = _sampled(boxes_xyxy, keypoints, bgr.shape[:2])
    rgb = bgr[at][..., ::-1].astype(np.float64)
    low, high = _LUMA_RANGE
    values = rgb @ np.array([_LUMA, _U, _V]).T * [(high - low) / 255, 224 / 255, 224 / 255] + [low, 128, 128]
    return _vectors(values, inside)


def _sampled(
    boxes: F32, keypoints: F32, size: tuple[int, ...]
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]:
    """Rows and columns of the samples (N, 2, P), within the picture, and which of them really lie in it."""
    places = _grid(_parts(boxes.astype(np.float64), keypoints.astype(np.float64)))
    height, width = size[:2]
    whole = np.floor(np.nan_to_num(places, nan=-1.0)).clip(-1, 1 << 30).astype(np.int64)
    x, y = whole[..., 0], whole[..., 1]
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    return (y.clip(0, height - 1), x.clip(0, width - 1)), inside


def _parts(boxes: F64, keypoints: F64) -> F64:
    """The corners of trunk and thighs (N, 2, 4, 2): left and right above, left and right below."""
    of_box = np.stack([_of_box(boxes, _TRUNK_OF_BOX), _of_box(boxes, _THIGHS_OF_BOX)], axis=1)
    if keypoints.shape[1] != 17:
        return of_box
    corners = [_SHOULDERS + _HIPS, _HIPS + _KNEES]
    of_joints = np.stack([keypoints[:, joints, :2] for joints in corners], axis=1)
    known = np.stack([(keypoints[:, joints, 2] >= _KNOWN).all(axis=1) for joints in corners], axis=1)
    return np.where(known[:, :, None, None], of_joints, of_box)


def _of_box(boxes: F64, heights: tuple[float, float]) -> F64:
    """The corners (N, 4, 2) of a part of each box."""
    left, top, right, bottom = boxes.T
    across = [left + (right - left) * part for part in _SIDES_OF_BOX]
    down = [top + (bottom - top) * part for part in heights]
    return np.stack([np.stack([x, y], axis=-1) for y in down for x in across], axis=1)


def _grid(corners: F64) -> F64:
    """Points spread over each quadrangle: (N, 2, 4, 2) -> (N, 2, P, 2)."""
    steps = (np.arange(_POINTS) + 0.5) / _POINTS
    across, down = (part.reshape(-1) for part in np.meshgrid(steps, steps))
    weights = np.stack([(1 - across) * (1 - down), across * (1 - down), (1 - across) * down, across * down])
    return np.asarray(np.einsum("npcd,ck->npkd", corners, weights))


def _vectors(values: F64, inside: NDArray[np.bool_]) -> F32:
    """Of the samples (N, 2, P, 3) in Y, U and V, those that lie ``inside`` (N, 2, P)."""
    count = len(values)
    low, high = _LUMA_RANGE
    luma = _shares((values[..., 0] - low) / (high - low) * (_BINS - 1))
    u, v = (_shares((values[..., i] - 128) / _CHROMA_STEP + (_BINS - 1) / 2) for i in (1, 2))
    weights = inside.astype(np.float64)
    bright = np.einsum("npk,npkb->npb", weights, luma)
    colour = np.einsum("npk,npka,npkb->npab", weights, u, v, optimize=True).reshape(count, 2, _BINS * _BINS)
    sums = weights.sum(axis=2, keepdims=True)
    parts = np.concatenate([_COLOUR_PART * colour, (1 - _COLOUR_PART) * bright], axis=2)
    vectors = np.sqrt(parts / np.maximum(sums, 1.0) / 2).reshape(count, LENGTH)
    seen = (weights.mean(axis=2) >= _LEAST_INSIDE).all(axis=1)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    vectors[~seen] = np.nan
    return np.asarray(vectors, np.float32)


def _shares(places: F64) -> F64:
    """The shares of each value in the two bins beside it, (..., bins): no step at the border of a bin."""
    return np.asarray(np.maximum(0.0, 1 - np.abs(places.clip(0, _BINS - 1)[..., None] - np.arange(_BINS))))
