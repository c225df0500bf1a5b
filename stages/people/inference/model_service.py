"""Runs the model on pictures of other programs, beside the frames of the cameras.

    request   one line of JSON:  {"shape": [1, 640, 640, 3], "fit": [0.5, 0.5, 0, 140], "frame_size": [1280, 720]},
              and then the picture: uint8 RGB
    answer    one line of JSON:  {"seconds": 0.05, "outputs": [["output0", "float32", [1, 56, 8400]]]},
              and then the outputs, one after the other
                                 {"error": "why"}

The socket lies in the run's folder, which other users cannot enter. One thread answers, one client after another, each
with one picture at a time; it has `_READ_S` for all of its request, and as long to read the answer. Clients bound how
often they ask, because each run takes time from the cameras.
"""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, UserError, WireError
from camgraph.pipeline.messages import Array, Stamp
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.local_socket import Exchange, listening, short_address
from camgraph.stages.messages import Tensor
from camgraph.stages.people.inference.engines.engine import WrongOutput

NAME = "model-{worker}"
"""Of the socket of each process of the stage, in its state folder."""
NAMES = NAME.format(worker="*")
IMAGE = "image"
_READ_S = 5.0
_RUN_S = 60.0
_BACKLOG = 16
_MOST_HEAD = 10_000
_MOST_PICTURE = 256 << 20
_MOST_OUTPUTS = 512 << 20
_STAMP = Stamp("", 0, 0, 0, 0, 0, alone=True)

RunModel = Callable[[Tensor], Mapping[str, Array]]
"""The model's outputs, by name, for a Tensor of one picture. Called from the service's thread. Raises what
`Infer.process` does."""


class ModelService:
    """See the module. `path`: of the socket."""

    def __init__(self, path: Path, run: RunModel, log: Logger) -> None:
        self._path, self._run, self._log = path, run, log
        self._server: socket.socket | None = None
        self._client: socket.socket | None = None
        self._is_over = False
        self._thread = threading.Thread(target=self._serve, name="model-service", daemon=True)

    def open(self) -> None:
        """Begin to answer. Without sockets of this kind, nobody can ask, and all else goes on."""
        with suppress(OSError, AttributeError, RuntimeError):  # RuntimeError: the machine gives no thread
            server = listening(self._path, _BACKLOG)
            server.setblocking(True)
            self._server = server
            self._thread.start()

    def close(self) -> None:
        if self._server is None:
            return
        self._is_over = True
        for one in (self._server, self._client):  # the thread may wait at either
            if one is not None:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
        if self._thread.ident is not None:
            self._thread.join()
        self._server.close()
        self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        assert self._server is not None
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            self._client = client
            with client, suppress(OSError):
                if self._is_over:  # `close` saw the client of before
                    return
                link = Exchange(client, _READ_S)
                head, arrays = self._answer(link)
                link.extend(_READ_S)
                link.send(json.dumps(head).encode() + b"\n")
                for array in arrays:
                    link.send(array.tobytes())

    def _answer(self, link: Exchange) -> tuple[dict[str, Any], list[Array]]:
        """Raises OSError if the client does not send it, or goes."""
        try:
            tensor = _read_request(link)
            begun = time.monotonic()
            outputs = self._run(tensor)
            facts = [[name, output.dtype.name, list(output.shape)] for name, output in outputs.items()]
            return {"seconds": time.monotonic() - begun, "outputs": facts}, [*outputs.values()]
        except (BadItem, UserError, WireError, WrongOutput) as error:
            return {"error": str(error)}, []
        except OSError:
            raise
        except Exception:  # noqa: BLE001
            # A bug must cost one answer, not all that come.
            self._log.exception("model_request_failed")
            return {"error": "it could not be made; the log of the run has the details"}, []


def _read_request(link: Exchange) -> Tensor:
    """Raises WireError for a request that nobody can read, OSError if it does not come."""
    match _line(link):
        case {"shape": [1, int(height), int(width), 3], "fit": [*fit], "frame_size": [int(w), int(h)]} if (
            0 < 3 * height * width <= _MOST_PICTURE and len(fit) == 4
        ):
            picture = _array(link, "uint8", (1, height, width, 3))
            fits = np.array([fit], np.float32)
            return Tensor(_STAMP, {IMAGE: picture}, fits, (w, h), (width, height))
    raise WireError('expected {"shape": [1, HEIGHT, WIDTH, 3], "fit": [4 numbers], "frame_size": [WIDTH, HEIGHT]}')


def _line(link: Exchange) -> Any:
    try:
        return json.loads(link.line(_MOST_HEAD))
    except (ValueError, RecursionError):
        return None


def _array(link: Exchange, dtype: str, shape: tuple[int, ...]) -> Array:
    """Raises OSError if it does not come to its end."""
    data = link.read(math.prod(shape) * np.dtype(dtype).itemsize)
    return np.frombuffer(data, dtype).reshape(shape)


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
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as service:
            service.settimeout(_RUN_S)
            with short_address(path) as address:
                service.connect(address)
            link = Exchange(service, _RUN_S)
            link.send(json.dumps(head).encode() + b"\n")
            link.send(picture.tobytes())
            return _read_answer(link, asked)
    except (OSError, TypeError, ValueError) as error:
        raise EnvironmentProblem(
            f"the model does not answer at {path.name}: {error or type(error).__name__}: try again",
            error_id="model-does-not-run",
        ) from None


def _read_answer(link: Exchange, asked: Tensor) -> ModelAnswer:
    facts = _line(link)
    if not isinstance(facts, dict):
        raise ConnectionResetError("it has ended")
    if why := facts.get("error"):
        raise UserError(str(why), error_id="model-does-not-fit")
    outputs: dict[str, Array] = {}
    for name, dtype, shape in facts["outputs"]:
        if math.prod(shape) * np.dtype(dtype).itemsize > _MOST_OUTPUTS:
            raise ValueError("the outputs are too large")
        outputs[name] = _array(link, dtype, tuple(shape))
    tensor = Tensor(asked.stamp, outputs, asked.fit, asked.frame_size, asked.picture_size)
    return ModelAnswer(tensor, float(facts["seconds"]))
