"""Runs of a model that are recorded once and replayed: CUDA graphs, in buffers that stay on the device.

    threads of the stage ──batches──> the one thread that runs the session
                                        a batch of a new shape: run, its outputs' shapes seen, buffers fixed, recorded
                                        of a known one:         copied in, replayed at the same addresses, copied out

ONNX Runtime records for the thread that runs the session, and no other thread may use CUDA in certain ways while it
records. So there is one such thread, and it records the runs when the model is opened.

The CPU has buffers of this kind too; that is how this file is tested, beside the pretended CUDA of tests/gpu.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort

from camgraph.pipeline.messages import Array

MOST_SETS = 16
"""Recordings of a session, each with its buffers; they last as long as the session, so later shapes run without one."""
NO_GRAPH = -1
"""ONNX Runtime's number for a run that is neither recorded nor replayed."""
_GRAPH_ID = "gpu_graph_id"


class CannotRecord(Exception):
    """The model does something that a recording forbids; the session is of no use any more."""


@dataclass(frozen=True)
class Place:
    """The place of buffers in ONNX Runtime's words (`cuda`, `cpu`), and the number of the device."""

    kind: str
    number: int = 0


class BoundSet:
    """The buffers for inputs of one shape. ``graph``: the number of this set's own recording, or NO_GRAPH."""

    def __init__(
        self, session: ort.InferenceSession, inputs: Mapping[str, Array], place: Place, graph: int = NO_GRAPH
    ) -> None:
        self._session = session
        self._place = place
        self._names = [output.name for output in session.get_outputs()]
        self._binding = session.io_binding()
        self._graph = graph
        self._fixed = False
        self._inputs = {name: _space(array.shape, array.dtype, place) for name, array in inputs.items()}
        for name, value in self._inputs.items():
            self._binding.bind_ortvalue_input(name, value)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, which are the caller's: the next run does not touch them. Raises CannotRecord."""
        for name, array in inputs.items():
            # A CPU takes rows that lie apart as well; a GPU was never asked.
            self._inputs[name].update_inplace(np.ascontiguousarray(array))
        if self._fixed:
            return self._outputs_of_run(self._graph)
        self._bind_anew()
        outputs = self._outputs_of_run(NO_GRAPH)
        if self._graph == NO_GRAPH:
            return outputs
        self._fix(outputs)
        try:
            return self._outputs_of_run(self._graph)  # which records it
        except Exception as error:
            raise CannotRecord(str(error)) from error

    def _outputs_of_run(self, graph: int) -> dict[str, Array]:
        options = ort.RunOptions()
        options.add_run_config_entry(_GRAPH_ID, str(graph))
        self._session.run_with_iobinding(self._binding, options)
        return {name: _own(value) for name, value in zip(self._names, self._binding.get_outputs(), strict=True)}

    def _bind_anew(self) -> None:
        """ONNX Runtime allocates: the shapes of outputs may depend on the content of a picture."""
        self._binding.clear_binding_outputs()
        for name in self._names:
            self._binding.bind_output(name, self._place.kind, self._place.number)

    def _fix(self, outputs: Mapping[str, Array]) -> None:
        """From now on outputs of these shapes lie at the same addresses, because a recording holds addresses."""
        self._binding.clear_binding_outputs()
        for name, array in outputs.items():
            self._binding.bind_ortvalue_output(name, _space(array.shape, array.dtype, self._place))
        self._fixed = True


class RecordedRuns:
    """A session's runs in a thread of their own, one after the other; any thread may ask for them."""

    def __init__(self, session: ort.InferenceSession, place: Place) -> None:
        self._session = session
        self._place = place
        self._recordings = 0
        self._sets: OrderedDict[tuple[object, ...], BoundSet] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cuda graphs")

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """As `BoundSet.run`. Raises the errors of ONNX Runtime, too."""
        return self._thread.submit(self._run, inputs).result()

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    def _run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        key = tuple((name, array.shape, array.dtype.str) for name, array in inputs.items())
        # Taken out meanwhile: buffers of a failed run are not used again.
        bound = self._sets.pop(key, None) or self._new(inputs)
        outputs = bound.run(inputs)
        self._sets[key] = bound
        return outputs

    def _new(self, inputs: Mapping[str, Array]) -> BoundSet:
        if len(self._sets) >= MOST_SETS:
            self._sets.popitem(last=False)
        self._recordings += 1
        graph = self._recordings if self._recordings <= MOST_SETS else NO_GRAPH
        return BoundSet(self._session, inputs, self._place, graph)


def _space(shape: Sequence[int], dtype: np.dtype[np.generic], place: Place) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_shape_and_type(list(shape), dtype.type, place.kind, place.number)


def _own(value: ort.OrtValue) -> Array:
    """From a GPU `numpy` copies; on the CPU it shows the buffer itself."""
    array: Array = value.numpy()
    return array.copy() if value.device_name() == "cpu" else array
