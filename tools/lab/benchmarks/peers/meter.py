"""Runs a program and watches it from outside: its output, its processor time and memory with all below it."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from camgraph.tools.lab.benchmarks.peers.environments import NotToBeHad
from camgraph.tools.lab.benchmarks.peers.gpu import GpuMeter, Look
from camgraph.tools.measuring.processes import tree
from camgraph.tools.measuring.processor_time import tree_cpu_s

_EVERY_S = 0.2
_MEMORY_EVERY = 4
"""Memory is read in each fourth look only, because the kernel walks through all pages for it. The first looks all read
it: a short run may have no others."""


@dataclass(frozen=True, slots=True)
class Watched:
    """`cpu_s`: (monotonic seconds, processor time of the tree until then), in order; `memory_mb`: (monotonic seconds,
    sum of the proportional set sizes: a page that several share is divided among them); `gpu`: how busy the GPUs were,
    where that was looked at.
    """

    output: str
    cpu_s: Sequence[tuple[float, float]]
    memory_mb: Sequence[tuple[float, float]]
    gpu: Sequence[Look] = ()

    def cpu_between(self, begin_s: float, end_s: float) -> float | None:
        """Processor seconds that the tree used between two moments, in line between looks; None if nobody has looked
        since the first of them.
        """
        if not self.cpu_s or self.cpu_s[-1][0] < begin_s:
            return None
        return _at(self.cpu_s, end_s) - _at(self.cpu_s, begin_s)

    def peak_mb(self, begin_s: float) -> float | None:
        """The most memory of the whole run; None if nobody has looked since it was at work: a program that is just
        being loaded is no measure.
        """
        if not self.memory_mb or self.memory_mb[-1][0] < begin_s:
            return None
        return max(value for _, value in self.memory_mb)


def _at(looks: Sequence[tuple[float, float]], moment_s: float) -> float:
    """The value at a moment, interpolated; the nearest outside."""
    after = bisect_left(looks, (moment_s,))
    if after in (0, len(looks)):
        return looks[min(after, len(looks) - 1)][1]
    (begin, low), (end, high) = looks[after - 1], looks[after]
    return low + (high - low) * (moment_s - begin) / (end - begin)


def watch(
    command: Sequence[str], *, limit_s: float, environment: Mapping[str, str] | None = None, gpu: GpuMeter | None = None
) -> Watched:
    """Run a program; kill it with its group after `limit_s`. Raises NotToBeHad if it fails or is killed."""
    with gpu or nullcontext(), tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, stdout=output, stderr=errors, stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        before_s = _waited_for_s()
        try:
            cpu_s, memory_mb = _look(process, time.monotonic() + limit_s)
        finally:
            _end(process)
        # The time after the last look counts for processes that were waited for; of others only the looks are known.
        cpu_s.append((time.monotonic(), max(_waited_for_s() - before_s, cpu_s[-1][1] if cpu_s else 0.0)))
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            raise NotToBeHad(_why(process.returncode, limit_s, errors.read()))
        return Watched(output.read(), cpu_s, memory_mb, gpu.looks if gpu else ())


_Looks = list[tuple[float, float]]


def _look(process: subprocess.Popen[bytes], late_s: float) -> tuple[_Looks, _Looks]:
    cpu_s: _Looks = []
    memory_mb: _Looks = []
    while process.poll() is None and time.monotonic() < late_s:
        if len(cpu_s) < _MEMORY_EVERY or len(cpu_s) % _MEMORY_EVERY == 0:
            memory_mb.append((time.monotonic(), tree_mb(process.pid)))
        cpu_s.append((time.monotonic(), tree_cpu_s(process.pid)))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_EVERY_S)
    return cpu_s, memory_mb


def _waited_for_s() -> float:
    """Processor time of all processes that this one has waited for, and of those that they have waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and its group, if it has not ended by itself."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _why(status: int, limit_s: float, errors: str) -> str:
    if status == -signal.SIGKILL:
        return f"not over after {limit_s:g} s, or killed"
    lines = [line for line in errors.splitlines() if line.strip()]
    return f"ended with status {status}: {lines[-1].strip() if lines else 'without a word'}"


def tree_mb(root: int) -> float:
    """Proportional set size of a process and all below it, in megabytes; processes that end meanwhile are left out."""
    return sum(_pss_kb(pid) for pid in tree(root)) / 1000


def _pss_kb(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
