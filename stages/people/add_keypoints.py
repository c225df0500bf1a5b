"""Keypoints for people that another model has found: the answers of a model that looked at their crops.

posed: {use: add_keypoints, from: {people: people, crops: infer_pose}}

people  boxes, scores       stay            crops  row r, owner n: the best pose in that crop -> keypoints of person n
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.stage import Counts, Ports
from camgraph.stages.facts import Facts
from camgraph.stages.messages import People, Tensor
from camgraph.stages.people.inference.behind_model import BehindModel, ModelBefore
from camgraph.stages.people.inference.outputs import READING, OutputReader, OutputSettings, points_without_effect
from camgraph.stages.vision.decoding.formats import Asked
from camgraph.stages.vision.letterbox import keypoints_to_frame
from camgraph.stages.vision.recognition import Declared


class AddKeypoints(BehindModel[OutputSettings]):
    """People and the Tensor of a model on their crops -> People with keypoints.

    Who has no crop, or in whose crop nobody is, has keypoints of confidence 0.
    """

    settings_type = OutputSettings
    inputs: ClassVar[Ports] = {"people": People, "crops": Tensor}
    outputs = (People,)
    counts: ClassVar[Counts] = READING
    thread_safe = True

    @classmethod
    def declared(cls, settings: OutputSettings) -> Declared:
        return Declared(
            settings.format, settings.keypoints, outputs=settings.outputs, point_values=settings.point_values
        )

    @classmethod
    def check(cls, settings: OutputSettings, base_folder: Path) -> Iterable[tuple[tuple[str | int, ...], str]]:
        yield from points_without_effect(cls.declared(settings))

    @classmethod
    def followed(cls, settings: OutputSettings, found: ModelBefore) -> Mapping[str, Any]:
        name, reading = found
        if not reading.keypoints:
            raise UserError(
                f"{name} finds no keypoints ({reading.format}: {reading.why})", error_id="model-does-not-fit"
            )
        return {
            "format": reading.format,
            "outputs": settings.outputs or reading.outputs,
            "keypoints": reading.keypoints,
            "point_values": reading.point_values,
        }

    @classmethod
    def describe(cls, settings: OutputSettings) -> Facts:
        return settings.facts

    def open(self) -> None:
        """Raises UserError if a setting is missing that no model says."""
        s = self.known_settings()
        if s.format is not None and not s.keypoints:
            raise UserError(
                self._named("there is no model before this stage: write its `keypoints`"), error_id="model-does-not-fit"
            )
        # The best one, however sure the model is: that somebody is there, the first model has said.
        asked = Asked(keypoints=s.keypoints or 0, point_values=s.point_values or 3, min_score=0.0, most=1)
        self._reader = OutputReader(s, self.context, asked)

    def process(self, items: Sequence[Mapping[str, Any]]) -> Iterable[People]:
        return (self._posed(item["people"], item["crops"]) for item in items)

    def _posed(self, people: People, crops: Tensor) -> People:
        number = self._reader.asked.keypoints
        keypoints = np.zeros((len(people), number, 3), np.float32)
        for row, owner in enumerate(crops.owner.tolist()):
            found = self._reader.detections(crops, row).keypoints
            if len(found):
                keypoints[owner] = keypoints_to_frame(found, crops.fit[row])[0]
        skeleton = self.settings.skeleton_of(number)
        return People(
            people.stamp,
            people.boxes,
            people.scores,
            keypoints,
            people.frame_size,
            people.classes,
            skeleton,
            appearance=people.appearance,
        )
