"""The memory of conditions: a cell for each part that looks back in time, for each person, pair or scene.

A cell is stepped once a frame in which its person was judged, with the present value of the part inside it, and gives
the present value of the whole part. Truths are True, False or None (unknown), numbers are floats or NaN (unknown).

    hips.y   210 212 213 260 301 330    in pixels, frame by frame
    Fall       0   2   3  50  91 120    drop(hips.y, 0.8s)

Times are stream times in nanoseconds. All windows are times, so a result depends on the frame rate only as far as a
slow camera sees less. A window is at least two frame intervals long. Between two frames a value goes straight from one
to the other, if they are not farther apart than the rule's `gap`. No cell keeps more than `MOST_SAMPLES` samples: a
longer window keeps the first sample of each of its `_PARTS` parts, and the newest.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from camgraph.stages.rules.language.code_cell import Code
from camgraph.stages.rules.language.people import Clock

NAN = math.nan
MOST_SAMPLES = 128
_PARTS = 120
_SECOND = 1e9

Truth = bool | None


# ---- truths


class Lasting:
    """`C for 2s`: C has been true so long.

    A hole, unknown or unseen for up to the gap, counts if C is true behind it.
    """

    __slots__ = ("_gap_ns", "_last_ns", "_time_ns", "true_ns")

    def __init__(self, gap_ns: int, time_ns: int) -> None:
        self._gap_ns = gap_ns
        self._time_ns = time_ns
        self._last_ns: int | None = None
        self.true_ns = 0

    def step(self, clock: Clock, truth: Truth) -> Truth:
        if not truth:
            if truth is False:
                self.begin_anew()
            return truth
        now_ns, last_ns = clock.now_ns, self._last_ns
        self._last_ns = now_ns
        apart_ns = 0 if last_ns is None else now_ns - last_ns
        if apart_ns > self._gap_ns and apart_ns > clock.slack_ns:
            self.true_ns = 0
        else:
            self.true_ns += apart_ns
        return self.true_ns >= self._time_ns

    def begin_anew(self) -> None:
        self._last_ns, self.true_ns = None, 0


class Was:
    """`was C within 3s`: C was true in a frame of the last 3 s."""

    __slots__ = ("_blind_ns", "_gap_ns", "_known_ns", "_time_ns", "_true_ns")

    def __init__(self, gap_ns: int, time_ns: int) -> None:
        self._gap_ns = gap_ns
        self._time_ns = time_ns
        self._true_ns: int | None = None
        self._known_ns: int | None = None
        self._blind_ns: int | None = None
        """When C had been unknown for longer than the gap, the last time."""

    def step(self, clock: Clock, truth: Truth) -> Truth:
        now_ns = clock.now_ns
        if truth:
            self._true_ns = self._known_ns = now_ns
            return True
        if truth is False:
            self._known_ns = now_ns
        elif self._known_ns is None or now_ns - self._known_ns > max(self._gap_ns, clock.slack_ns):
            self._blind_ns = now_ns
        window_ns = self._time_ns if self._time_ns > clock.two_ns else clock.two_ns
        if self._true_ns is not None and now_ns - self._true_ns <= window_ns:
            return True
        return None if self._blind_ns is not None and now_ns - self._blind_ns <= window_ns else False


class LastSeen:
    """`lost while C`: whether C was true when the person was last seen.

    Unknown for up to the gap, it is as before; then nothing is known.
    """

    __slots__ = ("_gap_ns", "_known_ns", "_truth")

    def __init__(self, gap_ns: int) -> None:
        self._gap_ns = gap_ns
        self._known_ns = 0
        self._truth: Truth = None

    def step(self, clock: Clock, truth: Truth, lost_ns: float) -> Truth:
        if lost_ns < 0:
            if truth is not None:
                self._truth, self._known_ns = truth, clock.now_ns
            elif clock.now_ns - self._known_ns > max(self._gap_ns, clock.slack_ns):
                self._truth = None
        return self._truth


class Since:
    """`since(C)`: seconds since C was seen to be true.

    Unknown if it never was, or if C is unknown for longer than the gap.
    """

    __slots__ = ("_gap_ns", "_known_ns", "_true_ns")

    def __init__(self, gap_ns: int) -> None:
        self._gap_ns = gap_ns
        self._true_ns: int | None = None
        self._known_ns = 0

    def step(self, clock: Clock, truth: Truth) -> float:
        now_ns = clock.now_ns
        if truth is not None:
            self._known_ns = now_ns
        if truth:
            self._true_ns = now_ns
        if self._true_ns is None or now_ns - self._known_ns > max(self._gap_ns, clock.slack_ns):
            return NAN
        return (now_ns - self._true_ns) / _SECOND


class Total:
    """`total(C, 60s)`: for how many of the last 60 s C was seen to be true. Unknown before C was known at all.

    A hole, unknown or unseen for up to the gap, counts if C is true on both sides. Keeps the stretches of time in which
    C was true. Of too many, the two oldest become one of the same length.
    """

    __slots__ = ("_gap_ns", "_known", "_last_ns", "_sum_ns", "_time_ns", "_true")

    def __init__(self, gap_ns: int, time_ns: int) -> None:
        self._gap_ns = gap_ns
        self._time_ns = time_ns
        self._true: deque[list[int]] = deque()
        """[begin, end]."""
        self._sum_ns = 0
        self._last_ns: int | None = None
        """The last frame in which C was true, if it was not false since."""
        self._known = False

    def step(self, clock: Clock, truth: Truth) -> float:
        now_ns = clock.now_ns
        if truth:
            self._true_now(clock)
        elif truth is False:
            self._last_ns = None
        self._known = self._known or truth is not None
        self._leave(now_ns - max(self._time_ns, clock.two_ns))
        return self._sum_ns / _SECOND if self._known else NAN

    def _true_now(self, clock: Clock) -> None:
        now_ns, last_ns = clock.now_ns, self._last_ns
        self._last_ns = now_ns
        if last_ns is None or now_ns - last_ns > max(self._gap_ns, clock.slack_ns):
            return
        self._sum_ns += now_ns - last_ns
        if self._true and self._true[-1][1] == last_ns:
            self._true[-1][1] = now_ns
            return
        self._true.append([last_ns, now_ns])
        if len(self._true) > MOST_SAMPLES // 2:
            begin_ns, end_ns = self._true.popleft()
            self._true[0][0] -= end_ns - begin_ns

    def _leave(self, begin_ns: int) -> None:
        """Forget the time before the window."""
        true = self._true
        while true and true[0][0] < begin_ns:
            first = true[0]
            if first[1] > begin_ns:
                self._sum_ns -= begin_ns - first[0]
                first[0] = begin_ns
                return
            self._sum_ns -= first[1] - first[0]
            true.popleft()


class Dwell:
    """`dwell(door, 5s)`: seconds since they came into the zone.

    They may be out of it, or unseen, for up to 5 s at a time.
    """

    __slots__ = ("_inside_ns", "_since_ns", "_time_ns")

    def __init__(self, gap_ns: int, time_ns: int) -> None:
        self._time_ns = time_ns
        self._since_ns: int | None = None
        self._inside_ns = 0

    def step(self, clock: Clock, inside: Truth) -> float:
        now_ns = clock.now_ns
        away_ns = max(self._time_ns, clock.slack_ns)
        if self._since_ns is not None and now_ns - self._inside_ns > away_ns:
            self._since_ns = None
        if inside:
            self._inside_ns = now_ns
            if self._since_ns is None:
                self._since_ns = now_ns
        if self._since_ns is None:
            return NAN if inside is None else 0.0
        return (now_ns - self._since_ns) / _SECOND


class Sequence:
    """`first A then B within 2s then C for 5s`: True from the frame in which the last step is complete, while it lasts.

    For each step, the newest time at which all steps up to it were complete: a newer one leaves more time for the next.

        A         T T T . . . . . .      step 1 done at   0 1 2 2 2 2 2 2 2
        B         . . . . T . . . .      step 2 done at   - - - - 4 4 4 4 4
        C for 2   . . T T T T T T .      C counts from 5  - - - - - 5 5 5 -
        whole     . . . . . . . T .      then everything begins anew

    Each step also keeps the times of the steps that led to it, so that they are of one and the same sequence.
    """

    __slots__ = (
        "_first",
        "_later",
        "_later_wait",
        "_limits_ns",
        "_nothing",
        "_only_first",
        "_over",
        "_steps",
        "steps_ns",
    )

    def __init__(self, gap_ns: int, limits_ns: tuple[int | None, ...], lasting_ns: tuple[int, ...]) -> None:
        self._limits_ns = limits_ns
        self._steps = [_Step(gap_ns, lasting) for lasting in lasting_ns]
        self._first, self._later = self._steps[0], self._steps[1:]
        self._later_wait = True
        """Whether none of the later steps was true in the frame before: then they have nothing to forget."""
        self._nothing: tuple[Truth, ...] = (False,) * len(lasting_ns)
        self._only_first: tuple[Truth, ...] = (True, *self._nothing[1:])
        self._over = False
        self.steps_ns: tuple[int, ...] = ()
        """Of the last complete sequence: when the first step was last true, and each other one became complete."""

    def step(self, clock: Clock, *truths: Truth) -> Truth:
        if not self._over:
            if truths == self._nothing:  # as nearly always
                self._let_later_wait()
                self._first.begin_anew()
                return False
            if truths == self._only_first:  # as of all who stand, before they fall
                self._let_later_wait()
                self._first.lead(clock)
                return False
        self._later_wait = False
        steps, last = self._steps, len(truths) - 1
        if self._over:
            going_on = steps[last].goes_on(clock, truths[last])
            if going_on is not False:
                return going_on
            self._begin_anew()
        for i in range(last, -1, -1):
            self._take(i, clock, truths[i])
        if steps[last].done_ns is not None:
            self._over = True
            self.steps_ns = steps[last].chain_ns
            return True
        return None if truths[last] is None and self._in_time(last, clock) else False

    def _let_later_wait(self) -> None:
        if not self._later_wait:
            for step in self._later:
                step.begin_anew()
            self._later_wait = True

    def _take(self, i: int, clock: Clock, truth: Truth) -> None:
        """Give step `i` its frame, after those behind it: a step follows the one before in a later frame."""
        step = self._steps[i]
        if truth and not (i and step.counting(clock)):
            if not self._in_time(i, clock):
                return
            step.led_by_ns = self._steps[i - 1].chain_ns if i else ()
        step.take(clock, truth)

    def _in_time(self, i: int, clock: Clock) -> bool:
        """Whether step `i` may begin now: the one before it was done, and not too long ago."""
        if not i:
            return True
        before_ns, limit_ns = self._steps[i - 1].done_ns, self._limits_ns[i]
        if before_ns is None:
            return False
        return limit_ns is None or clock.now_ns - before_ns <= max(limit_ns, clock.two_ns)

    def ago(self, clock: Clock, i: int) -> float:
        """How many seconds ago step `i` of the last complete sequence was done."""
        return (clock.now_ns - self.steps_ns[i]) / _SECOND if self.steps_ns else NAN

    def _begin_anew(self) -> None:
        self._over = False
        for step in self._steps:
            step.forget()


class _Step(Lasting):
    """A step of a sequence: it counts from when the steps before it were complete.

    `done_ns`: when it was last complete. `chain_ns`: the times of the steps up to it, its own being that at which it
    became complete. `led_by_ns`: those of the steps before it, when it began; None once it is complete.
    """

    __slots__ = ("chain_ns", "done_ns", "led_by_ns")

    def __init__(self, gap_ns: int, time_ns: int) -> None:
        super().__init__(gap_ns, time_ns)
        self.done_ns: int | None = None
        self.chain_ns: tuple[int, ...] = ()
        self.led_by_ns: tuple[int, ...] | None = None

    def counting(self, clock: Clock) -> bool:
        return self._last_ns is not None and clock.now_ns - self._last_ns <= max(self._gap_ns, clock.slack_ns)

    def take(self, clock: Clock, truth: Truth) -> None:
        """The next frame."""
        if self.step(clock, truth):
            self.done_ns = clock.now_ns
            if self.led_by_ns is not None:
                self.chain_ns, self.led_by_ns = (*self.led_by_ns, clock.now_ns), None

    def lead(self, clock: Clock) -> None:
        """The next frame of a first step, if it is true: as `take`, but nothing led to it."""
        now_ns = clock.now_ns
        if self.step(clock, True):
            self.done_ns, self.chain_ns, self.led_by_ns = now_ns, (now_ns,), None
        else:
            self.led_by_ns = ()

    def goes_on(self, clock: Clock, truth: Truth) -> Truth:
        """Of a complete last step: still true, no longer, or unknown for no longer than the gap."""
        if truth:
            self._last_ns = clock.now_ns
            return True
        if truth is False or self._last_ns is None:
            return False
        return None if self.counting(clock) else False

    def forget(self) -> None:
        """Nothing was ever complete."""
        self.begin_anew()
        self.done_ns = None


# ---- values over a window


class _Samples:
    """The known samples of a window, (time, value), and the last one before it."""

    __slots__ = ("_gap_ns", "_samples", "_time_ns")

    def __init__(self, gap_ns: int, time_ns: int) -> None:
        self._gap_ns = gap_ns
        self._time_ns = time_ns
        self._samples: deque[tuple[int, float]] = deque()

    def _take(self, clock: Clock, value: float) -> int:
        """Add a sample and drop the old ones; returns when the window begins."""
        samples, now_ns = self._samples, clock.now_ns
        time_ns = self._time_ns if self._time_ns > clock.two_ns else clock.two_ns
        if value == value:  # noqa: PLR0124 - NaN
            if len(samples) > 1:
                _thin(samples, time_ns // _PARTS)
            if not samples or samples[-1][0] < now_ns:
                samples.append((now_ns, value))
        begin_ns = now_ns - time_ns
        while len(samples) > 1 and samples[1][0] <= begin_ns:
            samples.popleft()
        if samples and samples[-1][0] < begin_ns:
            samples.clear()
        return begin_ns

    def _apart_ns(self, clock: Clock) -> int:
        """Samples that are not farther apart follow each other; those that were thinned out lie within two parts."""
        return max(self._gap_ns, clock.slack_ns, 2 * max(self._time_ns, clock.two_ns) // _PARTS)

    def _inside(self, clock: Clock, value: float) -> list[tuple[int, float]]:
        """The samples of the window, with the value at its beginning if samples on both sides tell it."""
        begin_ns = self._take(clock, value)
        inside = list(self._samples)
        if inside and inside[0][0] < begin_ns:
            if len(inside) == 1 or inside[1][0] - inside[0][0] > self._apart_ns(clock):
                del inside[0]
            else:
                inside[0] = (begin_ns, _between(inside[0], inside[1], begin_ns))
        return inside


def _thin(samples: deque[Any], part_ns: int) -> bool:
    """Drop the newest of two samples or more if it lies in the same part as the one before; whether it did."""
    newest_ns, before_ns = samples[-1][0], samples[-2][0]
    if newest_ns - before_ns < part_ns and newest_ns // part_ns == before_ns // part_ns:
        samples.pop()
        return True
    return False


def _between(one: tuple[int, float], other: tuple[int, float], at_ns: int) -> float:
    """The value at a time between two samples."""
    return one[1] + (other[1] - one[1]) * (at_ns - one[0]) / (other[0] - one[0])


class Growth(_Samples):
    """The greatest growth of a value from a moment of the window to a later one; with `sign` -1 the greatest fall.

    Each frame costs the same, however many samples the window holds. Those behind the first one are two runs, of which
    the least and the greatest value and the growth are known:

        first | front: known from each of its samples on | back: known as a whole

    The front loses its samples one by one, the back gains them. When the front is empty, all but the newest go there.
    """

    __slots__ = ("_back", "_back_before", "_front", "_sign", "_thin_from_ns")

    def __init__(self, gap_ns: int, time_ns: int, sign: int) -> None:
        super().__init__(gap_ns, time_ns)
        self._sign = sign
        self._front: list[_Run] = []
        self._back = self._back_before = _NO_RUN
        """With and without the newest sample."""
        self._thin_from_ns: float = 0
        """In windows that are as long, the newest sample may be too near to the one before it."""

    def step(self, clock: Clock, value: float) -> float:
        samples, front, now_ns = self._samples, self._front, clock.now_ns
        time_ns = self._time_ns if self._time_ns > clock.two_ns else clock.two_ns
        if value == value:  # noqa: PLR0124 - NaN
            value *= self._sign
            if time_ns >= self._thin_from_ns and len(samples) > 1 and _thin(samples, time_ns // _PARTS):
                self._back = self._back_before
            if not samples:
                samples.append((now_ns, value))
            elif (newest_ns := samples[-1][0]) < now_ns:
                samples.append((now_ns, value))
                self._thin_from_ns = (now_ns - newest_ns + 1) * _PARTS
                self._back_before = least, most, growth = self._back
                grown = value - least
                self._back = (
                    value if value < least else least,
                    value if value > most else most,
                    grown if grown > growth else growth,
                )
        begin_ns = now_ns - time_ns
        while len(samples) > 1 and samples[1][0] <= begin_ns:
            samples.popleft()
            if front:
                front.pop()
            else:
                self._renew_front()
        if not samples:
            return NAN
        if samples[-1][0] < begin_ns:
            self._clear()
            return NAN
        _, most, growth = self._back
        if front:
            least, front_most, front_growth = front[-1]
            grown = most - least
            growth = grown if grown > growth else growth
            growth = front_growth if front_growth > growth else growth
            most = front_most if front_most > most else most
        first_ns, begin = samples[0]
        if first_ns < begin_ns:
            next_ns, value = samples[1]
            apart_ns = next_ns - first_ns
            if apart_ns > self._gap_ns and apart_ns > self._apart_ns(clock):
                return growth  # nothing tells the value at the window's beginning
            begin += (value - begin) * (begin_ns - first_ns) / apart_ns
        grown = most - begin
        return grown if grown > growth else growth

    def _renew_front(self) -> None:
        """The samples behind the first one, but for the newest, become the front."""
        samples, front = self._samples, self._front
        least, most, growth = _NO_RUN
        for i in range(len(samples) - 2, 0, -1):
            value = samples[i][1]
            grown = most - value
            growth = grown if grown > growth else growth
            least = value if value < least else least
            most = value if value > most else most
            front.append((least, most, growth))
        self._back_before = self._back = _NO_RUN
        if len(samples) > 1:
            newest = samples[-1][1]
            self._back = newest, newest, 0.0

    def _clear(self) -> None:
        self._samples.clear()
        self._front.clear()
        self._back = _NO_RUN


_Run = tuple[float, float, float]
"""Of samples that follow each other: the least value, the greatest one, and the growth."""
_NO_RUN: _Run = (math.inf, -math.inf, 0.0)


class Change(_Samples):
    """The difference between the greatest and the smallest value of the window."""

    __slots__ = ()

    def step(self, clock: Clock, value: float) -> float:
        values = [known for _, known in self._inside(clock, value)]
        return max(values) - min(values) if values else NAN


class Extreme(_Samples):
    """The smallest value of the window; with `sign` -1 the greatest.

    Keeps only values that can still become the smallest: each is smaller than those that came later.
    """

    __slots__ = ("_sign",)

    def __init__(self, gap_ns: int, time_ns: int, sign: int) -> None:
        super().__init__(gap_ns, time_ns)
        self._sign = sign

    def step(self, clock: Clock, value: float) -> float:
        samples, now_ns = self._samples, clock.now_ns
        time_ns = max(self._time_ns, clock.two_ns)
        if value == value:  # noqa: PLR0124 - NaN
            at = self._sign * value
            while samples and samples[-1][1] >= at:
                samples.pop()
            part_ns = time_ns // _PARTS
            if not samples or samples[-1][0] // part_ns != now_ns // part_ns:
                samples.append((now_ns, at))
        while samples and samples[0][0] < now_ns - time_ns:
            samples.popleft()
        return self._sign * samples[0][1] if samples else NAN


class Median(_Samples):
    """The median of the window: of one sample for each of its parts, so that a burst of frames weighs no more."""

    __slots__ = ("_length_ns", "_median", "_next_ns", "_sorted")

    def __init__(self, gap_ns: int, time_ns: int) -> None:
        super().__init__(gap_ns, time_ns)
        self._sorted: list[float] = []
        self._median = NAN
        self._length_ns = 0
        self._next_ns: float = -math.inf
        """When the part of a window of `_length_ns` begins that may have the next sample."""

    def step(self, clock: Clock, value: float) -> float:
        samples, now_ns = self._samples, clock.now_ns
        time_ns = self._time_ns if self._time_ns > clock.two_ns else clock.two_ns
        if time_ns != self._length_ns:
            self._length_ns = time_ns
            self._note_next()
        new = value == value and now_ns >= self._next_ns  # NaN  # noqa: PLR0124
        if new or (samples and samples[0][0] < now_ns - time_ns):
            self._change(now_ns, now_ns - time_ns, value if new else None)
            self._note_next()
        return self._median

    def _note_next(self) -> None:
        part_ns = self._length_ns // _PARTS
        self._next_ns = (self._samples[-1][0] // part_ns + 1) * part_ns if self._samples else -math.inf

    def _change(self, now_ns: int, begin_ns: int, value: float | None) -> None:
        samples, ordered = self._samples, self._sorted
        while samples and samples[0][0] < begin_ns:
            del ordered[bisect_left(ordered, samples.popleft()[1])]
        if value is not None:
            samples.append((now_ns, value))
            insort(ordered, value)
        half = len(ordered) // 2
        if len(ordered) % 2:
            self._median = ordered[half]
        else:
            self._median = (ordered[half - 1] + ordered[half]) / 2 if ordered else NAN


class Average(_Samples):
    """The mean of the window over time. Times between samples that are farther apart than the gap have no weight."""

    __slots__ = ()

    def step(self, clock: Clock, value: float) -> float:
        inside = self._inside(clock, value)
        if not inside:
            return NAN
        gap_ns = self._apart_ns(clock)
        area = weight = 0.0
        before_ns, before = inside[0]
        for at_ns, known in inside:
            step_ns = at_ns - before_ns
            if step_ns <= gap_ns:
                area += step_ns * (known + before) / 2
                weight += step_ns
            before_ns, before = at_ns, known
        return area / weight if weight else sum(known for _, known in inside) / len(inside)


class Before(_Samples):
    """The value so long ago; unknown if the nearest samples are farther apart than the gap."""

    __slots__ = ()

    def step(self, clock: Clock, value: float) -> float:
        self._take(clock, value)
        samples, at_ns = self._samples, clock.now_ns - self._time_ns
        one = other = None
        for sample in samples:
            if sample[0] > at_ns:
                other = sample
                break
            one = sample
        if one is None:
            return NAN
        if one[0] == at_ns:
            return one[1]
        if other is None or other[0] - one[0] > self._apart_ns(clock):
            return NAN
        return _between(one, other, at_ns)


class Velocity:
    """The change per second over the window: the slope of the straight line that is nearest to the samples.

    A sample is a time, a value, and the sums up to it of t, t * t, v and t * v: times t and values v count from a
    recent sample, the base. The sums of a window are the differences of two samples, so each frame costs the same,
    however many samples the window holds. Every few windows there is a new base: sums and their errors stay small.
    """

    __slots__ = ("_base", "_base_ns", "_samples", "_thin_from_ns", "_time_ns")

    def __init__(self, gap_ns: int, time_ns: int) -> None:
        self._time_ns = time_ns
        self._samples: deque[tuple[int, float, float, float, float, float]] = deque()
        self._base_ns, self._base = _LONG_AGO_NS, 0.0
        self._thin_from_ns: float = 0
        """In windows that are as long, the newest sample may be too near to the one before it."""

    def step(self, clock: Clock, value: float) -> float:
        samples, now_ns = self._samples, clock.now_ns
        time_ns = self._time_ns if self._time_ns > clock.two_ns else clock.two_ns
        if value == value:  # noqa: PLR0124 - NaN
            # By the present window: behind a gap it is long for a moment.
            if now_ns - self._base_ns >= _BASE_WINDOWS * time_ns:
                self._new_base(now_ns, value)
            if time_ns >= self._thin_from_ns and len(samples) > 1:
                _thin(samples, time_ns // _PARTS)
            newest_ns, _, t, tt, v, tv = samples[-1] if samples else _NO_SUMS
            if newest_ns < now_ns:
                self._thin_from_ns = (now_ns - newest_ns + 1) * _PARTS
                at, by = (now_ns - self._base_ns) / _SECOND, value - self._base
                samples.append((now_ns, value, t + at, tt + at * at, v + by, tv + at * by))
        n = _count(samples, now_ns - time_ns, time_ns)
        if not n:
            return NAN
        first_ns, first, first_t, first_tt, first_v, first_tv = samples[0]
        _, _, t, tt, v, tv = samples[-1]
        t, tt, v, tv = t - first_t, tt - first_tt, v - first_v, tv - first_tv
        if n == len(samples):
            at, by = (first_ns - self._base_ns) / _SECOND, first - self._base
            t, tt, v, tv = t + at, tt + at * at, v + by, tv + at * by
        slope = (n * tv - t * v) / (n * tt - t * t)
        # Behind an infinite value the sums tell nothing.
        return slope if slope - slope == 0.0 else _slope([(at_ns, value) for at_ns, value, *_ in samples][-n:])

    def _new_base(self, base_ns: int, base: float) -> None:
        self._base_ns, self._base = base_ns, base if math.isfinite(base) else 0.0
        samples, known = self._samples, [(at_ns, value) for at_ns, value, *_ in self._samples]
        samples.clear()
        t = tt = v = tv = 0.0
        for at_ns, value in known:
            at, by = (at_ns - base_ns) / _SECOND, value - self._base
            t, tt, v, tv = t + at, tt + at * at, v + by, tv + at * by
            samples.append((at_ns, value, t, tt, v, tv))


_NO_SUMS = (-math.inf, 0.0, 0.0, 0.0, 0.0, 0.0)
_BASE_WINDOWS = 4
_LONG_AGO_NS = -(1 << 62)
_LEAST_SHARE = 0.4
"""Of the window, that samples must span for a velocity."""


def _count(samples: deque[Any], begin_ns: int, time_ns: int) -> int:
    """How many samples lie in the window; 0 if they do not suffice. All but the last one before it are dropped."""
    while len(samples) > 1 and samples[1][0] <= begin_ns:
        samples.popleft()
    if not samples:
        return 0
    newest_ns = samples[-1][0]
    if newest_ns < begin_ns:
        samples.clear()
        return 0
    first = 1 if samples[0][0] < begin_ns else 0
    if newest_ns - samples[first][0] < time_ns * _LEAST_SHARE:
        return 0
    return len(samples) - first


def _slope(samples: Iterable[tuple[int, float]]) -> float:
    """Of the straight line that is nearest to these samples."""
    n, t, tt, v, tv = 0, 0.0, 0.0, 0.0, 0.0
    base_ns = None
    for at_ns, value in samples:
        base_ns = at_ns if base_ns is None else base_ns
        at = (at_ns - base_ns) / _SECOND
        n, t, tt, v, tv = n + 1, t + at, tt + at * at, v + value, tv + at * value
    return (n * tv - t * v) / (n * tt - t * t)


class Speed:
    """How fast a point moves: the size of its two velocities, as `Velocity` finds them.

    A point is known if both of its coordinates are.
    """

    __slots__ = ("_base_ns", "_base_x", "_base_y", "_samples", "_thin_from_ns", "_time_ns")

    def __init__(self, gap_ns: int, time_ns: int) -> None:
        self._time_ns = time_ns
        self._samples: deque[tuple[int, float, float, float, float, float, float, float, float]] = deque()
        """Time, x, y, and the sums of t, t * t, x, t * x, y and t * y."""
        self._base_ns, self._base_x, self._base_y = _LONG_AGO_NS, 0.0, 0.0
        self._thin_from_ns: float = 0

    def step(self, clock: Clock, x: float, y: float) -> float:
        samples, now_ns = self._samples, clock.now_ns
        time_ns = self._time_ns if self._time_ns > clock.two_ns else clock.two_ns
        if x == x and y == y:  # noqa: PLR0124 - NaN
            if now_ns - self._base_ns >= _BASE_WINDOWS * time_ns:
                self._new_base(now_ns, x, y)
            if time_ns >= self._thin_from_ns and len(samples) > 1:
                _thin(samples, time_ns // _PARTS)
            newest_ns, _, _, t, tt, sum_x, tx, sum_y, ty = samples[-1] if samples else _NO_SUMS_OF_TWO
            if newest_ns < now_ns:
                self._thin_from_ns = (now_ns - newest_ns + 1) * _PARTS
                at, by_x, by_y = (now_ns - self._base_ns) / _SECOND, x - self._base_x, y - self._base_y
                samples.append(
                    (now_ns, x, y, t + at, tt + at * at, sum_x + by_x, tx + at * by_x, sum_y + by_y, ty + at * by_y)
                )
        n = _count(samples, now_ns - time_ns, time_ns)
        if not n:
            return NAN
        first_ns, x, y, first_t, first_tt, first_x, first_tx, first_y, first_ty = samples[0]
        _, _, _, t, tt, sum_x, tx, sum_y, ty = samples[-1]
        t, tt = t - first_t, tt - first_tt
        sum_x, tx, sum_y, ty = sum_x - first_x, tx - first_tx, sum_y - first_y, ty - first_ty
        if n == len(samples):
            at, by_x, by_y = (first_ns - self._base_ns) / _SECOND, x - self._base_x, y - self._base_y
            t, tt = t + at, tt + at * at
            sum_x, tx, sum_y, ty = sum_x + by_x, tx + at * by_x, sum_y + by_y, ty + at * by_y
        below = n * tt - t * t
        speed = math.hypot((n * tx - t * sum_x) / below, (n * ty - t * sum_y) / below)
        if speed - speed == 0.0:
            return speed
        inside = [sample[:3] for sample in samples][-n:]
        return math.hypot(*(_slope([(sample[0], sample[part]) for sample in inside]) for part in (1, 2)))

    def _new_base(self, base_ns: int, x: float, y: float) -> None:
        self._base_ns = base_ns
        self._base_x, self._base_y = (base if math.isfinite(base) else 0.0 for base in (x, y))
        samples, known = self._samples, [sample[:3] for sample in self._samples]
        samples.clear()
        t = tt = sum_x = tx = sum_y = ty = 0.0
        for at_ns, at_x, at_y in known:
            at, by_x, by_y = (at_ns - base_ns) / _SECOND, at_x - self._base_x, at_y - self._base_y
            t, tt, sum_x, tx = t + at, tt + at * at, sum_x + by_x, tx + at * by_x
            sum_y, ty = sum_y + by_y, ty + at * by_y
            samples.append((at_ns, at_x, at_y, t, tt, sum_x, tx, sum_y, ty))


_NO_SUMS_OF_TWO = (*_NO_SUMS, 0.0, 0.0, 0.0)


class Swings:
    """`swings(left_wrist.x, 0.3bl)`: how many times a second a value goes there and back, at least so far each way.

    A turn counts in the frame in which the value has come back that far. Two turns are one swing; the time before the
    first turn of the window, and that since the last one, count as parts of one.
    """

    __slots__ = ("_cut", "_extreme", "_gap_ns", "_high", "_known_ns", "_low", "_time_ns", "_turns", "_way")

    def __init__(self, gap_ns: int, time_ns: int) -> None:
        self._gap_ns = gap_ns
        self._time_ns = time_ns
        self._turns: deque[int] = deque()
        """When it turned, in the window, and the last time before it."""
        self._cut = False
        """Whether the window holds more turns than are kept."""
        self._known_ns: int | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._way, self._extreme, self._low, self._high = 0, NAN, math.inf, -math.inf

    def step(self, clock: Clock, value: float, amplitude: float) -> float:
        now_ns = clock.now_ns
        window_ns = self._time_ns if self._time_ns > clock.two_ns else clock.two_ns
        known_ns = self._known_ns
        if value == value and amplitude == amplitude:  # noqa: PLR0124 - NaN
            if known_ns is not None and now_ns - known_ns > self._gap_ns and now_ns - known_ns > clock.slack_ns:
                self._begin_anew()
            self._known_ns = known_ns = now_ns
            beyond = (value - self._extreme) * self._way
            if beyond > 0:  # it goes on, as nearly always
                self._extreme = value
            elif self._turned(value, amplitude):
                self._turns.append(now_ns)
                if len(self._turns) > MOST_SAMPLES:
                    self._turns.popleft()
                    self._cut = True
        if known_ns is None or now_ns - known_ns > window_ns:
            return NAN
        return self._rate(now_ns, window_ns) if len(self._turns) > 1 else 0.0

    def _turned(self, value: float, amplitude: float) -> bool:
        if not self._way:
            self._low, self._high = min(self._low, value), max(self._high, value)
            if self._high - self._low >= amplitude > 0:
                self._way, self._extreme = (1 if value - self._low >= amplitude else -1), value
            return False
        beyond = (value - self._extreme) * self._way
        if beyond >= 0:
            self._extreme = value
        elif -beyond >= amplitude > 0:
            self._way, self._extreme = -self._way, value
            return True
        return False

    def _rate(self, now_ns: int, window_ns: int) -> float:
        turns, begin_ns = self._turns, now_ns - window_ns
        while len(turns) > 1 and turns[1] <= begin_ns:
            turns.popleft()
            self._cut = False
        if self._cut:
            begin_ns = turns[0]
        if len(turns) < 2 or turns[-1] <= begin_ns or turns[-1] == turns[0]:
            return 0.0
        usual_ns = (turns[-1] - turns[0]) / (len(turns) - 1)
        halves = len(turns) - 1 + min(1.0, (now_ns - turns[-1]) / usual_ns)
        if turns[0] < begin_ns:
            halves -= (begin_ns - turns[0]) / (turns[1] - turns[0])
        return halves / 2 / ((now_ns - begin_ns) / _SECOND)


@dataclass(frozen=True, slots=True)
class CellKind:
    """A kind of cell. `make` takes the rule's gap and the cell's own times; its `step` the clock and the inputs.

    `truth`: whether its value is a truth, and not a number; None: its function says so.

    `quiet`: whether a frame in which all inputs are surely false changes nothing if it follows such a frame; "if 0":
    only if the value is 0 as well, and the clock has moved since.

    `at_most_ns`: for how long a truth holds at a time, by the cell's times and by how long the inputs hold; None:
    perhaps for ever. `same_people`: it is true of nobody of whom its input cannot be true.
    """

    make: Callable[..., Any]
    truth: bool | None
    quiet: bool | Literal["if 0"] = False
    at_most_ns: Callable[[tuple[Any, ...], list[float]], float] | None = None
    same_people: bool = False

    def unknown(self, times: tuple[Any, ...]) -> float | None:
        """The value of such a cell before its first frame."""
        truth = times[0].declared.gives == "truth" if self.truth is None else self.truth
        return None if truth else NAN


CELLS = {
    kind.make.__name__: kind
    for kind in (
        CellKind(Lasting, truth=True, quiet=True, at_most_ns=lambda times, held: held[0] - times[0], same_people=True),
        CellKind(Was, truth=True, at_most_ns=lambda times, held: held[0] + times[0]),
        CellKind(LastSeen, truth=True),
        CellKind(Sequence, truth=True, quiet=True, at_most_ns=lambda times, held: held[-1] - times[1][-1]),
        CellKind(Since, truth=False),
        CellKind(Total, truth=False),
        # Of those who came in at this very time, a dwell is 0 as well, so the clock must have moved since.
        CellKind(Dwell, truth=False, quiet="if 0"),
        CellKind(Growth, truth=False),
        CellKind(Change, truth=False),
        CellKind(Extreme, truth=False),
        CellKind(Median, truth=False),
        CellKind(Average, truth=False),
        CellKind(Before, truth=False),
        CellKind(Velocity, truth=False),
        CellKind(Speed, truth=False),
        CellKind(Swings, truth=False),
        CellKind(Code, truth=None),
    )
}
"""By the name of its class."""
