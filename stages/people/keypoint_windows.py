"""The last seconds of everybody's keypoints, for a model that recognises actions by them.

windows: {use: keypoint_windows, from: tracks, with: {window_s: 4, every_s: 1}}

Tracks of each frame ──> the past of each track ──> Tensor of n rows: the windows that are due, `owner`: their tracks
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from pydantic import Field

from camgraph.pipeline.messages import End
from camgraph.pipeline.stage import Context, Settings, Stage
from camgraph.stages.facts import Facts
from camgraph.stages.messages import Tensor, Tracks
from camgraph.stages.vision.frame_interval import FrameInterval
from camgraph.stages.vision.keypoint_record import KeypointRecord
from camgraph.stages.vision.keypoint_windows import (
    F32,
    JOINTS,
    Coordinates,
    Skeleton,
    in_skeleton,
    normalised,
    resampled,
)
from camgraph.stages.vision.skeleton import BODY, COCO_17
from camgraph.stages.vision.window_contract import KEYPOINTS

GAP_NS = 500_000_000
"""Frames that are not farther apart follow each other."""


BEFORE_NS = 2_000_000_000
"""Rows are kept for so long before a window: its first step lies between two of them."""


class KeypointWindowsSettings(Settings):
    """The length of a window, and the form that the model expects."""

    window_s: float = Field(4.0, gt=0, le=60, description="How many seconds a window holds")
    every_s: float = Field(1.0, ge=0, le=60, description="How often the model looks at each person; 0: in each frame")
    steps: int = Field(
        100, ge=2, le=1000, description="Moments of a window, at equal times; by default as the model behind it wants"
    )
    min_seen: float = Field(
        0.8, gt=0, le=1, description="The share of a window in which the person must have been seen"
    )
    min_confidence: float = Field(0.1, ge=0, le=1, description="Joints below this confidence are not known: zeros")
    coordinates: Coordinates = Field(
        "centred",
        description="Places as parts of the frame: centred, -0.5 to 0.5 (ST-GCN); signed, -1 to 1 (PYSKL, MMAction2); "
        "by default as usual for the layout of the model behind it",
    )
    skeleton: Skeleton = Field(
        "coco-17", description="The order of the joints; by default by the number that the model behind it wants"
    )


@dataclass(slots=True)
class _Person:
    record: KeypointRecord
    looked_ns: int | None = None


@dataclass(slots=True)
class _Camera:
    epoch: int
    people: dict[int, _Person] = field(default_factory=dict)
    interval: FrameInterval = field(default_factory=FrameInterval)


class KeypointWindows(Stage[KeypointWindowsSettings]):
    """Tracks -> Tensor: `keypoints` float32 (n, steps, joints, 3), one row for each person whose window is due."""

    settings_type = KeypointWindowsSettings
    inputs = Tracks
    outputs = (Tensor,)
    stateful = True
    adapts = ("steps", "coordinates", "skeleton")

    def __init__(self, settings: KeypointWindowsSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._cameras: dict[str, _Camera] = {}
        self._logged: set[str] = set()

    @classmethod
    def describe(cls, settings: KeypointWindowsSettings) -> Facts:
        return {"picture": {"size": (JOINTS[settings.skeleton], settings.steps), "keypoints": True}}

    def process(self, items: Sequence[Tracks]) -> Iterable[Tensor]:
        return [self._windows(item) for item in items]

    def finish(self, camera: str, end: End) -> Iterable[Tensor]:
        self._cameras.pop(camera, None)
        return ()

    def _windows(self, item: Tracks) -> Tensor:
        found = list(self._due(item)) if self._is_known(item) and not item.stamp.alone else []
        settings = self.settings
        shape = (len(found), settings.steps, JOINTS[settings.skeleton], 3)
        rows = np.array([window for _, window in found], np.float32).reshape(shape)
        owner = np.array([row for row, _ in found], np.int64)
        fit = np.tile(np.array([1, 1, 0, 0], np.float32), (len(found), 1))
        return Tensor(item.stamp, {KEYPOINTS: rows}, fit, item.frame_size, (shape[2], shape[1]), owner)

    def _is_known(self, item: Tracks) -> bool:
        """Whether the joints are in the order of COCO."""
        camera = item.stamp.camera
        known = item.skeleton == BODY and item.keypoints.shape[1] == len(COCO_17)
        if not known and len(item) and camera not in self._logged:
            self._logged.add(camera)
            self.context.log.warning("joints_unknown", camera=camera, skeleton=item.skeleton, expected=BODY)
        return known

    def _due(self, item: Tracks) -> Iterator[tuple[int, F32]]:
        """(row, window) of each person with a window that is due in this frame."""
        camera = self._cameras.get(item.stamp.camera)
        if camera is None or camera.epoch != item.stamp.epoch:
            camera = self._cameras[item.stamp.camera] = _Camera(item.stamp.epoch)
        now_ns = item.stamp.time_ns
        camera.interval.note(now_ns)
        gap_ns = camera.interval.at_least(GAP_NS)
        keypoints = np.where(np.isfinite(item.keypoints).all(axis=2, keepdims=True), item.keypoints, 0)
        for row, (track, before) in enumerate(zip(item.ids.tolist(), item.continues.tolist(), strict=True)):
            person = self._person(camera, track, before)
            person.record.add(now_ns, item.boxes[row], float(item.scores[row]), keypoints[row])
            if (window := self._window(person, now_ns, gap_ns, item.frame_size)) is not None:
                yield row, window
        self._forget(camera, now_ns)

    def _person(self, camera: _Camera, track: int, before: int) -> _Person:
        """The past of a person. If their track goes on a lost one, it begins with the past of that one."""
        person = camera.people.get(track) or (camera.people.pop(before, None) if before else None)
        if person is None:
            parts = max(254, 2 * self.settings.steps)
            person = _Person(KeypointRecord(self._window_ns + BEFORE_NS, len(COCO_17), parts))
        camera.people[track] = person
        return person

    def _window(self, person: _Person, now_ns: int, gap_ns: int, size: tuple[int, int]) -> F32 | None:
        settings, record = self.settings, person.record
        if now_ns - record.times_ns[0] < settings.min_seen * self._window_ns * (1 - 1 / settings.steps):
            return None
        if person.looked_ns is not None and now_ns - person.looked_ns < settings.every_s * 1e9:
            return None
        window, seen = resampled(
            record.times_ns,
            record.joints,
            self._window_ns,
            steps=settings.steps,
            gap_ns=gap_ns,
            min_confidence=settings.min_confidence,
        )
        if seen < settings.min_seen:
            return None
        person.looked_ns = now_ns
        return normalised(in_skeleton(window, settings.skeleton), settings.coordinates, size)

    def _forget(self, camera: _Camera, now_ns: int) -> None:
        before_ns = now_ns - self._window_ns
        for track in [track for track, one in camera.people.items() if one.record.times_ns[-1] < before_ns]:
            del camera.people[track]

    @property
    def _window_ns(self) -> int:
        return round(self.settings.window_s * 1e9)
