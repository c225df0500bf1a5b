"""The pretended CUDA itself: ONNX Runtime's own provider runs on it, and it is like CUDA where tests lean on that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

RUN = """
import sys
import numpy as np
import onnxruntime as ort

settings = ort.SessionOptions()
settings.log_severity_level = 4
settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
session = ort.InferenceSession(sys.argv[1], settings, providers=["CUDAExecutionProvider"])
[out] = session.run(None, {"images": np.ones((2, 3, 32, 32), np.float32)})
print(session.get_providers()[0], out.shape, out.any())
"""


def test_onnx_runtime_runs_a_convolution_on_it(cuda: Any, convolution: Path) -> None:
    done = cuda.run("-c", RUN, str(convolution))
    assert done.out == "CUDAExecutionProvider (2, 4, 32, 32) False\n", done.err
    ways = [(call["way"], call["bytes"]) for call in done.named("cudaMemcpyAsync")]
    assert ways == [("to device", 2 * 3 * 32 * 32 * 4), ("to host", 2 * 4 * 32 * 32 * 4)]
    assert len(done.named("cudaLaunchKernel")) == 1


def test_without_cudnn_a_convolution_fails_and_nothing_else_does(cuda: Any, convolution: Path, clamp: Path) -> None:
    cuda.parts = ("driver", "cuda")
    assert cuda.run("-c", RUN, str(clamp)).status == 0
    done = cuda.run("-c", RUN, str(convolution))
    assert done.status == 1
    assert "cuDNN is unavailable" in done.err


def test_memory_ends(cuda: Any, clamp: Path) -> None:
    done = cuda.run("-c", RUN, str(clamp), memory=1000)
    assert done.status == 1
    assert "out of memory" in done.err or "Failed to allocate memory" in done.err


def test_a_device_that_is_lost_stays_lost(cuda: Any) -> None:
    cuda.fail("*", 719, device=1)
    program = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
for device in (0, 1, 1, 0):
    cuda.cudaSetDevice(device)
    print(cuda.cudaDeviceSynchronize())
"""
    assert cuda.python(program, gpus=2).out.split() == ["0", "719", "719", "0"]


def test_copies_of_two_streams_overlap_only_from_pinned_memory(cuda: Any) -> None:
    program = """
import ctypes, time
cuda = ctypes.CDLL("libcudart.so.13")
bytes = ctypes.c_size_t(4096)
host, device, stream = (ctypes.c_void_p() for _ in range(3))
cuda.cudaMalloc(ctypes.byref(device), bytes)
cuda.cudaHostAlloc(ctypes.byref(host), bytes, 0)
cuda.cudaStreamCreate(ctypes.byref(stream))
pageable = ctypes.create_string_buffer(4096)
for memory in (host, pageable):
    began = time.monotonic()
    cuda.cudaMemcpyAsync(device, memory, bytes, 1, stream)
    called = time.monotonic()
    cuda.cudaStreamSynchronize(stream)
    print(called - began > 0.2, time.monotonic() - began > 0.2)
"""
    assert cuda.python(program, copy_ms=250).out.split() == ["False", "True", "True", "True"]


def test_a_device_may_take_its_time_for_each_picture(cuda: Any) -> None:
    """However many are copied at once: copies from the device wait for the calculation, copies to it do not."""
    program = """
import ctypes, time
cuda = ctypes.CDLL("libcudart.so.13")
host, device, stream = (ctypes.c_void_p() for _ in range(3))
for place, allocate in ((device, cuda.cudaMalloc), (host, lambda *a: cuda.cudaHostAlloc(*a, 0))):
    allocate(ctypes.byref(place), ctypes.c_size_t(2_000_000))
cuda.cudaStreamCreate(ctypes.byref(stream))
for megabytes in (1, 2):
    began = time.monotonic()
    cuda.cudaMemcpyAsync(device, host, ctypes.c_size_t(megabytes * 1_000_000), 1, stream)
    called = time.monotonic()
    cuda.cudaStreamSynchronize(stream)
    print(called - began < megabytes * 0.3, time.monotonic() - began >= megabytes * 0.299)
"""
    assert cuda.python(program, work_ms_per_mb=300).out.split() == ["True"] * 4


def test_copies_may_cost_the_cpu_nothing(cuda: Any) -> None:
    program = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
there, back = ctypes.create_string_buffer(b"x" * 4096), ctypes.c_void_p()
device = ctypes.c_void_p()
cuda.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(4096))
cuda.cudaHostAlloc(ctypes.byref(back), ctypes.c_size_t(4096), 0)
cuda.cudaMemcpy(device, there, ctypes.c_size_t(4096), 1)
cuda.cudaMemcpy(back, device, ctypes.c_size_t(4096), 2)
print(set(ctypes.string_at(back, 4096)))
"""
    assert cuda.python(program).out == "{120}\n"
    assert cuda.python(program, copies="none").out == "{0}\n"
