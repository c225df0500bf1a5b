"""When a frame is, and whether it is taken. Pure: the only time here is the file's own.

timestamp  -> MediaClock.show -> time_ns -> Selection.takes -> taken or skipped
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

SECOND_NS = 1_000_000_000
# A container that counts in milliseconds states a time up to one of them too early.
GRID_TOLERANCE_NS = 1_000_000
# A step back of more than this is a new time line (a recorder that was restarted), not a disordered frame. A shorter
# one is a new time line if decoding times step back as well and frames go on from there.
NEW_TIMELINE_NS = SECOND_NS
# No recording is longer, and with the latest `start_at` its time of day must fit into 64 bits.
LONGEST_NS = 50 * 365 * 24 * 3600 * SECOND_NS
LONGEST_INTERVAL_NS = 60 * SECOND_NS
# Frames that wait for the next good timestamp are decoded pictures, so their number is limited.
MOST_WAITING = 8

Picture = TypeVar("Picture")


def ticks_to_ns(ticks: int, time_base: Fraction) -> int:
    """Convert ticks to nanoseconds, rounded half up, in whole numbers."""
    return (2 * ticks * time_base.numerator * SECOND_NS + time_base.denominator) // (2 * time_base.denominator)


class _Timestamps:
    """Counts how often the timestamps of one kind run backwards."""

    def __init__(self) -> None:
        self.steps_back = 0
        self._last: int | None = None
        self._highest: int | None = None

    def note(self, ticks: int | None) -> None:
        """The next frame's."""
        if ticks is not None:
            self.steps_back += self._last is not None and ticks < self._last
            self._last = ticks
            self._highest = ticks if self._highest is None else max(ticks, self._highest)

    @property
    def is_behind(self) -> bool:
        """Whether the last one is before an earlier one of this time line."""
        return self._last is not None and self._highest is not None and self._last < self._highest

    def begin_line(self) -> None:
        """A new time line begins with the last one, or a little before."""
        self._highest = self._last


class _Waiting(NamedTuple, Generic[Picture]):
    """A frame without a good timestamp. `ticks`: the one that it has; `behind`: its decoding time steps back too."""

    picture: Picture
    ticks: int | None
    behind: bool


class MediaClock(Generic[Picture]):
    """Turns timestamps, in the order in which frames are shown, into nanoseconds since the first frame.

    Times only go forward: no two frames share one. A frame whose timestamp is missing, repeated or a little earlier
    than the one before waits for the next good timestamp, and takes its place between the two: one frame interval after
    the frame before, or closer if several share a shorter gap. After a step back of more than a second, or of less if
    the frames behind it have a time line of their own, time goes on one interval after the frame before; so it does if
    a timestamp is half a century away.

    Each frame has up to two timestamps: its presentation time (pts), and the decoding time (dts) of the packet with
    which the decoder gave it out. The pts counts. The dts takes its place if there is none (AVI), and in files whose
    presentation times run backwards, as in FFmpeg's `best_effort_timestamp`.
    """

    def __init__(self, time_base: Fraction, interval_ns: int) -> None:
        self.time_base = time_base
        self.interval_ns = min(max(1, interval_ns), LONGEST_INTERVAL_NS)
        self._origin_ticks: int | None = None
        self._origin_ns = 0
        self._last_ns: int | None = None
        self._presentation, self._decoding = _Timestamps(), _Timestamps()
        self._waiting: list[_Waiting[Picture]] = []

    def resume(self, first_ticks: int, last_ns: int) -> None:
        """Become as after a frame at `last_ns` of a time line that starts at `first_ticks`."""
        self._origin_ticks, self._last_ns = first_ticks, last_ns

    def show(self, picture: Picture, pts: int | None, dts: int | None = None) -> Iterator[tuple[Picture, int]]:
        """Take the next frame; gives the frames whose times are known now, in order."""
        ticks = self._better(pts, dts)
        time_ns = self._declared_ns(ticks)
        if time_ns is not None:
            if ticks is not None and self._is_new_line(ticks):
                yield from self._place_new_line()
                time_ns = self._on_line_ns(ticks)
            yield from self._place_waiting(before_ns=time_ns)
            yield picture, self._advance(time_ns)
            return
        self._waiting.append(_Waiting(picture, ticks, self._decoding.is_behind))
        if self._origin_ticks is None:
            yield from self.remaining()
        elif len(self._waiting) > MOST_WAITING and self._is_new_line(None):
            yield from self._place_new_line()
        elif len(self._waiting) > MOST_WAITING:
            oldest = self._waiting.pop(0)
            # A timestamp in the past says that time runs slower than it was taken to: let it catch up.
            step_ns = self.interval_ns if oldest.ticks is None else self.interval_ns // MOST_WAITING
            yield oldest.picture, self._advance(self._behind(step_ns))

    def remaining(self) -> Iterator[tuple[Picture, int]]:
        """The frames that still wait, after the last one."""
        if self._is_new_line(None):
            yield from self._place_new_line()
        yield from self._place_waiting(before_ns=None)

    def _better(self, pts: int | None, dts: int | None) -> int | None:
        self._presentation.note(pts)
        self._decoding.note(dts)
        if pts is None or (dts is not None and self._presentation.steps_back > self._decoding.steps_back):
            return dts
        return pts

    def _declared_ns(self, ticks: int | None) -> int | None:
        """The time that this timestamp means; None if it is none, or not after the frame before."""
        if ticks is None:
            return None
        if self._origin_ticks is not None:
            time_ns = self._on_line_ns(ticks)
            if self._last_ns is None or LONGEST_NS > time_ns > self._last_ns:
                return time_ns
            if LONGEST_NS > time_ns > self._last_ns - NEW_TIMELINE_NS:
                return None
        waiting_ns = self.interval_ns * len(self._waiting)
        self._begin_line(ticks, self._behind(self.interval_ns) + waiting_ns)
        return self._origin_ns

    def _on_line_ns(self, ticks: int) -> int:
        """The time that this timestamp means on the time line that has begun."""
        assert self._origin_ticks is not None
        return self._origin_ns + ticks_to_ns(ticks - self._origin_ticks, self.time_base)

    def _begin_line(self, ticks: int, time_ns: int) -> None:
        self._origin_ticks, self._origin_ns = ticks, time_ns
        self._decoding.begin_line()

    def _is_new_line(self, following: int | None) -> bool:
        """Whether the frames that wait began a time line, less than a second back, on which `following` goes on.

        Two recordings of one second in one file look like this. A single frame out of order does not: its decoding time
        goes forward, or the next frame continues the old time line.
        """
        stamps = [waiting.ticks for waiting in self._waiting if waiting.ticks is not None]
        if len(stamps) < max(2, len(self._waiting)) or not self._waiting[0].behind or self._last_ns is None:
            return False
        if self._last_ns - self._on_line_ns(stamps[0]) <= self.interval_ns:
            return False
        steps = [later - earlier for earlier, later in pairwise(stamps)]
        return min(steps) > 0 and (following is None or 2 * (following - stamps[-1]) <= 3 * max(steps))

    def _place_new_line(self) -> Iterator[tuple[Picture, int]]:
        """The frames that wait, at their own times on a new time line."""
        waiting, self._waiting = self._waiting, []
        assert waiting[0].ticks is not None
        self._begin_line(waiting[0].ticks, self._behind(self.interval_ns))
        for picture, ticks, _ in waiting:
            assert ticks is not None
            yield picture, self._advance(self._on_line_ns(ticks))

    def _place_waiting(self, before_ns: int | None) -> Iterator[tuple[Picture, int]]:
        waiting, self._waiting = self._waiting, []
        step_ns = self.interval_ns
        if waiting and before_ns is not None and self._last_ns is not None:
            step_ns = max(1, min(step_ns, (before_ns - self._last_ns) // (len(waiting) + 1)))
        for picture, *_ in waiting:
            yield picture, self._advance(self._behind(step_ns))

    def _behind(self, step_ns: int) -> int:
        """The time since the frame before; 0 for the first one."""
        return 0 if self._last_ns is None else self._last_ns + max(1, step_ns)

    def _advance(self, time_ns: int) -> int:
        """Make this the time of the frame before: later than the last one, also by a nanosecond only."""
        self._last_ns = time_ns if self._last_ns is None else max(time_ns, self._last_ns + 1)
        return self._last_ns


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
