"""People, or things, out of what a model says: whichever of the known formats it has.

infer  describe -> its model's file ──> decode.follow reads it -> format, outputs, classes, keypoints
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

from pipeline.errors import UserError
from stages.inference.behind_model import BehindModel, ModelBefore
from stages.inference.outputs import OutputReader, OutputSettings
from stages.messages import People, Tensor
from stages.vision.decoding.detections import Detections, highest
from stages.vision.decoding.formats import Asked
from stages.vision.foreign_text import shown
from stages.vision.letterbox import boxes_to_frame, keypoints_to_frame
from stages.vision.recognition import Stated

PERSON = "person"
_USUAL: Mapping[str, tuple[float, float]] = {"movenet_multipose": (0.2, 0.6)}
"""(min_score, iou) of formats that want others than most."""


class DecodeSettings(OutputSettings):
    """Which of a model's candidates are people; what the model is shows in its file."""

    min_score: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Candidates below this score are dropped; by default 0.3, and 0.2 for MoveNet MultiPose, which "
        "scores lower",
    )
    iou: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Of two boxes of one class that overlap by more than this (intersection over union), one stays; "
        "models that suppress overlaps themselves are believed. By default 0.5, and 0.6 for MoveNet MultiPose",
    )
    max_people: int = Field(100, ge=1, le=10_000, description="At most so many in a frame, the best first")
    classes: tuple[str, ...] | Literal["all"] | None = Field(
        None, description="The names of what is kept; by default people, or all where the model knows no `person`"
    )
    class_names: tuple[str, ...] | None = Field(
        None, min_length=1, description="The names of its classes by number; by default read from the model"
    )


class Decode(BehindModel[DecodeSettings]):
    """Tensor (the outputs of a model) -> People: boxes and keypoints in frame pixels, best first."""

    settings_type = DecodeSettings
    inputs = Tensor
    outputs = (People,)
    thread_safe = True

    @classmethod
    def stated(cls, settings: DecodeSettings) -> Stated:
        return Stated(settings.format, settings.keypoints, settings.class_names)

    @classmethod
    def followed(cls, settings: DecodeSettings, found: ModelBefore) -> Mapping[str, Any]:
        name, reading = found
        if reading.format == "classes":
            raise UserError(f"{name} is a classifier ({reading.why}): put `classify` behind it")
        return {
            "format": reading.format,
            "outputs": settings.outputs or reading.outputs,
            "class_names": reading.classes,
            "keypoints": reading.keypoints,
            "point_values": reading.point_values,
        }

    def open(self) -> None:
        """Raises UserError where a setting is missing that no model says, or names a class that there is not."""
        s = self.known_settings()
        names = s.class_names or (PERSON,)
        min_score, iou = _USUAL.get(s.format or "", (0.3, 0.5))
        asked = Asked(
            classes=len(names),
            kept=self._numbers_kept(names),
            keypoints=s.keypoints or 0,
            point_values=s.point_values or 3,
            min_score=min_score if s.min_score is None else s.min_score,
            iou=iou if s.iou is None else s.iou,
            most=s.max_people,
        )
        self._reader = OutputReader(s, self.context, asked)

    def _numbers_kept(self, names: Sequence[str]) -> tuple[int, ...] | None:
        """The numbers of the classes that are kept; None for all of them."""
        wanted = self.settings.classes
        if wanted is None:
            wanted = (PERSON,) if PERSON in names else "all"
        if wanted == "all":
            return None
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise UserError(
                self._say(f"the model knows no class {', '.join(unknown)}; it knows {', '.join(map(shown, names))}")
            )
        return tuple(number for number, name in enumerate(names) if name in wanted)

    def process(self, items: Sequence[Tensor]) -> Iterable[People]:
        return (self._people(item) for item in items)

    def _people(self, item: Tensor) -> People:
        rows = [self._row(item, row) for row in range(item.rows)]
        found = rows[0] if len(rows) == 1 else self._together(rows)
        boxes, scores, classes, keypoints = found
        skeleton = self.settings.skeleton_of(keypoints.shape[1])
        return People(item.stamp, boxes, scores, keypoints, item.frame_size, classes, skeleton)

    def _row(self, item: Tensor, row: int) -> Detections:
        """What is in one of the frame's pictures, in frame pixels. A box in the padding alone is nothing."""
        found = self._reader.detections(item, row)
        fit = item.fit[row]
        boxes = boxes_to_frame(found.boxes_xyxy.astype(np.float32), fit, item.frame_size)
        inside = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
        return found._replace(boxes_xyxy=boxes, keypoints=keypoints_to_frame(found.keypoints, fit)).take(inside)

    def _together(self, rows: Sequence[Detections]) -> Detections:
        """Of all pictures of a frame, the best first, and no more than of one."""
        parts = zip(*rows or [self._nothing()], strict=True)
        return highest(Detections(*(np.concatenate(arrays) for arrays in parts)), most=self.settings.max_people)

    def _nothing(self) -> Detections:
        points = np.empty((0, self._reader.asked.keypoints, 3), np.float32)
        return Detections(np.empty((0, 4), np.float32), np.empty(0, np.float32), np.empty(0, np.int64), points)

    def _say(self, text: str) -> str:
        return f"stage {self.context.stage}: {text}"
