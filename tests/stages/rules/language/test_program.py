"""Many conditions in one function: the same answers as each by itself."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.stages.rules.language.film import SECOND, ZONES, Pose, picture, rule, still
from tests.stages.rules.language.test_condition import AROUND, bodies, person

from camgraph.stages.rules.language.cells import CELLS, MOST_SAMPLES, Clock
from camgraph.stages.rules.language.condition import Condition, compile_condition
from camgraph.stages.rules.language.crowd import Subject, numbers_of
from camgraph.stages.rules.language.geometry import Surroundings
from camgraph.stages.rules.language.judge import Judge, Rule
from camgraph.stages.rules.language.program import Memory, Program, program_of

GAP_NS = SECOND // 2
TEXTS = [
    "angle(left_shoulder, left_elbow, left_wrist) > 100deg",
    "angle(left_shoulder, left_elbow, left_wrist) < 100deg and in door",
    "not angle(left_shoulder, left_elbow, left_wrist) > 170deg",
    "distance(left_wrist, nose) > 20px or distance(left_wrist, nose) > 3h",
    "distance(left_wrist, nose) < distance(right_wrist, nose)",
    "above(left_wrist, nose) > above(right_wrist, nose) + 1px",
    "beyond(left_wrist, top) or above(left_wrist, nose) > 0px",
    "lean < 10deg for 0.2s",
    "was (lean < 10deg for 0.2s) within 1s",
    "drop(nose.y, 1s) > 5px and (lean < 10deg for 0.2s)",
    "first lean < 10deg then nose.y > 20px within 1s",
    "in door",
    "frontal > 0.1 or body_height > 1.1h",
    "lean < 10deg and frontal > 0.1",
]
PLACES = st.tuples(st.integers(0, 60), st.integers(0, 100)) | st.none()


def compiled(text: str) -> Condition:
    return compile_condition(text, "person", zones=["door"], lines=[])


def step(program: Program, subject: Subject, memory: Memory, clock: Clock) -> None:
    if program.step:
        program.step([subject], [memory], numbers_of([subject], program.reads), clock)


def hits(program: Program, subject: Subject, memory: Memory) -> dict[int, list[Subject]]:
    return program.hits([subject], [memory], numbers_of([subject], program.reads))


@given(
    texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8),
    film=st.lists(st.tuples(PLACES, PLACES), min_size=1, max_size=8),
)
@settings(max_examples=150, deadline=None)
def test_the_same_answers_as_each_by_itself(texts: list[str], film: list[tuple[Any, Any]]) -> None:
    conditions = [compiled(text) for text in texts]
    together = program_of(tuple((condition, GAP_NS) for condition in conditions))
    alone = [program_of(((condition, GAP_NS),)) for condition in conditions]
    memory, own = together.new_memory(), [program.new_memory() for program in alone]
    clock = Clock()
    for i, (wrist, nose) in enumerate(film):
        clock.tick(i * SECOND // 10, SECOND // 5, SECOND // 4)
        subject = Subject((1,), (0,), (person(), AROUND), bodies(left_wrist=wrist, nose=nose))
        for program, kept in [(together, memory), *zip(alone, own, strict=True)]:
            step(program, subject, kept, clock)
        expected = [n for n, program in enumerate(alone) if hits(program, subject, own[n])]
        assert hits(together, subject, memory) == {n: [subject] for n in expected}
        for n, condition in enumerate(conditions):
            values = [together.of_one(n, memory)[0]] if condition.cells else []
            assert (condition.judge(*subject.arguments, *values) is True) == (n in expected)


QUIET = [
    "lean < 10deg for 0.2s",
    "first lean < 10deg then nose.y > 20px within 1s",
    "first lean < 10deg for 0.2s then nose.y > 20px then nose.y < 10px within 1s for 0.3s",
    "first (lean < 10deg for 0.1s) then in door and nose.y > 20px",
    "dwell(door) > 0.3s",
    "dwell(door, 0.2s) > 0.3s or dwell(nose, door, 0.2s) > 0s",
]


@given(
    texts=st.lists(st.sampled_from(QUIET), min_size=1, max_size=4, unique=True),
    film=st.lists(
        st.tuples(
            PLACES,
            st.integers(0, 40) | st.none(),
            st.sampled_from([True, False, False, None]),
            st.sampled_from([0, 100, 100, 100, 400]),
        ),
        min_size=1,
        max_size=30,
    ),
)
@example(
    texts=["dwell(door) > 0.3s"],
    film=[(None, None, inside, ms) for inside, ms in ((True, 0), (False, 0), (False, 100))],
)
@settings(max_examples=150, deadline=None)
def test_steps_that_are_left_out_change_nothing(
    texts: list[str], film: list[tuple[Any, int | None, bool | None, int]]
) -> None:
    """A cell whose parts are surely false, frame after frame, is stepped once. Frames can have the same time."""
    conditions = [compiled(text) for text in texts]
    with_gap = tuple((one, GAP_NS) for one in conditions)
    lazy = program_of(with_gap)
    with pytest.MonkeyPatch.context() as patch:
        for name, kind in CELLS.items():
            patch.setitem(CELLS, name, dataclasses.replace(kind, quiet=False))
        eager = program_of.__wrapped__(with_gap)
    memory, other = lazy.new_memory(), eager.new_memory()
    clock, time_ns = Clock(), 0
    for nose, hips, inside, step_ms in film:
        time_ns += step_ms * SECOND // 1000
        clock.tick(time_ns, SECOND // 5, SECOND // 4)
        shoulders = {"left_shoulder": (30, 20), "right_shoulder": (30, 20)}
        side = dict.fromkeys(("left_hip", "right_hip"), None if hips is None else (hips, 60))
        where = person()
        where.inside = {} if inside is None else {"door": inside}
        subject = Subject((1,), (0,), (where, AROUND), bodies(nose=nose, **shoulders, **side))
        step(lazy, subject, memory, clock)
        step(eager, subject, other, clock)
        assert memory.values[: len(lazy.cells)] == other.values[: len(eager.cells)]


def test_equal_parts_of_several_rules_are_one_cell() -> None:
    conditions = [compiled(text) for text in TEXTS]
    program = program_of(tuple((condition, GAP_NS) for condition in conditions))
    assert sum(len(condition.cells) for condition in conditions) == 6
    assert len(program.cells) == 4
    other = program_of(((conditions[7], GAP_NS), (conditions[7], 2 * GAP_NS)))
    assert len(other.cells) == 2, "rules with another gap have cells of their own"
    nested = [compiled(f"was (lean < {degrees}deg for 0.2s) within 1s") for degrees in (10, 20)]
    assert len(program_of(tuple((condition, GAP_NS) for condition in nested)).cells) == 4


def kept_of(judge: Judge) -> int:
    """How many people the judge has memories of."""
    return sum(len(group.memories) for group in judge._groups())


def test_memory_of_those_who_are_gone_is_dropped() -> None:
    judge = Judge([rule("drop(hips.y, 1s) > 1bl")], lambda size: Surroundings(*size, ZONES, {}))
    for i in range(300):
        list(judge.judge(picture(i * SECOND, [Pose({}, id=i)])))
    assert kept_of(judge) <= 33
    list(judge.judge(picture(400 * SECOND, [])))
    assert kept_of(judge) == 0


def test_the_memory_of_a_pair_is_theirs() -> None:
    """Two who come close are told from others, and each two have a memory of their own."""
    condition = compile_condition("distance(a.feet, b.feet) < 30px for 0.5s", "pair", zones=[], lines=[])
    judge = Judge(
        [Rule("near", "pair", condition, None, rule("in door").timing, GAP_NS, 0.3)], lambda size: Surroundings(*size)
    )
    starts = []
    for i in range(20):
        people = [Pose({}, id=1), Pose({}, feet=(320, 190), id=2), Pose({}, feet=(340 if i > 9 else 500, 190), id=3)]
        starts += [(v.ids, i) for v in judge.judge(picture(i * SECOND // 10, people)) if v.phase == "start"]
    assert starts == [((1, 2), 5), ((2, 3), 15)]


@pytest.mark.parametrize("more", ["", " and above(a.left_wrist, a.hips) > 0px"])
@pytest.mark.parametrize("raised", [1, 2])
def test_each_of_a_pair_has_their_own_joints(raised: int, more: str) -> None:
    """With and without a function that takes all joints of somebody."""
    condition = compile_condition(f"a.left_wrist.y < b.nose.y - 5px{more}", "pair", zones=[], lines=[])
    judge = Judge(
        [Rule("higher", "pair", condition, None, rule("in door").timing, GAP_NS, 0.3)], lambda size: Surroundings(*size)
    )
    people = [Pose({"left_wrist": (312, 100)} if one == raised else {}, id=one) for one in (2, 1)]
    assert [v.ids for v in judge.judge(picture(0, people))] == ([(1, 2)] if raised == 1 else [])


def test_a_scene_remembers_too() -> None:
    condition = compile_condition("first people == 0 then people >= 1 within 1s", "scene", zones=[], lines=[])
    judge = Judge(
        [Rule("comes", "scene", condition, None, rule("in door").timing, GAP_NS, 0.3)], lambda size: Surroundings(*size)
    )
    frames: list[list[Pose]] = [[], [], [still()], [still()], []]
    found = [(v.phase, i) for i, people in enumerate(frames) for v in judge.judge(picture(i * SECOND // 10, people))]
    assert found[0] == ("start", 2)


@pytest.mark.parametrize("fps", [10, 100])
@pytest.mark.slow
def test_the_memory_of_a_rule_is_bounded(fps: int) -> None:
    judge = Judge([rule("usual(hips.y, 10s) > 1px and average(lean, 30s) < 1deg")], lambda size: Surroundings(*size))
    for i in range(40 * fps):
        y = 150 + 20 * math.sin(i / fps)
        list(judge.judge(picture(i * SECOND // fps, [Pose({"left_hip": (304, y), "right_hip": (296, y)})])))
    cells = [cell for group in judge._groups() for memory in group.memories.values() for cell in memory.cells.values()]
    assert len(cells) == 2
    assert all(len(cell._samples) <= MOST_SAMPLES for cell in cells)


def test_a_long_cooldown_of_people_who_left_costs_nothing() -> None:
    judge = Judge([rule("score > 0.1", cooldown=86_400)], lambda size: Surroundings(*size))
    for second in range(120):
        people = [Pose({}, id=second // 2 + 1)] if second < 60 else [Pose({}, id=99)]
        list(judge.judge(picture(second * SECOND, people)))
    assert set(judge._watched["rule"]) == {(99,)}


def test_a_cooldown_holds_for_a_track_that_comes_back() -> None:
    judge = Judge([rule("score > 0.1", cooldown=60)], lambda size: Surroundings(*size))
    starts = []
    for second in range(100):
        people = [] if 10 <= second < 35 else [Pose({}, id=1)]
        starts += [second for v in judge.judge(picture(second * SECOND, people)) if v.phase == "start"]
    assert starts == [0, 69]
