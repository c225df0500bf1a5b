"""How long a process that died waits until it is started again.

A process that works between its deaths, or that may be dying of a poison message that has not been found yet (five
deaths, see `pipeline.items`), comes back soon: cameras wait for it. One that does not even open its stages does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_HUNT_S = (0.0, 0.1, 0.2, 0.5, 0.5, 1.0)
_BACK_OFF_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_AFTER_HUNT = 3
"""A death later than those of a hunt waits like one more than so many."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """The deaths of one process.

    `total`: all; `in_a_row`: since it was steady; `fruitless`: since it worked last; `failed_starts`: since it had
    opened its stages last.
    """

    total: int = 0
    in_a_row: int = 0
    fruitless: int = 0
    failed_starts: int = 0

    def after_death(self, *, opened: bool, steady: bool) -> Restarts:
        """One death more, of a process that had opened its stages or not.

        `steady`: it lived so long that earlier deaths are no reason to wait.
        """
        return Restarts(
            total=self.total + 1,
            in_a_row=1 if steady else self.in_a_row + 1,
            fruitless=self.fruitless + 1,
            failed_starts=0 if opened else self.failed_starts + 1,
        )

    def after_work(self) -> Restarts:
        """The process has brought something through."""
        return replace(self, fruitless=0)

    @property
    def pause_s(self) -> float:
        """Seconds from the last death to the next start."""
        if not self.total:
            return 0.0
        opened = not self.failed_starts
        if opened and self.fruitless <= len(_HUNT_S):
            return _HUNT_S[min(self.in_a_row, len(_HUNT_S)) - 1]
        row = self.fruitless - len(_HUNT_S) + _AFTER_HUNT if opened else self.failed_starts
        return _BACK_OFF_S[min(row, len(_BACK_OFF_S)) - 1]


NO_DEATHS = Restarts()
