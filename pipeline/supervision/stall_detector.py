"""Notices that nothing moves though there is work to do: no process is at fault that anybody could name.

A graph of files is stuck when nothing at all has changed in it for a while, and somebody still has messages in
flight. Live cameras keep bringing frames: there it is stuck when they do, and nobody behind them processes any. Where
nothing is in flight the cameras are merely still.

    stuck --restart whoever has what is not done--> moves, or stuck again --files--> the run ends
                                                                          --live---> restart, later and later
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_LONGEST_WAIT_S = 3600.0


@dataclass(frozen=True, slots=True)
class Sight:
    """One process as it looks now.

    `done`: changes whenever it processes something; `seen`: whenever anything happens to it. `in_flight`: how many of
    its messages its `readers` have not done. `excused`: it has a reason not to move (it works, waits, starts).
    """

    unit: str
    source: bool
    done: Hashable
    seen: Hashable
    in_flight: int
    readers: frozenset[str]
    excused: bool = False


@dataclass(frozen=True, slots=True)
class Stuck:
    """`culprits`: those to restart. `in_flight`: unit -> messages. `over`: it was stuck before, and should now end."""

    culprits: tuple[str, ...]
    in_flight: dict[str, int]
    over: bool

    @property
    def problem(self) -> str:
        """What is told where it is over."""
        unfinished = ", ".join(f"{n} of {unit}" for unit, n in self.in_flight.items() if n)
        return (
            f"nothing moves, also not after a restart of what is stuck (messages that are not done: {unfinished}): "
            "a bug of a stage or of the runtime; the log has the details"
        )


class StallDetector:
    """Judges what it is shown again and again. `patience_s`: how long nothing may move."""

    def __init__(self, patience_s: float, *, finite: bool, now: float) -> None:
        self._patience_s = patience_s
        self._finite = finite
        self._marks: Hashable = None
        self._still_since = now
        self._source_marks: Hashable = None
        self._brought_at = now
        self._restarted_at = 0.0
        self._restarts = 0

    def look(self, sights: Sequence[Sight], now: float) -> Stuck | None:
        """What to do, if it is time to do something."""
        if self._moves(sights, now):
            self._still_since = now
            if now - self._restarted_at > _LONGEST_WAIT_S:
                self._restarts = 0
            return None
        if now - self._still_since <= self._wait_s:
            return None
        self._still_since = self._restarted_at = now
        self._restarts += 1
        in_flight = {sight.unit: sight.in_flight for sight in sights}
        return Stuck(_culprits(sights), in_flight, over=self._finite and self._restarts > 1)

    @property
    def _wait_s(self) -> float:
        doubled = 0 if self._finite else self._restarts
        return float(max(self._patience_s, min(self._patience_s * 2**doubled, _LONGEST_WAIT_S)))

    def _moves(self, sights: Sequence[Sight], now: float) -> bool:
        """True when something moves, or has a reason not to."""
        marks = tuple(
            sight.seen if self._finite else sight.done for sight in sights if self._finite or not sight.source
        )
        moved, self._marks = marks != self._marks, marks
        brought = tuple(sight.seen for sight in sights if sight.source)
        if brought != self._source_marks:
            self._source_marks, self._brought_at = brought, now
        idle = not self._finite and now - self._brought_at > self._patience_s / 3
        return moved or idle or any(sight.excused for sight in sights) or not any(sight.in_flight for sight in sights)


def _culprits(sights: Sequence[Sight]) -> tuple[str, ...]:
    """Who has what others wait for and waits for nobody itself."""
    readers = frozenset[str]().union(*(sight.readers for sight in sights if sight.in_flight))
    waiting = {sight.unit for sight in sights if sight.in_flight}
    return tuple(sorted(readers - waiting or readers))
