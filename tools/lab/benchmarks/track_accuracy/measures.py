"""How well identities were kept, by the measures of the field.

`measure` gives all of them; each compares the boxes of true people with those of tracks, frame by frame.

MOTA and switches   CLEAR MOT (Bernardin and Stiefelhagen, 2008): a pair of the frame before stays while it overlaps by
                    half
IDF1                Ristani et al. (2016): the best one-to-one mapping of whole identities
HOTA                Luiten et al. (2020): detection and association in equal parts, over 19 thresholds of overlap
passed              how often an id that was one person's became another one's: each switches incidents, too
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from camgraph.stages.vision.tracking.matching import match, similarity

F64 = NDArray[np.float64]
Ids = NDArray[np.int64]
Labelled = tuple[Ids, F64]
"""The identities (N,) and boxes (N, 4) xyxy of one frame."""

HALF = 0.5
_THRESHOLDS = np.arange(0.05, 0.99, 0.05)


@dataclass
class Accuracy:
    """Sums over the frames of a sequence."""

    truths: int = 0
    found: int = 0
    hits: int = 0
    switches: int = 0
    fragments: int = 0
    passed: int = 0
    identities: int = 0
    id_hits: int = 0
    hota: float = 0.0
    _last: dict[int, int] = field(default_factory=dict, repr=False)
    _owners: dict[int, int] = field(default_factory=dict, repr=False)
    _before: dict[int, int] = field(default_factory=dict, repr=False)
    _interrupted: set[int] = field(default_factory=set, repr=False)

    @property
    def mota(self) -> float:
        wrong = (self.truths - self.hits) + (self.found - self.hits) + self.switches
        return 1 - wrong / max(1, self.truths)

    @property
    def idf1(self) -> float:
        return 2 * self.id_hits / max(1, self.truths + self.found)

    def add(self, truth: Labelled, found: Labelled) -> None:
        """Count one frame; frames come in order."""
        now = pairs_of(truth, found, self._before)
        self._count(now, [int(i) for i in truth[0]], len(found[0]))

    def _count(self, now: Mapping[int, int], truths: Sequence[int], found: int) -> None:
        self.truths += len(truths)
        self.found += found
        self.hits += len(now)
        self.switches += sum(self._last.get(true_id, own) != own for true_id, own in now.items())
        self.passed += sum(self._owners.get(own, true_id) != true_id for true_id, own in now.items())
        self.fragments += sum(true_id in self._interrupted for true_id in now)
        self._interrupted = (self._interrupted | (set(self._before) & set(truths))) - set(now)
        self._last.update(now)
        self._owners.update({own: true_id for true_id, own in now.items()})
        self._before = dict(now)


def pairs_of(truth: Labelled, found: Labelled, before: Mapping[int, int]) -> dict[int, int]:
    """True id -> the id of the track that has them in this frame. Pairs of the frame ``before`` stay while they can."""
    likeness = similarity(truth[1], found[1])
    for row, true_id in enumerate(truth[0]):
        column = np.flatnonzero(found[0] == before.get(int(true_id), -1))
        if len(column) and likeness[row, column[0]] >= HALF:
            likeness[row, column[0]] += 10.0
    pairs = match(likeness, least=HALF)
    return {int(truth[0][t]): int(found[0][f]) for t, f in zip(pairs.tracks, pairs.boxes, strict=True)}


def measure(truths: Sequence[Labelled], founds: Sequence[Labelled]) -> Accuracy:
    """The accuracy of `founds` (one entry a frame) against `truths`."""
    result = Accuracy()
    for truth, found in zip(truths, founds, strict=True):
        result.add(truth, found)
    result.identities = len({int(i) for ids, _ in founds for i in ids})
    result.id_hits = identity_hits(truths, founds)
    result.hota = hota(truths, founds)
    return result


def idf1(truths: Sequence[Labelled], founds: Sequence[Labelled]) -> float:
    """IDF1 alone, which is much faster."""
    counted = sum(len(ids) for ids, _ in (*truths, *founds))
    return 2 * identity_hits(truths, founds) / max(1, counted)


def identity_hits(truths: Sequence[Labelled], founds: Sequence[Labelled]) -> int:
    """The boxes that are right under the best one-to-one mapping of true identities to found ones."""
    true_rows, own_rows = _numbered(truths), _numbered(founds)
    together = np.zeros((len(true_rows), len(own_rows)))
    for (ids, boxes), (own, own_boxes) in zip(truths, founds, strict=True):
        rows, columns = np.nonzero(similarity(boxes, own_boxes) >= HALF)
        np.add.at(together, (_rows(ids[rows], true_rows), _rows(own[columns], own_rows)), 1)
    return int(together[linear_sum_assignment(together, maximize=True)].sum())


def hota(truths: Sequence[Labelled], founds: Sequence[Labelled]) -> float:
    """Higher order tracking accuracy: the mean over the thresholds of sqrt(detection x association)."""
    true_rows, own_rows = _numbered(truths), _numbered(founds)
    likely = np.zeros((len(true_rows), len(own_rows)))
    true_counts, own_counts = np.zeros((len(true_rows), 1)), np.zeros((1, len(own_rows)))
    frames = []
    for (ids, boxes), (own, own_boxes) in zip(truths, founds, strict=True):
        rows, columns, likeness = _rows(ids, true_rows), _rows(own, own_rows), similarity(boxes, own_boxes)
        shared = likeness.sum(0, keepdims=True) + likeness.sum(1, keepdims=True) - likeness
        likely[np.ix_(rows, columns)] += np.divide(likeness, shared, out=np.zeros_like(shared), where=shared > 0)
        true_counts[rows, 0] += 1
        own_counts[0, columns] += 1
        frames.append((rows, columns, likeness))
    aligned = likely / np.maximum(true_counts + own_counts - likely, 1e-9)
    together = np.zeros((len(_THRESHOLDS), *likely.shape))
    for rows, columns, likeness in frames:
        first, second = linear_sum_assignment(aligned[np.ix_(rows, columns)] * likeness, maximize=True)
        together[:, rows[first], columns[second]] += likeness[first, second] >= _THRESHOLDS[:, None] - 1e-9
    hits = together.sum((1, 2))
    detected = hits / np.maximum(true_counts.sum() + own_counts.sum() - hits, 1)
    joined = together / np.maximum(true_counts + own_counts - together, 1)
    associated = (together * joined).sum((1, 2)) / np.maximum(hits, 1)
    return float(np.sqrt(detected * associated).mean())


def _numbered(frames: Sequence[Labelled]) -> Ids:
    """All identities, ascending; their places are their rows."""
    return np.unique(np.concatenate([ids for ids, _ in frames] or [np.empty(0, np.int64)]))


def _rows(ids: Ids, known: Ids) -> Ids:
    return np.searchsorted(known, ids).astype(np.int64)
