"""How much of the machine's time calls to the model may take while cameras need it."""

from __future__ import annotations

import time
from collections.abc import Callable

SHARE = 0.04
"""Of the time. Cameras may lose 5 %, and what is asked for may take longer than it did before."""
_MOST_S = 0.5
"""Saved up while nobody asks."""


class SpareTime:
    """Time that is saved up, and spent by calls. After one, the next waits until it is saved again. For one thread."""

    def __init__(self, share: float = SHARE, clock: Callable[[], float] = time.monotonic) -> None:
        self._share, self._clock = share, clock
        self._left_s, self._at_s = _MOST_S, clock()

    def wait_s(self) -> float:
        """Seconds until there is some; 0 if there is now."""
        self._save()
        return max(0.0, -self._left_s / self._share)

    def spend(self, seconds: float) -> None:
        """It has taken so long."""
        self._save()
        self._left_s -= seconds

    def _save(self) -> None:
        now = self._clock()
        self._left_s = min(_MOST_S, self._left_s + (now - self._at_s) * self._share)
        self._at_s = now
