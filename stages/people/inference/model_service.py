"""Runs the model on pictures of other programs, beside the frames of the cameras.

    request   {"shape": [1, 640, 640, 3], "fit": [0.5, 0.5, 0, 140], "frame_size": [1280, 720], "pixels": uint8 RGB}
    answer    {"seconds": 0.05, "outputs": [["output0", "float32", [1, 56, 8400], bytes]]}
              {"error": "why"}

Clients ask over a side channel, and bound how often they ask, because each run takes time from the cameras.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, UserError, WireError
from camgraph.pipeline.messages import Array, Stamp
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.side_channel import Client, SideChannel
from camgraph.pipeline.system.side_link import ask
from camgraph.stages.messages import Tensor
from camgraph.stages.people.inference.engines.engine import WrongOutput

NAME = "model-{worker}"
"""Of the socket of each process of the stage, in its state folder."""
NAMES = NAME.format(worker="*")
IMAGE = "image"
_READ_S = 5.0
_RUN_S = 60.0
_MOST_REQUEST = 256 << 20
_MOST_OUTPUTS = 512 << 20
_STAMP = Stamp("", 0, 0, 0, 0, 0, alone=True)

RunModel = Callable[[Tensor], Mapping[str, Array]]
"""The model's outputs, by name, for a Tensor of one picture. Called from the service's thread. Raises what
`Infer.process` does."""


class ModelService:
    """See the module. `path`: of the socket."""

    def __init__(self, path: Path, run: RunModel, log: Logger) -> None:
        self._run = run
        self._channel = SideChannel(
            path, self._answer, log, name="model-service", within_s=_READ_S, most_request=_MOST_REQUEST
        )
        self.open, self.close = self._channel.serve, self._channel.close

    def _answer(self, client: Client) -> dict[str, Any]:
        """Raises WireError."""
        begun_s = time.monotonic()
        try:
            outputs = self._run(_Asked.of(client.message).tensor)
        except (BadItem, UserError, WrongOutput) as error:
            return {"error": str(error)}
        listed = [[name, one.dtype.name, list(one.shape), one.tobytes()] for name, one in outputs.items()]
        return {"seconds": time.monotonic() - begun_s, "outputs": listed}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request for one picture."""

    picture_size: tuple[int, int]
    fit: list[float]
    frame_size: tuple[int, int]
    pixels: bytes

    @classmethod
    def of(cls, request: Any) -> _Asked:
        """Raises WireError for a request that nobody can read."""
        match request:
            case {
                "shape": [1, int(height), int(width), 3],
                "fit": [_, _, _, _] as fit,
                "frame_size": [int(w), int(h)],
                "pixels": bytes(pixels),
            } if 0 < 3 * height * width == len(pixels) and all(isinstance(one, int | float) for one in fit):
                return cls((width, height), fit, (w, h), pixels)
        raise WireError(
            'expected {"shape": [1, HEIGHT, WIDTH, 3], "fit": [4 numbers], "frame_size": [WIDTH, HEIGHT], '
            '"pixels": HEIGHT x WIDTH x 3 bytes}'
        )

    @property
    def tensor(self) -> Tensor:
        width, height = self.picture_size
        picture = np.frombuffer(self.pixels, np.uint8).reshape(1, height, width, 3)
        fit = np.array([self.fit], np.float32)
        return Tensor(_STAMP, {IMAGE: picture}, fit, self.frame_size, self.picture_size)


# ---- who asks


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """`tensor`: the outputs, as `Infer` gives them; `seconds`: how long the model took."""

    tensor: Tensor
    seconds: float


def ask_model(path: Path, asked: Tensor) -> ModelAnswer:
    """Ask the service at this socket about the picture of `asked`.

    Raises UserError if the model does not take it, EnvironmentProblem if no answer comes.
    """
    picture = asked.arrays_by_name[IMAGE]
    request = {
        "shape": picture.shape,
        "fit": asked.fit[0].tolist(),
        "frame_size": asked.frame_size,
        "pixels": picture.tobytes(),
    }
    try:
        return _read_answer(ask(path, request, within_s=_RUN_S, most=_MOST_OUTPUTS), asked)
    except (OSError, WireError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise EnvironmentProblem(
            f"the model does not answer at {path.name}: {error or type(error).__name__}: try again",
            error_id="model-does-not-run",
        ) from None


def _read_answer(facts: Any, asked: Tensor) -> ModelAnswer:
    if why := facts.get("error"):
        raise UserError(str(why), error_id="model-does-not-fit")
    outputs: dict[str, Array] = {
        name: np.frombuffer(data, dtype).reshape(shape) for name, dtype, shape, data in facts["outputs"]
    }
    tensor = Tensor(asked.stamp, outputs, asked.fit, asked.frame_size, asked.picture_size)
    return ModelAnswer(tensor, float(facts["seconds"]))
