"""Incidents in time: each promise by hand, then all of them against a slow reference that looks at the whole story."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camgraph.stages.rules.language.incidents import Timing, Watch

MS = 1_000_000


@dataclass(frozen=True)
class At:
    time_ns: int


@dataclass(frozen=True)
class Seen:
    """One frame of a story: when, what was judged, and whether the people were in the frame."""

    time_ns: int
    truth: bool | None
    seen: bool = True


Told = tuple[str, int, int, int]
"""Phase, and the times of the frame it is told at, of the first and the last moment of truth."""


def steps_of(story: list[Seen], timing: Timing, gap_ns: int) -> list[Told]:
    watch: Watch[At] = Watch(timing)
    result = []
    for frame in story:
        for step in watch.step(At(frame.time_ns), frame.truth, gap_ns, seen=frame.seen):
            incident = step.incident
            result.append((step.phase, frame.time_ns, incident.begun.time_ns, incident.last.time_ns))
    return result


MEANING = {"T": (True, True), ".": (False, True), "?": (None, True), "-": (None, False)}


def story(text: str, step_ms: int = 100) -> list[Seen]:
    """`T` true, `.` false, `?` unknown, `-` not in the frame; a frame every 100 ms."""
    return [Seen(i * step_ms * MS, *MEANING[letter]) for i, letter in enumerate(text)]


def in_ms(result: list[Told]) -> list[Told]:
    return [(phase, at // MS, begun // MS, last // MS) for phase, at, begun, last in result]


def timing(**ms: int) -> Timing:
    return Timing(**{f"{key}_ns": value * MS for key, value in ms.items()})


def test_for_and_hold() -> None:
    result = steps_of(story("..TTTTTT....."), timing(**{"for": 300, "hold": 200}), 500 * MS)
    assert in_ms(result) == [("start", 500, 200, 500), ("end", 900, 200, 700)]


def test_false_begins_anew_but_unknown_and_unseen_do_not() -> None:
    rule = timing(**{"for": 300})
    assert steps_of(story("TTT.TTT"), rule, 500 * MS) == []
    assert in_ms(steps_of(story("TT?-TT"), rule, 500 * MS)) == [("start", 400, 0, 400)]


@pytest.mark.parametrize("missed", ["-", "?", "--", "?-"])
def test_gaps_in_detection_do_not_shorten_an_incident(missed: str) -> None:
    rule = Timing(for_ns=10_000 * MS, hold_ns=500 * MS, min_visible=0.3)
    [(phase, at, *_)] = in_ms(steps_of(story(f"T{missed}" * 60), rule, 500 * MS))
    assert phase == "start"
    assert 10_000 <= at <= 10_200


def test_a_hole_counts_only_if_it_is_true_behind_it() -> None:
    assert steps_of(story("TT???"), timing(**{"for": 300}), 500 * MS) == []
    assert steps_of(story("TT???.TT"), timing(**{"for": 300}), 500 * MS) == []
    assert in_ms(steps_of(story("TT???T"), timing(**{"for": 300}), 500 * MS)) == [("start", 500, 0, 500)]


def test_true_for_so_long_leaves_out_what_hold_has_bridged() -> None:
    watch: Watch[At] = Watch(timing(hold=1000))
    for frame in story("TT?T..T--------T"):
        watch.step(At(frame.time_ns), frame.truth, 500 * MS, seen=frame.seen)
    assert watch.incident
    assert watch.incident.true_ns == 300 * MS


def test_longer_than_gap_begins_anew() -> None:
    assert in_ms(steps_of(story("TT----TTT"), timing(**{"for": 200}), 300 * MS)) == [("start", 800, 600, 800)]


def test_a_hole_in_the_stream_is_unseen() -> None:
    frames = [Seen(0, True), Seen(100 * MS, True), Seen(5000 * MS, True), Seen(5100 * MS, True)]
    assert steps_of(frames, timing(**{"for": 200}), 500 * MS) == []
    result = steps_of(frames, timing(hold=1000), 500 * MS)
    assert in_ms(result) == [("start", 0, 0, 0), ("end", 5000, 0, 100), ("start", 5000, 5000, 5000)]


def test_hold_bridges_and_without_it_one_frame_ends() -> None:
    assert in_ms(steps_of(story("T..T..."), timing(hold=300), 500 * MS)) == [("start", 0, 0, 0), ("end", 600, 0, 300)]
    assert in_ms(steps_of(story("T?"), timing(), 500 * MS)) == [("start", 0, 0, 0), ("end", 100, 0, 0)]


@pytest.mark.parametrize("glitch", [".", "?", "-"])
def test_hold_bridges_one_frame_at_one_fps(glitch: str) -> None:
    rule, gap_ns = timing(hold=500), 2500 * MS
    assert in_ms(steps_of(story(f"TT{glitch}TT", 1000), rule, gap_ns)) == [("start", 0, 0, 0)]
    result = steps_of(story(f"TT{glitch}{glitch}T", 1000), rule, gap_ns)
    assert in_ms(result) == [("start", 0, 0, 0), ("end", 3000, 0, 1000), ("start", 4000, 4000, 4000)]


@pytest.mark.parametrize("behind", [".", "?", "-"])
def test_a_hold_bridges_no_hole_in_the_stream(behind: str) -> None:
    frames = [*story("TTT"), Seen(9000 * MS, *MEANING[behind])]
    assert in_ms(steps_of(frames, timing(hold=500), 500 * MS))[1:] == [("end", 9000, 0, 200)]


def test_cooldown_is_from_end_to_start() -> None:
    result = steps_of(story("T.TTTTTT"), timing(cooldown=400), 500 * MS)
    assert in_ms(result) == [("start", 0, 0, 0), ("end", 100, 0, 0), ("start", 400, 200, 400)]


def test_min_visible_asks_for_a_share_of_the_frames_seen() -> None:
    rule = Timing(for_ns=100 * MS, min_visible=0.7)
    assert in_ms(steps_of(story("T??TT"), rule, 500 * MS)) == []
    assert in_ms(steps_of(story("T??TTTT"), rule, 500 * MS)) == [("start", 600, 0, 600)]
    assert in_ms(steps_of(story("T--TT"), rule, 500 * MS)) == [("start", 300, 0, 300)]


def test_updates_come_while_it_is_true() -> None:
    result = steps_of(story("TTTTT..TT"), timing(update=200, hold=1000), 500 * MS)
    assert [(phase, at) for phase, at, *_ in in_ms(result)] == [
        *(("start", 0), ("update", 200), ("update", 400), ("update", 700)),
    ]


def test_idle_when_nothing_matters_any_more() -> None:
    watch: Watch[At] = Watch(timing(cooldown=300))
    watch.step(At(0), True, 500 * MS)
    assert not watch.idle(0)
    watch.step(At(100 * MS), False, 500 * MS)
    assert not watch.idle(200 * MS)
    assert watch.idle(300 * MS)


# ---- the reference


def reference(frames: list[Seen], rule: Timing, gap: int) -> list[Told]:
    """Starts and ends, found by looking back and forth over the whole story."""
    result: list[Told] = []
    t, truth = [f.time_ns for f in frames], [f.truth for f in frames]

    def last_true(before: int) -> int:
        return max(i for i in range(before) if truth[i])

    def run_end(k: int) -> int:
        for j in range(k + 1, len(frames)):
            if truth[j] is False or t[j] - t[last_true(j)] > gap:
                return j
        return len(frames)

    def over(n: int) -> bool:
        silent, frames_without = t[n] - t[last_true(n)], n - last_true(n)
        if truth[n] or (frames_without == 1 and rule.hold_ns):
            return silent > max(rule.hold_ns, gap)
        return silent >= rule.hold_ns

    def ripe(k: int, m: int) -> bool:
        counted = t[m] - t[k]
        judged = sum(truth[i] is True for i in range(k, m + 1))
        seen = sum(truth[i] is True or frames[i].seen for i in range(k, m + 1))
        return counted >= rule.for_ns and judged / seen >= rule.min_visible and t[m] >= rests_until

    cursor, rests_until = 0, -1
    while cursor < len(frames):
        if not truth[cursor]:
            cursor += 1
            continue
        end = run_end(cursor)
        start = next((m for m in range(cursor, end) if truth[m] and ripe(cursor, m)), None)
        if start is None:
            cursor = end
            continue
        result.append(("start", t[start], t[cursor], t[start]))
        stop = next((n for n in range(start + 1, len(frames)) if over(n)), None)
        if stop is None:
            break
        result.append(("end", t[stop], t[cursor], t[last_true(stop)]))
        rests_until, cursor = t[last_true(stop)] + rule.cooldown_ns, stop
    return result


frames_of = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from([(True, True)] * 3 + [(False, True), (None, True), (None, False)])),
    max_size=40,
)
timings = st.builds(
    Timing,
    for_ns=st.integers(0, 12),
    hold_ns=st.integers(0, 12),
    cooldown_ns=st.integers(0, 30),
    min_visible=st.sampled_from([0.0, 0.5, 0.8, 1.0]),
)


@settings(max_examples=600)
@given(frames_of, timings, st.integers(0, 12))
def test_same_as_the_reference(steps: list[tuple[int, tuple[bool | None, bool]]], rule: Timing, gap: int) -> None:
    time, frames = 0, []
    for step, (truth, seen) in steps:
        time += step
        frames.append(Seen(time, truth, seen))
    assert steps_of(frames, rule, gap) == reference(frames, rule, gap)
