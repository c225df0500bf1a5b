"""Pose models that look at one person in each picture, and say where each keypoint may be. Pure.

    simcc       x (K, 2W), y (K, 2H): how likely each half pixel is; RTMPose                    of pictures of W x H
    heatmaps    (K, H/4, W/4): how likely each cell is; ViTPose, HRNet, SimpleBaseline

`simcc`: a keypoint is where both are highest, and as sure as the lower of the two maxima; any number of parts of a
pixel will do. `heatmaps`: a keypoint is at the highest cell, moved by at most a cell to the top of a Gaussian through
its neighbours (DARK), and as sure as that cell. The outer cells lie on the outer pixels (UDP): keypoints of models that
were trained without UDP come out up to three pixels too far to the right and to the bottom.

The person's score is the mean of the confidences, the box spans the keypoints. Sources: the codecs of mmpose; the
papers on SimCC (2107.03332), DARK (1910.06278) and UDP (1911.07524). No real weights were at hand: the tests build
graphs to these contracts.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.decoding.detections import Detections, person_of

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_BLUR, _SIGMA = 5, 2.0
"""Cells to either side, and the standard deviation, of the blur before a heat map is refined: it takes out noise."""
_FLOOR = 1e-10
"""Of values whose logarithm is taken."""


def decode_simcc(x: F32, y: F32, *, size: tuple[int, int], min_score: float) -> Detections:
    """``x`` is (K, any), ``y`` (K, any), ``size`` the picture's (width, height) in pixels."""
    places = np.stack([x.argmax(axis=1) * (size[0] / x.shape[1]), y.argmax(axis=1) * (size[1] / y.shape[1])], axis=1)
    return person_of(_points(places, np.minimum(x.max(axis=1), y.max(axis=1))), min_score)


def decode_heatmaps(heatmaps: F32, *, size: tuple[int, int], min_score: float) -> Detections:
    """``heatmaps`` is (K, h, w), ``size`` the picture's (width, height) in pixels."""
    _, height, width = heatmaps.shape
    best = heatmaps.reshape(len(heatmaps), -1).argmax(axis=1)
    rows, columns = np.divmod(best, width)
    cells = np.stack([columns, rows], axis=1) + _shifts(heatmaps, rows, columns)
    pixels_each = (np.array(size) - 1) / np.maximum((width - 1, height - 1), 1)
    return person_of(_points(cells * pixels_each, heatmaps[np.arange(len(heatmaps)), rows, columns]), min_score)


def _points(places: F64, confidences: F32) -> F32:
    """(K, 2) and (K,) -> (K, 3)."""
    return np.concatenate([places, confidences.clip(0, 1)[:, None]], axis=1).astype(np.float32)


def _shifts(heatmaps: F32, rows: I64, columns: I64) -> F64:
    """(K, 2) x, y: from the highest cell of each map to the top of the Gaussian there, in cells, at most one.

    A logarithm of a Gaussian is a parabola: its gradient and second derivatives at the cell say where the top is. A map
    that has no top there, such as a flat one, moves nothing.
    """
    near = np.log(np.maximum(_blurred_around(heatmaps, rows, columns), _FLOOR))
    dx, dy = (near[:, 1, 2] - near[:, 1, 0]) / 2, (near[:, 2, 1] - near[:, 0, 1]) / 2
    dxx = near[:, 1, 2] - 2 * near[:, 1, 1] + near[:, 1, 0]
    dyy = near[:, 2, 1] - 2 * near[:, 1, 1] + near[:, 0, 1]
    dxy = (near[:, 2, 2] - near[:, 2, 0] - near[:, 0, 2] + near[:, 0, 0]) / 4
    determinant = dxx * dyy - dxy * dxy
    has_top = (determinant > 0) & (dxx < 0)
    divisor = np.where(has_top, determinant, 1)
    shifts = np.stack([dxy * dy - dyy * dx, dxy * dx - dxx * dy], axis=1) / divisor[:, None]
    return np.where(has_top[:, None] & (np.abs(shifts) <= 1).all(axis=1, keepdims=True), shifts, 0)


def _blurred_around(heatmaps: F32, rows: I64, columns: I64) -> F64:
    """(K, 3, 3): each map around its cell, blurred as if it were surrounded by zeros."""
    reach = np.arange(-_BLUR - 1, _BLUR + 2)
    y, x = rows[:, None] + reach, columns[:, None] + reach
    _, height, width = heatmaps.shape
    inside = ((y >= 0) & (y < height))[:, :, None] & ((x >= 0) & (x < width))[:, None, :]
    each = np.arange(len(heatmaps))[:, None, None]
    window = heatmaps[each, y.clip(0, height - 1)[:, :, None], x.clip(0, width - 1)[:, None, :]]
    weights = _weights()
    return np.asarray(weights @ np.where(inside, window, 0).astype(np.float64) @ weights.T)


@lru_cache(maxsize=1)
def _weights() -> F64:
    """(3, 13): how much each cell of a window counts for its middle three."""
    gaussian = np.exp(-(np.arange(-_BLUR, _BLUR + 1) ** 2) / (2 * _SIGMA**2))
    weights = np.zeros((3, len(gaussian) + 2))
    for row in range(3):
        weights[row, row : row + len(gaussian)] = gaussian / gaussian.sum()
    return weights
