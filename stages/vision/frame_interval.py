"""How far apart the frames of a camera come, learnt from their times alone: the same in every run over a file.

A limit such as "unseen for 0.5 s" asks whether anybody looked. At 1 frame a second, nobody looks for a second at a
time, and that is as it should be; so a limit is never below two and a half of the second longest of the last intervals.
A long one, because the frames of a live camera are not evenly spaced: one of 5 frames a second with `max_fps: 2` gives
one after 0.6 s and one after 0.4 s, and frames that were held up on the way come together. Not the longest, because one
stall of the stream says nothing of the frames behind it. Two and a half, because one lost frame makes an interval of
two, to which the network adds.

    times      ...  10     11     12            14     15            25     26     27     (seconds)
    intervals     1      1      1       2           1        10         1      1
    limit        2.5    2.5    2.5     2.5         2.5      2.5         5      5          10 is longer: nobody looked
"""

from __future__ import annotations

from collections import deque

REMEMBERED = 8
"""Intervals. Two that were unusually long widen limits for as many frames at most."""
TOGETHER_NS = 10_000_000
"""Frames that come closer than this were held up on the way: a burst must not push out the usual intervals."""
UNPROVEN_NS = 2_500_000_000
"""Up to here an interval is taken for a usual one while fewer than `REMEMBERED` are known."""


class FrameInterval:
    """The intervals of one camera's frames."""

    def __init__(self) -> None:
        self._intervals_ns: deque[int] = deque(maxlen=REMEMBERED)
        self._time_ns: int | None = None
        self._usual_ns = 0
        self.stalled_ns = 0
        """For how long, in all, nobody looked: the stalls, each less the usual interval."""

    def note(self, time_ns: int) -> None:
        """The time of the next frame; one that comes together with the frame before counts as no interval."""
        interval_ns = 0 if self._time_ns is None else time_ns - self._time_ns
        self._time_ns = time_ns
        if interval_ns < TOGETHER_NS:
            return
        known = self._intervals_ns
        # A live camera often begins with a burst, which says nothing of the intervals behind it.
        unproven = len(known) < REMEMBERED and interval_ns <= UNPROVEN_NS
        own_ns = interval_ns if unproven or not known else 0
        self._usual_ns = max(own_ns, *sorted(known)[-2:-1] or known, 0)
        if interval_ns > self.at_least(0):
            self.stalled_ns += interval_ns - self._usual_ns
        known.append(interval_ns)

    @property
    def usual_ns(self) -> int:
        """The second longest of the last intervals; 0 before there is one."""
        return self._usual_ns

    def at_least(self, limit_ns: int) -> int:
        """``limit_ns``, widened if frames come so seldom that it would run out between two of them, or with one lost.

        The interval before the present frame is measured by those before it; the first of all is a usual one.
        """
        return max(limit_ns, self._usual_ns * 5 // 2)
