"""Cells against slow references that keep everything and follow the definitions, on films made at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camgraph.stages.rules.language.cells import (
    CELLS,
    MOST_SAMPLES,
    NAN,
    Average,
    Before,
    Change,
    Dwell,
    Extreme,
    Growth,
    Lasting,
    Median,
    Since,
    Swings,
    Total,
    Velocity,
    Was,
)
from camgraph.stages.rules.language.cells import (
    Sequence as SequenceCell,
)
from camgraph.stages.rules.language.people import Clock
from camgraph.stages.vision.frame_interval import FrameInterval

MS = 1_000_000
GAP_NS = 300 * MS
WINDOW_NS = 1000 * MS


@dataclass(frozen=True)
class Frame:
    """`seen`: whether the person is in the frame, so that the cell is stepped."""

    time_ns: int
    seen: bool
    value: Any


def films(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Frame]]:
    """Frames 20 to 60 ms apart, with stretches in which nobody is seen."""

    def film(steps: list[tuple[int, Any, int]]) -> list[Frame]:
        frames, time_ns = [], 0
        for step_ms, value, repeat in steps:
            for _ in range(repeat):
                time_ns += step_ms * MS
                frames.append(Frame(time_ns, value != "unseen", value))
        return frames

    steps = st.tuples(st.integers(20, 60), values | st.just("unseen"), st.integers(1, 12))
    return st.lists(steps, min_size=1, max_size=25).map(film)


TRUTHS = films(st.sampled_from([True, False, None]))
NUMBERS = films(st.integers(-50, 50).map(float) | st.just(NAN))


def results(cell: Any, film: Sequence[Frame]) -> list[tuple[int, Any]]:
    """(frame, result) of each frame in which the person is seen."""
    clock, interval = Clock(), FrameInterval()
    found = []
    for i, frame in enumerate(film):
        interval.note(frame.time_ns)
        clock.tick(frame.time_ns, 2 * interval.usual_ns, interval.at_least(0))
        if frame.seen:
            found.append((i, cell.step(clock, frame.value)))
    return found


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        return bool(found == pytest.approx(expected, abs=1e-6, nan_ok=True))
    return found is expected


# ---- truths


def lasting(film: Sequence[Frame], i: int) -> bool | None:
    if film[i].value is not True:
        return film[i].value  # type: ignore[no-any-return]
    begin = max((j + 1 for j in range(i) if film[j].seen and film[j].value is False), default=0)
    true = [j for j in range(begin, i + 1) if film[j].seen and film[j].value is True]
    for one, other in pairwise(true):
        if film[other].time_ns - film[one].time_ns > GAP_NS:
            begin = other
    return film[i].time_ns - film[next(j for j in true if j >= begin)].time_ns >= 400 * MS


def was(film: Sequence[Frame], i: int) -> bool | None:
    now_ns = film[i].time_ns
    recent = [j for j in range(i + 1) if film[j].seen and now_ns - film[j].time_ns <= WINDOW_NS]
    if any(film[j].value is True for j in recent):
        return True
    return None if any(blind(film, j) for j in recent) else False


def blind(film: Sequence[Frame], i: int) -> bool:
    """Whether the condition had been unknown for longer than the gap."""
    if film[i].value is not None:
        return False
    known = [frame.time_ns for frame in film[:i] if frame.seen and frame.value is not None]
    return not known or film[i].time_ns - known[-1] > GAP_NS


def since(film: Sequence[Frame], i: int) -> float:
    true = [frame.time_ns for frame in film[: i + 1] if frame.value is True]
    return NAN if not true or blind(film, i) else (film[i].time_ns - true[-1]) / 1e9


def total(film: Sequence[Frame], i: int) -> float:
    if all(frame.value is None or not frame.seen for frame in film[: i + 1]):
        return NAN
    begin_ns = film[i].time_ns - WINDOW_NS
    known = [frame for frame in film[: i + 1] if frame.value in (True, False)]
    spans = [(one.time_ns, other.time_ns) for one, other in pairwise(known) if one.value is other.value is True]
    spans = [(begin, end) for begin, end in spans if end - begin <= GAP_NS]
    return sum(max(0, end - max(begin, begin_ns)) for begin, end in spans) / 1e9


def dwell(film: Sequence[Frame], i: int) -> float:
    now_ns, since_ns, inside_ns = film[i].time_ns, None, 0
    for frame in film[: i + 1]:
        if frame.seen:
            if since_ns is not None and frame.time_ns - inside_ns > 500 * MS:
                since_ns = None
            if frame.value is True:
                since_ns = frame.time_ns if since_ns is None else since_ns
                inside_ns = frame.time_ns
    if since_ns is None:
        return NAN if film[i].value is None else 0.0
    return (now_ns - since_ns) / 1e9


@pytest.mark.parametrize(
    ("cell", "reference"),
    [
        (lambda: Lasting(GAP_NS, 400 * MS), lasting),
        (lambda: Was(GAP_NS, WINDOW_NS), was),
        (lambda: Since(GAP_NS), since),
        (lambda: Total(GAP_NS, WINDOW_NS), total),
        (lambda: Dwell(GAP_NS, 500 * MS), dwell),
    ],
    ids=["Lasting", "Was", "Since", "Total", "Dwell"],
)
@given(film=TRUTHS)
@settings(max_examples=150, deadline=None)
@pytest.mark.slow
def test_truths_follow_their_definition(
    cell: Callable[[], Any], reference: Callable[[Sequence[Frame], int], Any], film: list[Frame]
) -> None:
    for i, found in results(cell(), film):
        assert same(found, reference(film, i)), (i, found, reference(film, i))


LETTERS = {"T": True, ".": False, "?": None}


@pytest.mark.parametrize(
    ("steps", "times"),
    [
        (("T.....", "..T...", ".....T"), (0, 2, 5)),
        (("T..T..", "..T...", ".....T"), (0, 2, 5)),
        (("TT.T..", "..T.T.", ".....T"), (3, 4, 5)),
        (("T.T...", ".TTTT.", ".....T"), (0, 1, 5)),
        (("T.....", "..T?T.", ".....T"), (0, 2, 5)),
        (("T.....", "..T.T.", ".....T"), (0, 4, 5)),
    ],
    ids=["once each", "again after the next", "the newest whole one", "as it lasts", "with a hole", "anew"],
)
def test_the_times_of_a_sequence_are_those_of_one_and_the_same(
    steps: tuple[str, str, str], times: tuple[int, ...]
) -> None:
    cell, clock = SequenceCell(GAP_NS, (None, 1000 * MS, 1000 * MS), (0, 0, 0)), Clock()
    for i, letters in enumerate(zip(*steps, strict=True)):
        clock.tick(i * 100 * MS, 200 * MS, 250 * MS)
        truth = cell.step(clock, *(LETTERS[letter] for letter in letters))
    assert truth is True
    assert cell.steps_ns == tuple(time * 100 * MS for time in times)


# ---- values


def window(film: Sequence[Frame], i: int, *, edge: bool = True) -> list[tuple[int, float]]:
    """The known samples of the window, with the value at its beginning if samples near it tell that."""
    begin_ns = film[i].time_ns - WINDOW_NS
    known = [(frame.time_ns, frame.value) for frame in film[: i + 1] if frame.seen and not math.isnan(frame.value)]
    inside = [sample for sample in known if sample[0] >= begin_ns]
    before = [sample for sample in known if sample[0] < begin_ns]
    if edge and inside and before and inside[0][0] > begin_ns and inside[0][0] - before[-1][0] <= GAP_NS:
        (a_ns, a), (b_ns, b) = before[-1], inside[0]
        inside.insert(0, (begin_ns, a + (b - a) * (begin_ns - a_ns) / (b_ns - a_ns)))
    return inside


def growth(film: Sequence[Frame], i: int) -> float:
    values = [value for _, value in window(film, i)]
    return max((b - a for n, a in enumerate(values) for b in values[n:]), default=NAN)


def change(film: Sequence[Frame], i: int) -> float:
    values = [value for _, value in window(film, i)]
    return max(values) - min(values) if values else NAN


def least(film: Sequence[Frame], i: int) -> float:
    return min((value for _, value in window(film, i, edge=False)), default=NAN)


def middle(film: Sequence[Frame], i: int) -> float:
    values = [value for _, value in window(film, i, edge=False)]
    return float(median(values)) if values else NAN


def average(film: Sequence[Frame], i: int) -> float:
    inside = window(film, i)
    steps = [(a, b) for a, b in pairwise(inside) if b[0] - a[0] <= GAP_NS]
    weight = sum(b[0] - a[0] for a, b in steps)
    if not weight:
        return sum(value for _, value in inside) / len(inside) if inside else NAN
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in steps) / weight


def before(film: Sequence[Frame], i: int) -> float:
    at_ns = film[i].time_ns - WINDOW_NS
    known = [(frame.time_ns, frame.value) for frame in film[: i + 1] if frame.seen and not math.isnan(frame.value)]
    for a, b in pairwise([*known, (film[i].time_ns + 1, NAN)]):
        if a[0] == at_ns:
            return a[1]
        if a[0] < at_ns < b[0]:
            return a[1] + (b[1] - a[1]) * (at_ns - a[0]) / (b[0] - a[0]) if b[0] - a[0] <= GAP_NS else NAN
    return NAN


def velocity(film: Sequence[Frame], i: int) -> float:
    inside = window(film, i, edge=False)
    if len(inside) < 2 or inside[-1][0] - inside[0][0] < 0.4 * WINDOW_NS:
        return NAN
    times = [(at_ns - film[i].time_ns) / 1e9 for at_ns, _ in inside]
    return float(np.polyfit(times, [value for _, value in inside], 1)[0])


@pytest.mark.parametrize(
    ("cell", "reference"),
    [
        (lambda: Growth(GAP_NS, WINDOW_NS, 1), growth),
        (lambda: Change(GAP_NS, WINDOW_NS), change),
        (lambda: Extreme(GAP_NS, WINDOW_NS, 1), least),
        (lambda: Median(GAP_NS, WINDOW_NS), middle),
        (lambda: Average(GAP_NS, WINDOW_NS), average),
        (lambda: Before(GAP_NS, WINDOW_NS), before),
        (lambda: Velocity(GAP_NS, WINDOW_NS), velocity),
    ],
    ids=["Growth", "Change", "Extreme", "Median", "Average", "Before", "Velocity"],
)
@given(film=NUMBERS)
@settings(max_examples=150, deadline=None)
@pytest.mark.slow
def test_values_follow_their_definition(
    cell: Callable[[], Any], reference: Callable[[Sequence[Frame], int], float], film: list[Frame]
) -> None:
    for i, found in results(cell(), film):
        assert same(found, reference(film, i)), (i, found, reference(film, i))


@given(film=NUMBERS)
@settings(max_examples=50, deadline=None)
def test_a_fall_is_the_growth_of_the_opposite(film: list[Frame]) -> None:
    opposite = [Frame(frame.time_ns, frame.seen, -frame.value if frame.seen else frame.value) for frame in film]
    for one, other in ((Growth(GAP_NS, WINDOW_NS, -1), Growth(GAP_NS, WINDOW_NS, 1)),):
        pairs = zip(results(one, film), results(other, opposite), strict=True)
        assert all(same(found, expected) for (_, found), (_, expected) in pairs)
    greatest, smallest = results(Extreme(GAP_NS, WINDOW_NS, -1), film), results(Extreme(GAP_NS, WINDOW_NS, 1), opposite)
    assert all(same(found, -expected) for (_, found), (_, expected) in zip(greatest, smallest, strict=True))


# ---- bounds


def size_of(cell: Any) -> int:
    """The items that a cell and its parts keep."""
    found = 0
    for kind in type(cell).__mro__:
        for name in getattr(kind, "__slots__", ()):
            part = getattr(cell, name)
            found = max(
                found, size_of(part) if type(part).__name__ in CELLS else len(part) if hasattr(part, "__len__") else 0
            )
    return found


ENDLESS: list[tuple[str, tuple[Any, ...], int]] = [
    *((name, (600_000 * MS,), 1) for name in ("Change", "Median", "Average", "Before", "Velocity")),
    ("Growth", (600_000 * MS, 1), 1),
    ("Extreme", (600_000 * MS, 1), 1),
    ("Extreme", (600_000 * MS, -1), 1),
    ("Total", (600_000 * MS,), 0),
    ("Swings", (600_000 * MS,), 2),
    ("Speed", (600_000 * MS,), 3),
]


@pytest.mark.parametrize(("name", "times", "inputs"), ENDLESS)
def test_no_cell_keeps_more_than_it_may(name: str, times: tuple[Any, ...], inputs: int) -> None:
    """Twelve minutes, over a window of ten: rising, falling and swinging."""
    cell, clock = CELLS[name].make(GAP_NS, *times), Clock()
    for i in range(12 * 60 * 10):
        clock.tick(i * 100 * MS, 200 * MS, 250 * MS)
        value = math.sin(i / 3) * 50 + abs(i - 3000) / 30
        cell.step(clock, *((value,), (i % 3 > 0,), (value, 10.0), (value, value))[(1, 0, 2, 3).index(inputs)])
    assert 0 < size_of(cell) <= MOST_SAMPLES


def test_a_long_window_is_thinned_evenly() -> None:
    """The results of a long window at 100 frames a second are near to those of all samples."""
    clock = Clock()
    cells = [Average(GAP_NS, 60_000 * MS), Median(GAP_NS, 60_000 * MS), Extreme(GAP_NS, 60_000 * MS, -1)]
    found: list[float] = []
    values = [math.sin(i / 700) * 50 for i in range(9000)]
    for i, value in enumerate(values):
        clock.tick(i * 10 * MS, 20 * MS, 25 * MS)
        found = [cell.step(clock, value) for cell in cells]
    last = values[-6000:]
    assert found == pytest.approx([float(np.mean(last)), float(np.median(last)), max(last)], abs=1.5)


def test_more_turns_than_are_kept_still_give_the_rate() -> None:
    cell, clock = Swings(GAP_NS, 600_000 * MS), Clock()
    rate = 0.0
    for i in range(6000):
        clock.tick(i * 100 * MS, 200 * MS, 250 * MS)
        rate = cell.step(clock, float(i % 2), 0.5)
    assert rate == pytest.approx(5.0, rel=0.02)


def test_of_too_many_stretches_the_total_stays_right() -> None:
    """Every other second, for ten minutes: as long as the window holds all of them, the sum is that of all."""
    cell, clock, expected = Total(GAP_NS, 600_000 * MS), Clock(), 0.0
    for i in range(5990):
        clock.tick(i * 100 * MS, 200 * MS, 250 * MS)
        truth = i // 10 % 2 == 0
        expected += 0.1 if truth and i % 10 else 0
        assert cell.step(clock, truth) == pytest.approx(expected)


@pytest.mark.parametrize("rate", [0.4, 1.0, 2.3])
def test_the_rate_of_even_swings_is_exact(rate: float) -> None:
    """Also while the window's borders lie between two turns."""
    cell, clock = Swings(GAP_NS, 3000 * MS), Clock()
    for i in range(2000):
        clock.tick(i * 10 * MS, 20 * MS, 25 * MS)
        found = cell.step(clock, 50 * math.sin(2 * math.pi * rate * i / 100), 20.0)
        if i > 900:
            assert found == pytest.approx(rate, rel=0.02)


def test_a_jump_while_nobody_looked_is_no_turn() -> None:
    cell, clock = Swings(GAP_NS, 3000 * MS), Clock()
    found = []
    for i in range(40):
        clock.tick(i * 100 * MS, 200 * MS, 250 * MS)
        value = float(i * 10) if i < 10 else NAN if i < 15 else 0.0 if i < 20 else NAN if i < 25 else 90.0
        found.append(cell.step(clock, value, 20.0))
    assert set(found) == {0.0}


def test_frames_of_the_same_time_do_not_swing() -> None:
    """Files with wrong times have some."""
    cell, clock = Swings(GAP_NS, 1000 * MS), Clock()
    found = []
    for value in (0.0, 2.0, 0.0, 2.0, 0.0):
        clock.tick(500 * MS, 80 * MS, 100 * MS)
        found.append(cell.step(clock, value, 1.0))
    assert found == [0.0] * 5
