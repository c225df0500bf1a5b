"""How long a process that died waits until it is started again.

A process that works between its deaths, or that may be dying of an item which is still being hunted down (five deaths,
see `pipeline.items`), is wanted back soon: cameras wait for it. One that does not even open its stages is not.
"""

from __future__ import annotations

_HUNT_S = (0.0, 0.1, 0.2, 0.5, 0.5, 1.0)
_BACK_OFF_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_AFTER_HUNT = 3
"""A death later than those of a hunt waits like one more than so many."""


class Restarts:
    """The deaths of one process.

    `total`: all; `in_a_row`: since it was steady; `fruitless`: since it worked last; `failed_starts`: since it had
    opened its stages last.
    """

    def __init__(self) -> None:
        self.total = 0
        self.in_a_row = 0
        self.fruitless = 0
        self.failed_starts = 0

    def died(self, *, opened: bool, steady: bool) -> float:
        """Note a death, of a process that had opened its stages or not; in how many seconds to start it again.

        `steady`: it lived so long that earlier deaths are no reason to wait.
        """
        self.total += 1
        self.fruitless += 1
        self.in_a_row = 1 if steady else self.in_a_row + 1
        self.failed_starts = 0 if opened else self.failed_starts + 1
        if opened and self.fruitless <= len(_HUNT_S):
            return _HUNT_S[min(self.in_a_row, len(_HUNT_S)) - 1]
        row = self.fruitless - len(_HUNT_S) + _AFTER_HUNT if opened else self.failed_starts
        return _BACK_OFF_S[min(row, len(_BACK_OFF_S)) - 1]

    def worked(self) -> None:
        """The process has brought something through."""
        self.fruitless = 0
