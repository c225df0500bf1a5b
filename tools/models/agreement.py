"""How far two models agree on what they find in the same frames. Pure.

Somebody whom the first model finds is found again where the other one has a box over it (intersection over union of at
least 0.5); each box is matched once, the best of the first model first. Keypoints of matched people are compared by
OKS, the measure of COCO: for each joint exp(-d**2 / (2 * area * k**2)), here over joints that the first model is sure
of. Their confidences agree where both models are sure of the same joints: F1, as of people.

What was never there to be compared has no figure: it is None, not 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stages.messages import People

F32 = NDArray[np.float32]

SAME_BOX = 0.5
SURE = 0.5
"""A model is sure of joints of this confidence. Of the first model's, others are not compared by their places."""
COCO_SPREADS = np.array([0.026, *np.repeat([0.025, 0.035, 0.079, 0.072, 0.062, 0.107, 0.087, 0.089], 2)])
"""COCO's sigmas, of which k is the double. Source: its evaluation code."""
_USUAL_SPREAD = 0.06


@dataclass
class Agreement:
    """Counted over frames: people of the first model, of the other, in both; of these the OKS and the distances.

    ``sure_*``: joints of people in both that the first model is sure of, the other one, and both of them.
    """

    frames: int = 0
    first: int = 0
    other: int = 0
    both: int = 0
    sure_first: int = 0
    sure_other: int = 0
    sure_both: int = 0
    oks: list[float] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    """Of joints, in the square root of the box's area."""

    @property
    def recall(self) -> float | None:
        """Of the first model's people, how many the other finds."""
        return self.both / self.first if self.first else None

    @property
    def precision(self) -> float | None:
        """Of the other model's people, how many the first has."""
        return self.both / self.other if self.other else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of the two."""
        return _f1(self.both, self.first, self.other)

    @property
    def mean_oks(self) -> float | None:
        """Of people in both with joints to compare."""
        return float(np.mean(self.oks)) if self.oks else None

    @property
    def confidences(self) -> float | None:
        """How far the two are sure of the same joints of people in both."""
        return _f1(self.sure_both, self.sure_first, self.sure_other)

    def add(self, first: People, other: People) -> None:
        """One frame more."""
        self.frames += 1
        self.first += len(first)
        self.other += len(other)
        for one, two in pairs(first.boxes, other.boxes):
            self.both += 1
            self._compare(first, one, other, two)

    def _compare(self, first: People, one: int, other: People, two: int) -> None:
        mine, theirs = first.keypoints[one], other.keypoints[two]
        if mine.shape != theirs.shape or not len(mine):
            return
        sure, sure_too = mine[:, 2] >= SURE, theirs[:, 2] >= SURE
        self.sure_first += int(sure.sum())
        self.sure_other += int(sure_too.sum())
        self.sure_both += int((sure & sure_too).sum())
        x1, y1, x2, y2 = first.boxes[one]
        area = float((x2 - x1) * (y2 - y1))
        if not sure.any() or area <= 0:
            return
        apart = np.hypot(*(mine[:, :2] - theirs[:, :2]).T)
        self.oks.append(float(oks_of(apart, area)[sure].mean()))
        self.distances += (apart[sure] / np.sqrt(area)).tolist()


def _f1(both: int, first: int, other: int) -> float | None:
    return 2 * both / (first + other) if first + other else None


def oks_of(apart: F32, area: float) -> NDArray[np.float64]:
    """(K,) likeness of joints that are so many pixels apart, of a person of this area."""
    spreads = COCO_SPREADS if len(apart) == len(COCO_SPREADS) else np.full(len(apart), _USUAL_SPREAD)
    return np.asarray(np.exp(-(apart.astype(np.float64) ** 2) / (2 * area * (2 * spreads) ** 2)))


def pairs(first: F32, other: F32) -> list[tuple[int, int]]:
    """Which boxes (N, 4) and (M, 4) are the same: (index, index), each in one pair, ``first`` in its order."""
    shared = _shared(first, other)
    found = []
    for one in range(len(first)):
        if len(other) and shared[one].max() >= SAME_BOX:
            two = int(shared[one].argmax())
            found.append((one, two))
            shared[:, two] = 0
    return found


def _shared(first: F32, other: F32) -> NDArray[np.float64]:
    """Intersection over union of each pair: (N, M)."""
    one, two = first[:, None].astype(np.float64), other[None].astype(np.float64)
    sides = np.clip(np.minimum(one[..., 2:], two[..., 2:]) - np.maximum(one[..., :2], two[..., :2]), 0, None)
    common = sides.prod(axis=-1)
    areas = [(boxes[..., 2:] - boxes[..., :2]).prod(axis=-1) for boxes in (one, two)]
    return np.asarray(common / np.maximum(areas[0] + areas[1] - common, 1e-9))
