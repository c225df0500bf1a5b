"""People who are no longer seen, and rules that ask about the incidents of others."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from tests.stages.rules.language.film import SECOND, ZONES, Pose, picture, rule, still, verdicts

from camgraph.stages.rules.language.condition import compile_condition
from camgraph.stages.rules.language.expression import ExpressionError
from camgraph.stages.rules.language.geometry import Surroundings
from camgraph.stages.rules.language.incidents import Timing
from camgraph.stages.rules.language.judge import Judge, Rule, Verdict, Why, in_levels

LOW = still(left_hip=(304, 175), right_hip=(296, 175))
IS_LOW = "hips.y > shoulders.y + 40px"


def short(found: Sequence[Verdict]) -> list[tuple[str, str, int]]:
    return [(v.rule.id, v.phase, v.picture.time_ns // 10**8) for v in found]


def lost(when: str, seen: Sequence[Pose | None], **given: float) -> list[tuple[str, int]]:
    return [(phase, at) for _, phase, at in short(list(verdicts(rule(when, hold=0, **given), seen)))]


def test_unseen_for_longer_than_a_second_is_lost() -> None:
    assert lost("lost", [still()] * 5 + [None] * 30) == [("start", 14), ("end", 34)]
    assert lost("lost", [still()] * 5 + [None] * 9 + [still()] * 5) == []


def test_lost_ends_when_they_are_seen_again_or_after_ten_seconds() -> None:
    assert lost("lost", [still()] * 5 + [None] * 20 + [still()] * 5) == [("start", 14), ("end", 24)]
    assert lost("lost", [still()] * 5 + [None] * 200) == [("start", 14), ("end", 104)]


@pytest.mark.parametrize(("missed", "found"), [(1, []), (2, []), (20, [("start", 140), ("end", 220)])])
def test_at_a_frame_a_second_few_frames_miss_somebody(missed: int, found: list[tuple[str, int]]) -> None:
    """Two frames and a half are no time in which somebody was looked for, and the ten seconds are as much longer."""
    film = [still()] * 12 + [None] * missed + [still()] * 3
    given = verdicts(rule("lost", hold=0), film, fps=1)
    assert [(phase, at) for _, phase, at in short(list(given))] == found


def after_a_stall(when: str, behind: Sequence[Pose]) -> list[tuple[str, int]]:
    """Somebody stands there for 2 s; behind a stall of 5 s only these people are there."""
    judge = Judge([rule(when, hold=0)], lambda size: Surroundings(*size, ZONES, {}))
    film = [(i, [still()]) for i in range(20)] + [(70 + i, list(behind)) for i in range(30)]
    found = [v for at, people in film for v in judge.judge(picture(at * SECOND // 10, people))]
    return [(phase, at) for _, phase, at in short(found)]


def test_nobody_is_lost_while_nobody_looks() -> None:
    """Of the time since they were last seen, the stall counts as one interval. It takes the tracker a new track."""
    assert after_a_stall("lost", []) == [("start", 79)]
    assert after_a_stall("lost", [dataclasses.replace(still(), id=2)]) == []
    elsewhere = dataclasses.replace(still(), id=2, feet=(400, 190))
    assert after_a_stall("lost", [elsewhere]) == [("start", 79)]


def test_lost_while_a_condition_held() -> None:
    assert lost(f"lost while {IS_LOW}", [still()] * 5 + [LOW] * 3 + [None] * 30)[0] == ("start", 17)
    assert lost(f"lost while {IS_LOW}", [LOW] * 5 + [still()] * 3 + [None] * 30) == []
    hidden = still(left_hip=None)
    assert lost(f"lost while {IS_LOW}", [LOW] * 5 + [hidden] + [None] * 30)[0] == ("start", 15)
    assert lost(f"lost while {IS_LOW}", [hidden] * 5 + [None] * 30) == []


def test_lost_while_knows_nothing_of_long_ago() -> None:
    hidden = still(left_hip=None)
    assert lost(f"lost while {IS_LOW}", [LOW] * 5 + [hidden] * 5 + [None] * 30)[0] == ("start", 19)
    assert lost(f"lost while {IS_LOW}", [LOW] * 5 + [hidden] * 6 + [None] * 30) == []


def test_lost_while_judges_the_last_frame_with_the_person() -> None:
    """Of who is lost, nothing is asked any more, although `enters` would have an answer."""
    comes_in = [Pose({}, feet=(104, 190))] * 5 + [Pose({}, feet=(98, 190))]
    assert lost("lost while enters(door)", [*comes_in, *[None] * 30])[0] == ("start", 15)


def test_lost_while_something_else_held_is_surely_false() -> None:
    assert lost(f"not (lost while {IS_LOW})", [still()] * 5 + [None] * 30) == [("start", 0), ("end", 34)]


def test_lost_within_other_parts() -> None:
    assert lost("lost for 2s", [still()] * 5 + [None] * 60)[0] == ("start", 34)
    found = lost(f"first {IS_LOW} then lost within 3s", [still()] * 5 + [LOW] * 3 + [None] * 60)
    assert found[0] == ("start", 17)
    assert lost("not lost", [still()] * 5 + [None] * 30)[0] == ("start", 0)


def test_who_is_unseen_for_a_moment_is_not_seen_and_unknown() -> None:
    """Otherwise `min_visible` would count the frames in which the model missed them."""
    film: list[Pose | None] = [LOW, None] * 20
    one = dataclasses.replace(rule(f"{IS_LOW} or lost"), timing=Timing(SECOND, SECOND, min_visible=0.9))
    assert short(list(verdicts(one, film)))[0] == ("rule", "start", 10)


@pytest.mark.parametrize(
    ("when", "too_long"),
    [
        ("lost for 9s", "9s"),
        ("(lost and age > 1s) for 1min", "1min"),
        ("first lean > 60deg then lost for 9s", "9s"),
        ("first (lost or lost while in door) for 20s then in door", "20s"),
    ],
)
def test_nobody_is_lost_for_longer_than_ten_seconds(when: str, too_long: str) -> None:
    with pytest.raises(ExpressionError, match="write a shorter time") as raised:
        compile_condition(when, "person", zones=ZONES, lines=[])
    assert raised.value.at == when.index(too_long)


@pytest.mark.parametrize(
    "when", ["lost for 8s", "not lost for 60s", "(lost or in door) for 60s", "was lost within 60s"]
)
def test_what_does_not_end_with_being_lost_may_last(when: str) -> None:
    compile_condition(when, "person", zones=ZONES, lines=[])


def test_lost_after_so_long_that_nobody_is_lost() -> None:
    with pytest.raises(ExpressionError, match="write a shorter `lost_after`"):
        compile_condition("lost", "person", zones=ZONES, lines=[], lost_after_ns=10 * SECOND)


def walking(step: float, frames: int = 8) -> list[Pose | None]:
    return [Pose({}, feet=(300 + step * i, 190)) for i in range(frames)]


@pytest.mark.parametrize(
    ("seen", "is_lost"),
    [
        (walking(0), True),
        (walking(5), True),
        (walking(40), False),
        (walking(-40), False),
        ([Pose({}, feet=(8, 190))] * 8, False),
        ([Pose({}, feet=(633, 190))] * 8, False),
        ([Pose({}, feet=(300, 479))] * 8, False),
    ],
    ids=["stands", "walks slowly", "runs out", "runs out left", "left border", "right border", "bottom"],
)
def test_who_leaves_the_picture_is_not_lost(seen: list[Pose | None], is_lost: bool) -> None:
    assert bool(lost("lost", [*seen, *[None] * 30])) is is_lost


@pytest.mark.parametrize(
    ("seen", "is_gone"),
    [(walking(0), False), (walking(5), False), (walking(40), True), ([Pose({}, feet=(300, 479))] * 8, True)],
    ids=["stands", "walks slowly", "runs out", "bottom"],
)
def test_who_leaves_the_picture_is_gone(seen: list[Pose | None], is_gone: bool) -> None:
    assert bool(lost("gone", [*seen, *[None] * 30])) is is_gone
    assert bool(lost("lost or gone", [*seen, *[None] * 30]))
    assert lost("lost and gone", [*seen, *[None] * 30]) == []


@pytest.mark.parametrize(
    ("begins_after", "place", "is_lost"),
    [(5, 300, False), (14, 300, False), (16, 300, True), (30, 300, True), (5, 340, True)],
    ids=["at once", "a little later", "too late", "a helper comes", "beside them"],
)
def test_who_begins_in_somebodys_place_goes_on_for_them(begins_after: int, place: float, is_lost: bool) -> None:
    """Unless they come later: they may be there to help."""
    other = Pose({}, feet=(place, 190), id=2)
    found = lost("lost for 2s", [*[still()] * 5, *[None] * (begins_after - 1), *[other] * 60])
    assert [phase for phase, _ in found] == (["start", "end"] if is_lost else [])


@pytest.mark.parametrize(
    ("when", "instead"),
    [
        ("lost and hips.y > 1px", "lost while hips.y > 1px"),
        ("lost and age >= 0s and not in door", "lost while (age >= 0s and not in door)"),
        ("lost and (in door or hips.y > 1px) and was in door within 9s", "lost while (in door or hips.y > 1px)"),
        ("lost and (hips.y > 1px for 0.1s)", "lost while (hips.y > 1px for 0.1s)"),
        ("(lost or gone) and not (in door or lean > 90deg)", "lost while not (in door or lean > 90deg)"),
        ("gone and beyond(nose)", "gone while beyond(nose)"),
        ("age < 0.2s or (lost while age > 0s) and age > 1s", "lost while age > 1s"),
    ],
)
def test_what_the_lost_are_now_nobody_knows(when: str, instead: str) -> None:
    (found,) = compile_condition(when, "person", zones=ZONES, lines=[]).never
    assert f"of somebody who is not seen; write `{instead}`" in found
    assert [phase for phase, at in lost(when, [still()] * 5 + [None] * 30) if phase == "start" and at > 4] == []


@pytest.mark.parametrize(
    "when",
    [
        *("lost or in door", "not lost and in door", "(lost or age > 9s) and score > 0"),
        *("lost and usual(lean, 3s) < 90deg", "lost and since(age > 0s) < 9s", "lost while in door", "lost and 1 < 2"),
        *("lost and was age > 0s within 3s", "lost and running(other)"),
    ],
)
def test_what_the_lost_were_is_known(when: str) -> None:
    assert compile_condition(when, "person", zones=ZONES, lines=[]).never == ()


@pytest.mark.parametrize("zone", ["lost_ns", "m", "runs", "k"])
def test_what_is_known_does_not_depend_on_names_of_zones(zone: str) -> None:
    (found,) = compile_condition(f"lost and in {zone}", "person", zones=[zone], lines=[]).never
    assert f"write `lost while in {zone}`" in found
    (found,) = compile_condition(
        "lost and a_zone", "person", zones=[zone], lines=[], words={"a_zone": f"in {zone}"}
    ).never
    assert "write `lost while a_zone`" in found


def test_gone_begins_and_ends_as_lost_does() -> None:
    assert lost("gone", [*walking(40), *[None] * 200]) == [("start", 17), ("end", 107)]
    assert lost("gone", [*walking(40), *[None] * 20, still()]) == [("start", 17), ("end", 27)]
    assert lost("not gone", [still()] * 5 + [None] * 30)[0] == ("start", 0)


def test_gone_while_a_condition_held() -> None:
    fast, slow = "gone while speed > 100px/s", "gone while speed < 100px/s"
    film = [*walking(40), *[None] * 30]
    assert lost(fast, film)[0] == ("start", 17)
    assert lost(slow, film) == []
    assert lost(f"not ({slow})", film)[0][0] == "start"


def test_nothing_is_said_of_being_lost_by_who_left() -> None:
    """A rule about `not lost` asks for people who are there, or who may still be within the picture."""
    film = [*walking(40), *[None] * 30]
    assert lost("not lost", film) == [("start", 0), ("end", 7)]


def test_the_event_shows_where_they_were_last_seen() -> None:
    start = next(iter(verdicts(rule(f"lost while {IS_LOW}"), [LOW] * 5 + [None] * 30)))
    (row,) = start.rows
    assert start.ids == (1,)
    assert start.picture.boxes[row].tolist() == list(LOW.box)
    assert start.picture.ids[row] == 1
    assert start.picture.time_ns == 14 * SECOND // 10
    assert [(part.text, part.values) for part in start.evidence] == [(f"lost while {IS_LOW}", True)]


def test_other_people_beside_the_lost() -> None:
    """The rows of those who are there stay theirs."""
    other = dataclasses.replace(still(), id=7, feet=(400, 190))
    judge = Judge([rule("lost or hips.y < 1px", hold=0)], lambda size: Surroundings(*size, ZONES, {}))
    found = []
    for i in range(30):
        people = [still(), other] if i < 5 else [other]
        found += list(judge.judge(picture(i * SECOND // 10, people)))
    assert [(v.ids, v.phase, v.rows) for v in found] == [((1,), "start", (1,))]
    assert found[0].picture.ids.tolist() == [7, 1]


def test_how_long_until_somebody_is_lost() -> None:
    condition = compile_condition("lost", "person", zones=[], lines=[], lost_after_ns=2 * SECOND)
    one = Rule("rule", "person", condition, None, Timing(), SECOND // 2, 0.3)
    assert short(list(verdicts(one, [still()] * 5 + [None] * 40)))[0] == ("rule", "start", 24)


def test_lost_is_about_one_person() -> None:
    with pytest.raises(ExpressionError, match="`lost` is about one person"):
        compile_condition("lost", "scene", zones=[], lines=[])


# ---- incidents of other rules


def scene(name: str, when: str, who: str | None = None) -> Rule:
    counted = compile_condition(who, "person", zones=ZONES, lines=[]) if who else None
    return Rule(
        name, "scene", compile_condition(when, "scene", zones=[], lines=[]), counted, Timing(), SECOND // 2, 0.3
    )


def judged(rules: Sequence[Rule], frames: Sequence[Sequence[Pose]]) -> list[tuple[str, tuple[int, ...], str, int]]:
    judge = Judge(rules, lambda size: Surroundings(*size, ZONES, {}))
    found = [(i, v) for i, people in enumerate(frames) for v in judge.judge(picture(i * SECOND // 10, people))]
    return [(v.rule.id, v.ids, v.phase, i) for i, v in found]


def test_running_is_about_the_same_person_in_the_same_frame() -> None:
    other = dataclasses.replace(still(), id=2, feet=(400, 190))
    low = rule(IS_LOW, name="low", hold=0)
    with_low = rule("running(low) and age >= 0s", name="with_low", hold=0)
    frames = [[still(), other]] * 3 + [[LOW, other]] * 3 + [[still(), other]] * 3
    expected = [("with_low", (1,), "start", 3), ("low", (1,), "start", 3)]
    expected += [("with_low", (1,), "end", 6), ("low", (1,), "end", 6)]
    assert judged([with_low, low], frames) == expected


def test_a_rule_that_sleeps_has_no_running_incident() -> None:
    rules = [rule("running(low)", name="with_low", hold=0), rule(IS_LOW, name="low", hold=0)]
    judge = Judge(rules, lambda size: Surroundings(*size, ZONES, {}))
    found = []
    for i in range(6):
        asleep: dict[str, Why] = {"low": "schedule"} if i > 2 else {}
        found += [(v.rule.id, v.phase, i) for v in judge.judge(picture(i * SECOND // 10, [LOW]), asleep)]
    assert found == [("with_low", "start", 0), ("low", "start", 0), ("with_low", "end", 3), ("low", "end", 3)]


def test_running_between_scopes() -> None:
    low = rule(IS_LOW, name="low", hold=0)
    many = scene("many", "people >= 2")
    pair = compile_condition("running(low)", "pair", zones=[], lines=[])
    rules = [
        low,
        many,
        rule("running(many)", name="in_many", hold=0),
        scene("any_low", "running(low)"),
        scene("counted", "count >= 1", "running(low)"),
        Rule("both", "pair", pair, None, Timing(), SECOND // 2, 0.3),
    ]
    other = dataclasses.replace(still(), id=2, feet=(400, 190))
    starts = {(name, ids) for name, ids, phase, at in judged(rules, [[LOW, other]]) if phase == "start"}
    everybody = {("low", (1,)), ("many", ()), ("in_many", (1,)), ("in_many", (2,))}
    assert starts == everybody | {("any_low", ()), ("counted", ()), ("both", (1, 2))}


def test_rules_are_judged_behind_those_they_ask_about() -> None:
    rules = [rule("running(b)", name="a"), rule("running(c) or running(d)", name="b"), rule("age > 1s", name="c")]
    assert [[one.id for one in level] for level in in_levels(rules)] == [["c"], ["b"], ["a"]]
    assert [[one.id for one in level] for level in in_levels([rule("running(a)", name="a")])] == [["a"]]


def test_a_rule_that_nobody_has_never_runs() -> None:
    assert judged([rule("running(nobody)")], [[still()]] * 5) == []
    with pytest.raises(ExpressionError, match=r"there is no rule `flls`; did you mean `falls`\?"):
        compile_condition("running(flls)", "person", zones=[], lines=[], rules=["falls"])


def test_a_judge_goes_on_where_another_stopped() -> None:
    """As if there had been one judge all the time: incidents, memory, tracks."""
    texts = {"waits": "age > 1s for 0.5s", "falls": "drop(hips.y, 1s) > 10px", "gone": "lost while age > 1s"}
    frames = [[still()]] * 12 + [[LOW]] * 8 + [[]] * 20

    def rules() -> list[Rule]:
        return [rule(text, name=name, **{"for": 0.3}) for name, text in texts.items()]

    whole = judged(rules(), frames)
    for cut in range(1, 39):
        first = Judge(rules(), lambda size: Surroundings(*size, ZONES, {}))
        found = [(i, v) for i in range(cut) for v in first.judge(picture(i * SECOND // 10, frames[i]))]
        second = Judge(rules(), lambda size: Surroundings(*size, ZONES, {}))
        second.take_over(first, set(texts))
        found += [(i, v) for i in range(cut, 40) for v in second.judge(picture(i * SECOND // 10, frames[i]))]
        assert [(v.rule.id, v.ids, v.phase, i) for i, v in found] == whole


def test_two_reloads_while_nobody_is_seen_forget_nothing() -> None:
    frames = [[LOW]] * 12 + [[]] * 8 + [[still()]] * 3

    def made() -> Judge:
        return Judge([rule(f"was {IS_LOW} within 5s and age > 1.5s")], lambda size: Surroundings(*size, ZONES, {}))

    judge, found = made(), []
    for i, people in enumerate(frames):
        if i in (14, 17):
            judge, before = made(), judge
            judge.take_over(before, {"rule"})
        found += [(v.phase, i) for v in judge.judge(picture(i * SECOND // 10, people))]
    assert found == [("start", 20)]


def test_after_a_reload_those_who_never_return_are_forgotten() -> None:
    first = Judge([rule("age > 1s for 1s")], lambda size: Surroundings(*size, ZONES, {}))
    for i in range(5):
        list(first.judge(picture(i * SECOND, [Pose({}, id=n) for n in range(20)])))
    second = Judge([rule("age > 1s for 1s")], lambda size: Surroundings(*size, ZONES, {}))
    second.take_over(first, {"rule"})
    remembered = []
    for i in range(5, 50):
        list(second.judge(picture(i * SECOND, [Pose({}, id=99)])))
        remembered.append(len(second._inherited))
    assert remembered[0] == 20
    assert remembered[-1] == 0
