"""Who a new track may have been before: people who were lost behind something and come out at another place.

    lost track   last place, velocity        new track   first place, velocity, so many seconds later
                 x - - - - - - - - - - - - - - - - - > o
                 within reach of the way that it would have gone on, as large, not the other way, and nobody else is;
                 if appearance is known, also nobody who looks like a stranger

This is told beside the new id and never instead of it: it is likely, not sure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.tracking.appearance import LooksScale

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

NOBODY = 0
_REACH, _REACH_A_SECOND = 0.25, 0.2
"""How far beside the expected way somebody may come out, in heights."""
_SIZE_RATIO = 0.12
"""The logarithm of the ratio of two heights, at most."""
_WALKING = 0.3
"""Heights a second, from which on a direction is known."""
_STRANGER = 0.3
"""The likeness of looks below which it is somebody else."""
_TWICE_AS_FAR = 2.0
"""Another candidate has to be this much farther off, otherwise nobody is named."""


class Passage(NamedTuple):
    """Of N tracks: `ids`, `classes`, `times_ns` (N,), `places` and `velocities` (N, 2) and `heights` (N,), in pixels,
    and `looks` (N, D).

    Lost tracks as they were last seen, new ones as they began; velocities are the last known ones.
    """

    ids: I64
    classes: I64
    times_ns: I64
    places: F64
    velocities: F64
    heights: F64
    looks: F64

    @classmethod
    def nobody(cls) -> Passage:
        """Of no track."""
        none, pairs = np.empty(0, np.int64), np.empty((0, 2))
        return cls(none, none, none, pairs, pairs, np.empty(0), np.empty((0, 0)))

    def taken(self, rows: I64 | NDArray[np.bool_]) -> Passage:
        """Only these."""
        return Passage._make(values[rows] for values in self)

    def joined(self, other: Passage) -> Passage:
        """These, then those; of other looks than those, nothing is known."""
        mine = self if self.looks.shape[1:] == other.looks.shape[1:] else self._replace(looks=_unknown(self, other))
        return Passage._make(np.concatenate(both) for both in zip(mine, other, strict=True))


def _unknown(of: Passage, like: Passage) -> F64:
    return np.full((len(of.ids), *like.looks.shape[1:]), np.nan)


def continued(lost: Passage, new: Passage, scale: LooksScale) -> I64:
    """The id of the lost track that each new one goes on, (M,); `NOBODY` where none or several may be it."""
    far = np.where(_strangers(lost, new, scale), np.inf, _distances(lost, new))
    ids = np.full(len(new.ids), NOBODY, np.int64)
    for row, column in zip(*np.nonzero(far <= 1.0), strict=True):
        others = np.concatenate((np.delete(far[:, column], row), np.delete(far[row], column)))
        if not len(others) or others.min() > _TWICE_AS_FAR * max(far[row, column], 0.25):
            ids[column] = lost.ids[row]
    return ids


def _distances(lost: Passage, new: Passage) -> F64:
    """(N, M): how far new tracks begin from the ways of lost ones, in their reach; infinite for whom they cannot be."""
    gap_s = (new.times_ns[None, :] - lost.times_ns[:, None]) / 1e9
    way = lost.velocities[:, None] * gap_s[:, :, None]
    gone = new.places[None, :] - lost.places[:, None]
    length = (way**2).sum(axis=2)
    part = np.clip((gone * way).sum(axis=2) / np.maximum(length, 1e-9), 0, 1)
    beside = np.sqrt(((gone - part[:, :, None] * way) ** 2).sum(axis=2))
    heights = np.sqrt(lost.heights[:, None] * new.heights[None, :])
    far = beside / (heights * (_REACH + _REACH_A_SECOND * gap_s.clip(0)))
    possible = (gap_s > 0) & (lost.classes[:, None] == new.classes[None, :])
    possible &= np.abs(np.log(lost.heights[:, None] / new.heights[None, :])) <= _SIZE_RATIO
    return np.where(possible & ~_turned(lost, new), far, np.inf)


def _strangers(lost: Passage, new: Passage, scale: LooksScale) -> NDArray[np.bool_]:
    """(N, M): who looks like somebody else."""
    rows, columns = (part.reshape(-1) for part in np.indices((len(lost.ids), len(new.ids))))
    alike = scale.likeness(lost.looks[rows], new.looks[columns])
    return np.asarray((alike < _STRANGER).reshape(len(lost.ids), len(new.ids)))


def _turned(lost: Passage, new: Passage) -> NDArray[np.bool_]:
    """(N, M): who walks the other way."""
    speeds = [np.hypot(*one.velocities.T) / one.heights for one in (lost, new)]
    walking = (speeds[0] > _WALKING)[:, None] & (speeds[1] > _WALKING)[None, :]
    along = (lost.velocities[:, None] * new.velocities[None, :]).sum(axis=2)
    return np.asarray(walking & (along < 0))
