"""Transformers of the DETR family: a fixed number of queries, each a box or nothing, and no overlaps to suppress. Pure.

    rtdetr_rows    rows (N, 4 + C): cx, cy, w, h, C scores                boxes are fractions of the picture
    rtdetr_end2end rows (N, 6): cx, cy, w, h, score, class                boxes are fractions of the picture
    detr           boxes (N, 4) cx, cy, w, h, logits (N, C)               fractions; each class has a sigmoid of its own
                   the same, logits (N, C + 1)                            RF-DETR: the last class is `background`
    detr_softmax   the same, logits (N, C + 1)                            a softmax; the last class is `no object`

`rtdetr_rows`: RT-DETR as older versions of Ultralytics export it, `rtdetr_end2end` as newer ones do; the module
`end2end` has RT-DETR of its own project. `detr`: RF-DETR, and RT-DETR, D-FINE, Deformable and Conditional DETR of
transformers. `detr_softmax`: DETR and YOLOS of transformers.

A query of `detr` may be of two classes, as in the post-processing of these projects: each that scores enough is one
detection. Sources: the exporters of these projects. No real weights were at hand: the tests build graphs to these
contracts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.decoding.detections import Detections, xyxy_of
from camgraph.stages.vision.decoding.promised import numbers_of
from camgraph.stages.vision.probabilities import probabilities

F32 = NDArray[np.float32]

_BOX = 4


def decode_rtdetr_rows(rows: F32, *, size: tuple[int, int], min_score: float) -> Detections:
    """``rows`` is (N, 4 + C), ``size`` the picture's (width, height) in pixels."""
    scores = rows[:, _BOX:].max(axis=1)
    passed = np.flatnonzero(scores >= min_score)
    kinds = rows[passed, _BOX:].argmax(axis=1)
    return _detections(rows[passed, :_BOX], scores[passed], kinds, size)


def decode_rtdetr_end2end(rows: F32, *, size: tuple[int, int], min_score: float) -> Detections:
    """``rows`` is (N, 6), ``size`` the picture's (width, height) in pixels."""
    taken = rows[rows[:, _BOX] >= min_score]
    return _detections(taken[:, :_BOX], taken[:, _BOX], numbers_of(taken[:, _BOX + 1]), size)


def decode_detr(boxes: F32, logits: F32, *, size: tuple[int, int], min_score: float) -> Detections:
    """``boxes`` (N, 4), ``logits`` (N, C), ``size`` the picture's (width, height) in pixels."""
    scores = probabilities(logits.astype(np.float32), "sigmoid")
    queries, kinds = np.nonzero(scores >= min_score)
    return _detections(boxes[queries], scores[queries, kinds], kinds, size)


def decode_detr_softmax(boxes: F32, logits: F32, *, size: tuple[int, int], min_score: float) -> Detections:
    """``boxes`` (N, 4), ``logits`` (N, C + 1), ``size`` the picture's (width, height) in pixels."""
    shares = probabilities(logits.astype(np.float32), "softmax")[:, :-1]
    scores = shares.max(axis=1)
    passed = np.flatnonzero(scores >= min_score)
    return _detections(boxes[passed], scores[passed], shares[passed].argmax(axis=1), size)


def _detections(boxes: F32, scores: F32, kinds: NDArray[np.int64], size: tuple[int, int]) -> Detections:
    """Of boxes cx, cy, w, h in fractions of the picture."""
    pixels = xyxy_of(boxes.astype(np.float32)) * np.array([*size, *size], np.float32)
    return Detections(pixels, scores.astype(np.float32), kinds, np.empty((len(scores), 0, 3), np.float32))
