"""The memory of the processes of a run, measured at little cost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from mmap import PAGESIZE
from pathlib import Path

_SHORTEST_S, _LONGEST_S = 15.0, 300.0
"""Between two whole measurements of a process: as long as the process has been known, within these bounds."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """One whole measurement of a process. `private_bytes`: what `statm` said at that moment."""

    known_since_s: float
    at_s: float
    whole_bytes: int
    private_bytes: int

    def is_due(self, now_s: float) -> bool:
        known_s = self.at_s - self.known_since_s
        return now_s - self.at_s >= min(_LONGEST_S, max(_SHORTEST_S, known_s))


class MemoryMeter:
    """Measures what processes occupy beside the files that they have mapped.

    Processes of a run are copies that share pages until one writes to them, and of a shared page each process counts
    its share (`Pss_Anon`). For that sum the kernel walks all pages of a process, a hundred times as long as it takes to
    say how many pages there are (`statm`). So a process is measured wholly now and then, and in between by the growth
    of the number of its pages.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._measured: dict[int, _Measured] = {}

    def measure(self, pids: Sequence[int], now_s: float) -> int:
        """The bytes of all these processes; one that is gone, or that nobody may look at, counts as 0."""
        self._measured = {pid: self._measured[pid] for pid in pids if pid in self._measured}
        return sum(self._memory(pid, now_s) for pid in pids)

    def _memory(self, pid: int, now_s: float) -> int:
        private_bytes, last = self._private_bytes(pid), self._measured.get(pid)
        if last is None or last.is_due(now_s):
            # A process with secrets shows no more than the size of its pages.
            whole = self._shares_bytes(pid)
            since_s = last.known_since_s if last else now_s
            last = _Measured(since_s, now_s, private_bytes if whole is None else whole, private_bytes)
            self._measured[pid] = last
        return max(0, last.whole_bytes + private_bytes - last.private_bytes)

    def _private_bytes(self, pid: int) -> int:
        with suppress(OSError):
            _, resident, shared, *_ = (self._proc / str(pid) / "statm").read_text().split()
            return (int(resident) - int(shared)) * PAGESIZE
        return 0

    def _shares_bytes(self, pid: int) -> int | None:
        with suppress(OSError):
            lines = (self._proc / str(pid) / "smaps_rollup").read_text().splitlines()[1:]
            anonymous = next((line for line in lines if line.startswith("Pss_Anon:")), None)
            return 1024 * int(anonymous.split()[1]) if anonymous else None
        return None
