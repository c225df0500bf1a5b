"""NVIDIA's GPUs: the driver, the devices it finds, and whether it runs the CUDA that ONNX Runtime was built for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from camgraph.tools.commands.doctor.notice import Notice
from camgraph.tools.measuring.nvidia_smi import GPUS, Gpu, Version, cuda_of, gpus_of, version_of

_DRIVER = Path("/proc/driver/nvidia/version")
_ASK_S = 20.0
_DRIVERS = {12: "525 or later", 13: "580 or later"}
"""For each CUDA, the drivers that run it. Source: the release notes of CUDA."""
_RUNTIMES = {12: "onnxruntime-gpu[cuda,cudnn]>=1.24,<1.27"}
"""For each CUDA of a driver, the ONNX Runtime that was built for it, if it is not the newest."""
_NO_GPU = "nvidia-smi -L shows what the driver sees; in a container: docker run --gpus all"

Ask = Callable[[Sequence[str]], str]
"""The answer of nvidia-smi to these options. Raises OSError or SubprocessError."""


class Nvidia(NamedTuple):
    """`driver`: one is loaded; `cuda`: the newest that it runs, if that is known; `silent`: why there was no answer."""

    driver: bool = False
    gpus: Sequence[Gpu] = ()
    cuda: Version | None = None
    silent: str = ""

    @property
    def is_here(self) -> bool:
        """Whether somebody wants to run models on an NVIDIA GPU here."""
        return self.driver or bool(self.gpus)


def look_for_nvidia(driver: Path = _DRIVER, ask: Ask | None = None) -> Nvidia:
    """By the driver's file, which Windows and WSL have not, and by nvidia-smi."""
    asked = ask or _ask
    try:
        return Nvidia(driver.exists(), gpus_of(asked(GPUS)), cuda_of(asked(())))
    except (OSError, subprocess.SubprocessError) as error:
        return Nvidia(driver.exists(), silent=str(error))


def _ask(options: Sequence[str]) -> str:
    command = ["nvidia-smi", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S, check=True)  # noqa: S603 - as found
    return done.stdout


def look_at_gpu(nvidia: Nvidia) -> Iterator[Notice]:
    """The driver, and its GPUs with their memory."""
    if not nvidia.is_here:
        yield Notice("ok", "gpu", "no NVIDIA driver is loaded: models run on the CPU")
    elif nvidia.silent:
        found = f"a driver is loaded, and nvidia-smi does not answer: {nvidia.silent}"
        yield Notice("warning", "gpu", found, "install nvidia-smi (nvidia-utils) of the driver's own version")
    elif not nvidia.gpus:
        yield Notice("warning", "gpu", "a driver is loaded, and it sees no GPU", _NO_GPU)
    for name, version, free, total in nvidia.gpus:
        yield Notice("ok", "gpu", f"{name}, driver {version}, {free} of {total} free")


def look_at_cuda(nvidia: Nvidia, built_for: str) -> Iterator[Notice]:
    """``built_for``: the CUDA of this ONNX Runtime, "13.0"; "" if it was built without.

    Within a major version a driver runs newer CUDA than its own as well. Source: "minor version compatibility" in
    NVIDIA's guide to CUDA's compatibility.
    """
    wanted = version_of(built_for)
    if not nvidia.gpus:
        return
    if wanted is None:
        found, cure = "this ONNX Runtime was built without CUDA", "pip uninstall -y onnxruntime; "
        yield Notice("warning", "cuda", found, f"{cure}pip install 'camgraph[cuda]'")
    elif nvidia.cuda is None:
        found = f"nvidia-smi does not say which CUDA the driver runs; this ONNX Runtime was built for {built_for}"
        yield Notice("warning", "cuda", found, "look at the first lines of nvidia-smi")
    else:
        yield _compared(nvidia.cuda, wanted)


def _compared(driver: Version, wanted: Version) -> Notice:
    found = f"the driver runs CUDA up to {_dotted(driver)}, this ONNX Runtime was built for {_dotted(wanted)}"
    if driver[0] >= wanted[0]:
        return Notice("ok", "cuda", found)
    newer = f"install a driver for CUDA {wanted[0]} ({_DRIVERS.get(wanted[0], 'see its release notes')})"
    older = f"pip install '{_RUNTIMES[driver[0]]}'" if driver[0] in _RUNTIMES else ""
    return Notice("wrong", "cuda", found, f"{newer}, or {older}" if older else newer)


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
