"""Who is who: pairs of tracks and boxes that belong together."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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


@functools.cache
def assignment() -> Callable[..., Any]:
    """SciPy's linear_sum_assignment: alone if its compiled module is found, for all of SciPy's optimisers take 0.4 s.

    Only a process that tracks pays even the rest, when it opens.
    """
    package = importlib.util.find_spec("scipy")
    folders = [f"{folder}/optimize" for folder in (package and package.submodule_search_locations) or ()]
    found = importlib.machinery.PathFinder.find_spec("_lsap", folders)
    if found is None or found.loader is None:
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415
    else:
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        linear_sum_assignment = module.linear_sum_assignment
    return linear_sum_assignment  # type: ignore[no-any-return]


def match(scores: F64, *, least: float) -> Pairs:
    """The pairs of the largest sum of ``scores`` (N, M), of which those below ``least`` come apart again.

    Pairs below ``least`` weigh nothing in the sum, so that they never cost a good pair its partner.
    """
    allowed = scores >= least
    tracks, boxes = assignment()(np.where(allowed, scores, 0.0), maximize=True)
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
