"""The times of a live camera's pictures. Pure: arrival is an argument.

time_ns   monotonic arrival: never backwards (not here)
Pace      the camera's own time stamps, which do not jitter, held to the arrival, which does not lie: for `max_fps`
WallClock the camera's clock where its reports (RTCP) make sense, else this machine's; says which
Rate      pictures a second, as they come
Ticks     time stamps for pictures that have none: by their arrival
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from typing import Literal, NamedTuple

from camgraph.stages.video.timeline import SECOND_NS, ticks_to_ns

Clock = Literal["ntp", "wall"]
"""Of `pipeline.messages.Clock`: the camera's, or this machine's."""

MOST_AHEAD_NS = 10 * SECOND_NS
"""A segment of HLS comes at once, and as much may have been held up on the way."""
CREDIBLE_NS = 24 * 3600 * SECOND_NS
"""A camera may have the wrong time zone, but a clock that was never set is useless."""
STEADY_NS = SECOND_NS
"""How far the step of the camera's clock between two pictures may differ from the step of their arrivals."""
SETTLE_NS = 5 * SECOND_NS
"""How long a clock must be steady after it has jumped."""


class Pace:
    """A time for each picture, since the first, to choose pictures by, even if the time stamps are wrong.

    It never runs backwards. It follows the stamps while they are plausible (steps forward, not much larger than the
    time that passed), and the arrival if they are not or are missing, and stays within `MOST_AHEAD_NS` of the arrival.
    So stamps that jump, wrap, stand still or come twice cost no picture, and give few too many.
    """

    def __init__(self, time_base: Fraction) -> None:
        self._time_base = time_base
        self._last: tuple[int | None, int] | None = None
        self._first_ns = 0
        self._time_ns = 0

    def at(self, pts: int | None, arrived_ns: int) -> int:
        """The time of the next picture. `arrived_ns` must not run backwards."""
        if self._last is None:
            self._first_ns = arrived_ns
        else:
            stepped, passed = self._time_ns + self._step(pts, arrived_ns, *self._last), arrived_ns - self._first_ns
            bounded = min(max(stepped, passed - MOST_AHEAD_NS), passed + MOST_AHEAD_NS)
            self._time_ns = max(bounded, self._time_ns)
        self._last = pts, arrived_ns
        return self._time_ns

    def _step(self, pts: int | None, arrived_ns: int, last_pts: int | None, last_arrived_ns: int) -> int:
        passed = arrived_ns - last_arrived_ns
        if pts is None or last_pts is None:
            return passed
        step = ticks_to_ns(pts - last_pts, self._time_base)
        return step if 0 < step <= passed + MOST_AHEAD_NS else passed


class Ticks:
    """Time stamps by arrival, in ticks of `TICK` since the first picture, each later than the one before."""

    TICK = Fraction(1, 90_000)

    def __init__(self) -> None:
        self._first_ns: int | None = None
        self._last = -1

    def at(self, arrived_ns: int) -> int:
        """The stamp of the next picture. `arrived_ns` must not run backwards."""
        self._first_ns = arrived_ns if self._first_ns is None else self._first_ns
        self._last = max(self._last + 1, round((arrived_ns - self._first_ns) / SECOND_NS / self.TICK))
        return self._last


class Reading(NamedTuple):
    """A time of day in nanoseconds since 1970, UTC, and whose it is."""

    wall_ns: int
    clock: Clock


class WallClock:
    """Decides, picture by picture, whether the camera's clock is believed. It may run backwards if a clock is set.

    A report is believed when it is within a day of this machine's clock and went on since the last one as the time
    that passed; after a jump it must be steady for `SETTLE_NS` again. Meanwhile, and without reports, it is this
    machine's clock.
    """

    def __init__(self) -> None:
        self._offset_ns: int | None = None
        self._distrusted_until_ns = 0

    def at(self, reported_ns: int | None, arrived_ns: int, own_wall_ns: int) -> Reading:
        """`reported_ns`: of this picture by the camera's clock. `arrived_ns` is monotonic, `own_wall_ns` UTC."""
        if reported_ns is None or abs(reported_ns - own_wall_ns) > CREDIBLE_NS:
            return Reading(own_wall_ns, "wall")
        before, self._offset_ns = self._offset_ns, reported_ns - arrived_ns
        if before is not None and abs(self._offset_ns - before) > STEADY_NS:
            self._distrusted_until_ns = arrived_ns + SETTLE_NS
        if arrived_ns < self._distrusted_until_ns:
            return Reading(own_wall_ns, "wall")
        return Reading(reported_ns, "ntp")


class Rate:
    """Measures how many pictures a second come, over the last `window_s` seconds."""

    def __init__(self, window_s: float = 10.0) -> None:
        self._window_ns = round(window_s * SECOND_NS)
        self._times: deque[int] = deque()
        self._reported_ns: int | None = None

    def came(self, arrived_ns: int) -> float | None:
        """A picture came; returns the rate when it is time to report it: once in half a window."""
        self._times.append(arrived_ns)
        while arrived_ns - self._times[0] > self._window_ns:
            self._times.popleft()
        self._reported_ns = arrived_ns if self._reported_ns is None else self._reported_ns
        if arrived_ns - self._reported_ns < self._window_ns // 2:
            return None
        self._reported_ns = arrived_ns
        return self.per_second

    @property
    def per_second(self) -> float | None:
        """None before two pictures came."""
        passed = self._times[-1] - self._times[0] if self._times else 0
        return (len(self._times) - 1) * SECOND_NS / passed if passed else None
