"""Opens ONNX models with the provider that was asked for, or says why not.

ONNX Runtime falls back to the CPU in silence: when a library is missing, when creation fails, and inside `run`. Here
the provider that really got the session is looked at, and the CPU is taken only where it is listed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from pipeline.errors import EnvironmentProblem, UserError
from pipeline.paths import ASSET_PREFIX, instead_of_file, resolve

ProviderName = Literal["cpu", "cuda", "tensorrt", "openvino"]

PROVIDERS: dict[ProviderName, str] = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
}

# ONNX Runtime's exceptions have no common base.
ORT_ERRORS: tuple[type[Exception], ...] = tuple(
    kind for kind in vars(ort_errors).values() if isinstance(kind, type) and issubclass(kind, Exception)
)


_FAILURES: tuple[type[Exception], ...] = (*ORT_ERRORS, RuntimeError, ValueError)


class Opened(NamedTuple):
    """A session, and the provider that runs it."""

    session: ort.InferenceSession
    provider: str
    passed_over: tuple[str, ...]
    """What was asked for and could not be had."""


def find_model(text: str, base_folder: Path) -> Path:
    """The model's file. Raises UserError where there is none."""
    path = resolve(text, base_folder)
    if path.is_file():
        return path
    if text.startswith(ASSET_PREFIX):
        raise UserError(f"the model {text} is not on this machine ({path}); get it with `camgraph assets pull`")
    other = instead_of_file(path)
    raise UserError(f"{path} is {other}, expected an ONNX file" if other else f"no such model file: {path}")


def sha256_of(path: Path) -> str:
    """Of the file. Raises UserError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; expected an ONNX file") from None


def open_session(path: Path, providers: Sequence[ProviderName], *, threads: int) -> Opened:
    """The model on the first of `providers` that takes it.

    Raises UserError where the file is no usable model, and EnvironmentProblem where none of the providers works.
    """
    ort.set_default_logger_severity(4)  # what goes wrong is said here, once, and not in colours on stderr
    offered = ort.get_available_providers()
    wanted = [PROVIDERS[name] for name in providers if PROVIDERS[name] in offered]
    if not wanted:
        raise EnvironmentProblem(f"{_none_of(providers)}: this ONNX Runtime has only {', '.join(offered)}; {_WAY_OUT}")
    problem = ""
    for first in range(len(wanted)):
        try:
            session = _create(path, wanted[first:], threads)
        except _FAILURES as error:
            problem = one_line(error)
            continue
        runs_on = session.get_providers()[0]
        if runs_on in wanted:
            asked = [PROVIDERS[name] for name in providers]
            return Opened(session, runs_on, tuple(asked[: asked.index(runs_on)]))
        problem = f"ONNX Runtime took {runs_on} instead: a library or a driver that it needs is missing"
    if wanted[-1] == PROVIDERS["cpu"]:
        raise UserError(f"{path}: cannot be run as an ONNX model: {problem}")
    raise EnvironmentProblem(f"{path}: {_none_of(providers)}: {problem}; {_WAY_OUT}")


_WAY_OUT = "install what is missing, or add cpu to `providers` as a fallback"


def _none_of(providers: Sequence[ProviderName]) -> str:
    return f"none of the providers asked for ({', '.join(providers)}) can be had"


def _create(path: Path, providers: list[str], threads: int) -> ort.InferenceSession:
    """A session that stays within `threads`, does not spin while it waits, and does not change its provider."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 4
    # Two processes that spin on two cores run at 0.57 of their rate.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    if PROVIDERS["cpu"] not in providers:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return ort.InferenceSession(str(path), options, providers=providers, enable_fallback=0)


def inspect_model(path: Path) -> ort.InferenceSession:
    """The model opened as fast as can be, for a look at its inputs. Raises UserError where it is none."""
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return ort.InferenceSession(str(path), options, providers=[PROVIDERS["cpu"]], enable_fallback=0)
    except _FAILURES as error:
        raise UserError(f"{path}: cannot be read as an ONNX model: {one_line(error)}") from None


def one_line(error: Exception) -> str:
    """ONNX Runtime's message, as one line of bounded length."""
    return " ".join(str(error).split())[:300]
