"""Pictures that look a little like frames, to try models on where nobody has given any. Pure, and always the same."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
_SEED = 20


def sample_pictures(count: int, size: tuple[int, int]) -> U8:
    """(count, H, W, 3) for a ``size`` of (width, height): coarse patches with a little noise.

    As in frames, neighbours resemble each other: a black picture shows nothing of what a model computes.
    """
    random = np.random.default_rng(_SEED)
    width, height = size
    coarse = random.integers(0, 256, (count, max(2, height // 32), max(2, width // 32), 3), np.uint8)
    smooth = np.stack([cv2.resize(one, size, interpolation=cv2.INTER_CUBIC) for one in coarse])
    noise = random.integers(-8, 9, (count, height, width, 3), np.int16)
    return np.asarray(np.clip(smooth + noise, 0, 255), np.uint8)
