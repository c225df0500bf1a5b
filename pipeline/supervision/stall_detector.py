"""Notices that a run stands still although there is work to do, and no single process is at fault.

A graph of files is stuck if nothing at all has changed for a while, and a process still has messages in flight. With
live cameras, frames keep arriving: the run is stuck if they do, and no process behind the sources works on any. If
nothing is in flight, the cameras are merely silent.

    stuck --restart the processes with unfinished messages--> moves, or stuck again --files--> the run ends
                                                                                    --live---> restart, later and later
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from camgraph.pipeline.errors import ProblemText

_LONGEST_WAIT_S = 3600.0


@dataclass(frozen=True, slots=True)
class Progress:
    """The condition of one process.

    `done`: changes whenever it has processed something; `seen`: whenever anything happens to it. `in_flight`: the
    number of its messages that its `readers` have not finished. `excused`: it has a reason to stand still (it works,
    is blocked or starts).
    """

    process: str
    source: bool
    done: object
    seen: object
    in_flight: int
    readers: frozenset[str]
    excused: bool = False


@dataclass(frozen=True, slots=True)
class Stuck:
    """`culprits`: the processes to restart. `in_flight`: messages by process. `over`: stuck again, so it should end."""

    culprits: tuple[str, ...]
    in_flight: dict[str, int]
    over: bool

    @property
    def problem(self) -> ProblemText:
        """The problem to report if the run ends."""
        unfinished = ", ".join(f"{n} of {process}" for process, n in self.in_flight.items() if n)
        return ProblemText(
            f"nothing moves, even after the stuck processes were restarted (unfinished messages: {unfinished}): "
            "a bug of a stage or of the runtime; the log has the details",
            error_id="bug",
        )


class StallDetector:
    """Judges the processes again and again. `patience_s`: how long the run may stand still."""

    def __init__(self, patience_s: float, *, finite: bool, now: float) -> None:
        self._patience_s = patience_s
        self._finite = finite
        self._marks: list[object] = []
        self._still_since = now
        self._source_marks: list[object] = []
        self._brought_at = now
        self._restarted_at = 0.0
        self._restarts = 0

    def judge(self, processes: Sequence[Progress], now: float) -> Stuck | None:
        """Return the action that is due, if there is one."""
        if self._moves(processes, now):
            self._still_since = now
            if now - self._restarted_at > _LONGEST_WAIT_S:
                self._restarts = 0
            return None
        if now - self._still_since <= self._wait_s:
            return None
        self._still_since = self._restarted_at = now
        self._restarts += 1
        in_flight = {one.process: one.in_flight for one in processes}
        return Stuck(_culprits(processes), in_flight, over=self._finite and self._restarts > 1)

    @property
    def _wait_s(self) -> float:
        doubled = 0 if self._finite else self._restarts
        return float(max(self._patience_s, min(self._patience_s * 2**doubled, _LONGEST_WAIT_S)))

    def _moves(self, processes: Sequence[Progress], now: float) -> bool:
        """True if a process moves, or has a reason not to."""
        # Lists: Python reallocates each tuple that it makes of a generator, thousands of them.
        marks = [one.seen if self._finite else one.done for one in processes if self._finite or not one.source]
        moved, self._marks = marks != self._marks, marks
        brought = [one.seen for one in processes if one.source]
        if brought != self._source_marks:
            self._source_marks, self._brought_at = brought, now
        idle = not self._finite and now - self._brought_at > self._patience_s / 3
        return moved or idle or any(one.excused for one in processes) or not any(one.in_flight for one in processes)


def _culprits(processes: Sequence[Progress]) -> tuple[str, ...]:
    """The processes whose messages others wait for, and that wait for none themselves."""
    readers = frozenset[str]().union(*(one.readers for one in processes if one.in_flight))
    waiting = {one.process for one in processes if one.in_flight}
    return tuple(sorted(readers - waiting or readers))
