"""The tries to connect to a camera, and how long to wait before the next. Pure: time and chance are arguments.

state          from start to start of tries, seconds         why
lost           0.5  1  2  2 ...                              back within 5 s of its return
gone           2  4  8 ... 60                                somebody has to correct the address,
unauthorised   5  10  20 ... 60                              and cameras lock accounts after a few wrong passwords

The time for which it was live between two tries is not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from camgraph.pipeline.stage import CameraState


class Backoff(NamedTuple):
    """Seconds between the starts of two tries: the first time, and at most; it doubles in between."""

    first_s: float
    last_s: float


LOST = Backoff(0.5, 2.0)
BACKOFFS: dict[CameraState, Backoff] = {"gone": Backoff(2, 60), "unauthorised": Backoff(5, 60)}
LEAST_PAUSE_S = 0.25
"""After a try that took long by itself."""
STEADY_S = 10.0
"""A camera that was live for so long is lost for the first time again. One that gives a picture, hangs up, and gives
the next one to the next connection is not, or it would be tried four times a second for ever."""
JITTER = 0.2
"""Each pause is shorter by up to this part, so that cameras behind one switch do not come back as one."""


@dataclass(slots=True)
class Attempt:
    """One try: when it was begun, and when it brought its first picture, in monotonic seconds."""

    begun_s: float
    picture_s: float | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it has brought a picture."""
        return self.picture_s is not None

    def picture(self, now_s: float) -> None:
        """It brought a picture."""
        self.picture_s = now_s if self.picture_s is None else self.picture_s

    def opening_s(self, now_s: float) -> float:
        """How long it took to the first picture, or has taken without one."""
        return (now_s if self.picture_s is None else self.picture_s) - self.begun_s

    def live_s(self, now_s: float) -> float:
        """For how long it has been live, 0 if it never was."""
        return 0.0 if self.picture_s is None else now_s - self.picture_s


class Retries:
    """Counts the tries that failed in the same way, one after the other. ``chance`` gives numbers in [0, 1)."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._state: CameraState | None = None
        self._failures = 0

    def pause_s(self, state: CameraState, opening_s: float, live_s: float = 0.0) -> float:
        """How long to wait after a try that ended in ``state``.

        It had taken ``opening_s`` to its first picture, or to fail without one, and was live for ``live_s``.
        """
        again = state == self._state and live_s < STEADY_S
        self._failures = self._failures + 1 if again else 0
        self._state = state
        backoff = BACKOFFS.get(state, LOST)
        interval_s = min(backoff.last_s, backoff.first_s * (1 << min(self._failures, 10)))
        return max(LEAST_PAUSE_S, interval_s * (1 - JITTER * self._chance()) - opening_s)
