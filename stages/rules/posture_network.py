"""The network behind `looks_like`, which comes with camgraph: `posture.onnx`, beside this file."""

from __future__ import annotations

import functools
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.posture import Network

FILE = "posture.onnx"


@functools.cache
def posture_network() -> Network:
    """The network, opened once for each process. It runs in the thread that asks, on the CPU."""
    import onnxruntime  # noqa: PLC0415 - rules that do not ask `looks_like` do without

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    model = files("camgraph.stages.rules").joinpath(FILE).read_bytes()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def scores(windows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Normalised windows (N, T, 19, 3) -> (N, C), from 0 to 1."""
        return np.asarray(session.run(["scores"], {"windows": windows})[0])

    return scores
