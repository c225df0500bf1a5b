"""Models on OpenVINO itself, by its package `openvino`: on CPUs it is often faster than ONNX Runtime.

Its silent default on CPUs with AVX-512-BF16 or AMX is bfloat16; here it is float32 unless the graph says otherwise.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.engines.engine import NotToBeHad, Placement, RunFailed, one_line
from camgraph.stages.people.inference.model.model_memory import held
from camgraph.stages.vision.recognition import Signature

if TYPE_CHECKING:
    from openvino import CompiledModel, InferRequest

Precision = Literal["f32", "bf16"]


class OpenVinoEngine:
    """A compiled model; each thread has a request of its own."""

    def __init__(self, compiled: CompiledModel, signature: Signature, precision: Precision) -> None:
        self.signature = signature
        self.provider = f"OpenVINO {precision}"
        self.placement = _placement_of(compiled)
        self.most_rows: int | None = None
        self._compiled = compiled
        self._names = [port.name for port in signature.outputs]
        self._threads = threading.local()

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """All outputs by name. Raises RunFailed."""
        try:
            request = self._request()
            request.infer(dict(inputs), share_inputs=True)
            # Copies: the next run writes into the same memory.
            return {name: np.array(request.get_tensor(name).data) for name in self._names}
        except (RuntimeError, TypeError) as error:
            raise RunFailed(one_line(error)) from None

    def _request(self) -> InferRequest:
        request: InferRequest | None = getattr(self._threads, "request", None)
        if request is None:
            request = self._threads.request = self._compiled.create_infer_request()
        return request


def is_installed() -> bool:
    """Whether the package is there; nothing is loaded."""
    return find_spec("openvino") is not None


def open_openvino(
    path: Path, signature: Signature, *, threads: int, at_once: int, precision: Precision
) -> OpenVinoEngine:
    """The model on OpenVINO's CPU device, for some runs at once with some threads each.

    It is held to a limit of memory (`model_memory`).

    Raises NotToBeHad if it is not installed or does not take the model.
    """
    if not is_installed():
        raise NotToBeHad("the package openvino is not installed; get it with `pip install camgraph[openvino]`")
    import openvino  # noqa: PLC0415 - an extra, and it takes a while

    config = {
        "INFERENCE_PRECISION_HINT": precision,
        # Runs beyond the number of streams wait for one, and all streams share the threads.
        "INFERENCE_NUM_THREADS": threads * at_once,
        "NUM_STREAMS": at_once,
        # Threads that are bound to cores are in the way of the other processes.
        "ENABLE_CPU_PINNING": False,
    }

    def opens() -> OpenVinoEngine:
        return OpenVinoEngine(openvino.Core().compile_model(str(path), "CPU", config), signature, precision)

    try:
        return held(opens, "openvino")
    except RuntimeError as error:
        raise NotToBeHad(one_line(error)) from None


def _placement_of(compiled: CompiledModel) -> Placement:
    """By the precision in which a node runs, constants left out."""
    nodes: dict[str, Counter[str]] = {}
    for node in compiled.get_runtime_model().get_ordered_ops():
        kind = _rt_info(node, "layerType")
        if kind not in ("Const", "Input", "Output", "Parameter", "Result", ""):
            nodes.setdefault(f"OpenVINO {_rt_info(node, 'runtimePrecision')}", Counter())[kind] += 1
    return Placement(nodes)


def _rt_info(node: Any, key: str) -> str:
    about = node.get_rt_info()
    return str(about[key].astype(str)) if key in about else ""
