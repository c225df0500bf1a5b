"""Calibrates a model's ranges: on frames with finite outputs, and with finite ranges.

A range with an infinity or NaN in it makes nothing but NaN of a model, or fails within ONNX Runtime, which names none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.system.cores import usable_cores
from camgraph.stages.people.inference.engines.engine import NotToBeHad, RunFailed
from camgraph.stages.people.inference.engines.onnxruntime_engine import open_with
from camgraph.stages.vision.foreign_text import shown

_MOST_NAMES = 5


class CheckedFrames:
    """Frames as ONNX Runtime's calibration asks for them; each goes through the ``model`` as it is before that.

    Raises UserError if the model does not open.
    """

    def __init__(self, model: Path, inputs: Iterator[dict[str, NDArray[Any]]]) -> None:
        self._model = model
        self._inputs = inputs
        self._taken = 0
        try:
            self._engine = open_with({"cpu": {}}, model, threads=usable_cores())
        except NotToBeHad as error:
            raise UserError(
                f"{model}: does not open on the CPU, where it is calibrated: {error}", error_id="model-does-not-run"
            ) from None

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        """The next one; None at the end. Raises UserError if the model gives something else than numbers for it."""
        frame = next(self._inputs, None)
        if frame is not None:
            self._taken += 1
            self._check(frame)
        return frame

    def _check(self, frame: dict[str, NDArray[Any]]) -> None:
        try:
            answer = self._engine.run(frame)
        except RunFailed as error:
            raise UserError(f"{self._model}: does not run: {error}", error_id="model-does-not-run") from None
        if wrong := [name for name, values in answer.items() if not _finite(values)]:
            raise UserError(
                f"{self._model}: {_listed('output', wrong)} {'has' if len(wrong) == 1 else 'have'} values that are no "
                f"numbers (NaN or infinity) for frame {self._taken} of those it is calibrated on: such a model has no "
                "ranges that could be quantized. Look at its weights, and whether it wants its pixels otherwise "
                "(--order, --scale)",
                error_id="model-conversion",
            )


def check_ranges(model: Path, made: onnx.GraphProto) -> None:
    """Raises UserError if a scale of the ``made`` model is no number."""
    scales = {node.input[1] for node in made.node if node.op_type.endswith("QuantizeLinear") and len(node.input) > 1}
    wrong = [
        entry.name.removesuffix("_scale")
        for entry in made.initializer
        if entry.name in scales and not _finite(numpy_helper.to_array(entry))
    ]
    if wrong:
        raise UserError(
            f"{model}: {_listed('value', wrong)} between its nodes {'is' if len(wrong) == 1 else 'are'} infinite for "
            "frames that it is calibrated on, and cannot be quantized: look at its weights, or leave more of it in "
            "float (--float-head)",
            error_id="model-conversion",
        )


def _finite(values: NDArray[Any]) -> bool:
    return bool(values.dtype.kind not in "fc" or np.isfinite(values).all())


def _listed(kind: str, names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    some = ", ".join(f"`{shown(name)}`" for name in names[:_MOST_NAMES])
    return f"{kind}{'' if len(names) == 1 else 's'} {some}{more}"
