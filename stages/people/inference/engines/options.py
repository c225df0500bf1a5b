"""The options that a graph may give to providers, checked before anything is opened; the names are ONNX Runtime's.

options:
  session: {execution: parallel, inter_op_threads: 2}
  cuda: {gpu_mem_limit: 2GB, cudnn_conv_algo_search: HEURISTIC}
  tensorrt: {trt_fp16_enable: true, trt_engine_cache_path: engines}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from camgraph.pipeline.stage import Settings
from camgraph.pipeline.system.paths import resolve
from camgraph.stages.people.inference.engines.engine import ProviderName

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def bytes_of(value: object) -> object:
    """`2GB` or `512 MiB` as bytes; a number stays. Raises ValueError."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    unit = match[2].upper() if match else ""
    if match is None or unit not in _UNITS:
        raise ValueError(f"expected bytes, or a number with one of {', '.join(_UNITS)[2:]}, such as 2GB; got `{value}`")
    return round(float(match[1]) * _UNITS[unit])


ConfigKey = Annotated[str, Field(min_length=1, max_length=1024)]
Bytes = Annotated[int, BeforeValidator(bytes_of), Field(gt=0, lt=2**63)]
Device = Annotated[int, Field(ge=0, le=1023)]


RECORDING: Mapping[str, str] = {"cuda": "enable_cuda_graph", "tensorrt": "trt_cuda_graph_enable"}
"""The switches that have runs recorded as CUDA graphs."""


class SessionOptions(Settings):
    """Of ONNX Runtime's sessions, with whatever provider."""

    execution: Literal["sequential", "parallel"] | None = Field(
        default=None,
        description="Whether branches of the model may run at the same time on the CPU, with `inter_op_threads`; by "
        "default sequential",
    )
    inter_op_threads: int | None = Field(
        default=None, ge=1, le=256, description="Threads among which parallel branches are dealt; by default 1"
    )
    graph_optimization: Literal["none", "basic", "extended", "layout", "all"] | None = Field(
        default=None, description="How far ONNX Runtime changes the model before it runs; by default all"
    )
    memory_arena: bool | None = Field(
        default=None, description="Whether memory on the CPU is kept from run to run, as by default"
    )
    memory_pattern: bool | None = Field(
        default=None, description="Whether the memory of a run is planned by the one before, as by default"
    )
    config: Mapping[ConfigKey, str] = Field(
        default={}, description="Further entries by ONNX Runtime's names, such as session.set_denormal_as_zero"
    )

    @property
    def given(self) -> dict[str, Any]:
        """The options that are set, as plain values."""
        return self.model_dump(exclude_none=True, exclude_defaults=True)

    @model_validator(mode="after")
    def _threads_have_work(self) -> Self:
        if self.inter_op_threads is not None and self.execution != "parallel":
            raise ValueError("inter_op_threads is for `execution: parallel`: add that, or remove it")
        return self


class CudaOptions(Settings):
    """Of ONNX Runtime's CUDA provider."""

    device_id: Device | None = Field(default=None, description="Which GPU; by default the first")
    gpu_mem_limit: Bytes | None = Field(
        default=None, description="The most memory of its arena, in bytes or such as 2GB"
    )
    arena_extend_strategy: Literal["kNextPowerOfTwo", "kSameAsRequested"] | None = Field(
        default=None, description="How the arena grows: by doubling, or as much as needed"
    )
    cudnn_conv_algo_search: Literal["EXHAUSTIVE", "HEURISTIC", "DEFAULT"] | None = Field(
        default=None,
        description="How a convolution's algorithm is chosen: by default HEURISTIC; EXHAUSTIVE tries all of them",
    )
    cudnn_conv_use_max_workspace: bool | None = Field(
        default=None, description="Whether it may take much memory for speed"
    )
    use_tf32: bool | None = Field(
        default=None, description="Whether float32 is multiplied in TF32, on Ampere and later"
    )
    prefer_nhwc: bool | None = Field(default=None, description="Whether convolutions run with channels last")
    enable_cuda_graph: bool | None = Field(
        default=None,
        description="Whether runs are recorded and replayed, one recording for each size of pictures and each of "
        "`batch_sizes`; runs then come one after the other",
    )


class TensorrtOptions(Settings):
    """Of ONNX Runtime's TensorRT provider. Engines are built at the first run of each shape, which takes minutes."""

    device_id: Device | None = Field(default=None, description="Which GPU; by default the first")
    trt_max_workspace_size: Bytes | None = Field(default=None, description="The most memory while an engine is built")
    trt_fp16_enable: bool | None = Field(default=None, description="Whether it may calculate in float16")
    trt_int8_enable: bool | None = Field(
        default=None, description="Whether it may calculate in int8, if the model is quantized"
    )
    trt_engine_cache_enable: bool | None = Field(
        default=None, description="Whether built engines are kept for the next start, as by default"
    )
    trt_engine_cache_path: str | None = Field(
        default=None, description="The folder of kept engines; by default one for each model in the cache of camgraph"
    )
    trt_timing_cache_enable: bool | None = Field(
        default=None, description="Whether measurements of the build are kept, as by default"
    )
    trt_timing_cache_path: str | None = Field(default=None, description="The folder of these measurements")
    trt_profile_min_shapes: str | None = Field(default=None, description="The smallest shapes: `images:1x3x640x640`")
    trt_profile_opt_shapes: str | None = Field(default=None, description="The shapes for which it is built best")
    trt_profile_max_shapes: str | None = Field(default=None, description="The largest shapes")
    trt_cuda_graph_enable: bool | None = Field(default=None, description="Whether runs are recorded and replayed")
    trt_builder_optimization_level: int | None = Field(
        default=None, ge=0, le=5, description="How hard the builder tries"
    )


class DirectmlOptions(Settings):
    """Of ONNX Runtime's DirectML provider."""

    device_id: Device | None = Field(default=None, description="Which adapter; by default the first")
    disable_metacommands: bool | None = Field(default=None, description="Whether the driver's own kernels are left out")


class CoremlOptions(Settings):
    """Of ONNX Runtime's CoreML provider."""

    ModelFormat: Literal["MLProgram", "NeuralNetwork"] | None = Field(
        default=None, description="The format into which the model is converted"
    )
    MLComputeUnits: Literal["ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine"] | None = Field(
        default=None, description="The units that may calculate"
    )
    RequireStaticInputShapes: bool | None = Field(
        default=None, description="Whether nodes of open shapes stay on the CPU"
    )


class ProviderOptions(Settings):
    """Options by provider; those of a provider that is not used are checked, and do nothing."""

    session: SessionOptions = Field(default=SessionOptions(), description="Of ONNX Runtime, with any provider")
    cuda: CudaOptions = Field(default=CudaOptions(), description="Of the CUDA provider")
    tensorrt: TensorrtOptions = Field(default=TensorrtOptions(), description="Of the TensorRT provider")
    directml: DirectmlOptions = Field(default=DirectmlOptions(), description="Of the DirectML provider")
    coreml: CoremlOptions = Field(default=CoremlOptions(), description="Of the CoreML provider")

    def of(self, provider: ProviderName, base_folder: Path) -> Mapping[str, str]:
        """The options in ONNX Runtime's form: texts, paths absolute."""
        own: Settings | None = getattr(self, provider, None)
        if own is None:
            return {}
        given = {name: value for name, value in own.model_dump().items() if value is not None}
        return {name: _text(provider, name, value, base_folder) for name, value in given.items()}


def _text(provider: ProviderName, name: str, value: Any, base_folder: Path) -> str:
    if name.endswith("_path"):
        return str(resolve(value, base_folder))
    if isinstance(value, bool):
        # TensorRT's switches are True and False alone; CoreML's, DirectML's and CUDA's are numbers.
        return str(value if provider == "tensorrt" else int(value))
    return str(value)


def without_recording(provider: ProviderName, options: Mapping[str, str]) -> dict[str, str]:
    """The same, with runs as they are."""
    return {name: value for name, value in options.items() if name != RECORDING.get(provider)}


def with_caches(options: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The options for TensorRT, with its engines kept in ``folder``, unless the graph says otherwise.

    The folder must be the model's own: TensorRT names an engine after the shape of the graph, not after its weights.
    """
    kept = {
        f"trt_{what}_cache_{key}": value
        for what in ("engine", "timing")
        for key, value in (("enable", "True"), ("path", str(folder)))
    }
    return {**kept, **options}


def records(provider: ProviderName, options: Mapping[str, str]) -> bool:
    """Whether a provider with these options records its runs as CUDA graphs."""
    return options.get(RECORDING.get(provider, "")) in ("1", "True")
