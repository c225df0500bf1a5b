"""Detections with true identities, at any frame rate, and with the errors of a worse detector."""

from __future__ import annotations

from collections.abc import Sequence as Rows
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.lab.benchmarks.track_accuracy.measures import F64, Labelled


class Found(NamedTuple):
    """The detections of one frame: `boxes` (N, 4) xyxy, `scores` (N,), `keypoints` (N, K, 3) x, y, confidence."""

    boxes: F64
    scores: F64
    keypoints: F64

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Found:
        """These of them, in this order."""
        return Found(self.boxes[rows], self.scores[rows], self.keypoints[rows])


@dataclass(frozen=True)
class Sequence:
    """A scene of one camera: of each frame its time, the true people and the detections by a model of `format`."""

    name: str
    times_ns: Rows[int]
    truths: Rows[Labelled]
    found: Rows[Found]
    format: str = "movenet_multipose"

    def at(self, fps: float) -> Sequence:
        """The same scene seen `fps` times a second: at each time that is due, the frame that is there by then."""
        times = np.array(self.times_ns, np.int64)
        due = np.arange(times[0], times[-1] + 1, 1e9 / fps)
        rows = np.unique(np.searchsorted(times, due + 1, side="right") - 1)
        return replace(
            self,
            times_ns=[self.times_ns[row] for row in rows],
            truths=[self.truths[row] for row in rows],
            found=[self.found[row] for row in rows],
        )


@dataclass(frozen=True)
class Jitter:
    """Errors to add to detections. Boxes, as parts of their own size; scores as they are."""

    box: float = 0.03
    score: float = 0.05
    dropped: float = 0.05
    """The part of the detections that are left out."""

    def of(self, sequence: Sequence, seed: int) -> Sequence:
        """The sequence with errors; the same `seed` makes the same ones. Seed 0 makes none."""
        if seed == 0:
            return sequence
        random = np.random.default_rng(seed)
        found = [self._shaken(one, random) for one in sequence.found]
        return replace(sequence, found=found)

    def _shaken(self, found: Found, random: np.random.Generator) -> Found:
        count = len(found.boxes)
        size = np.tile(found.boxes[:, 2:] - found.boxes[:, :2], 2)
        boxes = found.boxes + self.box * size * random.standard_normal((count, 4))
        keypoints = found.keypoints.copy()
        points = keypoints.shape[1]
        keypoints[:, :, :2] += self.box / 2 * size[:, None, :2] * random.standard_normal((count, points, 2))
        scores = np.clip(found.scores + self.score * random.standard_normal(count), 0.0, 1.0)
        kept = random.random(count) >= self.dropped
        return Found(boxes, scores, keypoints).take(kept)
