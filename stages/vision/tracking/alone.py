"""Who is the only one near: a track and a person without rivals belong together in any shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.vision.tracking.memory import heights_of

F64 = NDArray[np.float64]

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
