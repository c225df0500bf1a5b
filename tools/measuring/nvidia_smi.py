"""Parses the output of `nvidia-smi`. Pure.

nvidia-smi                    its head says which CUDA the driver runs at most, whatever is installed beside it:
                              `... Driver Version: 550.40.07   CUDA Version: 12.4 |`, since driver 610
                              `... KMD Version: 610.43.02   CUDA UMD Version: 13.3 |`
nvidia-smi GPUS               a line for each GPU: `NVIDIA L4, 550.54.15, 22491 MiB, 23034 MiB`
nvidia-smi BUSY               a line for each GPU: `0, 87`; `0, [N/A]` where it does not tell
nvidia-smi LOADS              a line for each GPU: `0, 430, 12282, 1, NVIDIA GeForce RTX 4070`
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

GPUS = ("--query-gpu=name,driver_version,memory.free,memory.total", "--format=csv,noheader")
BUSY = ("--query-gpu=index,utilization.gpu", "--format=csv,noheader,nounits")
LOADS = ("--query-gpu=index,memory.used,memory.total,utilization.gpu,name", "--format=csv,noheader,nounits")
_CUDA = re.compile(r"CUDA(?: UMD)? Version\s*:\s*(\d+)\.(\d+)")
_BUSY = re.compile(r"\s*(\d+)\s*,\s*(\d+)(?:\s*%)?\s*")
_VERSION = re.compile(r"(\d+)\.(\d+)")

Version = tuple[int, int]


class Gpu(NamedTuple):
    """One GPU; memory as nvidia-smi writes it, with its unit."""

    name: str
    driver: str
    free: str
    total: str


class GpuLoad(NamedTuple):
    """One GPU now; None where it does not tell. `busy`: as of `busy_of`."""

    number: int
    name: str
    used_bytes: int | None
    total_bytes: int | None
    busy: float | None


def gpus_of(output: str) -> list[Gpu]:
    """The GPUs in an answer to `GPUS`; a line about none ("No devices were found") is skipped."""
    lines = [[part.strip() for part in line.rsplit(",", 3)] for line in output.splitlines()]
    return [Gpu(*parts) for parts in lines if len(parts) == len(Gpu._fields)]


def cuda_of(output: str) -> Version | None:
    """The newest CUDA that the driver runs, by the head; None if that does not say."""
    found = _CUDA.search(output)
    return (int(found[1]), int(found[2])) if found else None


def version_of(text: str) -> Version | None:
    """ "13.0" as numbers; None if it is no version."""
    found = _VERSION.match(text)
    return (int(found[1]), int(found[2])) if found else None


def busy_of(line: str) -> tuple[int, float] | None:
    """Which GPU, and the share of the last moment (1/6 to 1 s) in which it was at work, 0 to 1; of a line of `BUSY`.

    None if the line does not tell. Source: `utilization.gpu` in the manual of nvidia-smi.
    """
    found = _BUSY.fullmatch(line)
    return (int(found[1]), int(found[2]) / 100) if found else None


def loads_of(output: str) -> Iterator[GpuLoad]:
    """The loads in an answer to `LOADS`, which has memory in MiB; a line about no GPU is skipped."""
    for line in output.splitlines():
        number, *values = (part.strip() for part in line.split(",", 4))
        if len(values) == 4 and number.isdecimal():
            used, total, percent = map(_number, values[:3])
            yield GpuLoad(int(number), values[3], _mib(used), _mib(total), None if percent is None else percent / 100)


def _number(text: str) -> int | None:
    """None for `[N/A]`, `[Not Supported]`, `[Unknown Error]`."""
    return int(text) if text.isascii() and text.isdecimal() else None


def _mib(number: int | None) -> int | None:
    return None if number is None else number << 20
