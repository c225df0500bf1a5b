"""When to try again: the pauses of everything that connects to others."""

from __future__ import annotations

from collections.abc import Sequence

USUAL_PAUSES_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""After the first failure, the second and so on; the last one is kept."""


class Attempts:
    """When to try again: pauses that grow while the other side is away, and last no longer than it asks for.

    Counts failures in a row. Pure: times are seconds of one monotonic clock.
    """

    def __init__(self, pauses_s: Sequence[float] = USUAL_PAUSES_S) -> None:
        self._pauses_s = tuple(pauses_s)
        self.failures = 0
        self.next_s = 0.0
        """Not before this time."""
        self.why = ""
        """Of the last failure."""

    def may_try(self, now_s: float) -> bool:
        return now_s >= self.next_s

    def failed(self, now_s: float, why: str, least_pause_s: float = 0.0) -> None:
        """An attempt has failed. `least_pause_s`: the other side has asked for so much time."""
        pause = self._pauses_s[min(self.failures, len(self._pauses_s) - 1)]
        self.failures += 1
        self.next_s = now_s + max(pause, least_pause_s)
        self.why = why

    def succeeded(self) -> None:
        self.failures, self.next_s, self.why = 0, 0.0, ""
