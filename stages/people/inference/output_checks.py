"""Checks the outputs of a model in every run, and drops items whose outputs break its promises.

a value that is no number        dropped, counted as `nonfinite`
another shape than promised      while the stage opens the user's mistake; afterwards dropped, counted as `shape`
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import numpy as np

from camgraph.pipeline.errors import BadItem
from camgraph.pipeline.messages import Array
from camgraph.pipeline.stage import Context, Counts
from camgraph.stages.people.inference.engines.engine import WrongOutput
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.recognition import Port

WRONG_SHAPES: Counts = {
    "dropped.shape": "A model gave outputs of another shape than it promised; the log has the details."
}
"""The counter of the stages with `WrongShapes`."""
WRONG_NUMBERS: Counts = {"dropped.nonfinite": "A model's output contained NaN or infinity."}


class WrongShapes:
    """Drops items of one stage for outputs of the wrong shape, and reports each output once, not for every frame.

    Several threads may use it at once.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._logged: set[str] = set()
        self._lock = threading.Lock()

    def dropped(self, output: str, text: str) -> BadItem:
        """The error for an item in which this output is wrong."""
        with self._lock:
            is_new = output not in self._logged
            self._logged.add(output)
        if is_new:
            self._context.log.warning(
                "wrong_shape",
                stage=self._context.stage,
                output=shown(output),
                error=text,
                then="frames with such outputs are dropped and counted as `shape`; this is logged once",
            )
        return BadItem("shape", text, logged=True)


def check_shape(port: Port, output: Array, pictures: int | None) -> None:
    """Hold an output to the number of axes and the sides that the model declares, and to a row for each picture.

    ``pictures``: None if the rows of all pictures stand in one array (n, C). Raises WrongOutput.
    """
    shape, declared = output.shape, port.shape
    message = f"output `{shown(port.name)}` is {shape}"
    if pictures is None and not (len(shape) == 2 and shape[1]):
        raise WrongOutput(port.name, f"{message}; expected rows that begin with the number of their picture")
    if pictures is not None and (not shape or shape[0] != pictures):
        raise WrongOutput(port.name, f"{message} for {pictures} pictures: no axis for them")
    # ONNX Runtime shows no axes also if the file does not give their number.
    if declared and not (len(shape) == len(declared) and all(map(_agrees, shape[1:], declared[1:]))):
        sides = ", ".join(shown(str(side or "any")) for side in ("any", *declared[1:]))
        raise WrongOutput(port.name, f"{message}, but the model declares ({sides}): export it anew")


def _agrees(side: int, declared: object) -> bool:
    return not isinstance(declared, int) or declared <= 0 or side == declared


def check_numbers(outputs: Mapping[str, Array]) -> None:
    """Raises BadItem if a value is not finite: nothing behind could judge it."""
    for name, output in outputs.items():
        if output.dtype.kind == "f" and not np.isfinite(output).all():
            raise BadItem("nonfinite", f"output `{shown(name)}` holds a value that is no number")
