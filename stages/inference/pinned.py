"""Memory of the host that a GPU reads by itself: page-locked ("pinned") by the CUDA runtime.

A copy to the GPU from other memory goes through a buffer of the driver's, which costs a second copy on the CPU.
Where memory cannot be locked, it is what it was: slower, and right. **Unverified**: no GPU has read it yet.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from pipeline.messages import Array

NewArray = Callable[[int, str], Array]
"""(elements, dtype) -> a flat array."""

# ONNX Runtime has loaded one of them, if it runs on CUDA at all.
_LIBRARIES = ("libcudart.so.13", "libcudart.so.12")
_PORTABLE = 1  # cudaHostRegisterPortable: locked for all GPUs


@runtime_checkable
class TakesFromHost(Protocol):
    """An engine that has its own wish for where inputs lie."""

    new_array: NewArray


def plain_array(elements: int, dtype: str) -> Array:
    """Ordinary memory."""
    return np.empty(elements, dtype)


class PinnedMemory:
    """Arrays that a GPU reads by itself, as far as the CUDA runtime allows."""

    def __init__(self, cudart: Any) -> None:
        self._cudart = cudart

    def new_array(self, elements: int, dtype: str) -> Array:
        """Flat, uninitialised; unlocked when nobody holds it any more."""
        array = np.empty(elements, dtype)
        address = ctypes.c_void_p(array.ctypes.data)
        if array.nbytes and self._cudart.cudaHostRegister(address, ctypes.c_size_t(array.nbytes), _PORTABLE) == 0:
            weakref.finalize(array, self._cudart.cudaHostUnregister, address)
        return array


def pinned_arrays() -> NewArray:
    """How arrays for a GPU of NVIDIA are made; ordinary ones where the CUDA runtime cannot be found."""
    for name in _LIBRARIES:
        try:
            return PinnedMemory(ctypes.CDLL(name)).new_array
        except OSError:
            continue
    return plain_array
