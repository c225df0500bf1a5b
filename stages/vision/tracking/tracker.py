"""Gives the boxes of one camera identities that last.

    every frame    predict all tracks to the frame's time
      1  good boxes   x  confirmed tracks            overlap with the prediction
      2  weak boxes   x  confirmed tracks seen last  a person half hidden scores low: no new track, but it goes on
      3  good boxes   x  tracks not yet confirmed
      4  good boxes left over                        begin tracks

    begun --seen `confirm_frames` times in a row--> confirmed --unseen--> lost --`max_lost_s`--> forgotten
      |                                                 ^                  |
      +--unseen once--> forgotten                       +------seen--------+

`max_lost_s` is widened for cameras whose frames are farther apart than that.

A track gets its id when it is confirmed, so that boxes which flash up use none. Sources: ByteTrack (Zhang et al.,
ECCV 2022) for the two passes over good and weak boxes, C-BIoU (Yang et al., WACV 2023) for widened boxes, here by how
unsure the prediction is: little from frame to frame, much after a gap. The motion model is in `motion`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.vision.frame_interval import FrameInterval
from stages.vision.tracking.matching import F64, Pairs, Rows, match, similarity
from stages.vision.tracking.motion import Motion

NO_ID = 0


@dataclass(frozen=True, slots=True)
class TrackerOptions:
    """Scores and overlaps are in [0, 1]."""

    good_score: float = 0.3
    """Boxes from here on are matched first, and may begin a track."""
    weak_score: float = 0.1
    """Boxes below are ignored."""
    new_score: float = 0.4
    """Boxes below begin no track."""
    min_overlap: float = 0.3
    min_overlap_weak: float = 0.4
    widen: float = 1.0
    """Boxes are compared with their sides moved outwards by so many standard deviations of the predicted place."""
    confirm_frames: int = 2
    max_lost_s: float = 2.0


class Followed(NamedTuple):
    """The confirmed tracks of one frame: `rows` (M,) of the boxes that were handed in, ascending, and their `ids`."""

    rows: Rows
    ids: Rows


class Tracker:
    """The tracks of one camera and epoch. The ids begin at `first_id` and count up."""

    def __init__(self, options: TrackerOptions, first_id: int = 1) -> None:
        self.options = options
        self.next_id = first_id
        self._time_ns: int | None = None
        self._interval = FrameInterval()
        self._motion = Motion.begun(np.empty((0, 4)))
        self._ids = np.empty(0, np.int64)
        self._classes = np.empty(0, np.int64)
        self._hits = np.empty(0, np.int64)
        self._seen_ns = np.empty(0, np.int64)
        self._seen = np.empty(0, bool)

    def follow(self, time_ns: int, boxes_xyxy: F64, scores: F64, classes: NDArray[np.int64] | None = None) -> Followed:
        """Take the boxes (N, 4), scores (N,) and classes (N,) of the next frame. All must be finite.

        A track keeps its class. `time_ns` is the frame's; a time that runs backwards counts as no time.
        """
        kinds = np.zeros(len(boxes_xyxy), np.int64) if classes is None else classes
        boxes = np.asarray(boxes_xyxy, np.float64).reshape(-1, 4)
        self._predict(time_ns)
        owners = np.full(len(boxes), -1, np.int64)
        good = np.flatnonzero(scores >= self.options.good_score)
        weak = np.flatnonzero((scores >= self.options.weak_score) & (scores < self.options.good_score))
        left = self._associate(boxes, kinds, good, weak, owners)
        self._correct(time_ns, boxes, owners)
        owners_kept = self._forget(time_ns, owners)
        self._begin(time_ns, boxes, kinds, left[scores[left] >= self.options.new_score], owners_kept)
        return self._confirmed(owners_kept)

    def _predict(self, time_ns: int) -> None:
        dt_s = max(0, time_ns - self._time_ns) / 1e9 if self._time_ns is not None else 0.0
        self._time_ns = time_ns
        self._interval.note(time_ns)
        if len(self._motion) and dt_s > 0:
            self._motion = self._motion.predicted(dt_s, self._seen)

    def _associate(self, boxes: F64, kinds: Rows, good: Rows, weak: Rows, owners: Rows) -> Rows:
        """Write each box's track into `owners`; returns the good boxes that have none."""
        options = self.options
        confirmed = np.flatnonzero(self._ids != NO_ID)
        first = self._pairs(confirmed, boxes, kinds, good, options.min_overlap)
        owners[good[first.boxes]] = confirmed[first.tracks]
        waiting = confirmed[first.tracks_left]
        waiting = waiting[self._seen[waiting]]
        second = self._pairs(waiting, boxes, kinds, weak, options.min_overlap_weak)
        owners[weak[second.boxes]] = waiting[second.tracks]
        left = good[first.boxes_left]
        begun = np.flatnonzero(self._ids == NO_ID)
        third = self._pairs(begun, boxes, kinds, left, options.min_overlap)
        owners[left[third.boxes]] = begun[third.tracks]
        return left[third.boxes_left]

    def _pairs(self, tracks: Rows, boxes: F64, kinds: Rows, rows: Rows, least: float) -> Pairs:
        if not len(tracks) or not len(rows):
            nothing = np.empty(0, np.int64)
            return Pairs(nothing, nothing, np.arange(len(tracks)), np.arange(len(rows)))
        likeness = similarity(
            self._motion.boxes_xyxy[tracks], boxes[rows], self.options.widen * self._motion.doubt[tracks]
        )
        likeness[self._classes[tracks][:, None] != kinds[rows][None, :]] = 0.0
        return match(likeness, least=least)

    def _correct(self, time_ns: int, boxes: F64, owners: Rows) -> None:
        rows = np.flatnonzero(owners >= 0)
        tracks = owners[rows]
        self._seen = np.zeros(len(self._ids), bool)
        self._seen[tracks] = True
        self._hits[tracks] += 1
        self._seen_ns[tracks] = time_ns
        if len(rows):
            self._motion = self._motion.corrected(tracks, boxes[rows])
        ripe = tracks[(self._ids[tracks] == NO_ID) & (self._hits[tracks] >= self.options.confirm_frames)]
        self._name(ripe)

    def _name(self, tracks: Rows) -> None:
        self._ids[tracks] = np.arange(self.next_id, self.next_id + len(tracks))
        self.next_id += len(tracks)

    def _forget(self, time_ns: int, owners: Rows) -> Rows:
        """Let go of tracks that were not seen for too long. Returns `owners` with the rows that the others have now."""
        lost_ns = round(self.options.max_lost_s * 1e9)
        recent = time_ns - self._seen_ns <= (self._interval.at_least(lost_ns) if lost_ns else 0)
        kept = self._seen | ((self._ids != NO_ID) & recent)
        if kept.all():
            return owners
        rows = np.flatnonzero(kept)
        self._motion = self._motion.taken(rows)
        self._ids, self._classes, self._hits = self._ids[rows], self._classes[rows], self._hits[rows]
        self._seen_ns, self._seen = self._seen_ns[rows], self._seen[rows]
        renumbered = np.append(np.cumsum(kept) - 1, -1)
        return np.asarray(renumbered[owners])

    def _begin(self, time_ns: int, boxes: F64, kinds: Rows, rows: Rows, owners: Rows) -> None:
        if not len(rows):
            return
        first = len(self._ids)
        owners[rows] = np.arange(first, first + len(rows))
        self._motion = self._motion.joined(Motion.begun(boxes[rows]))
        self._ids = np.append(self._ids, np.full(len(rows), NO_ID))
        self._classes = np.append(self._classes, kinds[rows])
        self._hits = np.append(self._hits, np.ones(len(rows), np.int64))
        self._seen_ns = np.append(self._seen_ns, np.full(len(rows), time_ns))
        self._seen = np.append(self._seen, np.ones(len(rows), bool))
        if self.options.confirm_frames <= 1:
            self._name(owners[rows])

    def _confirmed(self, owners: Rows) -> Followed:
        rows = np.flatnonzero(owners >= 0)
        ids = self._ids[owners[rows]] if len(rows) else np.empty(0, np.int64)
        return Followed(rows[ids != NO_ID], ids[ids != NO_ID])
