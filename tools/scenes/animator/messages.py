"""Frames of a scene as messages of the pipeline: `People` for the tracker, `Tracks` with the true ids for rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from camgraph.pipeline.messages import Stamp
from camgraph.stages.messages import People, Tracks
from camgraph.tools.scenes.animator.scene import Seen


def people(frames: Iterable[Seen], camera: str = "cam") -> Iterator[People]:
    """Everything that the model reports, false boxes too, as the stage `decode` would send it."""
    for number, seen in enumerate(frames):
        yield People(
            _stamp(number, seen, camera),
            seen.boxes,
            seen.scores,
            seen.keypoints,
            seen.frame_size,
            np.zeros(len(seen.boxes), np.int64),
        )


def tracks(frames: Iterable[Seen], camera: str = "cam", *, min_score: float = 0.3) -> Iterator[Tracks]:
    """As a tracker without a mistake would send it: the detections of real people under their true ids."""
    for number, seen in enumerate(frames):
        rows = np.flatnonzero((seen.ids > 0) & (seen.scores >= min_score))
        yield Tracks(
            _stamp(number, seen, camera),
            seen.boxes[rows],
            seen.scores[rows],
            seen.keypoints[rows],
            seen.frame_size,
            np.zeros(len(rows), np.int64),
            ids=seen.ids[rows],
        )


def _stamp(number: int, seen: Seen, camera: str) -> Stamp:
    at = seen.time_ns
    return Stamp(camera, 0, number, at, at, at, at)
