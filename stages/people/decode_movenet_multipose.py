"""`decode` for models of one format: MoveNet MultiPose, cut at its heads."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from camgraph.stages.messages import Tensor
from camgraph.stages.people.inference.decoder import DecoderSettings, OneFormatDecoder
from camgraph.stages.people.inference.outputs import OutputReader
from camgraph.stages.vision.decoding.detections import Detections
from camgraph.stages.vision.decoding.formats import Asked
from camgraph.stages.vision.decoding.movenet import MIN_KEYPOINT


class DecodeMovenetMultiposeSettings(DecoderSettings):
    """Which of a model's candidates are people, and the weight of their keypoints."""

    format: Literal["movenet_multipose"] = Field(
        "movenet_multipose", description="Of the model; `decode` takes others, too"
    )
    min_keypoint: float = Field(
        MIN_KEYPOINT,
        ge=0,
        le=1,
        title="Minimum confidence of a keypoint",
        description="Keypoints below this do not count for a person's score; they are passed on all the same",
    )


class DecodeMovenetMultipose(OneFormatDecoder[DecodeMovenetMultiposeSettings]):
    """Tensor with MultiPose's six heads -> People in frame pixels, best first; no keypoint lies outside the frame."""

    settings_type = DecodeMovenetMultiposeSettings
    models = "MoveNet MultiPose cut at its heads"

    def _asked(self, known: DecodeMovenetMultiposeSettings) -> Asked:
        return replace(super()._asked(known), min_keypoint=known.min_keypoint)

    def _row(self, reader: OutputReader, item: Tensor, row: int) -> Detections:
        found = super()._row(reader, item, row)
        edges = np.array([*item.frame_size, np.inf], np.float32)
        return found._replace(keypoints=found.keypoints.clip(0, edges))
