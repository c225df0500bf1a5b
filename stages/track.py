"""Follows people from frame to frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field, model_validator

from pipeline.errors import BadItem
from pipeline.messages import End, Message, Stamp
from pipeline.stage import Context, Settings, Stage
from stages.messages import People, Tracks
from stages.vision.tracking import Tracker, TrackerOptions
from stages.vision.tracking.matching import assignment

SEEN = "people"
FOLLOWED = "people_followed"
"""Counters, a camera each: people in all frames together, and those of them who had a track."""
IDS_OF_AN_INCARNATION = 1_000_000


class TrackSettings(Settings):
    """When two boxes are the same person."""

    good_score: float = Field(
        0.3, ge=0, le=1, description="People from this score on are matched first, and may begin a track"
    )
    weak_score: float = Field(
        0.1, ge=0, le=1, description="People between this score and good_score only continue tracks; below, none count"
    )
    new_score: float = Field(0.4, ge=0, le=1, description="People below this score begin no track")
    min_overlap: float = Field(
        0.3, gt=0, le=1, description="A person is the track whose predicted box it overlaps by at least this (IoU)"
    )
    min_overlap_weak: float = Field(0.4, gt=0, le=1, description="As min_overlap, for people below good_score")
    widen: float = Field(
        1.0, ge=0, le=5, description="Boxes are compared widened by so many standard deviations of the predicted place"
    )
    confirm_frames: int = Field(
        2, ge=1, le=100, description="A track counts, and gets its id, once it was seen in so many frames in a row"
    )
    max_lost_s: float = Field(
        2.0,
        ge=0,
        le=600,
        description="A track that was not seen for so many seconds of stream time is forgotten; more if frames come so "
        "seldom that one lost frame would be enough, unless it is 0",
    )

    @model_validator(mode="after")
    def _in_order(self) -> TrackSettings:
        if self.weak_score > self.good_score:
            raise ValueError(f"weak_score {self.weak_score:g} is above good_score {self.good_score:g}: lower it")
        return self


@dataclass(slots=True)
class _Camera:
    epoch: int
    tracker: Tracker


class Track(Stage[TrackSettings]):
    """People -> Tracks: those people of the frame whose track is confirmed, in the order in which they came.

    Tracks that are not seen in a frame are not in its output: outputs are measured, never guessed. The ids of a camera
    count up from 1, through all epochs; a restarted process begins a million higher, so that no id comes twice in a
    run. A new epoch forgets the tracks. In a photograph (`Stamp.alone`) everybody who may begin a track is confirmed at
    once, and forgotten afterwards. Raises BadItem `nonfinite`.
    """

    settings_type = TrackSettings
    inputs = People
    outputs = (Tracks,)
    stateful = True

    def __init__(self, settings: TrackSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._options = TrackerOptions(**settings.model_dump())
        self._cameras: dict[str, _Camera] = {}
        self._next_ids: dict[str, int] = {}

    def open(self) -> None:
        assignment()

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
            item.stamp.time_ns, item.boxes.astype(np.float64), item.scores.astype(np.float64), item.classes
        )
        rows = found.rows
        self.context.count(SEEN, item.stamp.camera, len(item.boxes))
        self.context.count(FOLLOWED, item.stamp.camera, len(rows))
        return Tracks(
            item.stamp,
            item.boxes[rows],
            item.scores[rows],
            item.keypoints[rows],
            item.frame_size,
            item.classes[rows],
            item.skeleton,
            found.ids,
        )

    def _tracker(self, stamp: Stamp) -> Tracker:
        known = self._cameras.get(stamp.camera)
        if known and known.epoch == stamp.epoch and not stamp.alone:
            return known.tracker
        if known:
            self._next_ids[stamp.camera] = known.tracker.next_id
        first = (self.context.incarnation - 1) * IDS_OF_AN_INCARNATION + 1
        options = replace(self._options, confirm_frames=1) if stamp.alone else self._options
        tracker = Tracker(options, self._next_ids.get(stamp.camera, first))
        self._cameras[stamp.camera] = _Camera(stamp.epoch, tracker)
        return tracker
