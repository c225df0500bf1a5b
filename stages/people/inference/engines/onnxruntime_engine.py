"""Models on ONNX Runtime, with the one provider that was asked for, or not at all.

ONNX Runtime falls back to the CPU in silence: if a library is missing, if creation fails, and inside `run`. So the
provider that really got the session is checked, and the CPU takes nodes only if the graph lists it.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from camgraph.pipeline.errors import NeedsNewProcess, UserError
from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.engines.bindings import CannotRecord, Place, RecordedRuns
from camgraph.stages.people.inference.engines.convolution import convolution
from camgraph.stages.people.inference.engines.devices import ON_DEVICES, number_of
from camgraph.stages.people.inference.engines.engine import (
    NotToBeHad,
    OutOfMemory,
    Placement,
    ProviderName,
    RunFailed,
    Source,
    one_line,
)
from camgraph.stages.people.inference.engines.host_runs import HostRuns
from camgraph.stages.people.inference.engines.nvidia import (
    INSTALL,
    CudaRuntime,
    cuda_runtime,
    has_driver,
    load_tensorrt,
    why_no_cuda,
)
from camgraph.stages.people.inference.engines.options import records, without_recording
from camgraph.stages.people.inference.engines.pinned import NewArray, PinnedMemory, plain_array
from camgraph.stages.people.inference.model.model_memory import beyond, held
from camgraph.stages.vision.recognition import Port, Signature

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

_DEFAULTS: Mapping[ProviderName, Mapping[str, str]] = {"cuda": {"cudnn_conv_algo_search": "HEURISTIC"}}
"""Instead of ONNX Runtime's own defaults. EXHAUSTIVE took 2.1 to 3.7 s on an H100 for each new number of pictures,
HEURISTIC 0.3 to 2.0 s, for the same rate afterwards.
"""

# ONNX Runtime's exceptions have no common base.
ORT_ERRORS: tuple[type[Exception], ...] = tuple(
    kind for kind in vars(ort_errors).values() if isinstance(kind, type) and issubclass(kind, Exception)
)
_RUN_FAILURES: tuple[type[Exception], ...] = (*ORT_ERRORS, RuntimeError, MemoryError)
_FAILURES: tuple[type[Exception], ...] = (*ORT_ERRORS, RuntimeError, ValueError, MemoryError)


class OnnxRuntimeEngine:
    """A session; ONNX Runtime lets several threads run it at once.

    ``runs``: how it is run on a GPU; None for a plain call. ``new_array`` makes arrays for its inputs: they need not
    come from there, it only saves a copy. ``cuda``: of the GPU that it is on, if that is one of NVIDIA. ``unrecorded``:
    opens the same without recording its runs, for models whose runs cannot be recorded.

    `not_recorded`: why runs that should be recorded are not, "" if they are or need not be.
    """

    def __init__(
        self,
        session: ort.InferenceSession,
        provider: str,
        runs: RecordedRuns | HostRuns | None = None,
        *,
        new_array: NewArray = plain_array,
        cuda: CudaRuntime | None = None,
        unrecorded: Callable[[], OnnxRuntimeEngine] | None = None,
    ) -> None:
        self.signature = signature_of(session)
        self.provider = provider
        self.most_rows: int | None = None
        self.placement = _placement_of(session)
        self.new_array = new_array
        self._session = session
        self._runs = runs
        self._cuda = cuda
        self._unrecorded = unrecorded
        self._changing = threading.Lock()
        self._any_rows = False
        self.not_recorded = ""
        self._names = [port.name for port in self.signature.outputs]

    def expect_any_rows(self) -> None:
        """See `PlansOutputs`."""
        self._any_rows = True
        if isinstance(self._runs, HostRuns):
            self._runs.expect_any_rows()
        elif self._runs:
            # A recording is of one number of rows.
            self._record_no_more("how many rows its outputs have depends on the picture")

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """All outputs by name. Raises RunFailed, and NeedsNewProcess if the GPU is lost to this process."""
        try:
            if self._runs:
                return self._runs.run(inputs)
            outputs = self._session.run(self._names, dict(inputs))
            return dict(zip(self._names, outputs, strict=True))
        except CannotRecord as error:
            why = str(error)
        except _RUN_FAILURES as error:
            raise _failure(error, self._cuda) from None
        self._record_no_more(why)  # now that no exception holds the session any more
        return self.run(inputs)

    def _record_no_more(self, why: str) -> None:
        """Open the model again: CUDA leaves a session behind that began a recording and did not end it.

        Raises NeedsNewProcess if that does not work.
        """
        with self._changing:
            if self._unrecorded is None:
                return  # another thread has done it
            unrecorded, self._unrecorded = self._unrecorded, None
            assert isinstance(self._runs, RecordedRuns)
            self._runs.close()
            del self._runs, self._session
            try:
                other = unrecorded()
            except NotToBeHad as error:
                raise NeedsNewProcess(
                    f"a run could not be recorded, and the model does not open again: {error}"
                ) from None
            if self._any_rows:
                other.expect_any_rows()
            self._session, self._runs = other._session, other._runs
            self.not_recorded = _first_line(why)

    def memory_limits(self) -> MemoryLimits | None:
        """How much of a GPU the open sessions may take; None if no `gpu_mem_limit` limits them."""
        memory = self._cuda.memory() if self._cuda and self._cuda.limit else None
        if not self._cuda or not self._cuda.limit or memory is None:
            return None
        sessions = self._runs.sessions if isinstance(self._runs, HostRuns) else 1
        return MemoryLimits(self._cuda.limit, sessions, self._cuda.device, memory[1])

    def end_profile(self) -> Path:
        """The file with the profile of all runs, if it was opened for one."""
        return Path(self._session.end_profiling())


class MemoryLimits(NamedTuple):
    """How much of a GPU's memory the limits of a stage allow, all of them together.

    gpu_mem_limit x sessions (one for each size of batches) x workers on this GPU     against its memory

    `limit_bytes` for each of the `sessions` of one process on GPU `device`, which has `device_bytes`.
    """

    limit_bytes: int
    sessions: int
    device: int
    device_bytes: int

    def together(self, workers: int) -> int:
        """Bytes for the sessions of this many processes."""
        return self.limit_bytes * self.sessions * workers

    def why_too_much(self, workers: int) -> str:
        """By how much the limits exceed the GPU's memory, in words; "" if they do not.

        Within the limits the memory may be used up all the same: inputs, outputs, the plans of cuDNN and a context of
        some hundred MB for each process come on top.
        """
        if self.together(workers) <= self.device_bytes:
            return ""
        processes = f" of each of {workers} workers" if workers > 1 else ""
        return (
            f"{self.limit_bytes / 1e6:,.0f} MB for each of {self.sessions} sizes of batches{processes} are "
            f"{self.together(workers) / 1e6:,.0f} MB, and GPU {self.device} has {self.device_bytes / 1e6:,.0f}; set a "
            "smaller `gpu_mem_limit`, or fewer `batch_sizes` or `workers`"
        )


def with_devices() -> frozenset[str]:
    """ONNX Runtime's names of the providers that run on one of several devices."""
    return frozenset(PROVIDERS[name] for name in ON_DEVICES)


def offered() -> set[ProviderName]:
    """The providers that this ONNX Runtime was built with: not all of them need work."""
    there = ort.get_available_providers()
    return {name for name, own in PROVIDERS.items() if own in there}


def may_work(name: ProviderName) -> bool:
    """Whether a provider may work here, as far as that shows without loading it."""
    return name in offered() and (name not in _ON_CUDA or has_driver())


def is_on_processor(provider: str) -> bool:
    """Whether an engine's `provider` calculates on this machine's processor."""
    return provider == CPU or provider.startswith("OpenVINO")


def open_with(
    wanted: Mapping[ProviderName, Mapping[str, str]],
    model: Source,
    *,
    threads: int,
    session: Mapping[str, Any] = MappingProxyType({}),
    libraries: Sequence[Path] = (),
    profile: Path | None = None,
) -> OnnxRuntimeEngine:
    """The model on the first of these providers, each with its options. ``session``: as `options.SessionOptions.given`.

    Unknown nodes go to the other providers listed, and to no others; ``libraries`` hold operators of the model's own.
    With ``profile``, the beginning of a file's name, ONNX Runtime profiles each run, until `end_profile`. On the CPU a
    limit of memory holds (`model_memory`). Raises NotToBeHad if that does not work.
    """
    opens = partial(_open_with, wanted, model, threads=threads, session=session, libraries=libraries, profile=profile)
    return held(opens, next(iter(wanted)))


def _open_with(
    wanted: Mapping[ProviderName, Mapping[str, str]],
    model: Source,
    *,
    threads: int,
    session: Mapping[str, Any],
    libraries: Sequence[Path],
    profile: Path | None,
) -> OnnxRuntimeEngine:
    ort.set_default_logger_severity(4)  # errors are reported once, and not in colours on stderr
    there = offered()
    first = next(iter(wanted))
    if first not in there:
        raise NotToBeHad(f"this ONNX Runtime has only {', '.join(ort.get_available_providers())}")
    lacking, cuda = _cuda_for(wanted) if first in _ON_CUDA else ("", None)
    providers = [
        (PROVIDERS[name], {**_DEFAULTS.get(name, {}), **options}) for name, options in wanted.items() if name in there
    ]
    settings = _options([name for name, _ in providers], threads, session)
    if profile is not None:
        settings.enable_profiling, settings.profile_file_prefix = True, str(profile)
    opens = partial(ort.InferenceSession, _for_session(model), settings, providers=providers, enable_fallback=0)
    try:
        _register(settings, libraries)
        opened = opens()
    except _FAILURES as error:
        perhaps = " (or it is one of `options.session`, which the graph sets)" if session else ""
        raise NotToBeHad(lacking or f"{_reason(error, cuda)}{perhaps}") from None
    runs_on = opened.get_providers()[0]
    if runs_on != PROVIDERS[first]:
        raise NotToBeHad(
            lacking or f"ONNX Runtime took {runs_on} instead: a library or a driver that it needs is missing"
        )
    if first not in _ON_CUDA:
        return OnnxRuntimeEngine(opened, runs_on)
    if "cuda" in wanted:
        _run_convolution(wanted["cuda"])
    new_array = PinnedMemory(cuda).new_array if cuda else plain_array
    if not records(first, wanted[first]):
        # TensorRT plans for ranges of shapes, and a profile is of one session.
        another = opens if first == "cuda" and profile is None else None
        runs = HostRuns(opened, signature_of(opened), new_array, another)
        return OnnxRuntimeEngine(opened, runs_on, runs, new_array=new_array, cuda=cuda)
    plainly = {name: without_recording(name, options) for name, options in wanted.items()}
    again = partial(open_with, plainly, model, threads=threads, session=session, libraries=libraries, profile=profile)
    recorded = RecordedRuns(opened, Place("cuda", number_of(wanted[first])))
    return OnnxRuntimeEngine(opened, runs_on, recorded, new_array=new_array, cuda=cuda, unrecorded=again)


def _cuda_for(wanted: Mapping[ProviderName, Mapping[str, str]]) -> tuple[str, CudaRuntime | None]:
    """Why CUDA cannot be used here, "" if it can; then CUDA on the GPU of the first provider is ready."""
    lacking = why_no_cuda()
    if next(iter(wanted)) == "tensorrt":
        load_tensorrt()  # which needs CUDA's own libraries
    if lacking:
        return lacking, None
    limit = wanted.get("cuda", {}).get("gpu_mem_limit")
    cuda = cuda_runtime(number_of(next(iter(wanted.values()))), int(limit) if limit else None)
    if cuda:
        cuda.wait_without_spinning()
    return "", cuda


def _run_convolution(options: Mapping[str, str]) -> None:
    """Have this GPU calculate a convolution: ONNX Runtime loads cuDNN for the first one, in the middle of a run.

    Raises NotToBeHad, and NeedsNewProcess if the GPU is lost to this process.
    """
    device = number_of(options)
    settings = _options([PROVIDERS["cuda"]], 1, {})
    model, inputs = convolution()
    providers = [(PROVIDERS["cuda"], {"device_id": str(device)})]
    try:
        ort.InferenceSession(model, settings, providers=providers, enable_fallback=0).run(None, inputs)
    except _FAILURES as error:
        if "cuDNN is unavailable" in str(error):
            raise NotToBeHad(f"libcudnn.so.9 cannot be loaded, and convolutions need it: {INSTALL}") from None
        raise NotToBeHad(f"GPU {device} runs no convolution: {_failure(error, cuda_runtime(device))}") from None


_IN_SOURCES = re.compile(
    r"^/\S+:\d+ .*?(?=\[ONNXRuntimeError\])"  # the place that passed on the error of another one
    r"|/\S+\.(?:cc|h|cuh?):\d+ [^()]*\((?:[^()]|\([^()]*\))*\)(?: const)?(?: \[with [^]]*\])?\s"
    r"|\[ONNXRuntimeError\] : \d+ : \w+ : "
    r"|Load model from .*? failed:",
    re.DOTALL,
)
"""Left out, because the places in its sources are often longer than the rest of the message."""
_TOO_NEW = re.compile(
    r"Unsupported model (IR version): (\d+), max supported IR version: (\d+)"
    r"|(Opset) (\d+) is under development.* for domain ai\.onnx is till opset (\d+)",
    re.DOTALL,
)
_CUDA_ERROR = re.compile(r"CUDA failure (\d+): (.*?) ;")
_NO_MEMORY = re.compile(
    r"Failed to allocate memory for requested buffer of size (\d+)"
    r"|smaller than requested bytes of (\d+)|CUDA failure 2:"
)


def _failure(error: Exception, cuda: CudaRuntime | None) -> RunFailed:
    """The meaning of a failed run. Raises NeedsNewProcess if the GPU is lost to this process."""
    text = str(error)
    reason = _first_line(text)
    if why := _why_no_memory(error, cuda):
        return OutOfMemory(why)
    if cuda and cuda.lost():
        raise NeedsNewProcess(f"GPU {cuda.device} is lost to this process: {reason}", error_id="gpu-lost") from None
    return RunFailed(reason)


def _first_line(text: str) -> str:
    """CUDA's own words, if ONNX Runtime repeats them; else its own, without the place in its sources before them."""
    found = _CUDA_ERROR.search(text)
    return f"CUDA error {found[1]}, {found[2]}" if found else one_line(_IN_SOURCES.sub("", text))


def _why_no_memory(error: Exception, cuda: CudaRuntime | None) -> str:
    """Of whose memory there is not enough, in words; "" for an error that is about something else."""
    text = str(error)
    if isinstance(error, MemoryError) or "std::bad_alloc" in text:
        return beyond()
    if not (found := _NO_MEMORY.search(text)):
        return ""
    asked = found[1] or found[2]
    return _short_of_memory(asked, cuda) if cuda else beyond(int(asked) if asked else None)


def _short_of_memory(asked: str | None, cuda: CudaRuntime) -> str:
    wanted = f"{int(asked) / 1e6:.0f} MB more were asked for" if asked else "it has no more"
    ways = "set a smaller `batch: {max}` of the stage, fewer `threads` or `workers`"
    if cuda.limit:
        of_each = f"`gpu_mem_limit` of {cuda.limit / 1e6:.0f} MB, which each size of batches has for itself,"
        return f"{of_each} is used up: {wanted}; set a larger one, or {ways}"
    known = cuda.memory()
    free = f", {known[0] / 1e6:.0f} of {known[1] / 1e6:.0f} MB are free" if known else ""
    return f"the memory of GPU {cuda.device} is used up: {wanted}{free}; {ways}"


def _reason(error: Exception, cuda: CudaRuntime | None) -> str:
    """Why there is no session; ONNX Runtime's own text on a missing library is about something else."""
    text = str(error)
    if why := _why_no_memory(error, cuda):
        return why
    if "fallback to CPU EP has been explicitly disabled" in text:
        return (
            "it cannot run all of the model here: a library, a driver or a device is missing, or it lacks an operator"
        )
    if "Please install TensorRT libraries" in text:
        return "the libraries of TensorRT are missing"
    return _first_line(text)


_EXECUTIONS = {"sequential": ort.ExecutionMode.ORT_SEQUENTIAL, "parallel": ort.ExecutionMode.ORT_PARALLEL}
_OPTIMIZATIONS = {
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "layout": ort.GraphOptimizationLevel.ORT_ENABLE_LAYOUT,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


def _options(wanted: Sequence[str], threads: int, session: Mapping[str, Any]) -> ort.SessionOptions:
    """A session that stays within `threads`, does not spin while it waits, and does not change its provider."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = session.get("inter_op_threads", 1)
    options.execution_mode = _EXECUTIONS[session.get("execution", "sequential")]
    options.graph_optimization_level = _OPTIMIZATIONS[session.get("graph_optimization", "all")]
    options.enable_cpu_mem_arena = session.get("memory_arena", True)
    options.enable_mem_pattern = session.get("memory_pattern", True)
    options.log_severity_level = 4
    # Two processes that spin on two cores run at 0.57 of their rate.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    if CPU not in wanted:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for name, value in session.get("config", {}).items():
        options.add_session_config_entry(name, value)
    return options


def _placement_of(session: ort.InferenceSession) -> Placement:
    nodes: dict[str, Counter[str]] = {}
    names: dict[str, set[str]] = {}
    for part in session.get_provider_graph_assignment_info():
        own = part.get_nodes()
        nodes.setdefault(part.ep_name, Counter()).update(node.op_type for node in own)
        names.setdefault(part.ep_name, set()).update(node.name for node in own if node.name)
    return Placement(nodes, {provider: frozenset(of_it) for provider, of_it in names.items()})


def _register(options: ort.SessionOptions, libraries: Sequence[Path]) -> None:
    for library in libraries:
        options.register_custom_ops_library(str(library))


def _for_session(model: Source) -> str | bytes:
    return str(model) if isinstance(model, Path) else model


def analyse(model: Source, libraries: Sequence[Path] = ()) -> Signature:
    """A model's metadata, opened as fast as can be. Raises UserError if it is none."""
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        _register(options, libraries)
        session = ort.InferenceSession(_for_session(model), options, providers=[CPU], enable_fallback=0)
    except _FAILURES as error:
        name = f"{model}: " if isinstance(model, Path) else ""
        raise UserError(f"{name}{_why_unreadable(str(error))}", error_id="model-unreadable") from None
    return signature_of(session)


def _why_unreadable(text: str) -> str:
    if found := _TOO_NEW.search(text):
        kind, version, most = filter(None, found.groups())
        return (
            f"it has {kind.replace('Opset', 'opset')} {version}, and ONNX Runtime {ort.__version__} reads up to "
            f"{most}: export the model with an older one, or install a newer ONNX Runtime"
        )
    return f"cannot be read as an ONNX model: {one_line(_IN_SOURCES.sub('', text))}"


def signature_of(session: ort.InferenceSession) -> Signature:
    """Of an open model."""
    inputs = tuple(Port(entry.name, tuple(entry.shape), entry.type) for entry in session.get_inputs())
    outputs = tuple(Port(entry.name, tuple(entry.shape), entry.type) for entry in session.get_outputs())
    return Signature(inputs, outputs, dict(session.get_modelmeta().custom_metadata_map))
