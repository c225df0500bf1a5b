"""Fast cells against slow ones that compute everything anew in each frame: the same results, bit by bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from camgraph.stages.rules.language.cells import (
    NAN,
    Growth,
    Median,
    Speed,
    Swings,
    Velocity,
    _between,
    _Samples,
)
from camgraph.stages.rules.language.cells import Sequence as SequenceCell
from camgraph.stages.rules.language.people import Clock
from camgraph.stages.vision.frame_interval import FrameInterval

MS = 1_000_000
GAP_NS = 300 * MS
WINDOWS_NS = st.sampled_from([100 * MS, 300 * MS, 1_000 * MS, 5_000 * MS])
"""At 25 frames a second, and more so in bursts, the longest is thinned out."""


class Frame(NamedTuple):
    time_ns: int
    value: Any


def films(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Frame]]:
    """Stretches of even frames, some with a pause before them, with bursts and with frames of the same time."""

    def film(stretches: list[tuple[int, int, list[Any]]]) -> list[Frame]:
        frames, time_ns = [], 0
        for pause_ms, step_ms, stretch in stretches:
            time_ns += pause_ms * MS
            for value in stretch:
                frames.append(Frame(time_ns, value))
                time_ns += step_ms * MS
        return frames

    pauses, steps = st.sampled_from([0, 0, 40, 250, 900, 7000]), st.sampled_from([0, 1, 10, 33, 40, 40, 200])
    stretch = st.tuples(pauses, steps, st.lists(values, min_size=1, max_size=40))
    return st.lists(stretch, min_size=1, max_size=6).map(film)


PLACES = st.floats(-4000, 4000, width=32).map(float)
NUMBERS = st.one_of(PLACES, PLACES, st.integers(0, 3).map(float), st.just(NAN))
ANY_NUMBERS = st.one_of(NUMBERS, NUMBERS, st.sampled_from([math.inf, -math.inf, 1e300, -0.0]))


def clocks(film: Sequence[Frame]) -> Iterator[tuple[Clock, Any]]:
    """The clock and the value of each frame, one after the other."""
    clock, interval = Clock(), FrameInterval()
    for frame in film:
        interval.note(frame.time_ns)
        clock.tick(frame.time_ns, 2 * interval.usual_ns, interval.at_least(0))
        yield clock, frame.value


class SlowGrowth(_Samples):
    def __init__(self, gap_ns: int, time_ns: int, sign: int) -> None:
        super().__init__(gap_ns, time_ns)
        self._sign = sign

    def step(self, clock: Clock, value: float) -> float:
        values = [known * self._sign for _, known in self._inside(clock, value)]
        least, growth = math.inf, 0.0
        for known in values:
            if known < least:
                least = known
            elif known - least > growth:
                growth = known - least
        return growth if values else NAN


class SlowMedian(_Samples):
    """One sample for each part of the window."""

    def step(self, clock: Clock, value: float) -> float:
        samples, now_ns = self._samples, clock.now_ns
        time_ns = max(self._time_ns, clock.two_ns)
        part_ns = time_ns // 120
        while samples and samples[0][0] < now_ns - time_ns:
            samples.popleft()
        if not math.isnan(value) and (not samples or samples[-1][0] // part_ns < now_ns // part_ns):
            samples.append((now_ns, value))
        ordered, half = sorted(known for _, known in samples), len(samples) // 2
        if not ordered:
            return NAN
        return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


class SlowSwings(Swings):
    def step(self, clock: Clock, value: float, amplitude: float) -> float:
        found = super().step(clock, value, amplitude)
        return found if math.isnan(found) else self._rate(clock.now_ns, max(self._time_ns, clock.two_ns))


def slow_sequence(*given: Any) -> SequenceCell:
    """One for which no frame is a special case."""
    cell = SequenceCell(*given)
    cell._nothing = cell._only_first = ()
    return cell


def same(found: float, expected: float) -> bool:
    return found == expected or (math.isnan(found) and math.isnan(expected))


@pytest.mark.parametrize("sign", [1, -1])
@given(film=films(ANY_NUMBERS), window_ns=WINDOWS_NS)
@settings(max_examples=150, deadline=None)
def test_growth(sign: int, film: list[Frame], window_ns: int) -> None:
    fast, slow = Growth(GAP_NS, window_ns, sign), SlowGrowth(GAP_NS, window_ns, sign)
    for clock, value in clocks(film):
        assert same(fast.step(clock, value), slow.step(clock, value))


@given(film=films(NUMBERS), window_ns=WINDOWS_NS)
@settings(max_examples=150, deadline=None)
def test_median(film: list[Frame], window_ns: int) -> None:
    fast, slow = Median(GAP_NS, window_ns), SlowMedian(GAP_NS, window_ns)
    for clock, value in clocks(film):
        assert same(fast.step(clock, value), slow.step(clock, value))


@given(film=films(NUMBERS), window_ns=WINDOWS_NS)
@settings(max_examples=100, deadline=None)
def test_swings(film: list[Frame], window_ns: int) -> None:
    fast, slow = Swings(GAP_NS, window_ns), SlowSwings(GAP_NS, window_ns)
    for clock, value in clocks(film):
        assert same(fast.step(clock, value, 2.0), slow.step(clock, value, 2.0))


TRUTHS = st.lists(st.sampled_from([True, False, False, None]), min_size=3, max_size=3).map(tuple)
STEPS = st.one_of(TRUTHS, st.just((True, False, False)), st.just((False, False, False)))


@given(film=films(STEPS), lasting=st.lists(st.sampled_from([0, 0, 70 * MS]), min_size=3, max_size=3).map(tuple))
@settings(max_examples=200, deadline=None)
def test_sequence(film: list[Frame], lasting: tuple[int, ...]) -> None:
    limits = (None, 500 * MS, None)
    fast, slow = SequenceCell(GAP_NS, limits, lasting), slow_sequence(GAP_NS, limits, lasting)
    for clock, truths in clocks(film):
        assert fast.step(clock, *truths) is slow.step(clock, *truths)
        assert fast.steps_ns == slow.steps_ns


# ---- sums: not the same bits as before, but the true slope


class Kept(_Samples):
    """The samples of the window, thinned out like those of all cells."""

    def inside(self, clock: Clock, value: float) -> list[tuple[int, float]]:
        begin_ns = self._take(clock, value)
        inside = [sample for sample in self._samples if sample[0] >= begin_ns]
        enough = len(inside) > 1 and inside[-1][0] - inside[0][0] >= (clock.now_ns - begin_ns) * 0.4
        return inside if enough else []


def slope(samples: Sequence[tuple[int, float]]) -> float:
    """Without a rounding error until the end."""
    times, values = ([Fraction(sample[part]) for sample in samples] for part in (0, 1))
    mean, middle = sum(times) / len(times), sum(values) / len(values)
    above = sum((at - mean) * (value - middle) for at, value in zip(times, values, strict=True))
    return float(10**9 * above / sum((at - mean) ** 2 for at in times))


BEHIND_GAPS = [Frame(7_000 * MS * n, value) for n, value in enumerate((0.0, 0.0, NAN))]
BEHIND_GAPS += [Frame((21_000 + 40 * n) * MS, value) for n, value in enumerate((*[0.0] * 7, NAN, 0.0, 1.0))]


@given(film=films(NUMBERS), window_ns=WINDOWS_NS)
@example(film=BEHIND_GAPS, window_ns=100 * MS)
@settings(max_examples=200, deadline=None)
def test_velocity(film: list[Frame], window_ns: int) -> None:
    cell, kept, size = Velocity(GAP_NS, window_ns), Kept(GAP_NS, window_ns), 1.0
    for clock, value in clocks(film):
        found, inside = cell.step(clock, value), kept.inside(clock, value)
        size = size if math.isnan(value) else max(size, abs(value))
        assert math.isnan(found) == (not inside)
        if inside:
            span_s = (inside[-1][0] - inside[0][0]) / 1e9
            assert found == pytest.approx(slope(inside), rel=1e-8, abs=1e-11 * size / span_s)


@given(film=films(st.tuples(PLACES, PLACES) | st.just((NAN, NAN))), window_ns=WINDOWS_NS)
@settings(max_examples=100, deadline=None)
def test_speed(film: list[Frame], window_ns: int) -> None:
    cell, x, y = Speed(GAP_NS, window_ns), Velocity(GAP_NS, window_ns), Velocity(GAP_NS, window_ns)
    for clock, place in clocks(film):
        assert same(cell.step(clock, *place), math.hypot(x.step(clock, place[0]), y.step(clock, place[1])))


@pytest.mark.parametrize("cell", [lambda: Velocity(GAP_NS, 300 * MS), lambda: Speed(GAP_NS, 300 * MS)])
def test_an_infinite_value_is_forgotten_with_the_window(cell: Callable[[], Any]) -> None:
    one, clock, found = cell(), Clock(), []
    for i in range(40):
        clock.tick(i * 40 * MS, 80 * MS, 100 * MS)
        value = math.inf if i in (0, 9) else 2.0 * i
        found.append(one.step(clock, *[value] * (2 if isinstance(one, Speed) else 1)))
    assert not any(map(math.isfinite, found[4:8] + found[9:17]))
    expected = 50.0 * (math.sqrt(2) if isinstance(one, Speed) else 1)
    assert found[8:9] + found[17:] == pytest.approx([expected] * 24)


@given(st.floats(-1e6, 1e6), st.floats(-1e4, 1e4))
@settings(max_examples=50, deadline=None)
def test_the_velocity_of_an_even_movement_stays_right(start: float, speed: float) -> None:
    """Through many a new base."""
    cell, clock, found = Velocity(GAP_NS, 300 * MS), Clock(), []
    for i in range(400):
        clock.tick(i * 40 * MS, 80 * MS, 100 * MS)
        found.append(cell.step(clock, start + speed * i * 0.04))
    assert found[8:] == pytest.approx([speed] * 392, rel=1e-9, abs=1e-8 * max(1.0, abs(start) / 1000))


def test_somebody_who_is_still_has_no_velocity() -> None:
    cell, clock = Velocity(GAP_NS, 300 * MS), Clock()
    found = set()
    for i in range(100):
        clock.tick(i * 40 * MS, 80 * MS, 100 * MS)
        found.add(cell.step(clock, 0.1 + 1 / 3))
    assert {one for one in found if not math.isnan(one)} == {0.0}


def test_between_is_symmetric() -> None:
    """So the fall of a value is the growth of its opposite, bit by bit."""
    for i in range(1, 100):
        one, other = (0, i / 7), (1000, 3 / i)
        assert _between(one, other, i) == -_between((0, -i / 7), (1000, -3 / i), i)
