"""How the processor time divides between this tool with its children, and all other processes of the machine.

A figure of a live run means little if other processes take the cores. So each tool measures their share, and prints it
beside its figures.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_SPAN_S = 10.0


@dataclass(frozen=True, slots=True)
class CpuTime:
    """At one moment (monotonic clock): seconds that all processes of the machine have used, and those of our own."""

    at_s: float
    machine_s: float
    own_s: float


def cpu_time() -> CpuTime:
    """Now; our own is this process and all below it, their dead included."""
    return CpuTime(time.monotonic(), machine_cpu_s(), tree_cpu_s(os.getpid()))


def other_cores(before: CpuTime, after: CpuTime) -> float:
    """How many cores other processes took meanwhile. Pure."""
    seconds = max(1e-9, after.at_s - before.at_s)
    used_s, own_s = after.machine_s - before.machine_s, after.own_s - before.own_s
    return max(0.0, used_s - own_s) / seconds


def own_cores(before: CpuTime, after: CpuTime) -> float:
    """How many cores our own processes took meanwhile. Pure."""
    return (after.own_s - before.own_s) / max(1e-9, after.at_s - before.at_s)


def between(times: Sequence[CpuTime], begin_s: float, end_s: float) -> tuple[CpuTime, CpuTime]:
    """The last of ``times`` (at least one, in order) before, and the first one after; the nearest if there is none."""
    before = next((one for one in reversed(times) if one.at_s <= begin_s), times[0])
    after = next((one for one in times if one.at_s >= end_s), times[-1])
    return before, after


def others_line(times: Sequence[CpuTime], span_s: float = _SPAN_S) -> str:
    """A sentence on the cores that other processes took over a run, by spans of so many seconds. Pure."""
    cores = len(os.sched_getaffinity(0))
    taken = [other_cores(*pair) for pair in _spans(times, span_s)]
    if not taken:
        return "What other processes took was not measured."
    median, most = statistics.median(taken), max(taken)
    return f"Other processes took {median:.2f} of {cores} cores (median), {most:.2f} at most (of {span_s:g} s)."


def _spans(times: Sequence[CpuTime], span_s: float) -> list[tuple[CpuTime, CpuTime]]:
    """One after the other, each as long or longer; the whole time if that is shorter."""
    found: list[tuple[CpuTime, CpuTime]] = []
    for one in times:
        begin = found[-1][1] if found else times[0]
        if one.at_s - begin.at_s >= span_s:
            found.append((begin, one))
    return found or ([(times[0], times[-1])] if len(times) > 1 else [])


def machine_cpu_s() -> float:
    """Processor time of all processes since the machine was started: user, nice and system in /proc/stat.

    Interrupts are left out: they are nobody's, and our own network traffic causes them too.
    """
    return sum(map(int, (_PROC / "stat").read_text().partition("\n")[0].split()[1:4])) / _TICKS


def tree_cpu_s(root: int) -> float:
    """Processor time of a process and all below it, and of dead ones they waited for: fields 14 to 17 of proc(5)."""
    children: dict[int, list[int]] = defaultdict(list)
    used: dict[int, int] = {}
    for path in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            # The name of a program may hold anything, also a parenthesis.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            pid = int(path.parent.name)
            children[int(fields[1])].append(pid)
            used[pid] = sum(map(int, fields[11:15]))
    tree = [root]
    for pid in tree:
        tree += children[pid]
    return sum(used.get(pid, 0) for pid in tree) / _TICKS


def process_cpu_s(pid: int) -> float:
    """Processor time of one living process, without its children."""
    fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
