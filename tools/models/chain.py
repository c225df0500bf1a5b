"""A model with the stages around it, as a graph would run them: frames in, people out, one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import UserError
from pipeline.single_stage import opened
from pipeline.stage import Upstream
from stages.decode import Decode, DecodeSettings
from stages.infer import Infer, InferSettings
from stages.inference.contracts import InputSettings, read_contract
from stages.inference.signatures import signature_of_file
from stages.messages import Frame, People, Tensor
from stages.preprocess import Preprocess
from stages.vision.model_contract import Converter
from tools.models.frames import frames_of


class Chain:
    """Preprocess, infer and decode for one model; `with` opens and closes them. ``settings`` are of `infer`."""

    def __init__(self, model: Path, **settings: Any) -> None:
        self.model = model
        self._settings = {"model": str(model), **settings}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        folder = self.model.parent
        infer = InferSettings.model_validate(self._settings)
        wanted = {"size": "native", **Infer.wants(infer, folder)}
        decode = Decode.follow(DecodeSettings.model_validate({}), folder, Upstream({"infer": Infer.describe(infer)}))
        enter = self._stack.enter_context
        self._prepare = enter(opened(Preprocess, wanted, folder=folder, stage="prepare"))
        self._infer = enter(opened(Infer, self._settings, folder=folder, stage="infer"))
        self._decode = enter(opened(Decode, dict(decode), folder=folder, stage="decode"))
        return self

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
        """What the model says of its picture."""
        [tensor] = self._infer.process([prepared])
        assert isinstance(tensor, Tensor)
        return tensor

    def people(self, inferred: Tensor) -> People:
        """Who is in the frame."""
        [people] = self._decode.process([inferred])
        assert isinstance(people, People)
        return people


def model_inputs(model: Path, sources: Sequence[str], count: int) -> Iterator[dict[str, NDArray[Any]]]:
    """What the model is given for so many frames: by its input's name, batches of one."""
    folder = model.parent
    infer = InferSettings.model_validate({"model": str(model)})
    contract = read_contract(signature_of_file(model), str(model), InputSettings())
    converter = Converter(contract)
    wanted = {"size": "native", **Infer.wants(infer, folder)}
    found = False
    with opened(Preprocess, wanted, folder=folder, stage="prepare") as prepare:
        for frame in frames_of(sources, count):
            [tensor] = prepare.process([frame])
            assert isinstance(tensor, Tensor)
            found = True
            yield {contract.name: np.array(converter.batch([tensor.arrays_by_name["image"]]))}
    if not found:
        raise UserError(f"{', '.join(sources)}: no frame in any of these; expected videos or pictures")
