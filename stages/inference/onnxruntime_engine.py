"""Models on ONNX Runtime, with the one provider that was asked for, or not at all.

ONNX Runtime falls back to the CPU in silence: when a library is missing, when creation fails, and inside `run`. So the
provider that really got the session is looked at, and the CPU takes nodes only where the graph lists it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from pipeline.errors import UserError
from pipeline.messages import Array
from stages.inference.bindings import BoundRuns, Place
from stages.inference.devices import ON_DEVICES
from stages.inference.engine import NotToBeHad, Placement, ProviderName, RunFailed, one_line
from stages.inference.options import RECORDING
from stages.inference.pinned import NewArray, pinned_arrays, plain_array
from stages.vision.recognition import Port, Signature

PROVIDERS: Mapping[ProviderName, str] = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "directml": "DmlExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
}
CPU = PROVIDERS["cpu"]
_ON_CUDA: tuple[ProviderName, ...] = ("cuda", "tensorrt")

# ONNX Runtime's exceptions have no common base.
ORT_ERRORS: tuple[type[Exception], ...] = tuple(
    kind for kind in vars(ort_errors).values() if isinstance(kind, type) and issubclass(kind, Exception)
)
_RUN_FAILURES: tuple[type[Exception], ...] = (*ORT_ERRORS, RuntimeError)
_FAILURES: tuple[type[Exception], ...] = (*ORT_ERRORS, RuntimeError, ValueError)


class OnnxRuntimeEngine:
    """A session; ONNX Runtime lets several threads run it at once.

    ``bound``: its runs in buffers of the device, None where arrays are handed over. ``new_array`` makes arrays for its
    inputs: they need not come from there, it only saves a copy.
    """

    def __init__(
        self,
        session: ort.InferenceSession,
        provider: str,
        bound: BoundRuns | None = None,
        new_array: NewArray = plain_array,
    ) -> None:
        self.signature = signature_of(session)
        self.provider = provider
        self.most_rows: int | None = None
        self.placement = _placement_of(session)
        self.new_array = new_array
        self._session = session
        self._bound = bound
        self._names = [port.name for port in self.signature.outputs]

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """All outputs by name. Raises RunFailed."""
        try:
            if self._bound:
                return self._bound.run(inputs)
            outputs = self._session.run(self._names, dict(inputs))
        except _RUN_FAILURES as error:
            raise RunFailed(one_line(error)) from None
        return dict(zip(self._names, outputs, strict=True))

    def end_profile(self) -> Path:
        """The file with the profile of all runs, if it was opened for one."""
        return Path(self._session.end_profiling())


def version() -> str:
    """Of ONNX Runtime."""
    return str(ort.__version__)


def with_devices() -> frozenset[str]:
    """ONNX Runtime's names of the providers that run on one of several devices."""
    return frozenset(PROVIDERS[name] for name in ON_DEVICES)


def offered() -> set[ProviderName]:
    """The providers that this ONNX Runtime was built with: not all of them need work."""
    there = ort.get_available_providers()
    return {name for name, own in PROVIDERS.items() if own in there}


def open_with(
    wanted: Mapping[ProviderName, Mapping[str, str]],
    path: Path,
    *,
    threads: int,
    libraries: Sequence[Path] = (),
    profile: Path | None = None,
    bound: bool = True,
) -> OnnxRuntimeEngine:
    """The model on the first of these providers, each with its options.

    Nodes that it does not know go to the others, and to no others; ``libraries`` have operators of the model's own.
    With ``profile``, the beginning of a file's name, ONNX Runtime notes what each run does, until `end_profile`.
    ``bound``: on NVIDIA's GPUs, inputs and outputs lie in buffers that stay there.
    Raises NotToBeHad where that does not work.
    """
    ort.set_default_logger_severity(4)  # what goes wrong is said once, and not in colours on stderr
    there = offered()
    first = next(iter(wanted))
    if first not in there:
        raise NotToBeHad(f"this ONNX Runtime has only {', '.join(ort.get_available_providers())}")
    own = PROVIDERS[first]
    providers = [(PROVIDERS[name], dict(options)) for name, options in wanted.items() if name in there]
    settings = _options([name for name, _ in providers], threads)
    if profile is not None:
        settings.enable_profiling, settings.profile_file_prefix = True, str(profile)
    try:
        _register(settings, libraries)
        session = ort.InferenceSession(str(path), settings, providers=providers, enable_fallback=0)
    except _FAILURES as error:
        raise NotToBeHad(_reason(error)) from None
    runs_on = session.get_providers()[0]
    if runs_on != own:
        raise NotToBeHad(f"ONNX Runtime took {runs_on} instead: a library or a driver that it needs is missing")
    if not (bound and first in _ON_CUDA):
        return OnnxRuntimeEngine(session, runs_on)
    place, graphs = on_cuda(first, wanted[first])
    return OnnxRuntimeEngine(session, runs_on, BoundRuns(session, place, graphs=graphs), pinned_arrays())


def on_cuda(provider: ProviderName, options: Mapping[str, str]) -> tuple[Place, bool]:
    """Where the buffers of a session lie, and whether its runs are recorded, by what the provider is told."""
    recording = options.get(RECORDING[provider], "0")
    return Place("cuda", int(options.get("device_id", "0"))), recording == "1"


def _reason(error: Exception) -> str:
    """Why there is no session; what ONNX Runtime says of a missing library is about something else."""
    text = str(error)
    if "fallback to CPU EP has been explicitly disabled" in text:
        return (
            "it cannot run all of the model here: a library, a driver or a device is missing, or it lacks an operator"
        )
    if "Please install TensorRT libraries" in text:
        return "the libraries of TensorRT are missing"
    return one_line(error)


def _options(wanted: Sequence[str], threads: int) -> ort.SessionOptions:
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
    if CPU not in wanted:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return options


def _placement_of(session: ort.InferenceSession) -> Placement:
    nodes: dict[str, Counter[str]] = {}
    names: dict[str, set[str]] = {}
    # Older ones do not tell.
    told = getattr(session, "get_provider_graph_assignment_info", list)
    for part in told():
        own = part.get_nodes()
        nodes.setdefault(part.ep_name, Counter()).update(node.op_type for node in own)
        names.setdefault(part.ep_name, set()).update(node.name for node in own if node.name)
    return Placement(nodes, {provider: frozenset(of_it) for provider, of_it in names.items()})


def _register(options: ort.SessionOptions, libraries: Sequence[Path]) -> None:
    for library in libraries:
        options.register_custom_ops_library(str(library))


def look_into(path: Path, libraries: Sequence[Path] = ()) -> Signature:
    """What a model says of itself, opened as fast as can be. Raises UserError where it is none."""
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        _register(options, libraries)
        session = ort.InferenceSession(str(path), options, providers=[CPU], enable_fallback=0)
    except _FAILURES as error:
        raise UserError(f"{path}: cannot be read as an ONNX model: {one_line(error)}") from None
    return signature_of(session)


def signature_of(session: ort.InferenceSession) -> Signature:
    """Of an open model."""
    inputs = tuple(Port(entry.name, tuple(entry.shape), entry.type) for entry in session.get_inputs())
    outputs = tuple(Port(entry.name, tuple(entry.shape), entry.type) for entry in session.get_outputs())
    return Signature(inputs, outputs, dict(session.get_modelmeta().custom_metadata_map))
