"""What the stages behind a model share: what the model is, and its outputs row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from pipeline.errors import BadItem, UserError
from pipeline.messages import Array
from pipeline.stage import Settings, Upstream
from stages.inference.model_files import find_libraries, find_model
from stages.inference.served_models import signature_of_served
from stages.inference.server_settings import ServerSettings
from stages.inference.signatures import read_model, read_signature
from stages.messages import Tensor
from stages.vision.decoding.detections import Detections
from stages.vision.decoding.formats import Asked, detections_of
from stages.vision.decoding.movenet_multipose import NotFinite
from stages.vision.recognition import Format, Reading, Stated


class BehindModel(Settings):
    """What each stage behind a model is told of it."""

    server: ServerSettings | None = Field(
        None,
        description="The server that runs the model, which is asked what the model is when the stage opens; by default "
        "that of the `infer` before it",
    )


class OutputSettings(BehindModel):
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


class ModelBefore(NamedTuple):
    """The nearest model before a stage, and what it is."""

    name: str
    reading: Reading


def model_before(upstream: Upstream, base_folder: Path, stated: Stated) -> ModelBefore | None:
    """None where none stands there, or one on a server. Raises UserError where it cannot be said what it is."""
    said = _said_before(upstream)
    if "model_file" not in said:
        return None
    path = find_model(said["model_file"]["path"], base_folder)
    libraries = find_libraries(said["model_file"]["custom_ops"], base_folder)
    return ModelBefore(str(path), read_model(path, stated, libraries))


def server_before(upstream: Upstream, stated: ServerSettings | None) -> Mapping[str, Any]:
    """The setting `server` of a stage whose nearest model is on one, where none is ``stated``; it is not asked."""
    said = _said_before(upstream)
    return {"server": said["model_server"]} if "model_server" in said and stated is None else {}


def served_model(server: ServerSettings, base_folder: Path, stated: Stated) -> ModelBefore:
    """The model on a server, which is asked. Raises UserError as `model_before`, and EnvironmentProblem."""
    return ModelBefore(str(server), read_signature(signature_of_served(server, base_folder), str(server), stated))


def _said_before(upstream: Upstream) -> Mapping[str, Any]:
    """By the nearest model before a stage."""
    models = [said for said in upstream.stages.values() if "model_file" in said or "model_server" in said]
    return models[-1] if models else {}


class OutputReader:
    """Reads the outputs of a model of known format. ``stage`` is who speaks in errors."""

    def __init__(self, settings: OutputSettings, stage: str, asked: Asked) -> None:
        if settings.format is None:
            raise UserError(f"stage {stage}: no model stands before this stage: say its `format`")
        self._format = settings.format
        self._names = settings.outputs
        self._stage = stage
        self.asked = asked

    def detections(self, item: Tensor, row: int) -> Detections:
        """What the model found in one of an item's pictures, in its pixels.

        Raises UserError where these are no outputs of the format, BadItem where they hold values that are no numbers.
        """
        outputs = [array[row] for array in self.arrays(item)]
        try:
            return detections_of(self._format, outputs, item.picture_size, self.asked)
        except NotFinite as error:
            raise BadItem("not_finite", str(error)) from error
        except ValueError as error:
            text = f"stage {self._stage}: these are no outputs of format {self._format}: {error}"
            raise UserError(text) from None

    def arrays(self, item: Tensor) -> Sequence[Array]:
        """Those of the format, in its order, of all rows. Raises UserError where one is missing."""
        names = self._names or tuple(item.arrays_by_name)[:1]
        missing = [name for name in names if name not in item.arrays_by_name]
        if missing:
            there = ", ".join(item.arrays_by_name) or "none"
            raise UserError(f"stage {self._stage}: the model has no output {', '.join(missing)}; it has: {there}")
        return [item.arrays_by_name[name] for name in names]
