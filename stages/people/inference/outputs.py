"""Reads the outputs of models that find people, row by row, for all stages behind a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from camgraph.pipeline.errors import BadItem, UserError
from camgraph.pipeline.messages import Array
from camgraph.pipeline.stage import Context, Counts
from camgraph.stages.facts import Facts
from camgraph.stages.messages import Tensor
from camgraph.stages.people.inference.behind_model import BehindModelSettings
from camgraph.stages.people.inference.output_checks import WRONG_NUMBERS, WRONG_SHAPES, WrongShapes
from camgraph.stages.vision.decoding.detections import Detections
from camgraph.stages.vision.decoding.formats import Asked, detections_of
from camgraph.stages.vision.decoding.movenet import NotFinite
from camgraph.stages.vision.decoding.promised import WrongShape
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.recognition import Declared, Format
from camgraph.stages.vision.recognition.reading import without_effect
from camgraph.stages.vision.skeleton import BODY

_FARTHEST = 1e6
"""Pixels, either way."""
READING: Counts = {
    **WRONG_SHAPES,
    **WRONG_NUMBERS,
    "skipped.nonfinite": "A person lay nowhere: the numbers were not finite. This counts people, not frames.",
}
"""The counters of the stages with an `OutputReader`."""


class OutputSettings(BehindModelSettings):
    """The model's way of reporting people: read from the model, if one stands before the stage."""

    skeleton: str = Field(
        "auto", min_length=1, description="The name of the keypoints' order; auto: coco-17 for 17, else kpts-K"
    )
    format: Format | None = Field(None, description="The format of the model's outputs; by default read from the model")
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
        return BODY if keypoints == 17 else f"kpts-{keypoints}"

    @property
    def facts(self) -> Facts:
        """The skeleton, as far as the number of keypoints is known."""
        number = self.keypoints
        return {} if number is None else {"skeleton": {"name": self.skeleton_of(number), "keypoints": number}}


def points_without_effect(declared: Declared) -> Iterator[tuple[tuple[str], str]]:
    """Keypoints, or values of each, that models of the declared format do not have: ((setting,), text)."""
    if found := without_effect(declared):
        setting, why = found
        yield (setting,), why


class OutputReader:
    """Reads the outputs of a model of known format, for the stage of this ``context``."""

    def __init__(self, settings: OutputSettings, context: Context, asked: Asked) -> None:
        if settings.format is None:
            raise UserError(
                f"stage {context.stage}: there is no model before this stage: write its `format`",
                error_id="model-does-not-fit",
            )
        self._format = settings.format
        self._names = settings.outputs
        self._context = context
        self._wrong_shapes = WrongShapes(context)
        self.asked = asked

    def detections(self, item: Tensor, row: int) -> Detections:
        """The people that the model found in one of an item's pictures, in its pixels; those without a place are
        counted.

        Raises BadItem if these are no outputs of the format, or hold values that are no numbers, and UserError if
        the model has none of a name.
        """
        arrays = self.arrays(item)
        try:
            outputs = [array[row] for array in arrays.values()]
            found = detections_of(self._format, outputs, item.picture_size, self.asked)
        except NotFinite as error:
            raise BadItem("nonfinite", str(error)) from error
        except WrongShape as error:
            text = f"these are no outputs of format {self._format}: {error}"
            raise self._wrong_shapes.dropped(list(arrays)[error.output], text) from None
        if not len(found.scores):
            return found
        placed = _placed(found)
        if not placed.all():
            self._context.count("skipped.nonfinite", item.stamp.camera, int((~placed).sum()))
            found = found.take(placed)
        keypoints = found.keypoints.copy()
        keypoints[..., 2].clip(0, 1, out=keypoints[..., 2])
        return found._replace(scores=found.scores.clip(0, 1), keypoints=keypoints)

    def arrays(self, item: Tensor) -> Mapping[str, Array]:
        """Those of the format, in its order, of all rows.

        Raises UserError if one is missing, BadItem if one has no row for each picture.
        """
        names = self._names or tuple(item.arrays_by_name)[:1]
        missing = [name for name in names if name not in item.arrays_by_name]
        if missing or not names:
            there = ", ".join(map(shown, item.arrays_by_name)) or "none"
            lacking = "".join(f" {shown(name)}" for name in missing)
            raise UserError(
                f"stage {self._context.stage}: the model has no output{lacking}; it has: {there}",
                error_id="model-does-not-fit",
            )
        arrays = {name: item.arrays_by_name[name] for name in names}
        for name, array in arrays.items():
            if array.shape[:1] != (item.rows,):
                message = f"output `{shown(name)}` is {array.shape} for {item.rows} pictures: no axis for them"
                raise self._wrong_shapes.dropped(name, message)
        return arrays


def _placed(found: Detections) -> NDArray[np.bool_]:
    """Which of them lie somewhere, in finite pixels and not far out of any picture, and are something."""
    # A NaN is not smaller than anything.
    boxes = (np.abs(found.boxes_xyxy) < _FARTHEST).all(axis=1)
    points = (np.abs(found.keypoints) < _FARTHEST).all(axis=(1, 2))
    return np.asarray(boxes & points & (found.classes >= 0))
