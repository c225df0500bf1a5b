"""What the stages behind a model that finds people share: its outputs, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pipeline.errors import BadItem, UserError
from pipeline.messages import Array
from pipeline.stage import Context
from stages.inference.behind_model import BehindModelSettings
from stages.messages import Tensor
from stages.vision.decoding.detections import Detections
from stages.vision.decoding.formats import Asked, detections_of
from stages.vision.decoding.movenet_multipose import NotFinite
from stages.vision.foreign_text import shown
from stages.vision.recognition import Format

_FARTHEST = 1e6
"""Pixels, either way."""


class OutputSettings(BehindModelSettings):
    """How a model says what it sees: all of it is read from the model, where one stands before the stage."""

    skeleton: str = Field(
        "auto", min_length=1, description="The name of the keypoints' order; auto: coco-17 for 17, else kpts-K"
    )
    format: Format | None = Field(None, description="How the model says it; by default read from the model")
    outputs: tuple[str, ...] | None = Field(
        None, min_length=1, description="The names of its outputs in the format's order; by default read from the model"
    )
    keypoints: int | None = Field(
        None, ge=0, le=1000, description="How many a person has; by default read from the model"
    )
    point_values: Literal[2, 3] | None = Field(
        None, description="2: x, y; 3: x, y, confidence; by default read from the model"
    )

    def skeleton_of(self, keypoints: int) -> str:
        """The name of the skeleton of so many points."""
        if self.skeleton != "auto":
            return self.skeleton
        return "coco-17" if keypoints == 17 else f"kpts-{keypoints}"


class OutputReader:
    """Reads the outputs of a model of known format, for the stage of this ``context``."""

    def __init__(self, settings: OutputSettings, context: Context, asked: Asked) -> None:
        if settings.format is None:
            raise UserError(f"stage {context.stage}: no model stands before this stage: say its `format`")
        self._format = settings.format
        self._names = settings.outputs
        self._context = context
        self.asked = asked

    def detections(self, item: Tensor, row: int) -> Detections:
        """What the model found in one of an item's pictures, in its pixels; what has no place is left out and counted.

        Raises UserError where these are no outputs of the format, BadItem where they hold values that are no numbers.
        """
        outputs = [array[row] for array in self.arrays(item)]
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                found = detections_of(self._format, outputs, item.picture_size, self.asked)
        except NotFinite as error:
            raise BadItem("nonfinite", str(error)) from error
        except ValueError as error:
            text = f"stage {self._context.stage}: these are no outputs of format {self._format}: {error}"
            raise UserError(text) from None
        placed = _placed(found)
        if not placed.all():
            self._context.count("skipped.nonfinite", item.stamp.camera, int((~placed).sum()))
            found = found.take(placed)
        keypoints = np.concatenate([found.keypoints[..., :2], found.keypoints[..., 2:].clip(0, 1)], axis=-1)
        return found._replace(scores=found.scores.clip(0, 1), keypoints=keypoints)

    def arrays(self, item: Tensor) -> Sequence[Array]:
        """Those of the format, in its order, of all rows. Raises UserError where one is missing."""
        names = self._names or tuple(item.arrays_by_name)[:1]
        missing = [name for name in names if name not in item.arrays_by_name]
        if missing:
            there = ", ".join(map(shown, item.arrays_by_name)) or "none"
            lacking = ", ".join(map(shown, missing))
            raise UserError(f"stage {self._context.stage}: the model has no output {lacking}; it has: {there}")
        return [item.arrays_by_name[name] for name in names]


def _placed(found: Detections) -> NDArray[np.bool_]:
    """Which of them lie somewhere: in finite pixels, and not far out of any picture."""
    people, points, values = found.keypoints.shape
    numbers = np.concatenate([found.boxes_xyxy, found.keypoints.reshape(people, points * values)], axis=1)
    # A NaN is not smaller than anything.
    return np.asarray((np.abs(numbers) < _FARTHEST).all(axis=1))
