"""NVIDIA's libraries in this process: found before ONNX Runtime asks for them, and asked how a GPU is.

pip's packages put them into site-packages/nvidia, which the loader of the system does not search. So they are loaded by
their paths first; if ONNX Runtime then asks for one by its name, it gets the loaded one.
"""

from __future__ import annotations

import ctypes
import re
from contextlib import redirect_stdout
from functools import cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import onnxruntime as ort

INSTALL = "pip install 'camgraph[cuda]'"
_DRIVER = "libcuda.so.1"
_CUDARTS = ("libcudart.so.13", "libcudart.so.12")
_TENSORRT = ("libnvinfer.so.10", "libnvinfer_plugin.so.10", "libnvonnxparser.so.10")
"""In the order in which they need each other."""


@cache
def why_no_cuda() -> str:
    """Which library of CUDA or of the driver this machine lacks, and how to get it; "" if none is missing.

    cuDNN is not among them: ONNX Runtime loads it when it needs it. Loads all that are there, once for a process.
    """
    if not _loads(_DRIVER):
        return (
            f"{_DRIVER} of NVIDIA's driver is missing: install the driver, or give the container its GPU (--gpus all)"
        )
    printed = StringIO()
    with redirect_stdout(printed):  # it prints missing libraries to standard output
        ort.preload_dlls()
    missing = re.findall(r"Failed to load (\S+):", printed.getvalue())
    return f"{', '.join(Path(name).name for name in missing)} cannot be loaded: {INSTALL}" if missing else ""


def has_driver() -> bool:
    """Whether NVIDIA's driver is here, without which CUDA cannot work. CUDA itself, which is large, is not loaded."""
    return _loads(_DRIVER)


@cache
def load_tensorrt() -> None:
    """Load TensorRT if it came by pip; ONNX Runtime says itself if it is missing."""
    package = find_spec("tensorrt_libs")
    for folder in package.submodule_search_locations or () if package else ():
        for name in _TENSORRT:
            _loads(str(Path(folder) / name))


_BLOCKING_SYNC = 4  # cudaDeviceScheduleBlockingSync
_FOR_ALL_GPUS = 1  # cudaHostAllocPortable


class CudaRuntime:
    """The CUDA runtime for one GPU, as the ONNX Runtime of this process uses it.

    ``limit``: the bytes that ONNX Runtime may take, if somebody has set that.
    """

    def __init__(self, library: Any, device: int, limit: int | None = None) -> None:
        self._library = library
        self.device = device
        self.limit = limit

    def wait_without_spinning(self) -> None:
        """Let threads sleep while they wait for this GPU; holds for later work on it in this process.

        On an H100 that took 0.3 instead of 0.8 to 1.3 ms of CPU a frame, at the same rate.
        """
        self._library.cudaSetDevice(self.device)
        if self._library.cudaSetDeviceFlags(_BLOCKING_SYNC):
            self._library.cudaGetLastError()

    def host_memory(self, size: int) -> int | None:
        """Return the address of memory that a GPU reads and writes by itself; None if there is no more.

        CUDA does it for the GPU that the thread has set, and would begin to use GPU 0 if there is none.
        """
        address = ctypes.c_void_p()
        self._library.cudaSetDevice(self.device)
        if self._library.cudaHostAlloc(ctypes.byref(address), ctypes.c_size_t(size), _FOR_ALL_GPUS):
            # The runtime keeps an error until it is asked for: the next kernel would be blamed for it.
            self._library.cudaGetLastError()
            return None
        return address.value

    def free_host_memory(self, address: int) -> None:
        """Give back the memory of `host_memory`; a lost GPU keeps it."""
        self._library.cudaSetDevice(self.device)
        if self._library.cudaFreeHost(ctypes.c_void_p(address)):
            self._library.cudaGetLastError()

    def lost(self) -> bool:
        """Whether this process cannot use the GPU any more, after an error that CUDA keeps until the process ends."""
        self._library.cudaSetDevice(self.device)
        self._library.cudaGetLastError()
        return bool(self._library.cudaDeviceSynchronize())

    def memory(self) -> tuple[int, int] | None:
        """Free and all bytes of the GPU; None if it does not report them."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._library.cudaSetDevice(self.device)
        if self._library.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)):
            self._library.cudaGetLastError()
            return None
        return free.value, total.value


def cuda_runtime(device: int, limit: int | None = None) -> CudaRuntime | None:
    """The CUDA runtime that ONNX Runtime has loaded, for this GPU; None if it cannot be found."""
    for name in _CUDARTS:
        try:
            return CudaRuntime(ctypes.CDLL(name), device, limit)
        except OSError:
            continue
    return None


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
