"""Who is the only one near: a track and a person without rivals belong together in any shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.vision.tracking.memory import heights_of

F64 = NDArray[np.float64]

_WALKS, _BACK = 0.4, 0.05
"""Body heights a second, and body heights: who goes so fast to one side is not so far on the other one at once."""


def only_ones(near: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of tracks and people that are ``near`` each other (T, N), the pairs that have nobody else near them."""
    return np.asarray(near & (near.sum(axis=1) == 1)[:, None] & (near.sum(axis=0) == 1))


def turned_round(seen_xyxy: F64, velocity_x: F64, found_xyxy: F64) -> NDArray[np.bool_]:
    """Whether each of N people (T, 4) would go the other way at once if they were each of (M, 4): (T, M).

    ``velocity_x`` (T,) in pixels a second. Who walks out of the picture while another one comes in does not turn round.
    """
    heights = heights_of(seen_xyxy)[:, None]
    moved = (found_xyxy[:, 0] + found_xyxy[:, 2])[None] / 2 - (seen_xyxy[:, 0] + seen_xyxy[:, 2])[:, None] / 2
    along = moved * np.sign(velocity_x)[:, None]
    return np.asarray((np.abs(velocity_x)[:, None] > _WALKS * heights) & (along < -_BACK * heights))
