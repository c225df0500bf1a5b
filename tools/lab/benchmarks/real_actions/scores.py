"""What was found, missed (and by which layer) and told falsely: the incidents of a clip against its truth.

A fall is found if one is told from 0.5 s before its beginning to 2 s after somebody is no longer down. If it is told
again in this time, that is counted by itself. Each other one is false, unless it is told of a fall that is not `sure`.
Another action is found if one of its incidents runs in the time of an event; between two events nothing is claimed, so
it is false only in clips whose `right_actions` do not name it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from camgraph.stages.messages import Tracks
from camgraph.tools.lab.benchmarks.real_actions.incidents import Told
from camgraph.tools.lab.benchmarks.real_actions.truth import EARLY_S, FALL, LATE_S, Clip, Happening


@dataclass
class Score:
    """Of one action. `delays_s`: from the end of a fall, or the beginning of another action, until it was told.

    `ordinary_s`: how long the clips are in which nobody does it.
    """

    found: list[tuple[Clip, Happening]] = field(default_factory=list)
    missed: list[tuple[Clip, Happening]] = field(default_factory=list)
    false: list[tuple[Clip, Told]] = field(default_factory=list)
    again: list[tuple[Clip, Told]] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)
    ordinary_s: float = 0.0

    @property
    def events(self) -> int:
        return len(self.found) + len(self.missed)

    def add(self, other: Score) -> None:
        self.found += other.found
        self.missed += other.missed
        self.false += other.false
        self.again += other.again
        self.delays_s += other.delays_s
        self.ordinary_s += other.ordinary_s


def score(action: str, clip: Clip, told: Sequence[Told]) -> Score:
    """`told`: all incidents of the clip."""
    own = [one for one in told if one.action == action]
    result = _of_falls(clip, own) if action == FALL else _of_others(action, clip, own)
    result.ordinary_s = 0.0 if action in clip.named else clip.duration_s
    return result


def _of_falls(clip: Clip, told: Sequence[Told]) -> Score:
    result, found = Score(), list[Happening]()
    falls, unsure = clip.of(FALL, sure=True), clip.of(FALL, sure=False)
    for one in told:
        meant = [fall for fall in falls if fall.is_told_at(one.at_s)]
        # If two falls overlap, the later one is meant: of the earlier one it would have been told before.
        new = max((fall for fall in meant if fall not in found), key=lambda fall: fall.start_s, default=None)
        if new:
            found.append(new)
            result.delays_s.append(one.at_s - new.end_s)
        elif meant:
            result.again.append((clip, one))
        elif not any(fall.is_told_at(one.at_s) for fall in unsure):
            result.false.append((clip, one))
    result.found = [(clip, fall) for fall in falls if fall in found]
    result.missed = [(clip, fall) for fall in falls if fall not in found]
    return result


def _of_others(action: str, clip: Clip, told: Sequence[Told]) -> Score:
    result = Score()
    for event in clip.of(action, sure=True):
        own = [one for one in told if one.at_s <= event.over_s + LATE_S and one.until_s >= event.start_s - EARLY_S]
        (result.found if own else result.missed).append((clip, event))
        if own:
            result.delays_s.append(max(0.0, own[0].at_s - event.start_s))
    if action not in clip.right_actions:
        result.false = [(clip, one) for one in told]
    return result


# ---- which layer missed a fall: the first of these in which something is missing, judged by the frames of the fall
#
#     person   in most of the frames nobody is found
#     track    somebody is followed before and after, but by different ids
#     joints   the one who goes down the most has no shoulders, hips or legs in most of the frames
#     rule     all of this is there, and the rule says no
#
# The truth does not say where in the picture somebody falls. So this is a guess if there are several people.

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
