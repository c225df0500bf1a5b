"""Which layer missed a fall: the first of these in which something is missing, judged by the frames of the fall.

    person   in most of the frames nobody is found
    track    somebody is followed before and after, but by different ids
    joints   the one who goes down the most has no shoulders, hips or legs in most of the frames
    rule     all of this is there, and the rule says no

The truth does not say where in the picture somebody falls. So this is a guess if there are several people.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from stages.messages import Tracks
from tools.benchmarks.real_actions.truth import Happening

Layer = Literal["person", "track", "joints", "rule"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
BEFORE_S, AFTER_S = 1.0, 1.5
_LEAST_CONFIDENCE = 0.2
"""As `fall` asks for."""
_NEEDED = ([5, 6], [11, 12], [13, 14])
"""COCO joints; of each pair one is enough: shoulders, hips, knees."""


def layer_of(fall: Happening, tracks: Sequence[Tracks]) -> Layer:
    """`tracks`: of the whole clip."""
    frames = [one for one in tracks if fall.start_s - BEFORE_S <= _at_s(one) <= fall.end_s + AFTER_S]
    if sum(len(one.ids) > 0 for one in frames) <= len(frames) / 2:
        return "person"
    faller = _faller(frames)
    before = {int(track) for one in frames if _at_s(one) <= fall.start_s for track in one.ids}
    after = {int(track) for one in frames if _at_s(one) >= fall.end_s for track in one.ids}
    if faller not in before & after and before and after:
        return "track"
    rows = [(one, int(row)) for one in frames for row in np.flatnonzero(one.ids == faller)]
    if sum(_has_joints(one, row) for one, row in rows) <= len(frames) / 2:
        return "joints"
    return "rule"


def _at_s(one: Tracks) -> float:
    return one.stamp.time_ns / 1e9


def _faller(frames: Sequence[Tracks]) -> int:
    """The track whose box goes down the most, in heights of its first box."""
    boxes: dict[int, list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]] = {}
    for one in frames:
        for track, box in zip(one.ids.tolist(), one.boxes, strict=True):
            boxes.setdefault(track, []).append(box)
    middles = {track: [float(box[1] + box[3]) / 2 for box in some] for track, some in boxes.items()}
    heights = {track: max(1.0, float(some[0][3] - some[0][1])) for track, some in boxes.items()}
    return max(middles, key=lambda track: (max(middles[track]) - middles[track][0]) / heights[track])


def _has_joints(one: Tracks, row: int) -> bool:
    confidence = one.keypoints[row, :, 2]
    return all(float(confidence[pair].max()) >= _LEAST_CONFIDENCE for pair in _NEEDED)
