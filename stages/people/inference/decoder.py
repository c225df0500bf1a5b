"""The stages that make people, or things, of a model's outputs: `decode`, and those for one format.

infer  describe -> its model's file ──> Decoder.follow reads it -> format, outputs, classes, keypoints
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import Field

from camgraph.pipeline.errors import ProblemText, SettingError, UserError
from camgraph.pipeline.stage import Counts, Settings
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.facts import Facts
from camgraph.stages.messages import People, Tensor
from camgraph.stages.people.inference.behind_model import BehindModel, ModelBefore
from camgraph.stages.people.inference.outputs import READING, OutputReader, OutputSettings, points_without_effect
from camgraph.stages.vision.decoding.detections import Detections, highest, no_detections
from camgraph.stages.vision.decoding.formats import Asked
from camgraph.stages.vision.decoding.score_ranges import score_range
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.letterbox import boxes_to_frame, keypoints_to_frame
from camgraph.stages.vision.recognition import Declared, Reading, Signature, Unrecognised, recognise

PERSON = "person"
_CANDIDATES_EACH = 13
"""Candidates of a person that score 0.1: 12.4 in clips of crowds, with yolo11n-pose and yolov8n-pose."""
Classes = tuple[str, ...] | Literal["all"] | None
_MOST_SHOWN = 100
_LEAST_PEOPLE = 100
"""The number of people to have candidates for, even if fewer are wanted: the best may all be of a few."""
_IOU = {"movenet_multipose": 0.6}
"""Of formats that want another one than most."""


class DecoderSettings(OutputSettings):
    """Which of a model's candidates are people; the model's file shows its format."""

    min_score: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Candidates below this score are dropped. By default 0.1, and 0.05 for MoveNet MultiPose, which "
        "scores lower: `track` goes on with people who are half hidden, and begins with surer ones",
    )
    iou: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Of two boxes of one class that overlap by more than this (intersection over union), one stays; "
        "models that suppress overlaps themselves are believed. By default 0.5, and 0.6 for MoveNet MultiPose",
    )
    max_people: int = Field(100, ge=1, le=10_000, description="The most people in a frame, the best first")
    classes: Classes = Field(
        None, description="The names of the classes to keep; by default people, or all if the model knows no `person`"
    )
    class_names: tuple[str, ...] | None = Field(
        None, min_length=1, description="The names of its classes by number; by default read from the model"
    )


D = TypeVar("D", bound=DecoderSettings)


class Decoder(BehindModel[D]):
    """Tensor (the outputs of a model) -> People: boxes and keypoints in frame pixels, best first."""

    settings_type: ClassVar[type[Settings]] = DecoderSettings
    inputs = Tensor
    outputs = (People,)
    counts: ClassVar[Counts] = READING
    thread_safe = True

    @classmethod
    def declared(cls, settings: D) -> Declared:
        return Declared(
            settings.format, settings.keypoints, settings.class_names, settings.outputs, settings.point_values
        )

    @classmethod
    def wants(cls, settings: D, base_folder: Path) -> Mapping[str, Any]:
        """It reads no more candidates of a picture than these, of models that leave overlaps to it."""
        score = score_range(settings.format).weak if settings.min_score is None else settings.min_score
        most = _CANDIDATES_EACH * max(settings.max_people, _LEAST_PEOPLE)
        return {**super().wants(settings, base_folder), "candidates": {"most": most, "min_score": score}}

    @classmethod
    def describe(cls, settings: D) -> Facts:
        usual = score_range(settings.format)
        found = usual if settings.min_score is None else usual.at_least(settings.min_score)
        return {"scores": found._asdict(), **settings.facts}

    @classmethod
    def check(cls, settings: D, base_folder: Path) -> Iterable[tuple[tuple[str | int, ...], str]]:
        yield from points_without_effect(cls.declared(settings))
        try:
            numbers_kept(settings.classes, settings.class_names)
        except SettingError as error:
            yield error.path, ProblemText.of(error)

    @classmethod
    def followed(cls, settings: D, found: ModelBefore) -> Mapping[str, Any]:
        name, reading = found
        if reading.format == "classes":
            raise UserError(
                f"{name} is a classifier ({reading.why}): put `classify` behind it", error_id="model-does-not-fit"
            )
        numbers_kept(settings.classes, reading.classes)
        return {
            "format": reading.format,
            "outputs": settings.outputs or reading.outputs,
            "class_names": reading.classes,
            "keypoints": reading.keypoints,
            "point_values": reading.point_values,
        }

    def open(self) -> None:
        """Raises UserError if a setting is missing that no model supplies, or names a class that does not exist."""
        known = self.known_settings()
        if known.format is None:
            raise UserError(
                self._named("there is no model before this stage: write its `format`"), error_id="model-does-not-fit"
            )
        self._reader = None if None in (known.outputs, known.keypoints) else self._reader_of(known)

    def _reader_of(self, known: D) -> OutputReader:
        return OutputReader(known, self.context, self._asked(known))

    def _asked(self, known: D) -> Asked:
        """Which outputs to read, and which candidates to keep."""
        names = known.class_names or (PERSON,)
        return Asked(
            classes=len(names),
            kept=self._kept(names),
            keypoints=known.keypoints or 0,
            point_values=known.point_values or 3,
            min_score=score_range(known.format).weak if known.min_score is None else known.min_score,
            iou=_IOU.get(known.format or "", 0.5) if known.iou is None else known.iou,
            most=known.max_people,
        )

    def _kept(self, names: Sequence[str]) -> tuple[int, ...] | None:
        try:
            return numbers_kept(self.settings.classes, names)
        except SettingError as error:
            raise UserError(self._named(str(error)), error_id="model-does-not-fit") from None

    def process(self, items: Sequence[Tensor]) -> Iterable[People]:
        return (self._people(item) for item in items)

    def _people(self, item: Tensor) -> People:
        reader = self._reader_for(item)
        rows = [self._row(reader, item, row) for row in range(item.rows)]
        found = rows[0] if len(rows) == 1 else self._together(reader, rows)
        boxes, scores, classes, keypoints = found
        skeleton = self.settings.skeleton_of(keypoints.shape[1])
        return People(item.stamp, boxes, scores, keypoints, item.frame_size, classes, skeleton)

    def _reader_for(self, item: Tensor) -> OutputReader:
        """The reader for all items: if no model shows the format, the first item does."""
        reader = self._reader
        if reader is None:
            # Several threads may do so at once, and come to the same.
            reader = self._reader = self._reader_of(self.shown_settings(item))
        return reader

    def _row(self, reader: OutputReader, item: Tensor, row: int) -> Detections:
        """The people in one of the frame's pictures, in frame pixels. A box in the padding alone is dropped."""
        found = reader.detections(item, row)
        if not len(found.scores):
            return found
        fit = item.fit[row]
        boxes = boxes_to_frame(found.boxes_xyxy.astype(np.float32), fit, item.frame_size)
        inside = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
        found = found._replace(boxes_xyxy=boxes, keypoints=keypoints_to_frame(found.keypoints, fit))
        return found if inside.all() else found.take(inside)

    def _together(self, reader: OutputReader, rows: Sequence[Detections]) -> Detections:
        """Of all pictures of a frame, the best first, and no more than of one."""
        parts = zip(*rows or [no_detections(reader.asked.keypoints)], strict=True)
        return highest(Detections(*(np.concatenate(arrays) for arrays in parts)), most=self.settings.max_people)


class OneFormatDecoder(Decoder[D]):
    """A decoder for models of one format alone, which its settings state."""

    models: ClassVar[str]
    """Which these are, for people."""

    @classmethod
    def read(cls, signature: Signature, name: str, declared: Declared) -> Reading:
        """As `BehindModel.read`; of a model of another format it is said that `decode` reads it."""
        try:
            return recognise(signature, declared)
        except Unrecognised as error:
            if not error.others:
                raise UserError(f"{name}: {error}{error.in_graph}", error_id="model-does-not-fit") from None
            raise UserError(
                f"{name}: its outputs ({error.outputs}) are not those of {cls.models}, for which this stage is: write "
                f"`use: decode`, which can read them as {error.others}",
                error_id="model-does-not-fit",
            ) from None


def numbers_kept(wanted: Classes, names: Sequence[str] | None) -> tuple[int, ...] | None:
    """The numbers of the classes to keep; None for all of them, and if ``names`` are not known.

    Raises SettingError if the model has no class of a wanted name.
    """
    if names is None:
        return None
    if wanted is None:
        wanted = (PERSON,) if PERSON in names else "all"
    if wanted == "all":
        return None
    unknown = [name for name in wanted if name not in names]
    if unknown:
        there = list(map(shown, names))
        known = ", ".join(there[:_MOST_SHOWN]) + (f", ... ({len(there)})" if len(there) > _MOST_SHOWN else "")
        guess = did_you_mean(unknown[0], there)
        raise SettingError(("classes",), f"the model knows no class {', '.join(unknown)}; it knows {known}{guess}")
    kept = tuple(number for number, name in enumerate(names) if name in wanted)
    return None if len(kept) == len(names) else kept
