"""Checks the providers that can run models: some really work, others only claim to."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

from camgraph.stages.people.inference.engines.convolution import convolution
from camgraph.stages.people.inference.engines.engine import ProviderName
from camgraph.stages.people.inference.selection.opening import Asked
from camgraph.stages.people.inference.selection.trial import Trial, try_in_process
from camgraph.tools.commands.doctor.notice import Notice, State

_TRY_S = 60.0
_CURES: dict[ProviderName, str] = {
    "cuda": "pip install 'camgraph[cuda]', and a driver for the CUDA that this ONNX Runtime was built for",
    "tensorrt": "pip install 'tensorrt-cu13<11' (TensorRT 10), or put its libnvinfer.so.10 on LD_LIBRARY_PATH",
    "openvino": "pip install 'camgraph[openvino]'",
}
_ON_NVIDIA: dict[ProviderName, State] = {"cuda": "wrong", "tensorrt": "warning"}
"""How bad it is that it does not work, on a machine with NVIDIA's driver."""

Try = Callable[[ProviderName], Trial]
"""The result of running a convolution on a provider."""


def look_at_providers(attempt: Try | None = None, *, nvidia: bool, openvino: bool) -> Iterator[Notice]:
    """Each is tried with a convolution, in a process of its own, because CUDA keeps its memory.

    ``nvidia``: the machine has NVIDIA's driver; ``openvino``: that package is installed.
    """
    for name in get_args(ProviderName):
        trial = (attempt or _tried)(name)
        why, what = trial.failure, f"provider {name}"
        if not trial.begun:
            yield Notice("wrong", "providers", why, "mend that, for models are tried in a process of their own")
            return
        if not why:
            yield Notice("ok", what, "runs a model")
        elif name == "cpu":
            yield Notice("wrong", what, why, "pip install --force-reinstall onnxruntime-gpu")
        elif nvidia and name in _ON_NVIDIA:
            yield Notice(_ON_NVIDIA[name], what, f"does not work, and NVIDIA's driver is here ({why})", _CURES[name])
        elif openvino and name == "openvino":
            cure = "pip install --force-reinstall openvino"
            yield Notice("warning", what, f"is installed, and does not work ({why})", cure)
        elif name in _CURES:
            yield Notice("ok", what, f"not available here ({why})", f"if wanted: {_CURES[name]}")


def _tried(name: ProviderName) -> Trial:
    with tempfile.TemporaryDirectory() as folder:
        model, inputs = convolution()
        path = Path(folder) / "convolution.onnx"
        path.write_bytes(model)
        return try_in_process(path, Asked((name,)), inputs, _TRY_S)
