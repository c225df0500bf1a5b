"""Which provider a model gets if CUDA is complete or lacks parts, and what the user reads then."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnxruntime as ort
import pytest

from camgraph.stages.people.inference.engines.options import CudaOptions, ProviderOptions, TensorrtOptions

OPEN = """
import sys
from pathlib import Path
import numpy as np
from camgraph.stages.people.inference.selection.opening import Asked, NoProvider, open_model

try:
    engine, passed_over = open_model(Path(sys.argv[1]), Asked(tuple(sys.argv[2].split(","))))
except NoProvider as error:
    sys.exit(str(error))
outputs = engine.run({"images": np.ones((2, 3, 32, 32), np.float32)})
print(engine.provider, passed_over, outputs["out"].shape)
"""


def opened(cuda: Any, model: Path, providers: str = "cuda") -> Any:
    return cuda.run("-c", OPEN, str(model), providers)


@pytest.fixture
def nothing_installed() -> None:
    """Skips where this machine has libraries of NVIDIA of its own: then they are not missing."""
    for name in ("libcuda.so.1", "libcublasLt.so.13", "libcudnn.so.9"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        pytest.skip(f"{name} is installed here, so nothing shows what is said without it")


def test_cuda_from_pip_is_found_and_nothing_is_printed(cuda: Any, convolution: Path, tmp_path: Path) -> None:
    """As pip lays it out: only the driver's library lies where the system looks."""
    packages = tmp_path / "site"
    (packages / "nvidia" / "cu13").mkdir(parents=True)
    (packages / "nvidia" / "cudnn").mkdir()
    (packages / "nvidia" / "cu13" / "lib").symlink_to(cuda.libraries / "cuda")
    (packages / "nvidia" / "cudnn" / "lib").symlink_to(cuda.libraries / "cudnn")
    (packages / "onnxruntime").symlink_to(Path(ort.__file__).parent)
    cuda.parts, cuda.modules = ("driver",), str(packages)
    done = opened(cuda, convolution)
    assert (done.out, done.err) == ("CUDAExecutionProvider {} (2, 4, 32, 32)\n", "")


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((), "libcuda.so.1 of NVIDIA's driver is missing: install the driver"),
        (("driver",), "libcublasLt.so.13, libcublas.so.13"),
        (("driver", "cuda"), "libcudnn.so.9 cannot be loaded, and convolutions need it: pip install 'camgraph[cuda]'"),
    ],
)
def test_what_is_missing_is_said_and_the_next_provider_is_taken(
    cuda: Any, convolution: Path, parts: tuple[str, ...], message: str
) -> None:
    cuda.parts = parts
    done = opened(cuda, convolution, "cuda,cpu")
    assert done.out.startswith("CPUExecutionProvider")
    assert message in done.out
    strict = opened(cuda, convolution)
    assert (strict.status, strict.out) == (1, "")
    assert message in strict.err


def test_a_gpu_that_is_not_there_is_named(cuda: Any, convolution: Path) -> None:
    program = OPEN.replace('",")))', '",")), options={"cuda": {"device_id": "3"}})')
    done = cuda.run("-c", program, str(convolution), "cuda", gpus=2)
    assert done.status == 1
    assert "Invalid device ID: 3, must be between 0 (inclusive) and 2 (exclusive)" in done.err


@pytest.mark.usefixtures("nothing_installed")
def test_a_model_without_convolutions_needs_cudnn_too(cuda: Any, clamp: Path) -> None:
    """A restart may bring another model, and a second one may run beside it: a machine without cuDNN is not well."""
    cuda.parts = ("driver", "cuda")
    assert opened(cuda, clamp, "cuda,cpu").out.startswith("CPUExecutionProvider")


READ = """
import json, sys
import onnxruntime as ort

ort.set_default_logger_severity(4)
model, provider, options = sys.argv[1:]
try:
    session = ort.InferenceSession(model, providers=[(provider, json.loads(options))], enable_fallback=0)
    print("session on", session.get_providers()[0])
except Exception as error:
    print(error)
"""

SWITCH = [True, False]
SHAPES = ["images:1x3x32x32"]
OPTIONS: dict[Any, dict[str, list[Any]]] = {
    "cuda": {
        "device_id": [0],
        "gpu_mem_limit": ["2GB"],
        "arena_extend_strategy": ["kNextPowerOfTwo", "kSameAsRequested"],
        "cudnn_conv_algo_search": ["EXHAUSTIVE", "HEURISTIC", "DEFAULT"],
        "cudnn_conv_use_max_workspace": SWITCH,
        "use_tf32": SWITCH,
        "prefer_nhwc": SWITCH,
        "enable_cuda_graph": SWITCH,
    },
    "tensorrt": {
        "device_id": [0],
        "trt_max_workspace_size": ["1GB"],
        "trt_fp16_enable": SWITCH,
        "trt_int8_enable": SWITCH,
        "trt_engine_cache_enable": SWITCH,
        "trt_engine_cache_path": ["engines"],
        "trt_timing_cache_enable": SWITCH,
        "trt_timing_cache_path": ["engines"],
        "trt_profile_min_shapes": SHAPES,
        "trt_profile_opt_shapes": SHAPES,
        "trt_profile_max_shapes": SHAPES,
        "trt_cuda_graph_enable": SWITCH,
        "trt_builder_optimization_level": [3],
    },
}
"""Values of all options of the providers that are in ONNX Runtime for Linux."""


def test_every_option_is_tried() -> None:
    assert set(OPTIONS["cuda"]) == set(CudaOptions.model_fields)
    assert set(OPTIONS["tensorrt"]) == set(TensorrtOptions.model_fields)


def read(cuda: Any, model: Path, provider: str, options: Mapping[str, str]) -> str:
    """What ONNX Runtime makes of options."""
    return str(cuda.run("-c", READ, str(model), provider, json.dumps(options)).out)


@pytest.mark.parametrize("turn", range(3))
def test_onnx_runtime_reads_the_options_of_cuda(cuda: Any, clamp: Path, turn: int) -> None:
    assert (
        read(cuda, clamp, "CUDAExecutionProvider", options_for("cuda", turn, clamp.parent))
        == "session on CUDAExecutionProvider\n"
    )
    assert "Failed to parse" in read(cuda, clamp, "CUDAExecutionProvider", {"use_tf32": "perhaps"})


@pytest.mark.parametrize("turn", range(2))
def test_onnx_runtime_reads_the_options_of_tensorrt(cuda: Any, clamp: Path, turn: int) -> None:
    """The pretended TensorRT reads its options and then ends its process; refused options are reported before that."""
    cuda.parts += ("tensorrt",)
    assert read(cuda, clamp, "TensorrtExecutionProvider", options_for("tensorrt", turn, clamp.parent)) == ""
    assert "should be" in read(cuda, clamp, "TensorrtExecutionProvider", {"trt_fp16_enable": "1"})


def options_for(provider: Any, turn: int, folder: Path) -> Mapping[str, str]:
    """What ONNX Runtime is told; in each turn other values."""
    chosen = {name: values[turn % len(values)] for name, values in OPTIONS[provider].items()}
    return ProviderOptions.model_validate({provider: chosen}).of(provider, folder)


def test_the_demo_and_watch_take_the_gpu_that_runs_the_model(cuda: Any, convolution: Path) -> None:
    program = """
import sys
from pathlib import Path
from camgraph.tools.commands.watching.device import find_device

device = find_device(Path(sys.argv[1]))
print(device.providers, device.why_not)
"""
    assert cuda.run("-c", program, str(convolution)).out == "('cuda', 'cpu') \n"
    cuda.fail("cudaStreamCreateWithFlags", 46)
    providers, _, why = cuda.run("-c", program, str(convolution)).out.partition(" ")
    assert (providers, why) == ("('cpu',)", "GPU 0 runs no convolution: CUDA error 46, pretended error 46\n")


@pytest.mark.usefixtures("nothing_installed")
def test_the_doctor_sees_that_cudnn_is_missing(cuda: Any) -> None:
    program = """
from camgraph.tools.commands.doctor.providers import look_at_providers
for finding in look_at_providers(nvidia=True, openvino=False):
    if finding.what == "provider cuda":
        print(finding.state, finding.found)
"""
    assert cuda.python(program).out == "ok runs a model\n"
    cuda.parts = ("driver", "cuda")
    missing = cuda.python(program).out
    assert missing.startswith("wrong does not work, and NVIDIA's driver is here (libcudnn.so.9 cannot be loaded")
