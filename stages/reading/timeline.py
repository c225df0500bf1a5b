"""When a frame is, and whether it is taken. Pure: the only time here is what the file says.

pts  -> MediaClock.at -> time_ns -> Selection.takes -> taken or skipped
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

SECOND_NS = 1_000_000_000
# A container that counts in milliseconds states a time up to one of them too early.
GRID_TOLERANCE_NS = 1_000_000
# A step back of more than this is a new time line (a recorder that was restarted), not a disordered frame.
NEW_TIMELINE_NS = SECOND_NS


def ticks_to_ns(ticks: int, time_base: Fraction) -> int:
    """Nanoseconds of so many ticks, rounded half up, in whole numbers."""
    return (2 * ticks * time_base.numerator * SECOND_NS + time_base.denominator) // (2 * time_base.denominator)


class MediaClock:
    """Turns presentation timestamps, in order of decoding, into nanoseconds since the first frame.

    The result never runs backwards. A missing pts is one frame interval after the frame before; a small step back
    stands still; after a large one time goes on from where it was.
    """

    def __init__(self, time_base: Fraction, interval_ns: int) -> None:
        self.time_base = time_base
        self.interval_ns = interval_ns
        self._origin_pts: int | None = None
        self._origin_ns = 0
        self._last_ns: int | None = None

    @classmethod
    def resumed(cls, clock: MediaClock, first_pts: int, last_ns: int) -> MediaClock:
        """A clock as `clock` would be after a frame at `last_ns`, of a time line that starts at `first_pts`."""
        new = cls(clock.time_base, clock.interval_ns)
        new._origin_pts, new._last_ns = first_pts, last_ns
        return new

    def at(self, pts: int | None) -> int:
        """The time of the next frame."""
        expected = 0 if self._last_ns is None else self._last_ns + self.interval_ns
        time_ns = expected if pts is None else self._of_pts(pts, expected)
        self._last_ns = time_ns if self._last_ns is None else max(time_ns, self._last_ns)
        return self._last_ns

    def _of_pts(self, pts: int, expected: int) -> int:
        if self._origin_pts is not None:
            time_ns = self._origin_ns + ticks_to_ns(pts - self._origin_pts, self.time_base)
            if self._last_ns is None or time_ns > self._last_ns - NEW_TIMELINE_NS:
                return time_ns
        self._origin_pts, self._origin_ns = pts, expected
        return expected


@dataclass
class Selection:
    """Which frames are taken, by media time alone, so that a restart chooses the same ones.

    From `start_ns` up to, not including, `end_ns`. With `max_fps` a frame is taken when its time reaches a point
    k / max_fps of a grid from time 0 that no frame taken before has reached; up to 1 ms too early counts as reached.
    So a frame is never taken twice, and on average no more than `max_fps` are taken.
    """

    start_ns: int = 0
    end_ns: int | None = None
    max_fps: float | None = None
    last_ns: int | None = None
    """The time of the frame taken last."""

    def is_over(self, time_ns: int) -> bool:
        """Nothing at or after this time is taken."""
        return self.end_ns is not None and time_ns >= self.end_ns

    def takes(self, time_ns: int) -> bool:
        """Whether the next frame, at `time_ns`, is taken; then it is the last one taken."""
        if time_ns < self.start_ns or self.is_over(time_ns):
            return False
        if self.last_ns is not None and self.max_fps is not None and self._point(time_ns) <= self._point(self.last_ns):
            return False
        self.last_ns = time_ns
        return True

    def _point(self, time_ns: int) -> int:
        """The last point of the grid that this time has reached."""
        assert self.max_fps is not None
        return int((time_ns + GRID_TOLERANCE_NS) * self.max_fps / SECOND_NS)
