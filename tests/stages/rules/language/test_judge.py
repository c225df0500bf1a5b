"""A camera's judge on people who walk about, frame by frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stages.vision.live_times import slow_cameras

from camgraph.stages.rules.language.condition import compile_condition
from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.language.geometry import Line, Surroundings, zone_of
from camgraph.stages.rules.language.incidents import Timing
from camgraph.stages.rules.language.judge import Judge, Rule, Verdict
from camgraph.stages.rules.language.vocabulary import Scope

SECOND = 1_000_000_000
ZONES = {"door": zone_of([(100, 0), (200, 0), (200, 480), (100, 480)])}
LINES = {"gate": Line((150, 100), (150, 300))}
Person = tuple[int, float, float]
"""Id, and where the feet are. Everybody is 20 x 60 pixels."""


@dataclass(frozen=True)
class At:
    time_ns: int


def rule(when: str, scope: Scope = "person", who: str | None = None, *, gap_s: float = 0.5, **timing: Any) -> Rule:
    names: dict[str, Any] = {"zones": ZONES, "lines": LINES}
    seconds = {f"{key}_ns": round(value * SECOND) for key, value in timing.items()}
    counted = compile_condition(who, "person", **names) if who else None
    return Rule(
        "rule", scope, compile_condition(when, scope, **names), counted, Timing(**seconds), round(gap_s * SECOND), 0.3
    )


def picture(seconds: float, people: Sequence[Person]) -> Picture:
    boxes = np.array([[x - 10, y - 60, x + 10, y] for _, x, y in people], np.float32).reshape(-1, 4)
    n = len(boxes)
    keypoints = np.zeros((n, 17, 3), np.float32)
    ids = np.array([track for track, *_ in people], np.int64)
    return Picture(At(round(seconds * SECOND)), ids, boxes, np.full(n, 0.9, np.float32), keypoints, (640, 480))


def judged(one: Rule, frames: Sequence[Sequence[Person]], step_s: float = 0.1, *, end: bool = False) -> list[Verdict]:
    judge = Judge([one], lambda size: Surroundings(*size, ZONES, LINES))
    verdicts = [v for i, people in enumerate(frames) for v in judge.judge(picture(i * step_s, people))]
    return [*verdicts, *(judge.finish() if end else ())]


def judged_at(one: Rule, times_ns: Iterable[int], people: Sequence[Person] = ((1, 150.0, 200.0),)) -> list[Verdict]:
    """The same people in every frame."""
    judge = Judge([one], lambda size: Surroundings(*size, ZONES, LINES))
    return [v for time_ns in times_ns for v in judge.judge(picture(time_ns / SECOND, people))]


def short(verdicts: Sequence[Verdict]) -> list[tuple[str, tuple[int, ...], int]]:
    return [(v.phase, v.ids, v.picture.time_ns // 1_000_000) for v in verdicts]


def walk(track: int, begin: float, end: float, steps: int, y: float = 200.0) -> list[list[Person]]:
    return [[(track, begin + (end - begin) * i / (steps - 1), y)] for i in range(steps)]


def test_in_a_zone_from_the_first_to_the_last_frame() -> None:
    verdicts = judged(rule("in door"), walk(7, 50, 250, 21))
    assert short(verdicts) == [("start", (7,), 500), ("end", (7,), 1400)]
    assert verdicts[0].evidence[0].values is True
    assert (verdicts[1].rows, verdicts[1].why) == ((0,), "condition")


def test_entering_asks_for_having_been_outside() -> None:
    assert short(judged(rule("enters(door)"), walk(7, 50, 250, 21)))[0] == ("start", (7,), 500)
    assert judged(rule("enters(door)"), walk(7, 120, 250, 14)) == []
    assert short(judged(rule("leaves(door)"), walk(7, 120, 250, 14)))[0][0] == "start"


@pytest.mark.parametrize(
    ("when", "frames", "crossings"),
    [
        ("crosses(gate)", walk(1, 100, 200, 11), 1),
        ("crosses(gate, leftward)", walk(1, 100, 200, 11), 1),
        ("crosses(gate, rightward)", walk(1, 100, 200, 11), 0),
        ("crosses(gate, rightward)", walk(1, 200, 100, 11), 1),
        ("crosses(gate)", walk(1, 100, 200, 11, y=400), 0),
        ("crosses(gate)", walk(1, 100, 149, 11), 0),
        ("crosses(gate)", walk(1, 100, 200, 2), 1),
        ("crosses(gate)", [*walk(1, 100, 149, 5), *[[(1, 150.0 + i % 3 - 1, 200.0)] for i in range(30)]], 0),
        ("crosses(gate)", [*walk(1, 100, 149, 5), [], [], *walk(1, 180, 200, 5)], 1),
    ],
    ids=[
        "over it",
        "leftward",
        "wrong way",
        "back",
        "past its end",
        "not quite",
        "in one step",
        "standing on it",
        "unseen",
    ],
)
def test_crossing(when: str, frames: list[list[Person]], crossings: int) -> None:
    """The gate goes down the picture, so that who walks to the picture's right goes to the left of it."""
    starts = [v for v in judged(rule(when), frames) if v.phase == "start"]
    assert len(starts) == crossings


def test_speed_is_over_the_last_second() -> None:
    frames = [*walk(1, 100, 130, 11), *[[(1, 130.0, 200.0)]] * 20]
    moving = judged(rule("speed > 0.45h/s"), frames)
    assert short(moving)[0] == ("start", (1,), 400)
    slow = judged(rule("speed < 0.05h/s", **{"for": 0.5}), frames)
    assert short(slow)[0] == ("start", (1,), 2500)


def test_pairs_are_known_by_both_ids_whatever_the_order() -> None:
    frames = [[(5, 100.0, 200.0), (2, 100.0 + 4 * i, 200.0)][:: 1 if i % 2 else -1] for i in range(12)]
    verdicts = judged(rule("distance(a.feet, b.feet) < 0.5h", "pair"), frames)
    assert short(verdicts) == [("start", (2, 5), 0), ("end", (2, 5), 700)]
    assert [verdicts[0].picture.ids[row] for row in verdicts[0].rows] == [2, 5]


def test_scenes_count_whom_the_rule_asks_for() -> None:
    frames: list[list[Person]] = [[(i, 90.0 + 10 * i + 3 * t, 200.0) for i in range(3)] for t in range(10)]
    verdicts = judged(rule("count >= 2", "scene", "in door"), frames)
    assert short(verdicts) == [("start", (), 0)]
    assert verdicts[0].rows == (1, 2)
    assert verdicts[0].evidence[0].values == (2, 2.0)


def test_nobody_is_a_scene_too() -> None:
    assert short(judged(rule("people == 0", "scene", **{"for": 0.3}), [[(1, 9.0, 99.0)], [], [], [], []])) == [
        ("start", (), 400)
    ]


def test_end_has_people_of_last_true_frame() -> None:
    frames = [[(3, 500.0, 200.0), (7, 150.0, 200.0)], [(7, 151.0, 200.0)], [(3, 500.0, 200.0)]]
    verdicts = judged(rule("in door", hold=5), frames, end=True)
    assert short(verdicts) == [("start", (7,), 0), ("end", (7,), 100)]
    assert (verdicts[1].why, verdicts[1].rows, verdicts[1].picture.ids.tolist()) == ("end", (0,), [7])


def test_who_is_gone_is_unseen() -> None:
    verdicts = judged(rule("in door"), [[(7, 150.0, 200.0)], [], []])
    assert [(v.phase, v.why) for v in verdicts] == [("start", "condition"), ("end", "unseen")]


def test_a_slow_camera_has_no_gaps() -> None:
    """At a frame a second, a second between two frames is no hole: `for: 3s` holds after four frames."""
    still = [[(1, 150.0, 200.0)]] * 6
    assert short(judged(rule("in door", **{"for": 3}), still, step_s=1.0)) == [("start", (1,), 3000)]


@given(slow_cameras(), st.sampled_from([0.0, 0.5, 2.0]), st.sampled_from([0.0, 0.5]))
def test_who_stands_before_a_slow_live_camera_is_one_incident(
    times_ns: Sequence[int], for_s: float, hold_s: float
) -> None:
    """From their first frame on, though frames are late, come in a burst, or are lost."""
    [start] = judged_at(rule("in door", hold=hold_s, **{"for": for_s}), times_ns)
    assert start.incident.begun.time_ns == times_ns[0]
    over_ns = round(for_s * SECOND)
    assert start.picture.time_ns == next(time_ns for time_ns in times_ns if time_ns - times_ns[0] >= over_ns)


@given(st.floats(0.4, 1.2), st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_a_detection_missed_now_and_then_repeats_no_alarm(step_s: float, seen: list[int]) -> None:
    """The person is seen in so many frames in a row, missed in one, and so on."""
    here: list[Person] = [(1, 150.0, 200.0)]
    frames = [people for count in seen for people in [*[here] * count, []]]
    assert [v.phase for v in judged(rule("in door", hold=0.5), frames, step_s)] == ["start"]


def test_a_track_is_remembered_at_a_frame_a_minute() -> None:
    assert short(judged_at(rule("age >= 150s"), [60 * SECOND * i for i in range(4)])) == [("start", (1,), 180_000)]


def test_unknown_skeletons_leave_joints_unknown() -> None:
    one = picture(0, [(1, 150.0, 200.0)])
    odd = Picture(one.moment, one.ids, one.boxes, one.scores, np.ones((1, 5, 3), np.float32), one.size, False)
    both = [rule("nose.y > 0px"), rule("in door")]
    verdicts = list(Judge(both, lambda size: Surroundings(*size, ZONES, LINES)).judge(odd))
    assert [v.rule for v in verdicts] == [both[1]]


def test_nothing_is_kept_of_those_who_are_gone_for_long() -> None:
    judge = Judge([rule("in door", cooldown=1)], lambda size: Surroundings(*size, ZONES, LINES))
    for i in range(200):
        list(judge.judge(picture(i, [(i, 150.0, 200.0)])))
    list(judge.judge(picture(300, [])))
    assert (judge._crowd._past, judge._watched) == ({}, {})
