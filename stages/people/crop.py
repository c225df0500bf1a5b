"""A picture of each person, for a second model that looks at one person at a time.

crops: {use: crop, from: {frames: capture, people: people}, with: {size: [192, 192]}}

                  frames ─┐
people (N boxes) ─────────┴─> Tensor of N rows, `owner` 0 to N - 1: the rows of all frames share the model's batches
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import cv2
import numpy as np
from pydantic import Field

from camgraph.pipeline.stage import Counts, Ports, Settings, Stage, Upstream
from camgraph.stages.facts import Facts
from camgraph.stages.messages import Frame, People, Tensor, Tracks
from camgraph.stages.vision.cropping import crop_bgr, crop_fits, crop_planes
from camgraph.stages.vision.decoding.score_ranges import score_range

IMAGE = "image"
Side = Annotated[int, Field(ge=16, le=2048)]


class CropSettings(Settings):
    """The size of the pictures, and the people to crop."""

    size: tuple[Side, Side] = Field(
        (192, 192), description="Width and height in pixels; by default as the model behind it wants"
    )
    margin: float = Field(
        1.25, ge=0.5, le=4, description="Side of the crop divided by the side of the person's box; 1 is the box alone"
    )
    max_people: int = Field(
        16, ge=1, le=200, description="The most people of a frame, the best first: the others are left out and counted"
    )
    min_score: float | None = Field(
        None,
        ge=0,
        le=1,
        description="People below this score are left out, unless `track` follows them; by default 0.3, 0.2 behind "
        "MoveNet MultiPose, and `min_score` of `decode` if you have written that",
    )
    pad: int = Field(114, ge=0, le=255, description="The grey outside of the frame")


class Crop(Stage[CropSettings]):
    """Frame and its People (or Tracks) -> Tensor: one row for each person, RGB, proportions kept."""

    settings_type = CropSettings
    inputs: ClassVar[Ports] = {"frames": Frame, "people": People}
    outputs = (Tensor,)
    counts: ClassVar[Counts] = {
        "skipped.crops": "There were more people in a frame than `max_people` of `crop`. This counts people, not "
        "frames."
    }
    only_for_models = True
    adapts = ("size", "pad")

    @classmethod
    def describe(cls, settings: CropSettings) -> Facts:
        return {"picture": {"size": settings.size}}

    @classmethod
    def follow(cls, settings: CropSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        """The score from which on the model before it is certain of people."""
        scores = [facts["scores"]["certain"] for facts in upstream.nearest("scores").values()]
        return {"min_score": min(scores)} if scores and settings.min_score is None else {}

    def open(self) -> None:
        cv2.setNumThreads(1)
        certain = self.settings.min_score
        self._min_score = score_range(None).certain if certain is None else certain

    def process(self, items: Sequence[Mapping[str, Any]]) -> Iterable[Tensor]:
        return (self._crops(item["frames"], item["people"]) for item in items)

    def _crops(self, frame: Frame, people: People) -> Tensor:
        width, height = size = self.settings.size
        order = np.argsort(-people.scores, kind="stable")
        if not isinstance(people, Tracks):
            order = order[people.scores[order] >= self._min_score]
        owner = order[: self.settings.max_people]
        if len(owner) < len(order):
            self.context.count("skipped.crops", frame.stamp.camera, len(order) - len(owner))
        fit = crop_fits(people.boxes[owner], size, self.settings.margin)
        images = self.context.new_arrays({IMAGE: ((len(owner), height, width, 3), "uint8")})[IMAGE]
        for row, image in zip(fit, images, strict=True):
            if frame.format == "yuv420p":
                crop_planes(frame.planes, row, image, self.settings.pad)
            else:
                crop_bgr(frame.pixels, row, image, self.settings.pad)
        return Tensor(frame.stamp, {IMAGE: images}, fit, (frame.width, frame.height), size, owner.astype(np.int64))
