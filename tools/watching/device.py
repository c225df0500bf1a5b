"""Where the model runs on this machine, and how many frames at once."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_DRIVERS = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
_MOST_THREADS = 64
_PROBE_S = 120.0
_PROBE = """
import sys
from pathlib import Path
from pipeline.errors import CamgraphError
from stages.inference.opening import Asked, open_model
try:
    open_model(Path(sys.argv[1]), Asked(("cuda",)))
except CamgraphError as error:
    sys.exit(str(error))
"""


@dataclass(frozen=True, slots=True)
class Device:
    """`providers` as `infer` takes them; `why_not` says why a GPU that is there is not among them."""

    providers: tuple[str, ...]
    batch: int
    threads: int
    why_not: str = ""


def find_device(model: Path) -> Device:
    """The GPU where one runs this model, else all cores of the CPU.

    On a CPU a thread for each core with single frames was faster than batches; on a GPU two threads keep it busy while
    batches are gathered.
    """
    cpu = Device(("cpu",), 1, min(len(os.sched_getaffinity(0)), _MOST_THREADS))
    if not any(driver.exists() for driver in _DRIVERS) or not model.is_file():
        return cpu
    problem = _why_no_gpu(model)
    if problem:
        return Device(cpu.providers, cpu.batch, cpu.threads, problem)
    return Device(("cuda", "cpu"), 8, 2)


def _why_no_gpu(model: Path) -> str:
    """Tried in a process of its own: what CUDA once has, it keeps until the process ends."""
    try:
        tried = subprocess.run(  # noqa: S603 - this Python
            [sys.executable, "-c", _PROBE, str(model)], capture_output=True, text=True, timeout=_PROBE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"opening the model on it took longer than {_PROBE_S:.0f} s"
    return "" if tried.returncode == 0 else (tried.stderr.strip().splitlines() or ["it failed"])[-1]
