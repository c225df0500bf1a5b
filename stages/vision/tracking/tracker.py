"""Gives the people of one camera identities that last.

    every frame    predict all tracks to the frame's time
      1  good people   x  confirmed tracks        how alike: boxes, poses, sizes
      2  weak people   x  confirmed tracks left   a person half hidden scores low: no new track, but it goes on
      3  people left   x  confirmed tracks left   only two who have nobody else near them
      4  good people   x  tracks not yet confirmed
      5  good people left over                    begin tracks

    begun --seen for `confirm_s`--> confirmed --unseen--> lost --`max_lost_s`--> forgotten
      |                                  ^                  |
      +--unseen once--> forgotten        +------seen--------+

How alike two are is the overlap of their boxes, widened by the doubt of the prediction: little from frame to frame,
much after a gap. A part of it is the similarity of poses; and it falls with the ratio of sizes, and with the time for
which a track is lost. So a lost track is taken up again only by somebody who can be there by now, and who is as large;
anybody else begins a new one.

Whoever falls, crouches or jumps is another shape within a few frames, and not where the prediction has them. But nobody
can vanish and be replaced by somebody else at once: pass 3 gives a track that was just seen to the only person near it,
whatever their shape. A detection that shows a part of another one (`doubles`) counts as weak, and as nobody there.

A sighting stands for the time since the frame before it: at 25 frames a second a track needs several, at 5 one is
enough. `max_lost_s` is widened for cameras whose frames are farther apart than that. A track gets its id when it is
confirmed, so that boxes which flash up use none.

Sources: ByteTrack (Zhang et al., ECCV 2022) for the two passes over good and weak boxes, C-BIoU (Yang et al., WACV
2023) for widened boxes. The motion model is in `motion`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.frame_interval import FrameInterval
from camgraph.stages.vision.tracking.appearance import LooksScale
from camgraph.stages.vision.tracking.continuation import Passage, continued
from camgraph.stages.vision.tracking.known_tracks import NO_ID, Memory, People, heights_of
from camgraph.stages.vision.tracking.matching import (
    F64,
    Rows,
    match,
    only_ones,
    pose_likeness,
    rows_of,
    similarity,
    size_likeness,
    torso_lengths,
    turned_round,
)
from camgraph.stages.vision.tracking.motion import Motion

_LOST_TRUST = 0.3
"""The likeness of a track that is lost for a second is less by this part."""
_FAR = 0.05
"""Boxes that overlap by less are nobody's: their poses are not compared."""
_CERTAIN = 0.7
"""The likeness from which on a pair of pass 1 is no rival of others."""
_JUST_SEEN_NS, _LONG_NS = 500_000_000, 1_000_000_000
"""A track that was seen so long before the last frame, or later, may go on in another shape. If frames are farther
apart than the second time, somebody else may have come instead.
"""
_APART_NS, _STILL_THERE = 250_000_000, 0.3
"""If frames are farther apart, somebody beside others must be where the track is expected: the boxes, not widened,
overlap by so much. In that time a stranger may have come instead.
"""
_SAME_PLACE = 0.5
"""Whose box overlaps by so much with where a track was seen last did not turn round, but came to a stop."""
_NOBODY = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class TrackerOptions:
    """Scores, overlaps and weights are in [0, 1]."""

    good_score: float = 0.25
    """People from here on are matched first, and may begin a track."""
    weak_score: float = 0.05
    """People below are ignored."""
    new_score: float = 0.4
    """People below begin no track."""
    sure_score: float = 0.6
    """People from here on have a confirmed track at once."""
    min_overlap: float = 0.2
    min_overlap_weak: float = 0.4
    widen: float = 0.9
    """Boxes are compared with their sides moved outwards by so many standard deviations of the predicted place."""
    pose_weight: float = 0.35
    """The part of the likeness that poses have; boxes have the rest."""
    look_weight: float = 0.4
    """By this part the likeness is less for somebody who looks like a stranger, if appearance is known."""
    size_spread: float = 0.27
    """The standard deviation of the logarithm of the ratio of sizes."""
    confirm_s: float = 0.12
    max_lost_s: float = 3.0
    continue_s: float = 8.0
    """For so long after somebody was lost, a new track may be told to go on theirs."""


class Followed(NamedTuple):
    """The confirmed tracks of one frame: `rows` (M,) of the people that were handed in, ascending, and their `ids`.

    `continues` (M,): the id of an earlier track that was lost and is likely the same person's; 0 if there is none.
    """

    rows: Rows
    ids: Rows
    continues: Rows


class Tracker:
    """The tracks of one camera and epoch. The ids begin at `first_id` and count up."""

    def __init__(self, options: TrackerOptions, first_id: int = 1) -> None:
        self.options = options
        self.next_id = first_id
        self._time_ns: int | None = None
        self._dt_ns = 0
        self._interval = FrameInterval()
        self._motion = Motion.begun(np.empty((0, 4)))
        self._known = Memory.empty()
        self._looks_scale = LooksScale()
        self._gone = Passage.nobody()
        """Tracks that are forgotten, for `continue_s`."""

    def __len__(self) -> int:
        """How many tracks it remembers."""
        return len(self._known)

    def follow(
        self,
        time_ns: int,
        boxes_xyxy: F64,
        scores: F64,
        classes: NDArray[np.int64] | None = None,
        keypoints: F64 | None = None,
        *,
        appearance: F64 | None = None,
    ) -> Followed:
        """Take the boxes (N, 4), scores (N,), classes (N,), keypoints (N, K, 3) and looks (N, D) of the next frame.

        Boxes and scores must be finite; joints and looks that are not finite count as unknown. A track keeps its class.
        `time_ns` is the frame's; a time that runs backwards counts as no time.
        """
        boxes = np.asarray(boxes_xyxy, np.float64).reshape(-1, 4)
        joints = _known_joints(keypoints, len(boxes))
        kinds = np.zeros(len(boxes), np.int64) if classes is None else classes
        looks = np.empty((len(boxes), 0)) if appearance is None else appearance
        people = People(boxes, scores, kinds, joints, heights_of(boxes), torso_lengths(joints), looks)
        self._predict(time_ns)
        if len(boxes):  # an empty frame does not say what its people would have had
            self._known = self._known.like(people)
        owners = np.full(len(people.boxes), -1, np.int64)
        left = self._associate(people, owners)
        self._correct(time_ns, people, owners)
        owners = self._forget(time_ns, owners)
        self._begin(time_ns, people, left[scores[left] >= self.options.new_score], owners)
        self._name(time_ns, people, owners)
        return self._confirmed(owners)

    def _predict(self, time_ns: int) -> None:
        dt_ns = max(0, time_ns - self._time_ns) if self._time_ns is not None else 0
        self._time_ns, self._dt_ns = time_ns, dt_ns
        self._interval.note(time_ns)
        # Before anybody is compared: after a long gap the doubt is so great that anybody would do.
        recent = time_ns - self._known.seen_ns <= self._interval.at_least(round(self.options.max_lost_s * 1e9))
        if not recent.all():
            self._let_go(time_ns, ~recent)
        if len(self._known) and dt_ns > 0:
            self._motion = self._motion.predicted(dt_ns / 1e9, self._known.seen)

    def _associate(self, people: People, owners: Rows) -> Rows:
        """Write each person's track into `owners`; returns the good ones that have none."""
        options, scores = self.options, people.scores
        whole = ~doubles(people.boxes, scores, people.keypoints)
        is_good = (scores >= options.good_score) & whole
        good = rows_of(is_good)
        weak = rows_of((scores >= options.weak_score) & ~is_good)
        if not len(self._known) or not len(people.boxes):
            return good
        likeness = self._likeness(people)

        def paired(tracks: Rows, rows: Rows, least: float) -> tuple[Rows, Rows]:
            """Those of each that are left over."""
            if not len(tracks) or not len(rows):
                return tracks, rows
            pairs = match(likeness[tracks[:, None], rows], least=least)
            owners[rows[pairs.boxes]] = tracks[pairs.tracks]
            return tracks[pairs.tracks_left], rows[pairs.boxes_left]

        named = self._known.ids != NO_ID
        waiting, left = paired(rows_of(named), good, options.min_overlap)
        waiting, weak_left = paired(waiting, weak, options.min_overlap_weak)
        if len(waiting) and len(left) + len(weak_left) and self._dt_ns <= _LONG_NS:
            matched = rows_of(owners >= 0)
            certain = matched[likeness[owners[matched], matched] >= _CERTAIN]
            beside = owners[certain]
            self._pair_alone(people, good, owners)
            is_good[certain] = False
            self._pair_alone(people, rows_of(is_good), owners, beside=beside)
            self._pair_alone(people, rows_of(whole & (scores >= options.weak_score)), owners)
            left = left[owners[left] < 0]
        return paired(rows_of(~named), left, options.min_overlap)[1]

    def _pair_alone(self, people: People, there: Rows, owners: Rows, beside: Rows = _NOBODY) -> None:
        """Pass 3 among the people in the rows `there`. Writes into `owners`.

        Of tracks in `beside`, whose people are known for certain, nobody is a rival: but then less may have happened
        since the last frame.
        """
        known, motion = self._known, self._motion
        assert self._time_ns is not None
        ago_ns = self._time_ns - self._dt_ns - known.seen_ns
        just_seen = (known.ids != NO_ID) & (ago_ns <= _JUST_SEEN_NS)
        just_seen[beside] = False
        tracks = rows_of(just_seen)
        owned = np.zeros(len(known) + 1, bool)
        owned[owners] = True  # those of nobody are in the last place, which is no track
        boxes, doubt = people.boxes[there], self.options.widen * motion.doubt[tracks]
        overlap = np.maximum(
            similarity(motion.boxes_xyxy[tracks], boxes, doubt), similarity(known.boxes[tracks], boxes, doubt)
        )
        alone = only_ones(np.where(overlap >= _FAR, overlap, 0.0))
        alone &= (known.classes[tracks][:, None] == people.classes[there]) & (owners[there] < 0)
        alone &= ~owned[tracks][:, None]
        turned = turned_round(known.boxes[tracks], motion.velocity[tracks, 0], boxes)
        alone &= ~turned | (similarity(known.boxes[tracks], boxes) >= _SAME_PLACE)
        least = np.where(people.scores[there] < self.options.good_score, self.options.min_overlap, _FAR)
        if len(beside):
            alone &= known.seen[tracks][:, None]
            least = np.full(len(there), self.options.min_overlap)
            if self._dt_ns > _APART_NS:
                alone &= similarity(motion.boxes_xyxy[tracks], boxes) >= _STILL_THERE
        found_tracks, found_rows = np.nonzero(alone & (overlap >= least))
        owners[there[found_rows]] = tracks[found_tracks]

    def _likeness(self, people: People) -> F64:
        """Of each track and person, (T, N) in [0, 1]."""
        options, known, motion = self.options, self._known, self._motion
        doubt = options.widen * motion.doubt
        overlap = similarity(motion.boxes_xyxy, people.boxes, doubt)
        near = (overlap >= _FAR) & (known.classes[:, None] == people.classes[None, :])
        tracks, rows = np.nonzero(near)
        alike = overlap[tracks, rows]
        if options.pose_weight and people.keypoints.shape[1]:
            moved = motion.place[:, :2] - known.anchors
            areas = motion.place[:, 2] * motion.place[:, 3]
            poses = pose_likeness(
                known.keypoints[tracks], moved[tracks], people.keypoints[rows], areas[tracks], doubt[tracks]
            )
            alike = np.where(np.isnan(poses), alike, alike + options.pose_weight * (poses - alike))
        alike *= size_likeness(
            known.heights[tracks], known.torsos[tracks], people.heights[rows], people.torsos[rows], options.size_spread
        )
        if options.look_weight and people.looks.shape[1]:
            looks = self._looks_scale.likeness(known.looks[tracks], people.looks[rows])
            alike *= np.where(np.isnan(looks), 1.0, 1 - options.look_weight * (1 - looks))
        likeness = np.zeros_like(overlap)
        likeness[tracks, rows] = alike * self._trust()[tracks]
        return likeness

    def _trust(self) -> F64:
        """(T,): less for tracks that are lost for longer, for others may have come into their place."""
        assert self._time_ns is not None
        lost_s = (self._time_ns - self._known.seen_ns - self._dt_ns) / 1e9
        # `np.clip` takes several times as long.
        return np.asarray(1 - _LOST_TRUST * np.minimum(np.maximum(lost_s, 0), 1))

    def _correct(self, time_ns: int, people: People, owners: Rows) -> None:
        rows = rows_of(owners >= 0)
        tracks = owners[rows]
        if len(rows):
            self._motion = self._motion.corrected(tracks, people.boxes[rows])
        anchors = self._motion.place[tracks, :2]
        if people.looks.shape[1]:
            self._looks_scale.learn(self._known.looks[tracks], people.looks[rows])
        self._known.note(tracks, time_ns, self._dt_ns, people.taken(rows), anchors)

    def _name(self, time_ns: int, people: People, owners: Rows) -> None:
        """Give ids to the tracks that are confirmed by now, in the order of their beginning."""
        rows = rows_of(owners >= 0)
        tracks, known = owners[rows], self._known
        ripe = known.watched_ns[tracks] >= self.options.confirm_s * 1e9
        ripe |= people.scores[rows] >= self.options.sure_score
        ripe &= known.ids[tracks] == NO_ID
        if not ripe.any():
            return
        tracks = np.sort(tracks[ripe])
        known.ids[tracks] = np.arange(self.next_id, self.next_id + len(tracks))
        self.next_id += len(tracks)
        if self.options.continue_s:
            self._ask_who_they_were(time_ns, tracks)

    def _ask_who_they_were(self, time_ns: int, tracks: Rows) -> None:
        known = self._known
        lost = rows_of(~known.seen & (known.ids != NO_ID))
        gone = self._gone.joined(self._passage(lost, known.seen_ns, known.anchors))
        gone = gone.taken(time_ns - gone.times_ns <= self.options.continue_s * 1e9)
        gone = gone.taken(~np.isin(gone.ids, known.continues))
        if len(gone.ids):
            begun = self._passage(tracks, known.began_ns, known.first_places)
            known.continues[tracks] = continued(gone, begun, self._looks_scale)

    def _passage(self, rows: Rows, times_ns: Rows, places: F64) -> Passage:
        known, velocities = self._known, self._motion.velocity[:, :2]
        return Passage(
            known.ids[rows],
            known.classes[rows],
            times_ns[rows],
            places[rows],
            velocities[rows],
            known.heights[rows],
            known.looks[rows],
        )

    def _forget(self, time_ns: int, owners: Rows) -> Rows:
        """Let go of tracks that must not be missed once. Returns `owners` with the rows that the others have now."""
        known = self._known
        kept = known.seen | (known.ids != NO_ID) if self.options.max_lost_s else known.seen
        if kept.all():
            return owners
        self._let_go(time_ns, ~kept)
        renumbered = np.append(np.cumsum(kept) - 1, -1)
        return np.asarray(renumbered[owners])

    def _let_go(self, time_ns: int, dropped: NDArray[np.bool_]) -> None:
        """Forget these tracks (T,), but for what `continues` needs."""
        known = self._known
        if self.options.continue_s:
            lost = rows_of(dropped & (known.ids != NO_ID))
            gone = self._gone.joined(self._passage(lost, known.seen_ns, known.anchors))
            self._gone = gone.taken(time_ns - gone.times_ns <= self.options.continue_s * 1e9)
        rows = rows_of(~dropped)
        self._motion, self._known = self._motion.taken(rows), known.taken(rows)

    def _begin(self, time_ns: int, people: People, rows: Rows, owners: Rows) -> None:
        if not len(rows):
            return
        first = len(self._known)
        owners[rows] = np.arange(first, first + len(rows))
        begun = people.taken(rows)
        self._motion = self._motion.joined(Motion.begun(begun.boxes))
        self._known = self._known.joined(Memory.begun(time_ns, self._dt_ns, begun))

    def _confirmed(self, owners: Rows) -> Followed:
        rows = rows_of(owners >= 0)
        ids, continues = self._known.ids[owners[rows]], self._known.continues[owners[rows]]
        return Followed(rows[ids != NO_ID], ids[ids != NO_ID], continues[ids != NO_ID])


def _known_joints(keypoints: F64 | None, count: int) -> F64:
    """A copy, (N, K, 3), in which joints that are not finite have no confidence."""
    if keypoints is None:
        return np.empty((count, 0, 3))
    known = np.array(keypoints, np.float64)
    finite = np.isfinite(known)
    if not finite.all():
        known[~finite.all(axis=2)] = 0.0
    return known


# ---- detections that show a part of somebody who is detected as a whole as well
#
# Models find the lower half of a person beside the whole one now and then. Its box overlaps by too little to be
# suppressed, and its joints are those of the whole.

_INSIDE = 0.9
"""A box of which so much lies in another may show a part of the same person."""
_SURE = 0.2
"""The confidence from which on a joint is compared."""
_NEAR = 0.06
"""Joints of one person agree to this part of the height of the larger box."""
_AGREE = 0.7
"""The part of the joints that both know which must agree."""
_LEAST_JOINTS = 3


def doubles(boxes_xyxy: F64, scores: F64, keypoints: F64) -> NDArray[np.bool_]:
    """Which of N people are a part of another one, (N,).

    ``boxes_xyxy`` (N, 4), ``scores`` (N,), ``keypoints`` (N, K, 3). A part scores lower than the whole, lies in its
    box, and has its joints where the whole has them; without joints, nobody is one.
    """
    found = np.zeros(len(boxes_xyxy), bool)
    if len(boxes_xyxy) < 2 or not keypoints.shape[1]:
        return found
    left, top, right, bottom = boxes_xyxy.T
    width = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    height = np.minimum.outer(bottom, bottom) - np.maximum.outer(top, top)
    shared = np.maximum(width, 0) * np.maximum(height, 0)
    areas = np.maximum(right - left, 1e-9) * np.maximum(bottom - top, 1e-9)
    nested = (shared >= _INSIDE * areas[:, None]) & (scores[:, None] < scores[None])
    parts, wholes = np.nonzero(nested)
    if len(parts):
        heights = boxes_xyxy[wholes, 3] - boxes_xyxy[wholes, 1]
        found[parts[_joints_agree(keypoints[parts], keypoints[wholes], _NEAR * heights)]] = True
    return found


def _joints_agree(ones: F64, others: F64, within: F64) -> NDArray[np.bool_]:
    """Of P pairs (P, K, 3), (P,): whether enough of the joints that both are sure of lie together."""
    both = (ones[:, :, 2] >= _SURE) & (others[:, :, 2] >= _SURE)
    apart = np.hypot(*np.moveaxis(ones[:, :, :2] - others[:, :, :2], 2, 0))
    known = both.sum(axis=1)
    agree = (both & (apart <= within[:, None])).sum(axis=1)
    return np.asarray((known >= _LEAST_JOINTS) & (agree >= _AGREE * known))
