"""People from the outputs of MoveNet MultiPose: any number of them, each with 17 keypoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import Field

from pipeline.errors import BadItem
from pipeline.stage import Settings, Stage
from stages.messages import People, Tensor
from stages.vision.decoding.movenet_multipose import KEYPOINTS, MIN_KEYPOINT, NotFinite, Poses, decode_multipose
from stages.vision.letterbox import boxes_to_frame, keypoints_to_frame


class DecodeMovenetMultiposeSettings(Settings):
    min_score: float = Field(
        0.2, gt=0, le=1, title="Minimum score", description="People below this score are left out (0 to 1)."
    )
    iou: float = Field(
        0.6,
        ge=0,
        le=1,
        title="Overlap",
        description="Of two people whose boxes overlap by more than this (intersection over union), the better stays.",
    )
    min_keypoint: float = Field(
        MIN_KEYPOINT,
        ge=0,
        le=1,
        title="Minimum confidence of a keypoint",
        description="Keypoints below this do not count for a person's score; they are passed on all the same.",
    )
    max_people: int = Field(
        100, ge=1, le=1000, title="Most people", description="The most candidates that are looked at in one frame."
    )


_NOBODY = Poses(np.empty((0, 4), np.float32), np.empty(0, np.float32), np.empty((0, KEYPOINTS, 3), np.float32))


class DecodeMovenetMultipose(Stage[DecodeMovenetMultiposeSettings]):
    """Tensor with MultiPose's six heads -> People in frame pixels.

    Raises BadItem `not_multipose` where outputs are missing or have other shapes, and `nonfinite`.
    """

    settings_type = DecodeMovenetMultiposeSettings
    inputs = Tensor
    outputs = (People,)
    thread_safe = True

    def process(self, items: Sequence[Tensor]) -> Iterable[People]:
        return [self._people(item) for item in items]

    def _people(self, item: Tensor) -> People:
        parts = [self._row(item, row) for row in range(item.rows)]
        boxes, scores, keypoints = (np.concatenate(arrays) for arrays in zip(_NOBODY, *parts, strict=True))
        return People(item.stamp, boxes, scores, keypoints, item.frame_size, np.zeros(len(boxes), np.int64))

    def _row(self, item: Tensor, row: int) -> Poses:
        """The people of one of the frame's pictures, in frame pixels; those that lie in its padding are left out."""
        s = self.settings
        heads = {name: array[row] for name, array in item.arrays_by_name.items()}
        try:
            poses = decode_multipose(
                heads, min_score=s.min_score, iou=s.iou, min_keypoint=s.min_keypoint, max_people=s.max_people
            )
        except NotFinite as error:
            raise BadItem("nonfinite", str(error)) from error
        except ValueError as error:
            raise BadItem("not_multipose", f"the model's outputs are not those of MultiPose: {error}") from error
        fit = item.fit[row]
        boxes = boxes_to_frame(poses.boxes_xyxy, fit, item.frame_size)
        keypoints = keypoints_to_frame(poses.keypoints, fit)
        keypoints[..., :2] = np.clip(keypoints[..., :2], np.float32(0), np.asarray(item.frame_size, np.float32))
        inside = (boxes[:, :2] < boxes[:, 2:]).all(axis=1)
        return Poses(boxes[inside], poses.scores[inside], keypoints[inside])
