"""Runs the model on pictures of other programs, beside the frames of the cameras.

    request   one line of JSON:  {"shape": [1, 640, 640, 3], "fit": [0.5, 0.5, 0, 140], "frame_size": [1280, 720]},
              and then the picture: uint8 RGB
    answer    one line of JSON:  {"seconds": 0.05, "outputs": [["output0", "float32", [1, 56, 8400]]]},
              and then the outputs, one after the other
                                 {"error": "why"}

The messages are those of `pipeline.system.side_channel`. Clients bound how often they ask, because each run takes time
from the cameras.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, UserError, WireError
from camgraph.pipeline.messages import Array, Stamp
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.local_socket import Exchange
from camgraph.pipeline.system.side_channel import Answer, Request, SideChannel, answered_head, ask
from camgraph.stages.messages import Tensor
from camgraph.stages.people.inference.engines.engine import WrongOutput

NAME = "model-{worker}"
"""Of the socket of each process of the stage, in its state folder."""
NAMES = NAME.format(worker="*")
IMAGE = "image"
_READ_S = 5.0
_RUN_S = 60.0
_MOST_PICTURE = 256 << 20
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
            path,
            self._answer,
            log,
            name="model-service",
            within_s=_READ_S,
            payload_of=_picture_bytes,
        )
        self.open, self.close = self._channel.open, self._channel.close

    def _answer(self, request: Request) -> Answer:
        """Raises WireError."""
        begun_s = time.monotonic()
        try:
            outputs = self._run(_Asked.of(request.head).tensor(request.payload))
        except (BadItem, UserError, WrongOutput) as error:
            return Answer({"error": str(error)})
        facts = [[name, output.dtype.name, list(output.shape)] for name, output in outputs.items()]
        head = {"seconds": time.monotonic() - begun_s, "outputs": facts}
        return Answer(head, [output.tobytes() for output in outputs.values()])


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request says of its picture."""

    picture_size: tuple[int, int]
    fit: list[float]
    frame_size: tuple[int, int]

    @classmethod
    def of(cls, head: Any) -> _Asked:
        """Raises WireError for a head that nobody can read."""
        match head:
            case {
                "shape": [1, int(height), int(width), 3],
                "fit": [_, _, _, _] as fit,
                "frame_size": [int(w), int(h)],
            } if 0 < 3 * height * width <= _MOST_PICTURE and all(isinstance(one, int | float) for one in fit):
                return cls((width, height), fit, (w, h))
        raise WireError('expected {"shape": [1, HEIGHT, WIDTH, 3], "fit": [4 numbers], "frame_size": [WIDTH, HEIGHT]}')

    @property
    def size(self) -> int:
        """Bytes of the picture."""
        return 3 * math.prod(self.picture_size)

    def tensor(self, pixels: bytes) -> Tensor:
        width, height = self.picture_size
        picture = np.frombuffer(pixels, np.uint8).reshape(1, height, width, 3)
        fit = np.array([self.fit], np.float32)
        return Tensor(_STAMP, {IMAGE: picture}, fit, self.frame_size, self.picture_size)


def _picture_bytes(head: Any) -> int:
    return _Asked.of(head).size


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
    head = {"shape": picture.shape, "fit": asked.fit[0].tolist(), "frame_size": asked.frame_size}
    try:
        with ask(path, head, picture.tobytes(), within_s=_RUN_S) as link:
            return _read_answer(link, asked)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise EnvironmentProblem(
            f"the model does not answer at {path.name}: {error or type(error).__name__}: try again",
            error_id="model-does-not-run",
        ) from None


def _read_answer(link: Exchange, asked: Tensor) -> ModelAnswer:
    facts = answered_head(link)
    if why := facts.get("error"):
        raise UserError(str(why), error_id="model-does-not-fit")
    outputs: dict[str, Array] = {}
    for name, dtype, shape in facts["outputs"]:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size > _MOST_OUTPUTS:
            raise ValueError("the outputs are too large")
        outputs[name] = np.frombuffer(link.read(size), dtype).reshape(shape)
    tensor = Tensor(asked.stamp, outputs, asked.fit, asked.frame_size, asked.picture_size)
    return ModelAnswer(tensor, float(facts["seconds"]))
