"""How alike people look, learnt from the people of the camera.

Vectors of appearance have a range of their own: the dot product of the colours of two strangers is 0.86, that of the
embeddings of another model 0.3. So a dot product counts by where it lies between two means that the tracker learns:

    strangers                     the same person
    0 |------- 0.86 ================= 0.98 ----| 1       dot product
               0 ------- likeness ------ 1

`different` is learnt from people who are in one picture, and `same` from people who go on from frame to frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_MEAN_S = 1.5
"""Time constant of what a track remembers of its looks: light and poses change, a neighbour who is in the way goes."""
_LEAST_SAMPLES = 30
"""Of either kind, before anything is said."""
_MOST_SAMPLES = 5000.0
"""Later samples replace the earliest, as the light changes."""
_LEAST_APART = 0.02
"""If strangers look nearly as alike as one person does, looks tell nothing: uniforms, or a camera in the dark."""


@dataclass(slots=True)
class _Mean:
    value: float = 0.0
    samples: float = 0.0

    def add(self, values: F64) -> None:
        if not len(values):
            return
        self.samples = min(self.samples + len(values), _MOST_SAMPLES)
        self.value += (float(values.mean()) - self.value) * min(1.0, len(values) / self.samples)


class LooksScale:
    """What dot products mean at one camera."""

    def __init__(self) -> None:
        self._same = _Mean()
        self._different = _Mean()

    def likeness(self, remembered: F64, found: F64) -> F64:
        """Of P pairs (P, D), (P,) in [0, 1]; NaN where it is not known."""
        apart = self._same.value - self._different.value
        if (
            not found.shape[1]
            or min(self._same.samples, self._different.samples) < _LEAST_SAMPLES
            or apart < _LEAST_APART
        ):
            return np.full(len(found), np.nan)
        return np.asarray(((_dots(remembered, found) - self._different.value) / apart).clip(0, 1))

    def learn(self, remembered: F64, found: F64) -> None:
        """M people (M, D) who are in one picture, in the same order as their tracks remembered them before."""
        same = _dots(remembered, found)
        self._same.add(same[np.isfinite(same)])
        known = found[np.isfinite(found).all(axis=1)]
        strangers = (known @ known.T)[np.triu_indices(len(known), 1)]
        self._different.add(strangers)


def mixed(before: F64, now: F64, passed_s: F64) -> F64:
    """What M tracks remember (M, D) after they were seen anew, so many seconds later (M,); unit vectors or NaN."""
    part = 1 - np.exp(-passed_s / _MEAN_S)
    mean = before + part[:, None] * (now - before)
    mean /= np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-9)
    return np.where(np.isnan(now), before, np.where(np.isnan(before), now, mean))


def _dots(one: F64, other: F64) -> F64:
    return np.asarray((one * other).sum(axis=1))
