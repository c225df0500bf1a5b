"""What a re-identification model says of each person's crop, by which `track` knows again who was hidden.

crops:  {use: crop, from: {frames: capture, people: people}, with: {size: [128, 256]}}
reid:   {use: infer, from: crops, with: {model: reid.onnx}}
looks:  {use: add_embeddings, from: {people: people, crops: reid}}
tracks: {use: track, from: looks}

people (N)      stay            crops  row r, owner n: a vector of D numbers -> the appearance of person n
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.stage import Counts, Ports
from camgraph.stages.messages import People, Tensor
from camgraph.stages.people.inference.behind_model import BehindModel, BehindModelSettings, ModelBefore
from camgraph.stages.people.inference.output_checks import WRONG_SHAPES, WrongShapes
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.recognition import Declared

F32 = NDArray[np.float32]


class AddEmbeddingsSettings(BehindModelSettings):
    """Which output of the model has the vectors."""

    output: str | None = Field(None, description="The name of the model's output; by default its only one")


class AddEmbeddings(BehindModel[AddEmbeddingsSettings]):
    """People and the Tensor of a model on their crops -> People with appearance, unit vectors.

    Who has no crop has none, nor has whose vector holds something that is no number.
    """

    settings_type = AddEmbeddingsSettings
    inputs: ClassVar[Ports] = {"people": People, "crops": Tensor}
    outputs = (People,)
    counts: ClassVar[Counts] = WRONG_SHAPES
    thread_safe = True

    @classmethod
    def declared(cls, settings: AddEmbeddingsSettings) -> Declared:
        # To `infer`, a vector for each crop is read as the scores of a classifier are.
        return Declared("classes", outputs=(settings.output,) if settings.output else None)

    @classmethod
    def followed(cls, settings: AddEmbeddingsSettings, found: ModelBefore) -> Mapping[str, Any]:
        return {"output": settings.output or found.reading.outputs[0]}

    def open(self) -> None:
        self.settings = self.known_settings()
        self._wrong_shapes = WrongShapes(self.context)

    def process(self, items: Sequence[Mapping[str, Any]]) -> Iterable[People]:
        return (self._known(item["people"], item["crops"]) for item in items)

    def _known(self, people: People, crops: Tensor) -> People:
        vectors = self._vectors(crops)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        known = np.flatnonzero(np.isfinite(lengths) & (lengths > 0))
        appearance = np.full((len(people), vectors.shape[1]), np.nan, np.float32)
        appearance[crops.owner[known]] = vectors[known] / lengths[known]
        return replace(people, appearance=appearance)

    def _vectors(self, crops: Tensor) -> F32:
        """(n, D). Raises UserError if the model has no such output, BadItem if it is another shape."""
        name = self.settings.output or next(iter(crops.arrays_by_name), "")
        rows = crops.arrays_by_name.get(name)
        if rows is None:
            there = ", ".join(map(shown, crops.arrays_by_name)) or "none"
            raise UserError(
                self._named(f"the model has no output {shown(name)}; it has: {there}"), error_id="model-does-not-fit"
            )
        length = int(np.prod(rows.shape[1:]))  # some models give (n, D, 1, 1)
        if rows.ndim < 2 or len(rows) != crops.rows or length < 2:
            message = f"expected an output `{shown(name)}` of ({crops.rows}, numbers), got {rows.shape}"
            raise self._wrong_shapes.dropped(name, message)
        return np.asarray(rows, np.float32).reshape(len(rows), length)
