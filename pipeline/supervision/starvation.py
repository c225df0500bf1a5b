"""Measures how long a process has waited for a core: the kernel counts that for each thread that is ready to run.

On a busy machine a process may look hung although it only waits for a core. A process that really hangs waits for
something else, or has a core and loops: neither is counted here.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_EVERY_S = 0.25


class Starvation:
    """The waiting time of one process since the first `look` at it: `seconds` in which a thread waited for a core."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._before: dict[str, int] = {}
        self._next_look = 0.0

    def look(self, pid: int, now: float) -> None:
        """Measure; call it often. If the system does not report these times, nothing is counted."""
        if now < self._next_look:
            return
        self._next_look = now + _EVERY_S
        waited = _waited_ns(pid)
        grown = [ns - self._before[thread] for thread, ns in waited.items() if thread in self._before]
        self.seconds += max(grown, default=0) / 1e9
        self._before = waited

    def forget(self) -> None:
        """Stop measuring."""
        self.seconds, self._before, self._next_look = 0.0, {}, 0.0


def _waited_ns(pid: int) -> dict[str, int]:
    """Return, by thread, the time that it has waited on a run queue since its start."""
    waited: dict[str, int] = {}
    with suppress(OSError, ValueError, IndexError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # the thread has just ended
                waited[thread.name] = int((thread / "schedstat").read_text().split()[1])
    return waited
