"""Runs of a model on a GPU from and into host memory that the GPU reads and writes by itself.

    pinned: the batch ──run: copied in, calculated, copied out──> pinned: arrays of the caller's

All of it is one call of ONNX Runtime without Python's lock, so that one thread's copies overlap with another's
calculation. The alternatives were slower on an H100: copies by `OrtValue.update_inplace` and `numpy` hold the lock,
and a plain `run` puts its outputs into fresh ordinary memory.

ONNX Runtime's convolutions on CUDA keep one plan of cuDNN's each, and plan again whenever the shape of their input
changes, even back to an earlier one (microsoft/onnxruntime#23006). On an H100, batches of changing sizes ran at 14
frames a second instead of 1,300. So a session sees inputs of one shape only.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import OrtDevice, OrtValueVector

from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.engines.pinned import NewArray
from camgraph.stages.vision.recognition import Signature

_NUMPY: Mapping[str, str] = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(uint8)": "uint8",
    "tensor(int8)": "int8",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
    "tensor(bool)": "bool",
}
MOST_SESSIONS = 8
"""Of one model: each has its own copy of the weights on the device."""
MOST_SHAPES = 64
"""Shapes of inputs whose outputs' shapes are remembered."""
_Key = tuple[tuple[str, tuple[int, ...]], ...]
_HOST = OrtDevice(OrtDevice.cpu(), OrtDevice.default_memory(), 0)


class HostRuns:
    """A model's runs on a device; several threads may run at once. ``new_array`` makes the arrays for outputs.

    ``another``: opens the model once more. It is given if a session gets slow when the shapes of its inputs change;
    then each shape has a session of its own, the first `MOST_SESSIONS` of them, and those that come later take turns.
    """

    def __init__(
        self,
        session: ort.InferenceSession,
        signature: Signature,
        new_array: NewArray,
        another: Callable[[], ort.InferenceSession] | None = None,
    ) -> None:
        self._sessions = [session]
        self._signature = signature
        self._new_array = new_array
        self._another = another
        self._opening = threading.Lock()
        self._by_shape: OrderedDict[_Key, _OneShape] = OrderedDict()
        self._refuted = threading.Event()

    @property
    def sessions(self) -> int:
        """The number of open sessions; each has its own memory on the device."""
        return len(self._sessions)

    def expect_any_rows(self) -> None:
        """Give outputs no memory before a run any more: how many rows they have depends on the picture."""
        self._refuted.set()

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, which are the caller's. Raises the errors of ONNX Runtime."""
        key = tuple((name, array.shape) for name, array in inputs.items())
        # Two threads may look while nothing is changed; a shape that is new is looked up again in its turn.
        runs = self._by_shape.get(key) or self._of_new_shape(key)
        try:
            return runs.run(inputs)
        except Exception:
            if not runs.has_run:
                self._give_up(key, runs)
            raise

    def _of_new_shape(self, key: _Key) -> _OneShape:
        with self._opening:
            if key not in self._by_shape:
                session = self._session_for_one_more()
                self._by_shape[key] = _OneShape(session, self._signature, key, self._new_array, self._refuted)
                if len(self._by_shape) > MOST_SHAPES:
                    self._by_shape.popitem(last=False)
            return self._by_shape[key]

    def _give_up(self, key: _Key, runs: _OneShape) -> None:
        """Others need the memory of the device that a session has taken for a run that did not fit."""
        with self._opening:
            if self._by_shape.get(key) is runs:
                del self._by_shape[key]
                if runs.session in self._sessions[1:]:
                    self._sessions.remove(runs.session)

    def _session_for_one_more(self) -> ort.InferenceSession:
        """One that no shape has yet, as long as there may be more; then those that there are in turn."""
        count = len(self._by_shape)
        if self._another and count == len(self._sessions) < MOST_SESSIONS:
            self._sessions.append(self._another())
        return self._sessions[count % len(self._sessions)]


class _OneShape:
    """A session's runs with inputs of one shape. Threads may run at once.

    ``refuted``: of all shapes; it is set as soon as the model's statement about its outputs has been wrong once.
    """

    def __init__(
        self,
        session: ort.InferenceSession,
        signature: Signature,
        key: _Key,
        new_array: NewArray,
        refuted: threading.Event,
    ) -> None:
        self.session = session
        self.has_run = False
        self._new_array = new_array
        self._refuted = refuted
        self._names = [port.name for port in signature.outputs]
        self._types = [_NUMPY.get(port.onnx_type, "") for port in signature.outputs]
        self._declared = output_shapes(signature, dict(key))
        self._is_confirmed = False

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        if self._declared is None or not self._is_confirmed or self._refuted.is_set():
            return self._plain_run(inputs)
        try:
            return self._run_into(self._declared, inputs)
        except Exception:  # noqa: BLE001 - those of ONNX Runtime have no common base
            # It refuses outputs of other shapes than their memory; of any other error the plain run dies as well.
            return self._plain_run(inputs)

    def _run_into(self, shapes: Sequence[tuple[int, ...]], inputs: Mapping[str, Array]) -> dict[str, Array]:
        outputs = [self._new_array(prod(s), t).reshape(s) for s, t in zip(shapes, self._types, strict=True)]
        feeds, given = _values([np.ascontiguousarray(array) for array in inputs.values()])
        fetches, taken = _values(outputs)
        self.session.run_with_ortvaluevector(
            ort.RunOptions(), list(inputs), feeds, self._names, fetches, [_HOST] * len(outputs)
        )
        del given, taken
        return dict(zip(self._names, outputs, strict=True))

    def _plain_run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """A model's statement about its outputs is believed once a run has confirmed it, until a run refutes it.

        Exporters name an axis of rows as that of the pictures; as many rows as pictures are then a coincidence.
        """
        outputs = self.session.run(self._names, dict(inputs))
        self.has_run = True
        if self._declared == [output.shape for output in outputs]:
            self._is_confirmed = True
        elif self._declared is not None:
            self._refuted.set()
        return dict(zip(self._names, outputs, strict=True))


def output_shapes(signature: Signature, inputs: Mapping[str, Sequence[int]]) -> list[tuple[int, ...]] | None:
    """The shapes of all outputs for inputs of these shapes; None if one of them is known only after the run.

    A side that has a name has the size of the input's side of that name.
    """
    sizes: dict[str, int] = {}
    for port in signature.inputs:
        for side, size in zip(port.shape, inputs.get(port.name, ()), strict=False):
            if isinstance(side, str) and side:
                sizes[side] = size
    shapes = [tuple(_size(side, sizes) for side in port.shape) for port in signature.outputs]
    known_types = all(port.onnx_type in _NUMPY for port in signature.outputs)
    return [_whole(shape) for shape in shapes] if known_types and all(None not in shape for shape in shapes) else None


def _size(side: int | str | None, sizes: Mapping[str, int]) -> int | None:
    if isinstance(side, int):
        return side if side > 0 else None
    return sizes.get(side) if side else None


def _whole(shape: Sequence[int | None]) -> tuple[int, ...]:
    return tuple(side for side in shape if side is not None)


def _values(arrays: Sequence[Array]) -> tuple[OrtValueVector, list[ort.OrtValue]]:
    """Over the arrays' own memory, without a copy; the second must live as long as the first is used."""
    values = [ort.OrtValue.ortvalue_from_numpy(array) for array in arrays]
    vector = OrtValueVector()
    for value in values:
        vector.push_back(value._ortvalue)
    return vector, values
