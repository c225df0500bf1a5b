"""A model with the stages around it, as a graph would run them: frames in, people or labels out, one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.single_stage import opened
from camgraph.pipeline.stage import Stage, Upstream
from camgraph.stages.messages import Frame, Labels, People, Tensor
from camgraph.stages.people.classify import Classify, ClassifySettings
from camgraph.stages.people.decode import Decode, DecodeSettings
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.inference.model.model_files import find_libraries
from camgraph.stages.people.preprocess import Preprocess
from camgraph.stages.vision.decoding.score_ranges import score_range
from camgraph.stages.vision.model_contract import Converter
from camgraph.stages.vision.probabilities import Activation, are_distributions
from camgraph.stages.vision.recognition import Reading
from camgraph.tools.models.declaration import Declaration, DeclaredModel
from camgraph.tools.models.frames import frames_of, source_name

Classes = tuple[str, ...] | Literal["all"] | None
Activations = Activation | Literal["auto"]
Meaning = Literal["said", "logits", "distribution", "unclear"]


class Chain:
    """Preprocess, infer, and decode or classify for one model; `with` opens and closes them. ``settings``: of `infer`.

    ``classes``: those that `decode` keeps, by names or all; by default people, if the model knows them. ``activation``:
    how `classify` reads a classifier's numbers.

    ``reading``: the model's format. `with` raises UserError if it is not recognised, or the model takes no pictures.
    """

    reading: Reading

    def __init__(
        self, model: Path, *, classes: Classes = None, activation: Activations = "auto", **settings: Any
    ) -> None:
        self.model = model
        self._classes = classes
        self._activation = activation
        self._settings = {"model": str(model), **settings}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        folder = self.model.parent
        infer = InferSettings.model_validate(self._settings)
        libraries = find_libraries(infer.custom_ops, folder)
        declared = DeclaredModel(self.model, Declaration(infer.declared, infer.input, infer.picture_size, libraries))
        declared.contract()
        self.reading = declared.reading()
        behind = self._reads_outputs(Upstream({"infer": Infer.describe(infer)}))
        with ExitStack() as stack:
            enter = stack.enter_context
            self._prepare = enter(opened(Preprocess, _picture(infer, folder), folder=folder, stage="prepare"))
            self._infer = enter(opened(Infer, self._settings, folder=folder, stage="infer"))
            self._behind = enter(behind)
            self._stack = stack.pop_all()
        return self

    def _reads_outputs(self, upstream: Upstream) -> AbstractContextManager[Stage[Any]]:
        folder = self.model.parent
        if self.reading.format == "classes":
            how = {"activation": self._activation}
            classify = Classify.follow(ClassifySettings.model_validate(how), folder, upstream)
            return opened(Classify, {**how, **classify}, folder=folder, stage="classify")
        # Nobody follows these people over time: only those count of whom the model is certain.
        kept = {"classes": self._classes, "min_score": score_range(self.reading.format).certain}
        decode = Decode.follow(DecodeSettings.model_validate(kept), folder, upstream)
        return opened(Decode, {**kept, **decode}, folder=folder, stage="decode")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def prepared(self, frame: Frame) -> Tensor:
        """The model's picture of a frame."""
        [tensor] = self._prepare.process([frame])
        assert isinstance(tensor, Tensor)
        return tensor

    def inferred(self, prepared: Tensor) -> Tensor:
        """The model's contract for its picture."""
        [tensor] = self._infer.process([prepared])
        assert isinstance(tensor, Tensor)
        return tensor

    def people(self, inferred: Tensor) -> People:
        """Who is in the frame; for models that are no classifiers."""
        found = self.found(inferred)
        assert isinstance(found, People)
        return found

    def found(self, inferred: Tensor) -> People | Labels:
        """The people in the frame, or a classifier's name for it."""
        [found] = self._behind.process([inferred])
        assert isinstance(found, People | Labels)
        return found

    def meaning(self, inferred: Tensor) -> Meaning:
        """The meaning of a classifier's numbers; unclear: perhaps scores of classes that do not exclude each other."""
        rows = inferred.arrays_by_name[self.reading.outputs[0]]
        if self._activation != "auto":
            return "said"
        if ((rows < 0) | (rows > 1)).any():
            return "logits"
        return "distribution" if are_distributions(rows).all() else "unclear"


def _picture(infer: InferSettings, folder: Path) -> dict[str, Any]:
    """Settings of `preprocess` for a model: its size if it has one, else the declared one, else the frame's own."""
    declared = {} if infer.picture_size is None else {"size": infer.picture_size}
    return {"size": "native", **Infer.wants(infer, folder), **declared}


def model_inputs(model: DeclaredModel, sources: Sequence[str], count: int) -> Iterator[dict[str, NDArray[Any]]]:
    """The model's inputs for so many frames: by name, batches of one."""
    folder = model.path.parent
    infer = InferSettings.model_validate({"model": str(model.path), **model.declaration.infer})
    contract = model.contract()
    converter = Converter(contract)
    found = False
    with opened(Preprocess, _picture(infer, folder), folder=folder, stage="prepare") as prepare:
        for frame in frames_of(sources, count):
            [tensor] = prepare.process([frame])
            assert isinstance(tensor, Tensor)
            found = True
            yield {contract.name: np.array(converter.batch([tensor.arrays_by_name["image"]]))}
    if not found:
        raise UserError(
            f"{', '.join(map(source_name, sources))}: no frame in any of these; expected videos or pictures",
            error_id="source-missing",
        )
