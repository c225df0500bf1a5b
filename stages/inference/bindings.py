"""Runs of a model in buffers that stay on its device (ONNX Runtime calls that IO binding).

    host: the batch ──one copy──> input on the device ──run──> outputs on the device ──one copy──> host: the caller's

    lane of a thread      sets of buffers, one for each shape of input, the oldest given up
      1 x 640 x 640 x 3      input, outputs
      8 x 640 x 640 x 3      input, outputs

Threads that run at once have a lane each, so one copies while another calculates: ONNX Runtime gives each run of a
session a CUDA stream of its own. With CUDA graphs, a run is recorded once for each set and replayed at the same
addresses; such runs come one after the other, for NVIDIA's graphs must not be touched by two threads at once.

The CPU has buffers of this kind too; that is how this file is tested. No GPU has run it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count

import numpy as np
import onnxruntime as ort

from pipeline.messages import Array

MOST_SETS = 16
"""Sets of a lane; frames of more sizes than that take turns in allocating."""
NO_GRAPH = -1
"""ONNX Runtime's number for a run that is neither recorded nor replayed."""
_GRAPH_ID = "gpu_graph_id"


@dataclass(frozen=True)
class Place:
    """Where buffers lie, in ONNX Runtime's words (`cuda`, `cpu`), and on which of these devices."""

    kind: str
    number: int = 0


class BoundSet:
    """The buffers for inputs of one shape; one thread at a time.

    ``graph``: None where the session records nothing; else the number of this set's own recording, or NO_GRAPH.
    """

    def __init__(
        self, session: ort.InferenceSession, inputs: Mapping[str, Array], place: Place, graph: int | None = None
    ) -> None:
        self._session = session
        self._place = place
        self._names = [output.name for output in session.get_outputs()]
        self._binding = session.io_binding()
        self._graph = graph
        self._records = graph is not None and graph != NO_GRAPH
        self._fixed = False
        self._inputs = {name: _space(array.shape, array.dtype, place) for name, array in inputs.items()}
        for name, value in self._inputs.items():
            self._binding.bind_ortvalue_input(name, value)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, which are the caller's: the next run does not touch them."""
        for name, array in inputs.items():
            # A CPU takes rows that lie apart as well; no GPU was there to ask.
            self._inputs[name].update_inplace(np.ascontiguousarray(array))
        if self._fixed:
            return self._outputs_of_run(self._graph)
        self._bind_anew()
        outputs = self._outputs_of_run(None if self._graph is None else NO_GRAPH)
        if not self._records:
            return outputs
        self._fix(outputs)
        return self._outputs_of_run(self._graph)  # which records it

    def _outputs_of_run(self, graph: int | None) -> dict[str, Array]:
        options = None
        if graph is not None:
            options = ort.RunOptions()
            options.add_run_config_entry(_GRAPH_ID, str(graph))
        self._session.run_with_iobinding(self._binding, options)
        return {name: _own(value) for name, value in zip(self._names, self._binding.get_outputs(), strict=True)}

    def _bind_anew(self) -> None:
        """ONNX Runtime allocates: the shapes of outputs may depend on what is in a picture."""
        self._binding.clear_binding_outputs()
        for name in self._names:
            self._binding.bind_output(name, self._place.kind, self._place.number)

    def _fix(self, outputs: Mapping[str, Array]) -> None:
        """From now on outputs of these shapes lie at the same addresses, for a recording holds addresses."""
        self._binding.clear_binding_outputs()
        for name, array in outputs.items():
            self._binding.bind_ortvalue_output(name, _space(array.shape, array.dtype, self._place))
        self._fixed = True


class BoundRuns:
    """A session's runs in bound buffers; several threads may run at once."""

    def __init__(self, session: ort.InferenceSession, place: Place, *, graphs: bool = False) -> None:
        self._session = session
        self._place = place
        self._graphs = count(1) if graphs else None
        self._turn = threading.Lock() if graphs else None
        self._free: deque[OrderedDict[tuple[object, ...], BoundSet]] = deque()

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """As `BoundSet.run`. Raises what ONNX Runtime raises."""
        key = tuple((name, array.shape, array.dtype.str) for name, array in inputs.items())
        with self._turn or nullcontext(), self._lane() as lane:
            # Taken out meanwhile: what a run that failed leaves behind is not used again.
            bound = lane.pop(key, None) or self._new(inputs, lane)
            outputs = bound.run(inputs)
            lane[key] = bound
        return outputs

    @contextmanager
    def _lane(self) -> Iterator[OrderedDict[tuple[object, ...], BoundSet]]:
        """One that no other thread has now."""
        try:
            lane = self._free.pop()
        except IndexError:
            lane = OrderedDict()
        try:
            yield lane
        finally:
            self._free.append(lane)

    def _new(self, inputs: Mapping[str, Array], lane: OrderedDict[tuple[object, ...], BoundSet]) -> BoundSet:
        """A recording lasts as long as its session, so there are only so many; what comes later runs without one."""
        if len(lane) >= MOST_SETS:
            lane.popitem(last=False)
        number = next(self._graphs) if self._graphs else None
        graph = NO_GRAPH if number is not None and number > MOST_SETS else number
        return BoundSet(self._session, inputs, self._place, graph)


def _space(shape: Sequence[int], dtype: np.dtype[np.generic], place: Place) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_shape_and_type(list(shape), dtype.type, place.kind, place.number)


def _own(value: ort.OrtValue) -> Array:
    """From a GPU `numpy` copies; on the CPU it shows the buffer itself."""
    array: Array = value.numpy()
    return array.copy() if value.device_name() == "cpu" else array
