"""Chooses the device for the model on this machine, and the number of frames at once."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Try = Callable[[Path], str]
"""Why a GPU does not run a model; "" if it does."""

_DRIVER = "libcuda.so.1"
_MOST_THREADS = 64
_PROBE_S = 120.0


@dataclass(frozen=True, slots=True)
class Device:
    """`providers` as `infer` takes them; `why_not`: the reason if they leave out a GPU of this machine."""

    providers: tuple[str, ...]
    batch: int
    threads: int
    why_not: str = ""


def find_device(model: Path, attempt: Try | None = None) -> Device:
    """The GPU if one opens this model (tried in another process), else all cores of the CPU.

    On a CPU a thread for each core with single frames was faster than batches; on a GPU two threads keep it busy while
    batches are gathered.
    """
    cpu = Device(("cpu",), 1, min(len(os.sched_getaffinity(0)), _MOST_THREADS))
    if not has_driver() or not model.is_file():
        return cpu
    problem = (attempt or _why_not)(model)
    if problem:
        return Device(cpu.providers, cpu.batch, cpu.threads, problem)
    return Device(("cuda", "cpu"), 8, 2)


def has_driver() -> bool:
    """Whether NVIDIA's driver is here, in a container as well."""
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return False
    return True


def _why_not(model: Path) -> str:
    from camgraph.stages.people.inference.selection.opening import Asked  # noqa: PLC0415 - takes long, and most machines have no GPU
    from camgraph.stages.people.inference.selection.trial import try_in_process  # noqa: PLC0415

    return try_in_process(model, Asked(("cuda",)), {}, _PROBE_S).failure
