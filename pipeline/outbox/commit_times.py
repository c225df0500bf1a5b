"""When events were committed, as the clock of this machine tells it now, and for how long events have waited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_TRUSTED_S = 90
"""Up to such a difference the clock is right: other processes, which requeue events, know `open_s` to a minute only."""


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """Events from row `first_row` on were committed while this process had the outbox open: their age is known.

    So a clock that is set meanwhile makes none of them old or young. Of earlier events only the clock tells the age.
    `wall_ns` is UTC since 1970; `open_s` is for how long the outbox was open.
    """

    first_row: int
    wall_ns: Callable[[], int]
    open_s: Callable[[], int]

    def now(self, row: int, committed_ns: int, waits_from_s: int) -> int:
        """When the event of this row was committed (UTC since 1970; 0 if nobody knows).

        `committed_ns` is the time that the clock told then, and `waits_from_s` is what `open_s` was.
        """
        if row < self.first_row or not committed_ns:
            return committed_ns
        known_ns = self.wall_ns() - (self.open_s() - waits_from_s) * 1_000_000_000
        return committed_ns if abs(known_ns - committed_ns) <= _TRUSTED_S * 1_000_000_000 else known_ns

    def waited_s(self, row: int, committed_ns: int, waits_from_s: int) -> float:
        """For how long the event of this row has waited while the outbox was open; see `now`.

        Of an earlier event, a damaged file may tell a time that has not passed yet: then the clock of the machine
        counts, unless the clock was set back since the commit.
        """
        open_s = self.open_s() - waits_from_s
        passed_s = (self.wall_ns() - self.now(row, committed_ns, waits_from_s)) / 1e9
        return min(open_s, passed_s) if committed_ns and passed_s >= 0 else open_s
