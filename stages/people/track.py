"""Follows people from frame to frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from camgraph.pipeline.errors import BadItem
from camgraph.pipeline.messages import End, Message, Stamp
from camgraph.pipeline.stage import Context, Counts, Settings, Stage, Upstream
from camgraph.stages.messages import People, Tracks
from camgraph.stages.vision.decoding.score_ranges import score_range
from camgraph.stages.vision.tracking import Followed, Tracker, TrackerOptions
from camgraph.stages.vision.tracking.known_tracks import heights_of
from camgraph.stages.vision.tracking.smoothing import Smoother

SEEN = "people"
FOLLOWED = "people_followed"
"""Counters, a camera each: people of a good score in all frames together, and all those who had a track."""
_SCORES = ("weak_score", "good_score", "new_score", "sure_score")
IDS_OF_AN_INCARNATION = 1_000_000


class TrackSettings(Settings):
    """When two boxes are the same person."""

    good_score: float | None = Field(
        None,
        ge=0,
        le=1,
        description="People from this score on are matched first, and may begin a track; by default as the model "
        "scores: 0.3, and 0.2 for MoveNet MultiPose",
    )
    weak_score: float | None = Field(
        None,
        ge=0,
        le=1,
        description="People between this score and good_score only continue tracks; below, none count. By default 0.1, "
        "and 0.05 for MoveNet MultiPose",
    )
    new_score: float | None = Field(
        None,
        ge=0,
        le=1,
        description="People below this score begin no track; by default 0.4, and 0.3 for MoveNet MultiPose",
    )
    sure_score: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Tracks of people from this score on count at once; by default 0.7, and 0.45 for MoveNet MultiPose",
    )
    min_overlap: float = Field(
        0.2,
        gt=0,
        le=1,
        description="A person is the track that is as like as this: by the overlap with the predicted box (IoU), less "
        "for another pose, another size, and a track that is lost for longer",
    )
    min_overlap_weak: float = Field(0.4, gt=0, le=1, description="As min_overlap, for people below good_score")
    widen: float = Field(
        0.9, ge=0, le=5, description="Boxes are compared widened by so many standard deviations of the predicted place"
    )
    pose_weight: float = Field(
        0.35, ge=0, le=1, description="The part of the likeness that keypoints have, if they are known; boxes the rest"
    )
    look_weight: float = Field(
        0.4,
        ge=0,
        le=1,
        description="By this part the likeness is less for somebody who looks like a stranger; counts only behind "
        "`add_colours` or `add_embeddings`",
    )
    size_spread: float = Field(
        0.27, ge=0.05, le=5, description="How far sizes may differ: the standard deviation of their ratio's logarithm"
    )
    confirm_s: float = Field(
        0.12,
        ge=0,
        le=60,
        description="A track counts, and gets its id, once it was seen for so many seconds in a row; each frame stands "
        "for the time since the frame before",
    )
    max_lost_s: float = Field(
        3.0,
        ge=0,
        le=600,
        description="A track that was not seen for so many seconds of stream time is forgotten; more if frames come so "
        "seldom that one lost frame would be enough, unless it is 0",
    )

    continue_s: float = Field(
        8.0,
        ge=0,
        le=60,
        description="If a new track begins where somebody who was lost no longer ago would be by now, `continues` "
        "names the lost track; 0: never",
    )
    smooth: bool = Field(
        False, description="Smooth the keypoints over time (one-euro filter): less trembling, no lag for fast movement"
    )

    @model_validator(mode="after")
    def _in_order(self) -> TrackSettings:
        if self.weak_score is not None and self.good_score is not None and self.weak_score > self.good_score:
            raise ValueError(f"weak_score {self.weak_score:g} is above good_score {self.good_score:g}: lower it")
        return self

    def options(self) -> TrackerOptions:
        """With the usual scores for those that are left open."""
        usual = score_range(None)
        scores = {name: getattr(self, name) for name in _SCORES}
        known = {
            name: getattr(usual, name.removesuffix("_score")) if one is None else one for name, one in scores.items()
        }
        return TrackerOptions(**{**self.model_dump(exclude={"smooth"}), **known})


@dataclass(slots=True)
class _Camera:
    epoch: int
    tracker: Tracker
    smoother: Smoother = field(default_factory=Smoother)


class Track(Stage[TrackSettings]):
    """People -> Tracks: those people of the frame whose track is confirmed, in the order in which they came.

    The others from `weak_score` on are in `other_boxes`: who has just come, or is hardly seen.

    `continues` names the lost track that a new one is likely to go on. Tracks that are not seen in a frame are not in
    its output: outputs are measured, never guessed. The ids of a camera count up from 1, through all epochs; a
    restarted process begins a million higher, so that no id comes twice in a run. A new epoch forgets the tracks. In a
    photograph (`Stamp.alone`) everybody who may begin a track is confirmed at once, and forgotten afterwards. Raises
    BadItem `nonfinite`.
    """

    settings_type = TrackSettings
    inputs = People
    outputs = (Tracks,)
    counts: ClassVar[Counts] = {
        SEEN: "People of a good score, counted in each frame anew.",
        FOLLOWED: "Those of `people` who had a track.",
        "dropped.nonfinite": "A box or a score of a person was no finite number.",
    }
    stateful = True

    def __init__(self, settings: TrackSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._options = settings.options()
        self._smooth = settings.smooth
        self._cameras: dict[str, _Camera] = {}
        self._next_ids: dict[str, int] = {}

    @classmethod
    def follow(cls, settings: TrackSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        """The range in which the model before it scores; of several models the lowest of each."""
        scores = [facts["scores"] for facts in upstream.nearest("scores").values()]
        open_ones = [name for name in _SCORES if scores and getattr(settings, name) is None]
        return {name: min(facts[name.removesuffix("_score")] for facts in scores) for name in open_ones}

    def process(self, items: Sequence[People]) -> Iterable[Message]:
        # All are looked at before any is remembered: after a BadItem the runtime hands them in again one by one.
        for item in items:
            if not (np.isfinite(item.boxes).all() and np.isfinite(item.scores).all()):
                raise BadItem("nonfinite", "a box or score of a person is no number")
        return [self._follow(item) for item in items]

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        gone = self._cameras.pop(camera, None)
        if gone:
            self._next_ids[camera] = gone.tracker.next_id
        return ()

    def _follow(self, item: People) -> Tracks:
        tracker = self._tracker(item.stamp)
        found = tracker.follow(
            item.stamp.time_ns,
            item.boxes.astype(np.float64),
            item.scores.astype(np.float64),
            item.classes,
            item.keypoints.astype(np.float64),
            appearance=item.appearance.astype(np.float64),
        )
        rows = found.rows
        others = item.scores >= self._options.weak_score
        others[rows] = False
        self.context.count(SEEN, item.stamp.camera, int((item.scores >= self._options.good_score).sum()))
        self.context.count(FOLLOWED, item.stamp.camera, len(rows))
        return Tracks(
            item.stamp,
            item.boxes[rows],
            item.scores[rows],
            self._joints(item, found),
            item.frame_size,
            item.classes[rows],
            item.skeleton,
            found.ids,
            found.continues,
            other_boxes=item.boxes[others],
            other_keypoints=item.keypoints[others],
        )

    def _joints(self, item: People, found: Followed) -> NDArray[np.float32]:
        """(M, K, 3) of those who are followed, smoothed if that is wanted."""
        keypoints = item.keypoints[found.rows]
        if not self._smooth or item.stamp.alone:
            return keypoints
        boxes = item.boxes[found.rows].astype(np.float64)
        smoother = self._cameras[item.stamp.camera].smoother
        at = item.stamp.time_ns
        return smoother.smoothed(at, found.ids, keypoints.astype(np.float64), heights_of(boxes)).astype(np.float32)

    def _tracker(self, stamp: Stamp) -> Tracker:
        known = self._cameras.get(stamp.camera)
        if known and known.epoch == stamp.epoch and not stamp.alone:
            return known.tracker
        if known:
            self._next_ids[stamp.camera] = known.tracker.next_id
        first = (self.context.incarnation - 1) * IDS_OF_AN_INCARNATION + 1
        options = replace(self._options, confirm_s=0.0) if stamp.alone else self._options
        tracker = Tracker(options, self._next_ids.get(stamp.camera, first))
        self._cameras[stamp.camera] = _Camera(stamp.epoch, tracker)
        return tracker
