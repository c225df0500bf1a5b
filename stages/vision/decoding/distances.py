"""Boxes as distances from cells to their left, upper, right and lower side. Pure; overlaps are still to be suppressed.

    nanodet   rows (cells, C + 32): C scores, 4 x 8 logits of how likely a distance is 0, 1, ... 7 cells
    picodet   for each stride of 8, 16, 32, 64: scores (cells, C), and the same logits (cells, 32)
    scrfd     for each stride of 8, 16, 32: scores (2 * cells, 1), boxes (2 * cells, 4), five points (2 * cells, 10)

    nanodet   NanoDet: strides 8, 16, 32, from the middle of a cell; NanoDet-Plus: also 64, from its upper left corner
    picodet   from the middle of a cell
    scrfd     two anchors a cell, which are equal, from its upper left corner; points are x, y from there, in cells

Scores are 0 to 1 already. The last cells of a row or column may lie partly outside: 416 pixels have 7 cells of 64. The
strides follow each other, the cells of each go row by row. Sources: the exporters of NanoDet, PaddleDetection and
InsightFace; PicoDet was compared with a published model. For the others no weights were at hand: the tests build
graphs to these contracts.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.decoding.detections import Detections, points_of
from camgraph.stages.vision.decoding.yolo_heads import STRIDES
from camgraph.stages.vision.probabilities import probabilities

F32 = NDArray[np.float32]

NANODET_STRIDES = (STRIDES, (*STRIDES, 64))
"""Of NanoDet, and of NanoDet-Plus."""
PICODET_STRIDES = (*STRIDES, 64)
BINS = 8
FACE_POINTS = 5
ANCHORS = 2
"""Of SCRFD, in a cell."""


def decode_picodet(scores: list[F32], logits: list[F32], *, size: tuple[int, int], min_score: float) -> Detections:
    """Arrays (cells, C) and (cells, 32) of each stride, for pictures of ``size`` (width, height)."""
    rows = np.concatenate([np.concatenate(parts) for parts in (scores, logits)], axis=1)
    classes = scores[0].shape[1]
    return decode_nanodet(rows, size=size, strides=PICODET_STRIDES, classes=classes, min_score=min_score, middle=0.5)


def decode_nanodet(
    rows: F32,
    *,
    size: tuple[int, int],
    strides: tuple[int, ...],
    classes: int,
    min_score: float,
    middle: float | None = None,
) -> Detections:
    """``rows`` is (cells, C + 32) of these ``strides``, ``size`` the picture's (width, height).

    ``middle``: from where in a cell distances are measured, in cells; by default as NanoDet does with these strides.
    """
    highest = rows[:, :classes].max(axis=1)
    passed = np.flatnonzero(highest >= min_score)
    taken = rows[passed].astype(np.float32)
    likely = probabilities(taken[:, classes:].reshape(-1, BINS), "softmax")
    distances = (likely @ np.arange(BINS, dtype=np.float32)).reshape(-1, 4)
    middle = (0.5 if strides == STRIDES else 0.0) if middle is None else middle
    cells = np.concatenate([_cells(*size, stride) for stride in strides])[passed]
    boxes = _boxes(cells[:, :2] + np.float32(middle), np.asarray(distances, np.float32)) * cells[:, 2:]
    kinds = taken[:, :classes].argmax(axis=1)
    return Detections(boxes, highest[passed].astype(np.float32), kinds, np.empty((len(passed), 0, 3), np.float32))


def decode_scrfd(
    scores: list[F32], boxes: list[F32], points: list[F32], *, size: tuple[int, int], min_score: float
) -> Detections:
    """Arrays (2 * cells, 1), (2 * cells, 4) and (2 * cells, 10) of each stride, for pictures of ``size`` (w, h)."""
    found = [
        _faces(*level, min_score)
        for level in zip(scores, boxes, points, (_cells(*size, stride) for stride in STRIDES), strict=True)
    ]
    return Detections(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _faces(scores: F32, boxes: F32, points: F32, cells: F32, min_score: float) -> Detections:
    """Those of one stride."""
    passed = np.flatnonzero(scores[:, 0] >= min_score)
    places, strides = cells[passed // ANCHORS, :2], cells[passed // ANCHORS, 2:]
    moved = points[passed].astype(np.float32).reshape(-1, FACE_POINTS, 2) + places[:, None]
    return Detections(
        _boxes(places, boxes[passed].astype(np.float32)) * strides,
        scores[passed, 0].astype(np.float32),
        np.zeros(len(passed), np.int64),
        points_of((moved * strides[:, None]).reshape(-1, 2 * FACE_POINTS), 2),
    )


def _boxes(places: F32, distances: F32) -> F32:
    """(N, 2) and (N, 4) left, top, right, bottom -> (N, 4) xyxy."""
    return np.concatenate([places - distances[:, :2], places + distances[:, 2:]], axis=1)


def cells_of_strides(width: int, height: int, strides: tuple[int, ...]) -> int:
    """How many cells of these sides a picture has, with those that lie partly outside."""
    return sum(-(-width // stride) * -(-height // stride) for stride in strides)


@lru_cache(maxsize=32)
def _cells(width: int, height: int, stride: int) -> F32:
    """(cells, 3): x and y in units of the cell, and its stride in pixels. Shared: do not write to it."""
    y, x = np.mgrid[: -(-height // stride), : -(-width // stride)].reshape(2, -1)
    return np.stack([x, y, np.full(len(x), stride)], axis=1).astype(np.float32)
