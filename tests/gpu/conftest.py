"""A CUDA without a GPU: what the tests here run ONNX Runtime's own CUDA provider on.

tests/gpu/pretended/*.c ──gcc, once──> a folder with libcudart.so.13, libcuda.so.1, libcudnn.so.9 ...
a process of its own    ──LD_LIBRARY_PATH──> ONNX Runtime with CUDA ──> the calls it made, its outputs, what it said

`python tests/gpu/conftest.py FOLDER` builds it into a new folder, and prints the LD_LIBRARY_PATH for it.

The libraries of NVIDIA that are not written out export all that ONNX Runtime and FFmpeg want of them, and answer
"success". What camgraph does on a GPU is run in processes of its own, as users start it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import av
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

SOURCES = Path(__file__).parent / "pretended"
_LIMIT_S = 240
_GCC = ("gcc", "-Wall", "-Wextra", "-O1", "-fPIC", "-shared", "-lpthread")

Call = Mapping[str, Any]
"""One call of CUDA: time, process, thread, device, call, and what belongs to it."""


@dataclass(frozen=True)
class Done:
    """What came of a process."""

    status: int
    out: str
    err: str
    calls: Sequence[Call]

    def named(self, *names: str) -> list[Call]:
        """Its calls of these functions."""
        return [call for call in self.calls if call["call"] in names]


@dataclass
class PretendedCuda:
    """Runs programs of this Python on the pretended CUDA in ``libraries``.

    ``settings``: what the device is like (`CUDA_PRETENDED_...`, see cudart.c); ``errors``: the file of errors to give.
    """

    libraries: Path
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ("driver", "cuda", "cudnn")
    """What the machine has: `driver`, `video` (what decodes), `cuda`, `cudnn`, `tensorrt`."""
    modules: str = ""
    """A folder of Python modules that come before the installed ones."""

    def __post_init__(self) -> None:
        self.log = self.folder / "calls.jsonl"
        self.errors = self.folder / "errors"

    def environment(self, **settings: object) -> dict[str, str]:
        """Of a process on this CUDA."""
        reported = {
            **self.settings,
            **{f"CUDA_PRETENDED_{name}".upper(): str(value) for name, value in settings.items()},
        }
        paths = os.pathsep.join(str(self.libraries / part) for part in self.parts)
        own = {"CUDA_PRETENDED_LOG": str(self.log), "CUDA_PRETENDED_ERRORS": str(self.errors), "LD_LIBRARY_PATH": paths}
        own["CAMGRAPH_CACHE_DIR"] = str(self.folder / "cache")
        if self.modules:
            own["PYTHONPATH"] = self.modules
        return {**os.environ, **own, **reported}

    def start(self, *command: str, output: Any = subprocess.PIPE, **settings: object) -> subprocess.Popen[str]:
        """A process of this Python with these arguments; the caller ends it."""
        return subprocess.Popen(
            [sys.executable, *command],
            env=self.environment(**settings),
            cwd=self.folder,
            stdout=output,
            stderr=output,
            text=True,
        )

    def run(self, *command: str, **settings: object) -> Done:
        """This Python with these arguments, to its end."""
        self.log.unlink(missing_ok=True)
        with self.start(*command, **settings) as process:
            try:
                out, err = process.communicate(timeout=_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return Done(process.returncode, out, err, self.calls())

    def python(self, program: str, **settings: object) -> Done:
        """A program, which must succeed."""
        done = self.run("-c", program, **settings)
        assert done.status == 0, done.err
        return done

    def calls(self) -> list[Call]:
        """All so far."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.endswith("}")]

    def fail(self, call: str, error: int, device: int | None = None) -> None:
        """From now on; `*` loses the device until its process ends."""
        rest = "" if device is None else f" {device}"
        new = self.errors.with_suffix(".new")
        new.write_text(f"{call} {error}{rest}\n")
        new.replace(self.errors)


@pytest.fixture(scope="session")
def cuda_libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the pretended libraries, each part of an installation in its own."""
    if not shutil.which("gcc") or not shutil.which("nm"):
        pytest.skip("no gcc and nm here: the pretended CUDA cannot be built")
    providers = _providers()
    if not (providers / _CUDA_PROVIDER).exists():
        pytest.skip("this ONNX Runtime has no CUDA provider")
    if not any(name.endswith("@libcudart.so.13") for name in _undefined(providers / _CUDA_PROVIDER)):
        pytest.skip("this ONNX Runtime is not for CUDA 13, which the pretended CUDA is like")
    folder = tmp_path_factory.mktemp("pretended-cuda")
    build(folder, providers)
    return folder


def _providers() -> Path:
    """The folder of ONNX Runtime's providers."""
    package = find_spec("onnxruntime")
    assert package
    return Path(str(package.origin)).parent / "capi"


_CUDA_PROVIDER = "libonnxruntime_providers_cuda.so"
_VERSIONED = ("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13")


def build(folder: Path, providers: Path) -> None:
    """The libraries that the providers in that folder want, and FFmpeg, each part of an installation in a folder."""
    for part in ("driver", "video", "cuda", "cudnn", "tensorrt"):
        (folder / part).mkdir()
    wanted = _undefined(providers / _CUDA_PROVIDER) + _undefined(providers / "libonnxruntime_providers_tensorrt.so")
    cudart, cudnn = folder / "cuda" / "libcudart.so.13", folder / "cudnn" / "libcudnn.so.9"
    for name in _VERSIONED:
        symbols = [one.split("@")[0] for one in wanted if one.endswith(f"@{name}")]
        sources = [SOURCES / "cudart.c"] if name == cudart.name else []
        _build(folder / "cuda" / name, symbols, *sources, versioned=True)
    _build(folder / "cuda" / "libcurand.so.10", ["curandCreateGenerator"])
    ffmpeg = Path(str(av.__file__)).parent.parent / "av.libs"
    for name, prefix, user in (("libcuda.so.1", "cu", "libavutil"), ("libnvcuvid.so.1", "cuvid", "libavcodec")):
        asked = [symbol for library in ffmpeg.glob(f"{user}-*") for symbol in _names(library, prefix)]
        sources = [SOURCES / "cuda.c"] if prefix == "cu" else []
        part = "driver" if prefix == "cu" else "video"
        _build(folder / part / name, [*asked, *(one for one in wanted if one.startswith("cuTensor"))], *sources)
    _build(cudnn, _names(providers / _CUDA_PROVIDER, "cudnn"), SOURCES / "cudnn.c", cudart, versioned=True)
    for name in ("libnvinfer.so.10", "libnvonnxparser.so.10"):
        _build(folder / "tensorrt" / name, [], SOURCES / "nvinfer.c")


@pytest.fixture
def cuda(cuda_libraries: Path, tmp_path: Path) -> PretendedCuda:
    """A machine with CUDA and cuDNN, and one GPU."""
    return PretendedCuda(cuda_libraries, tmp_path)


@pytest.fixture
def convolution(tmp_path: Path) -> Path:
    """A model of one convolution: images (n, 3, 32, 32) -> out (n, 4, 32, 32). Its kernel takes cuDNN."""
    weights = np.random.default_rng(0).normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32)
    stored = helper.make_tensor("weights", TensorProto.FLOAT, weights.shape, weights.ravel())
    node = helper.make_node("Conv", ["images", "weights"], ["out"], pads=[1, 1, 1, 1])
    return _saved(tmp_path / "convolution.onnx", [node], 4, stored)


@pytest.fixture
def clamp(tmp_path: Path) -> Path:
    """A model of one kernel without any library: images (n, 3, 32, 32) -> out, of the same shape."""
    return _saved(tmp_path / "clamp.onnx", [helper.make_node("Relu", ["images"], ["out"])], 3)


def _saved(path: Path, nodes: list[onnx.NodeProto], channels: int, *stored: onnx.TensorProto) -> Path:
    value = helper.make_tensor_value_info
    images = value("images", TensorProto.FLOAT, ["n", 3, 32, 32])
    out = value("out", TensorProto.FLOAT, ["n", channels, 32, 32])
    graph = helper.make_graph(nodes, "g", [images], [out], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


SIDE, POINTS = 64, 17
ROWS, CELLS = 5 + 3 * POINTS, (SIDE // 8) ** 2 + (SIDE // 16) ** 2 + (SIDE // 32) ** 2


@pytest.fixture
def pose(tmp_path: Path) -> Path:
    """A YOLO-pose model of noise and certainty: it finds the same person in each cell of each picture."""
    rng = np.random.default_rng(0)
    nodes, columns, stored = [], [], []
    for stride in (8, 16, 32):
        weights = rng.normal(0, 1e-3, (ROWS, 3, stride, stride)).astype(np.float32)
        bias = np.full(ROWS, SIDE / 2, np.float32)
        bias[4] = 0.9
        for name, values in ((f"w{stride}", weights), (f"b{stride}", bias)):
            stored.append(helper.make_tensor(name, TensorProto.FLOAT, values.shape, values.ravel()))
        inputs = ["images", f"w{stride}", f"b{stride}"]
        nodes.append(helper.make_node("Conv", inputs, [f"c{stride}"], strides=[stride, stride], name=f"conv{stride}"))
        nodes.append(helper.make_node("Reshape", [f"c{stride}", "flat"], [f"f{stride}"]))
        columns.append(f"f{stride}")
    stored.append(helper.make_tensor("flat", TensorProto.INT64, [3], [0, ROWS, -1]))
    nodes.append(helper.make_node("Concat", columns, ["output0"], axis=2))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "pose",
        [value("images", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])],
        [value("output0", TensorProto.FLOAT, ["batch", ROWS, CELLS])],
        stored,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    kinds = {
        "task": "pose",
        "kpt_shape": "[17, 3]",
        "names": "{0: 'person'}",
        "imgsz": f"[{SIDE}, {SIDE}]",
        "stride": "32",
    }
    helper.set_model_props(model, kinds)
    onnx.checker.check_model(model)
    path = tmp_path / "pose.onnx"
    onnx.save(model, path)
    return path


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Twelve seconds of noise."""
    path = tmp_path / "noise.mp4"
    rng = np.random.default_rng(0)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for _ in range(120):
            picture = av.VideoFrame.from_ndarray(rng.integers(0, 256, (64, 96, 3), np.uint8), format="rgb24")
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return path


def _undefined(library: Path) -> list[str]:
    """What a library wants of others, as `name@version` or `name`."""
    if not library.exists():
        return []
    output = subprocess.run(
        ["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True
    ).stdout
    return [line.split()[-1] for line in output.splitlines()]


def _names(library: Path, prefix: str) -> list[str]:
    """Functions that a library asks for by their names at run time."""
    found = re.findall(rb"\0(%b[A-Z]\w+)(?=\0)" % prefix.encode(), library.read_bytes())
    return sorted({name.decode() for name in found})


def _build(library: Path, symbols: Sequence[str], *sources: Path, versioned: bool = False) -> None:
    """A library with these functions: those of ``sources``, the others answering 0, which means success."""
    rest = library.with_suffix(".c")
    functions = "".join(f"__attribute__((weak)) int {name}(void) {{ return 0; }}\n" for name in sorted(set(symbols)))
    rest.write_text(functions)
    flags = [f"-Wl,-soname,{library.name}"]
    if versioned:
        versions = library.with_suffix(".map")
        versions.write_text(f"{library.name} {{ global: *; }};\n")
        flags.append(f"-Wl,--version-script={versions}")
    subprocess.run([*_GCC, "-Wno-builtin-declaration-mismatch", rest, *sources, "-o", library, *flags], check=True)


if __name__ == "__main__":
    here = Path(sys.argv[1]).resolve()
    here.mkdir()
    build(here, _providers())
    sys.stdout.write(os.pathsep.join(str(here / part) for part in ("driver", "cuda", "cudnn")) + "\n")
