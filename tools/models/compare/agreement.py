"""How far two models agree on their findings in the same frames. Pure.

A person that the first model finds is found again if the other one has a box over it (intersection over union of at
least 0.5); each box is matched once, the best of the first model first. Keypoints of matched people are compared by
OKS, the measure of COCO: for each joint exp(-d**2 / (2 * area * k**2)), here over joints that the first model is sure
of. Their confidences agree if both models are sure of the same joints: F1, as for people.

Scores agree as far as those of people in both are the same (1 - the mean of their differences), classes as far as both
give the same. Classes are the same by their names; if a model names none, by their numbers.

A classifier's class for a frame counts as one thing in it. Its scores are compared over all classes, of which the
largest difference counts. As most frames may show the same, classes also count alike: for each class that the first
model saw often enough, the share of its frames for which the other gives the same, and of this the mean.

A comparison without anything to compare has no figure: it is None, not 1.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.messages import People

F32 = NDArray[np.float32]

SAME_BOX = 0.5
SURE = 0.5
"""A model is sure of joints of this confidence. Of the first model's, others are not compared by their places."""
COCO_SPREADS = np.array([0.026, *np.repeat([0.025, 0.035, 0.079, 0.072, 0.062, 0.107, 0.087, 0.089], 2)])
"""COCO's sigmas; k is twice as large. Source: its evaluation code."""
_USUAL_SPREAD = 0.06
OFTEN = 5
"""A class of fewer frames says nothing of how well it is known."""


class Spread(NamedTuple):
    """Of how far joints lie apart: half of them no further than ``median``, 95 % no further than ``p95``."""

    median: float
    p95: float


@dataclass
class Agreement:
    """Counted over frames: people of the first model, of the other, in both; of these the OKS and the joints.

    ``same_class``: of people in both, those with the same class; ``scores_apart``: the sum of their scores'
    differences; ``kinds``: for each class, by its number, how many there are by the first model, ``same_kinds``: by
    both. ``sure_*``: joints of people in both that the first model is sure of, the other one, and both of them.
    """

    frames: int = 0
    first: int = 0
    other: int = 0
    both: int = 0
    same_class: int = 0
    scores_apart: float = 0.0
    kinds: Counter[int] = field(default_factory=Counter)
    same_kinds: Counter[int] = field(default_factory=Counter)
    sure_first: int = 0
    sure_other: int = 0
    sure_both: int = 0
    oks: list[float] = field(default_factory=list)
    apart_px: array[float] = field(default_factory=lambda: array("d"))
    """Of joints that the first model is sure of, in pixels of the frame."""
    apart_of_size: array[float] = field(default_factory=lambda: array("d"))
    """The same, in the square root of the area of the person's box."""

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
    def scores(self) -> float | None:
        """How far the scores of people in both are the same."""
        return 1 - self.scores_apart / self.both if self.both else None

    @property
    def classes(self) -> float | None:
        """Of people in both, how many are called the same."""
        return self.same_class / self.both if self.both else None

    @property
    def classes_alike(self) -> float | None:
        """The same for each class by itself, and the mean over classes; None if fewer than two were seen often."""
        often = [kind for kind, seen in self.kinds.items() if seen >= OFTEN]
        return float(np.mean([self.same_kinds[kind] / self.kinds[kind] for kind in often])) if len(often) > 1 else None

    @property
    def mean_oks(self) -> float | None:
        """Of people in both with joints to compare."""
        return float(np.mean(self.oks)) if self.oks else None

    @property
    def confidences(self) -> float | None:
        """How far the two are sure of the same joints of people in both."""
        return _f1(self.sure_both, self.sure_first, self.sure_other)

    def add(self, first: People, other: People) -> None:
        """One frame more; the other's classes have the first one's numbers (`counterparts`)."""
        self.frames += 1
        self.first += len(first)
        self.other += len(other)
        for one, two in pairs(first.boxes, other.boxes, first.classes[:, None] == other.classes[None]):
            self._add_pair(int(first.classes[one]), int(other.classes[two]))
            self.scores_apart += abs(float(first.scores[one]) - float(other.scores[two]))
            self._compare(first, one, other, two)

    def add_labels(self, first: F32, other: F32 | None, kinds: NDArray[np.int64]) -> None:
        """One frame more of classifiers: their scores (C,) and (D,), None if the other one dropped it.

        ``kinds`` (D,): of the other's classes, the first one's numbers (`counterparts`).
        """
        self.frames += 1
        self.first += 1
        if other is None:
            return
        self.other += 1
        best = int(first.argmax())
        self._add_pair(best, int(kinds[other.argmax()]))
        there = kinds >= 0
        known = np.zeros_like(first)
        known[kinds[there]] = other[there]
        self.scores_apart += float(max(np.abs(first - known).max(), other[~there].max(initial=0)))

    def _add_pair(self, first: int, other: int) -> None:
        self.both += 1
        self.kinds[first] += 1
        self.same_kinds[first] += int(first == other)
        self.same_class += int(first == other)

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
        self.apart_px.extend(apart[sure].tolist())
        self.apart_of_size.extend((apart[sure] / np.sqrt(area)).tolist())


def spread(distances: array[float]) -> Spread | None:
    """None if there are none."""
    return Spread(*np.percentile(distances, (50, 95)).tolist()) if distances else None


def counterparts(first: Sequence[str], other: Sequence[str]) -> NDArray[np.int64]:
    """Of each class of the other model, by its number: the number of the first model's class; -1 if it has none."""
    if _unnamed(first) or _unnamed(other):
        return np.where(np.arange(len(other)) < len(first), np.arange(len(other)), -1)
    numbers = {name: number for number, name in reversed(list(enumerate(first)))}
    return np.array([numbers.get(name, -1) for name in other], np.int64)


def _unnamed(names: Sequence[str]) -> bool:
    """Whether a model has only numbers for its classes, which then stand for names."""
    return all(name == f"class{number}" for number, name in enumerate(names))


def _f1(both: int, first: int, other: int) -> float | None:
    return 2 * both / (first + other) if first + other else None


def oks_of(apart: F32, area: float) -> NDArray[np.float64]:
    """(K,) likeness of joints that are so many pixels apart, of a person of this area."""
    spreads = COCO_SPREADS if len(apart) == len(COCO_SPREADS) else np.full(len(apart), _USUAL_SPREAD)
    return np.asarray(np.exp(-(apart.astype(np.float64) ** 2) / (2 * area * (2 * spreads) ** 2)))


def pairs(first: F32, other: F32, same_class: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Which boxes (N, 4) and (M, 4) are the same: (index, index), each in one pair, ``first`` in its order.

    Of boxes that lie over each other, those of the same class (N, M) are taken before others.
    """
    shared = _shared(first, other)
    found = []
    for one in range(len(first)):
        over = shared[one] >= SAME_BOX
        if over.any():
            two = int(np.where(over, shared[one] + same_class[one], 0).argmax())
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
