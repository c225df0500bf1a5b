"""People out of what a YOLO-pose model says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import Field

from pipeline.errors import UserError
from pipeline.messages import Array
from pipeline.stage import Settings, Stage
from stages.messages import People, Tensor
from stages.vision.decoding.yolo_pose import NotPose, people_of, upright
from stages.vision.letterbox import boxes_to_frame, keypoints_to_frame


class DecodeYoloPoseSettings(Settings):
    """Which of a model's candidates are people."""

    min_score: float = Field(0.3, ge=0, le=1, description="Candidates below this score are dropped")
    iou: float = Field(
        0.5, ge=0, le=1, description="Of two boxes that overlap by more than this (intersection over union), one stays"
    )
    max_people: int = Field(100, ge=1, le=10_000, description="At most so many people in a frame, the best first")
    output: str | None = Field(None, description="The name of the model's output; by default its only one")
    keypoints: int | None = Field(
        None, ge=1, le=1000, description="How many keypoints a person has; read off by default"
    )
    skeleton: str = Field(
        "auto", min_length=1, description="The name of the keypoints' order; auto: coco-17 for 17, else kpts-K"
    )


class DecodeYoloPose(Stage[DecodeYoloPoseSettings]):
    """Tensor (the outputs of a YOLO-pose model, one row) -> People.

    Which output and how it lies shows at the first item, and is the model's: a wrong one is a UserError.
    """

    settings_type = DecodeYoloPoseSettings
    inputs = Tensor
    outputs = (People,)
    thread_safe = True

    def process(self, items: Sequence[Tensor]) -> Iterable[People]:
        return (self._decode(item) for item in items)

    def _decode(self, item: Tensor) -> People:
        settings = self.settings
        heads = self._heads(item)
        found = people_of(heads, min_score=settings.min_score, iou=settings.iou, most=settings.max_people)
        boxes = boxes_to_frame(found.boxes_xyxy, item.fit[0], item.frame_size)
        # A box that lies in the padding alone is nobody in the frame.
        inside = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
        keypoints = keypoints_to_frame(found.keypoints[inside], item.fit[0])
        classes = np.zeros(len(keypoints), np.int64)
        return People(
            item.stamp,
            boxes[inside],
            found.scores[inside],
            keypoints,
            item.frame_size,
            classes,
            self._skeleton(keypoints.shape[1]),
        )

    def _heads(self, item: Tensor) -> Array:
        """(5 + 3K, A) of this item. Raises UserError."""
        if item.rows != 1:
            raise UserError(self._say(f"got {item.rows} pictures of one frame, expected the whole frame as one"))
        try:
            return upright(self._output(item)[0], self.settings.keypoints)
        except NotPose as error:
            raise UserError(
                self._say(f"this is no YOLO-pose model: {error}; use a pose model or another decoder")
            ) from None

    def _output(self, item: Tensor) -> Array:
        outputs, wanted = item.arrays_by_name, self.settings.output
        names = ", ".join(outputs) or "none"
        if wanted is not None and wanted not in outputs:
            raise UserError(self._say(f"the model has no output `{wanted}`, it has: {names}"))
        if wanted is None and len(outputs) != 1:
            raise UserError(self._say(f"expected a model with one output, got: {names}; choose one with `output`"))
        return outputs[wanted if wanted is not None else next(iter(outputs))]

    def _skeleton(self, keypoints: int) -> str:
        if self.settings.skeleton != "auto":
            return self.settings.skeleton
        return "coco-17" if keypoints == 17 else f"kpts-{keypoints}"

    def _say(self, text: str) -> str:
        return f"stage {self.context.stage}: {text}"
