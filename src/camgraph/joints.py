"""Joints of a person by their names."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.vision.skeleton import COCO_17

NAMES = {"coco-17": COCO_17}
"""Of each skeleton whose joints have names: these, in the order of its keypoints."""


class Joint(NamedTuple):
    """`x`, `y` in pixels of the frame, `confidence` in [0, 1]: near 0 for a joint that the model did not see."""

    x: float
    y: float
    confidence: float


def joint(keypoints: NDArray[np.floating[Any]], skeleton: str, name: str) -> Joint:
    """Return a joint of `keypoints` (K, 3). Raises ValueError if the skeleton has no joint of this name."""
    names = NAMES.get(skeleton, ())
    if name not in names or len(keypoints) != len(names):
        known = f"expected one of {', '.join(names)}" if names else f"the joints of {skeleton} have no names"
        raise ValueError(f"no joint is called {name!r}: {known}{did_you_mean(name, names)}")
    return Joint(*map(float, keypoints[names.index(name)]))
