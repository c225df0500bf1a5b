"""Scores of a classifier for a frame or for each person: one for each of its classes.

kinds: {use: classify, from: infer}          n rows, owner -1 (the frame) or 0 to N - 1 (the crop of person n)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.stage import Counts
from camgraph.stages.facts import Facts
from camgraph.stages.messages import Labels, Tensor
from camgraph.stages.people.inference.behind_model import BehindModel, BehindModelSettings, ModelBefore
from camgraph.stages.people.inference.output_checks import WRONG_SHAPES, WrongShapes
from camgraph.stages.vision.decoding.promised import FLOATS
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.probabilities import Activation, probabilities
from camgraph.stages.vision.recognition import Declared


class ClassifySettings(BehindModelSettings):
    """How the model's numbers are read; by default all of it is read from the model."""

    activation: Activation | Literal["auto"] = Field(
        "auto",
        description="softmax: the model gives logits of classes that exclude each other; sigmoid: of classes that do "
        "not; none: it gives probabilities; auto: none if a row is a distribution already, else softmax",
    )
    output: str | None = Field(None, description="The name of the model's output; by default its only one")
    class_names: tuple[str, ...] | None = Field(
        None, min_length=2, description="The names of its classes by number; by default read from the model"
    )


class Classify(BehindModel[ClassifySettings]):
    """Tensor (the output of a classifier) -> Labels."""

    settings_type = ClassifySettings
    inputs = Tensor
    outputs = (Labels,)
    counts: ClassVar[Counts] = WRONG_SHAPES
    thread_safe = True

    @classmethod
    def declared(cls, settings: ClassifySettings) -> Declared:
        return Declared(
            "classes", classes=settings.class_names, outputs=(settings.output,) if settings.output else None
        )

    @classmethod
    def followed(cls, settings: ClassifySettings, found: ModelBefore) -> Mapping[str, Any]:
        return {"class_names": found.reading.classes, "output": settings.output or found.reading.outputs[0]}

    @classmethod
    def describe(cls, settings: ClassifySettings) -> Facts:
        """The names of the classes, which rules may ask for."""
        return {"labels": settings.class_names}

    def open(self) -> None:
        self.settings = self.known_settings()
        self._wrong_shapes = WrongShapes(self.context)

    def process(self, items: Sequence[Tensor]) -> Iterable[Labels]:
        return (self._labels(item) for item in items)

    def _labels(self, item: Tensor) -> Labels:
        rows = self._rows(item)
        names = self.settings.class_names or tuple(f"class{number}" for number in range(rows.shape[1]))
        return Labels(item.stamp, probabilities(rows, self.settings.activation), names, item.owner)

    def _rows(self, item: Tensor) -> NDArray[np.float32]:
        """(n, classes). Raises UserError if the model has no such output, BadItem if it is another shape."""
        name = self.settings.output or next(iter(item.arrays_by_name), "")
        rows = item.arrays_by_name.get(name)
        if rows is None:
            there = ", ".join(map(shown, item.arrays_by_name)) or "none"
            raise UserError(
                self._named(f"the model has no output {shown(name)}; it has: {there}"), error_id="model-does-not-fit"
            )
        if rows.dtype.kind not in FLOATS:
            message = f"scores of classes must be floats, and `{shown(name)}` is {rows.dtype}"
            raise self._wrong_shapes.dropped(name, message)
        names = self.settings.class_names
        if rows.shape[2:] == (1, 1):
            rows = rows[..., 0, 0]
        if rows.ndim != 2 or len(rows) != item.rows or rows.shape[1] < 1:
            message = f"expected an output `{shown(name)}` of ({item.rows}, classes), got {rows.shape}"
            raise self._wrong_shapes.dropped(name, message)
        if names and len(names) != rows.shape[1]:
            message = f"the model gives {rows.shape[1]} scores, and there are {len(names)} names of classes"
            raise self._wrong_shapes.dropped(name, message)
        return np.asarray(rows, np.float32)
