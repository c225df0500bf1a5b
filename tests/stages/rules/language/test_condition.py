"""Conditions: what they say of people made by hand, and that two Python expressions are Kleene's logic."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camgraph.stages.rules.language.condition import compile_condition
from camgraph.stages.rules.language.crowd import Bodies
from camgraph.stages.rules.language.expression import (
    Arithmetic,
    Call,
    Comparison,
    ExpressionError,
    Inside,
    Junction,
    Name,
    Negative,
    Node,
    Not,
    Number,
    parse,
)
from camgraph.stages.rules.language.geometry import Surroundings, zone_of
from camgraph.stages.rules.language.people import (
    NAN,
    Person,
    Scene,
    with_more,
)
from camgraph.stages.rules.language.vocabulary import Scope, look_up, meant
from camgraph.stages.vision.skeleton import COCO_17

ZONES, LINES = ["door", "yard"], ["gate"]
AROUND = Surroundings(200, 100, {"door": zone_of([(0, 0), (50, 0), (50, 100), (0, 100)]), "yard": lambda x, y: False})
STANDING = {
    **{"nose": (30, 12), "left_eye": (32, 10), "right_eye": (28, 10), "left_ear": (34, 11), "right_ear": (26, 11)},
    **{"left_shoulder": (36, 25), "right_shoulder": (24, 25), "left_elbow": (40, 38), "right_elbow": (20, 38)},
    **{"left_wrist": (42, 50), "right_wrist": (18, 50), "left_hip": (34, 50), "right_hip": (26, 50)},
    **{"left_knee": (34, 70), "right_knee": (26, 70), "left_ankle": (34, 88), "right_ankle": (26, 88)},
}


def bodies(**moved: tuple[float, float] | None) -> Bodies:
    """The body of someone who stands, with some joints moved, or (None) not seen."""
    places = {**STANDING, **moved}
    return Bodies(with_more(np.array([[places[name] or (NAN, NAN) for name in COCO_17]])))


def joints(**moved: tuple[float, float] | None) -> list[float]:
    """Its joints."""
    return bodies(**moved).joints(0)


def person(**changes: Any) -> Person:
    values = {"id": 1, "row": 0, "left": 20.0, "top": 5.0, "right": 40.0, "bottom": 95.0, "score": 0.9}
    one = Person(**{**values, "confidences": [0.8] * 17, "speed": 30.0, "age": 2.5, **changes})
    one.inside = {name: zone(one.x, one.bottom) for name, zone in AROUND.zones.items()}
    return one


def judged(text: str, k: list[float] | None = None, p: Person | None = None) -> bool | None:
    condition = compile_condition(text, "person", zones=ZONES, lines=LINES)
    return condition.judge(joints() if k is None else k, p or person(), AROUND)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("left_wrist.y < nose.y - 0.1h", False),
        ("left_wrist.y > nose.y + 0.4h", True),
        ("left_wrist.y > nose.y + 0.5h", False),
        ("left_knee.y - left_hip.y > 0.75bl", True),
        ("left_knee.y - left_hip.y > 0.85bl", False),
        ("nose.y < 0.2fh and nose.x < 0.2fw", True),
        ("nose.y < 12px", False),
        ("10px <= nose.y <= 12px", True),
        ("speed < 0.5h/s", True),
        ("speed > 20px/s", True),
        ("0.2h / 500ms > speed", True),
        ("age >= 2500ms", True),
        ("score > 0.95 or nose.c > 0.7", True),
        ("lean < 10deg", True),
        ("angle(left_shoulder, left_hip, left_knee) > 150deg", True),
        ("distance(left_wrist, right_wrist) == 24px", True),
        ("abs(left_wrist.x - right_wrist.x) < 0.1h", False),
        ("max(left_wrist.y, right_wrist.y) < min(hips.y, knees.y) + 1px", True),
        ("in door", True),
        ("in yard", False),
        ("not in yard", True),
        ("right_wrist not in door", False),
        ("center in door and feet in door", True),
        ("box.width < box.height", True),
        ("box.left + 20px == box.right", True),
        ("nose.y < 0.2fh - 0.05h", True),
        ("nose.y < 0.2fh - 0.1h", False),
        ("nose.y < 20px - 0.1h", False),
        ("-1 < 0 * -2 + 1", True),
        ("not (nose.y < 1px or nose.y > 2px) or nose.y != 3px", True),
        ("shoulders.y < elbows.y", True),
    ],
)  # fmt: skip
def test_of_someone_who_stands(text: str, truth: bool) -> None:
    assert judged(text) is truth


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("left_wrist.y < nose.y", None),
        ("not left_wrist.y < nose.y", None),
        ("left_wrist.y == nose.y", None),
        ("left_wrist.y != nose.y", None),
        ("left_wrist in door", None),
        ("left_wrist not in door", None),
        ("left_wrist.y < nose.y and nose.y < 0px", False),
        ("left_wrist.y < nose.y or nose.y > 0px", True),
        ("left_wrist.y < nose.y and nose.y > 0px", None),
        ("nose.y > 50px > left_wrist.y", False),
        ("wrists.y > 0px", None),
        ("max(left_wrist.y, nose.y) > 0px", None),
        ("min(nose.y, left_wrist.y) > 0px", None),
        ("distance(nose, left_wrist) > 0px", None),
        ("angle(nose, left_wrist, left_hip) > 0deg", None),
        ("1px / (nose.x - nose.x) > 1", None),
        ("left_wrist.c < 0.9", True),
    ],
)
def test_a_joint_that_is_not_known(text: str, truth: bool | None) -> None:
    assert judged(text, joints(left_wrist=None)) is truth


def test_upside_down_lying_and_standing() -> None:
    assert judged("lean > 80deg", joints(left_shoulder=(60, 50), right_shoulder=(60, 51))) is True
    assert judged("lean > 170deg", joints(left_shoulder=(36, 75), right_shoulder=(24, 75))) is True
    assert judged("lean < 200deg", joints(left_shoulder=(36, 50), right_shoulder=(24, 50))) is None


def test_steps_over_lines_and_borders() -> None:
    walker = person(crossed={"gate": -1}, entered={"door": 1, "yard": -1})
    assert judged("crosses(gate)", p=walker) is True
    assert judged("crosses(gate, leftward)", p=walker) is True
    assert judged("crosses(gate, rightward)", p=walker) is False
    assert judged("enters(door) and leaves(yard)", p=walker) is True
    still = person(crossed={"gate": 0}, entered={"door": 0, "yard": 0})
    assert judged("crosses(gate) or crosses(gate, leftward) or enters(door) or leaves(door)", p=still) is False
    for unknown in ("crosses(gate)", "crosses(gate, leftward)", "enters(door)", "leaves(door)", "lost"):
        assert judged(unknown) is judged(f"not {unknown}") is None


def test_pairs_and_scenes() -> None:
    near = compile_condition("distance(a.feet, b.feet) < 0.5h and a.speed < 1h/s", "pair", zones=[], lines=[])
    other = person(id=2, left=60.0, right=80.0)
    assert near.judge(joints(), person(), joints(), other, AROUND) is True
    assert near.judge(joints(), person(), joints(), person(left=90.0, right=110.0), AROUND) is False
    assert near.judge(joints(), person(speed=NAN), joints(), other, AROUND) is None
    few = compile_condition("count >= 2 and people < 4", "scene", zones=[], lines=[])
    assert few.judge(Scene(3, 2), AROUND) is True
    assert few.judge(Scene(4, 2), AROUND) is False


def test_evidence_and_what_is_used() -> None:
    condition = compile_condition("left_wrist.y <  nose.y - 0.1h and in door", "person", zones=ZONES, lines=LINES)
    assert [text for text, _ in condition.parts] == ["left_wrist.y < nose.y - 0.1h", "in door"]
    assert condition.values(joints(), person(), AROUND) == ((50, 12 - 9.0), True)
    assert (condition.zones, condition.lines) == ({"door"}, set())


def test_the_value_of_a_part_is_that_of_its_text() -> None:
    for text, part in [
        ("feet not in door", "feet in door"),
        ("not in door", "in door"),
        ("nose not in door", "nose in door"),
    ]:
        condition = compile_condition(text, "person", zones=ZONES, lines=LINES)
        assert [words for words, _ in condition.parts] == [part]
        [value] = condition.values(joints(), person(), AROUND)
        assert condition.judge(joints(), person(), AROUND) is (not value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("((1h + 2h) * 2) > nose.y - left_hip.y", ["(1h + 2h) * 2 > nose.y - left_hip.y"]),
        ("was ((age > 1s) or in door) within 2s", ["was ((age > 1s) or in door) within 2s"]),
        ("lost while (was (in door or age > 1s) within 2s)", ["lost while (was (in door or age > 1s) within 2s)"]),
        (
            "(first in door then (age > 1s or (in door)) within 2s) or age > 3s",
            [
                "first in door then (age > 1s or (in door)) within 2s",
                "step 1: in door",
                "step 2: (age > 1s or (in door)) within 2s",
                "age > 3s",
            ],
        ),
    ],
)
def test_the_text_of_a_part_has_its_parentheses(text: str, parts: list[str]) -> None:
    condition = compile_condition(text, "person", zones=ZONES, lines=LINES)
    assert [part for part, _ in condition.parts] == parts


MISTAKES: list[tuple[Scope, str, int, str]] = [
    ("person", "left_wrst.y < nose.y", 0, "`left_wrst.y` is not known; did you mean `left_wrist`?"),
    ("person", "nose.y < 0.5", 0, "give the number a unit, such as 0.5fh"),
    ("person", "nose.y < left_hip.y - 0.1", 9, "a bare number cannot be subtracted from a position from the top"),
    ("person", "nose.y < nose.x", 0, "compare x with x and y with y"),
    ("person", "nose.y < 0.5fw", 0, "use fw with x and fh with y"),
    ("person", "speed < 0.2h", 0, "a speed cannot be compared with a length"),
    ("person", "nose.y + left_hip.y > 0px", 0, "cannot be added to"),
    ("person", "nose.y < 0.1fh + 0.1fw", 0, "cannot be compared with a length"),
    ("person", "nose.y < 0.1h + 0.1h", 0, "cannot be compared with a length"),
    ("person", "nose.y * 2 > 0px", 0, "cannot be multiplied"),
    ("person", "nose.y / 2 > 0px", 0, "cannot be divided"),
    ("person", "-nose.y < 0px", 0, "has no negative"),
    ("person", "nose", 0, "is a point: expected a comparison"),
    ("person", "nose < left_hip", 0, "write nose.x, nose.y or distance(nose, ...)"),
    ("person", "nose.z < 1px", 0, "`nose` has no `z`: it has x, y and c"),
    ("person", "feet.c > 0.5", 0, "it has x and y"),
    ("person", "left_hand.y < nose.y", 0, "`left_hand.y` is not known; did you mean `left_wrist`?"),
    ("pair", "distance(a.handRight, b.head) < 1h", 9, "`a.handRight` is not known; did you mean `right_wrist`?"),
    ("person", "box.tp < 1px", 0, "did you mean `top`?"),
    ("person", "speed.x < 1px", 0, "`speed` has no `x`"),
    ("person", "in dor", 3, "there is no zone `dor`; did you mean `door`?"),
    ("person", "0.5 in door", 0, "is no point"),
    ("person", "crosses(door)", 8, "there is no line `door`"),
    ("person", "crosses(gate, rightwards)", 14, "did you mean `rightward`?"),
    ("person", "crosses()", 0, "takes the name of a line, as in crosses(gate)"),
    ("person", "door", 0, "`door` is a zone: write `in door`"),
    ("person", "gate", 0, "`gate` is a line: write crosses(gate)"),
    ("person", "nose.y < 1hh", 9, "there is no unit `hh`"),
    ("person", "distnce(nose, feet) < 1h", 0, "did you mean `distance`?"),
    ("person", "distance(nose) < 1h", 0, "takes 2 points, as in distance(left_wrist, nose)"),
    ("person", "abs(nose.y) < 1px", 0, "takes a difference"),
    ("person", "max(nose.y) < 1px", 0, "takes two values or more"),
    ("person", "max(nose.y, nose.x) < 1px", 12, "compares"),
    ("person", "(nose.y < 1px", 13, "expected `)` for the `(` at character 1, the condition ends here"),
    ("person", "nose.y < 1px nose.y", 13, "expected the end, `and`, `or` or an operator, got `nose`"),
    ("person", "nose.y = 1px", 7, "write `==`"),
    ("person", "nose.y < 1px && in door", 13, "write `and`"),
    ("person", "in 'door'", 3, "without quotes"),
    ("person", "", 0, "the condition is empty"),
    ("person", "nose.y <", 8, "expected a name, a number or `(`, the condition ends here"),
    ("person", "nose..y < 1px", 5, "expected a name after `nose.`"),
    ("person", "(nose.y < 1px) < 2", 1, "is a condition: expected a number or a place"),
    ("person", "nose.y < 99999999px", 9, "too large"),
    ("person", f"nose.y < {'9' * 400}px", 9, f"{'9' * 40} is too large"),
    ("person", "age >= ١٢s", 7, "`١` is not part"),
    ("person", "nose.__class__ < 1", 0, "has no `__class__`"),
    ("person", "__import__(nose)", 0, "there is no function `__import__`"),
    (
        "person",
        "any_arm(wrist.y < nose.y)",
        0,
        "there is no function `any_arm`; did you mean `either`? `either(wrist.y",
    ),
    (
        "person",
        "any_feet.y < nose.y",
        0,
        "did you mean `either`? `either(ankle.y < nose.y)` is about the left or the right",
    ),
    (
        "person",
        "both_hands(wrist.y < nose.y)",
        0,
        "did you mean `both`? `both(wrist.y < nose.y)` is about the left and",
    ),
    ("person", "count > 1", 0, "`count` is about the whole frame: it is known only under `when`, with `scope: scene`"),
    ("pair", "people > 2", 0, "`people` is about the whole frame: it is known only under `when`, with `scope: scene`"),
    ("person", "lean => 60deg", 5, "`=>` is not part of a condition: write `>=`"),
    ("person", "lean =< 60deg", 5, "write `<=`"),
    ("person", "lean > = 60deg", 5, "`>` and `=` stand apart: write `>=`"),
    ("person", "lean \u2265 60deg", 5, "write `>=`"),
    ("person", "in door || in door", 8, "`||` is not part of a condition: write `or`"),
    ("pair", "nose.y < 1px", 0, "of whom? the two people of a pair are a and b: a.nose or b.nose"),
    ("pair", "a < b", 0, "`a` is a person: write what of them, such as a.feet"),
    ("pair", "in door", 0, "whose feet? write `a.feet in ...`"),
    ("pair", "crosses(gate)", 0, "use it with `scope: person`"),
    ("scene", "nose.y < 1px", 0, "a scene has no `nose.y`"),
    ("scene", "count > 0.5h", 8, "measured on one person"),
    ("person", "(" * 60 + "nose.y < 1px" + ")" * 60, 41, "more than 40 levels"),
    ("person", " and ".join(["in door"] * 150), 8 + 13 * 66, "more than 200 words and signs"),
    ("person", "in door or " * 300, 0, "at most 2000 are accepted"),
    ("person", "speed > 1,5h/s", 8, "`1,5h/s`: write `1.5h/s`, with a point"),
    ("person", "age > 2s and lean > 30,5deg for 2s", 20, "write `30.5deg`"),
    ("person", "speed > 1h/s, 2h/s", 12, "expected the end, `and`, `or` or an operator, got `,`"),
    ("person", "speed > 5km/h", 8, "a picture has no metres: of somebody 1.7 m tall this is `0.82h/s`"),
    ("person", "box.height > 2m", 13, "of somebody 1.7 m tall this is `1.2h`"),
    (
        "person",
        "speed > 3 m/s",
        8,
        "`3 m/s`: there is no unit `m/s`; a picture has no metres: of somebody 1.7 m tall this is `1.8h/s`",
    ),
    ("person", "speed > 3m / s", 8, "this is `1.8h/s`"),
    ("person", "speed > 3 km/h", 8, "of somebody 1.7 m tall this is `0.49h/s`"),
    ("person", "speed > 5 mph for 2s", 8, "this is `1.3h/s`"),
    ("person", "torso > 1 m", 8, "this is `0.59h` (minutes are `1min`)"),
    (
        "person",
        "torso > 1m",
        8,
        "no unit `m`; a picture has no metres: of somebody 1.7 m tall this is `0.59h` (minutes are `1min`)",
    ),
    ("person", "torso > 50 cm", 8, "this is `0.29h`"),
    ("person", "torso > 3 feet", 8, "this is `0.54h`"),
    ("person", "torso > 2 metres", 8, "this is `1.2h`"),
    ("person", "torso > 1 km", 8, "this is `590h`"),
    ("person", "in door for 5 m", 12, "`5 m` is no time: expected one such as 2s or 500ms; did you mean `5min`?"),
    (
        "person",
        "in door for 5minutes",
        12,
        "`5minutes` is no time: expected one such as 2s or 500ms; did you mean `5min`?",
    ),
    ("person", "age > 2 hours", 6, "`2 hours`: write `120min`, without a space"),
    ("person", "age > 2hours", 6, "there is no unit `hours`; did you mean `120min`?"),
    (
        "person",
        "age > 2h",
        0,
        "a time cannot be compared with a length: `h` is the height of a body; for hours write `120min`",
    ),
    ("person", "lean > 60\u00b0", 7, "no unit `\u00b0`; did you mean `60deg`?"),
    ("person", "lean > 60 \u00b0 and in door", 7, "did you mean `60deg`?"),
    ("person", "speed > 0.3h", 0, "a speed cannot be compared with a length: did you mean `0.3h/s`?"),
    ("person", "0.3bl < speed", 0, "did you mean `0.3bl/s`?"),
    ("person", "torso > 0.3h/s", 0, "a length cannot be compared with a speed: did you mean `0.3h`?"),
    (
        "person",
        "change(lean, 1s) > 30deg/s",
        0,
        "an angle cannot be compared with a speed of turning: did you mean `30deg`?",
    ),
    ("person", "speed > 3 h / s", 8, "`3 h/s`: write `3h/s`, without a space"),
    ("person", "score > 50%", 8, "there is no unit `%`; write `0.5`, and of the frame `0.5fw` or `0.5fh`"),
    ("person", "score > 50 %", 8, "write `0.5`, and of the frame `0.5fw` or `0.5fh`"),
    ("person", "in door for 5", 12, "expected a time such as 2s or 500ms after `for`, got `5`; did you mean `5s`?"),
    ("person", "drop(hips.y, 2) > 1h", 13, "`2` is no time: expected one such as 2s or 500ms; did you mean `2s`?"),
    ("person", "age > 8:00", 7, "the time of day has its place under `schedules`"),
    ("person", "visible > 0.5", 0, "`min_visible` is a key of the rule"),
]


@pytest.mark.parametrize(
    "text",
    [
        *("score <= 1", "score != 5", "lean >= 0deg", "lean > 179deg", "speed > 0h/s", "0 < score < 2", "age > 0s"),
        *("total(in door, 60s) >= 60s", "frontal > 5", "nose.x < -10px", "velocity(nose.y) < -1h/s"),
        *("drop(lean, 1s) > 0deg", "-3 > -2", "2 < 1", "-(score) < 1", "-torso < 1px"),
    ],
)
def test_a_comparison_that_can_be_true(text: str) -> None:
    assert compile_condition(text, "person", zones=ZONES, lines=LINES).never == ()


@pytest.mark.parametrize(
    ("scope", "text", "never"),
    [
        ("person", "score > 5", "`score > 5` is never true: `score` is from 0 to 1"),
        ("person", "in door and lean > 400deg", "`lean > 400deg` is never true: `lean` is from 0 to 180deg"),
        ("person", "left_wrist.c >= 1.01", "is from 0 to 1"),
        ("person", "5 < usual(score, 3s)", "`usual(score, 3s)` is from 0 to 1"),
        ("person", "0 < score < -2", "`score < -2` is never true"),
        ("person", "angle(nose, left_hip, left_knee) == 181deg", "is from 0 to 180deg"),
        ("person", "was speed < 0h/s within 2s", "`speed` is never below 0"),
        ("person", "dwell(door) < 0s", "is never below 0"),
        ("scene", "count < 0", "`count` is never below 0"),
        ("pair", "a.score > 1", "`a.score` is from 0 to 1"),
    ],
)
def test_a_comparison_that_can_never_be_true(scope: Scope, text: str, never: str) -> None:
    (found,) = compile_condition(text, scope, zones=ZONES, lines=LINES).never
    assert never in found


@pytest.mark.parametrize("zone", ["Küche", "厨房", "кухня", "रसोई", "κουζίνα", "台所2"])
def test_names_in_any_script(zone: str) -> None:
    for text in (f"in {zone}", f"feet not in {unicodedata.normalize('NFD', zone)}", f"dwell({zone}) > 5s"):
        assert compile_condition(text, "person", zones=[zone], lines=[]).zones == {zone}
    with pytest.raises(ExpressionError, match="there is no zone `Kuche`; did you mean `Küche`"):
        compile_condition("in Kuche", "person", zones=["Küche"], lines=[])


@pytest.mark.parametrize("between", ["in", "not in"])
def test_a_condition_beside_a_zone(between: str) -> None:
    with pytest.raises(ExpressionError, match=f"did you mean `low and {between} door`"):
        compile_condition(f"low {between} door", "person", zones=["door"], lines=[], words={"low": "lean > 60deg"})


@pytest.mark.parametrize(("scope", "text", "at", "words"), MISTAKES, ids=[text[:40] for _, text, _, _ in MISTAKES])
def test_mistakes(scope: Scope, text: str, at: int, words: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_condition(text, scope, zones=ZONES, lines=LINES)
    assert words in str(caught.value)
    if "200 words" not in words and "levels" not in words:
        assert caught.value.at == at


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            "left_foot.y > 0.5fh and head.y < 0.5fh and right_shoulders.y < 1fh and hand.y < neck.y and hip.x<knee.x",
            ["left_foot.y", "head.y", "right_shoulders.y", "hand.y", "neck.y", "hip.x", "knee.x"],
        ),
        ("left_rist.y < nose.y - 0.1", ["left_rist.y", "nose.y - 0.1"]),
        ("0 < nose.y < left_rist.y or in dor", ["0 < nose.y", "left_rist.y", "dor"]),
        ("not (max(nse.y, speed.x) < 1hh)", ["nse.y", "speed.x", "1hh"]),
        ("distance(nse, feeet) < 1h + 2deg", ["nse", "feeet", "1h + 2deg"]),
    ],
)
def test_every_mistake_at_once(text: str, wrong: list[str]) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_condition(text, "person", zones=ZONES, lines=LINES)
    assert [error.at for error in caught.value.all] == [text.index(part) for part in wrong]
    assert all(f"`{part}`" in str(error) for part, error in zip(wrong, caught.value.all, strict=True))


# ---- three-valued logic against an interpreter of the tree

Environment = dict[str, float]


def interpreted(node: Node, k: list[float], p: Person) -> Any:
    """Kleene's logic over the tree, number by number: None is unknown."""
    if isinstance(node, Junction):
        truths = [interpreted(operand, k, p) for operand in node.operands]
        decisive = node.operator == "or"
        return decisive if decisive in truths else None if None in truths else not decisive
    if isinstance(node, Not):
        truth = interpreted(node.operand, k, p)
        return None if truth is None else not truth
    if isinstance(node, Comparison):
        values = [interpreted(operand, k, p) for operand in node.operands]
        truths = [compare(op, values[i], values[i + 1]) for i, op in enumerate(node.operators)]
        return False if False in truths else None if None in truths else True
    if isinstance(node, Inside):
        assert isinstance(node.point, Name)
        x, _ = place(node.point.parts[0], k)
        return None if math.isnan(x) else x < 50 and node.zone.text == "door"
    return value(node, k, p)


def value(node: Node, k: list[float], p: Person) -> float | None:
    if isinstance(node, Number):
        return node.value * {"h": p.h, "px": 1.0}[node.unit]
    if isinstance(node, Negative):
        inner = value(node.operand, k, p)
        return None if inner is None else -inner
    if isinstance(node, Arithmetic):
        left, right = value(node.left, k, p), value(node.right, k, p)
        if left is None or right is None:
            return None
        return left + right if node.operator == "+" else left - right
    if isinstance(node, Call):
        values = [value(argument, k, p) for argument in node.arguments]
        return None if None in values else max(v for v in values if v is not None)
    assert isinstance(node, Name)
    known = place(node.parts[0], k)["xy".index(node.parts[1])]
    return None if math.isnan(known) else known


def place(joint: str, k: list[float]) -> tuple[float, float]:
    at = COCO_17.index(joint) * 2
    return k[at], k[at + 1]


def compare(operator: str, left: float | None, right: float | None) -> bool | None:
    if left is None or right is None:
        return None
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
            "==": left == right, "!=": left != right}[operator]  # fmt: skip


names = st.sampled_from(["nose", "left_wrist", "right_wrist", "left_hip"])
lengths = st.sampled_from(["0.1h", "5px", "-3px", "0px", "(left_hip.y - nose.y)"])
heights = st.one_of(
    names.map("{}.y".format),
    st.tuples(names, st.sampled_from("+-"), lengths).map(lambda t: f"{t[0]}.y {t[1]} {t[2]}"),
    st.tuples(names, names).map(lambda t: f"max({t[0]}.y, {t[1]}.y)"),
)
signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
atoms = st.one_of(
    st.tuples(heights, signs, heights).map(" ".join),
    st.tuples(heights, signs, heights, signs, heights).map(" ".join),
    st.tuples(names, st.sampled_from(["in", "not in"]), st.sampled_from(ZONES)).map(" ".join),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        inner.map("not ({})".format),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        st.tuples(inner, st.sampled_from([" and ", " or "]), inner, inner).map(lambda t: t[1].join((t[0], *t[2:]))),
    ),
    max_leaves=6,
)
coordinates = st.sampled_from([NAN, 0.0, 5.0, 10.0, 49.0, 50.0, 60.0])


@settings(max_examples=300)
@given(conditions, st.lists(coordinates, min_size=17, max_size=17), st.lists(coordinates, min_size=17, max_size=17))
def test_same_as_the_interpreter(text: str, xs: list[float], ys: list[float]) -> None:
    k = [v for x, y in zip(xs, ys, strict=True) for v in ((NAN, NAN) if math.isnan(x + y) else (x, y))]
    tree = parse(text)
    surroundings = Surroundings(100, 100, {"door": lambda x, y: x < 50, "yard": lambda x, y: False})
    condition = compile_condition(text, "person", zones=ZONES, lines=[])
    assert condition.judge(k, person(), surroundings) is interpreted(tree, k, person())


@settings(max_examples=400)
@given(st.text(alphabet="abh.0159<>=!+-*/(), _ndorinot\n", max_size=60))
def test_no_text_does_harm(text: str) -> None:
    """Any text is a condition or an ExpressionError with a place in it; nothing else happens."""
    try:
        condition = compile_condition(text, "person", zones=["a"], lines=["b"])
    except ExpressionError as error:
        place_of_it = error.at
    else:
        place_of_it = 0
        assert condition.judge(joints(), person(), Surroundings(1, 1, {"a": lambda x, y: True})) in (True, False, None)
    assert 0 <= place_of_it <= len(text)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("left_hand", "left_wrist"), ("l_hand", "left_wrist"), ("handLeft", "left_wrist"), ("lefthand", "left_wrist"),
        ("wrist_left", "left_wrist"), ("LeftWrist", "left_wrist"), ("right_foot", "right_ankle"),
        ("left_feet", "left_ankle"), ("hands", "wrists"), ("hand", "wrists"), ("wrist", "wrists"), ("foot", "feet"),
        ("head", "nose"), ("face", "nose"), ("neck", "shoulders"), ("left_arm", "left_elbow"), ("legs", "knees"),
        ("waist", "hips"), ("body", "center"), ("height", "box.height"), ("top", "box.top"), ("confidence", "score"),
        ("velocity", "speed"), ("tail", ""), ("left", "box.left"), ("left_right_hand", ""), ("", ""),
    ],
)  # fmt: skip
def test_words_that_people_write_for_parts_of_the_body(word: str, name: str) -> None:
    assert meant(word) == name
    if name:
        assert look_up(tuple(name.split(".")), "person")


@pytest.mark.parametrize(("written", "meant"), [("2m", "2min"), ("2 m", "2min"), ("2sec", "2s"), ("2 minutes", "2min")])
def test_a_usual_spelling_of_a_time_is_understood(written: str, meant: str) -> None:
    with pytest.raises(ExpressionError, match=f"(unit `[a-z]+`; did you mean|: write) `{meant}`"):
        compile_condition(f"age > {written}", "person", zones=(), lines=())


@pytest.mark.parametrize(
    ("scope", "text", "told"),
    [
        ("person", "distance(a.feet, b.feet) < 1h", "`a.feet` is about one of two people: it needs `scope: pair`"),
        ("person", "b.speed > 1h/s", "`b.speed` is about one of two people: it needs `scope: pair`"),
        ("person", "a.feet in door", "`a.feet` is about one of two people: it needs `scope: pair`"),
        ("scene", "a.speed > 1h/s", "`a.speed` is about one of two people: it needs `scope: pair`"),
        ("person", "a.low", "`a.low` is about one of two people: it needs `scope: pair`"),
    ],
)
def test_who_is_one_of_a_pair_needs_that_scope(scope: Scope, text: str, told: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(told)):
        compile_condition(text, scope, zones=ZONES, lines=LINES, words={"low": "lean > 60deg"})


def test_a_word_knows_nobody_of_a_pair() -> None:
    uses: tuple[tuple[Scope, str], ...] = (("person", "quick"), ("pair", "a.quick"))
    words = {"quick": "a.speed > 1h/s"}
    for scope, text in uses:
        with pytest.raises(ExpressionError, match=r"a word is about one person, and knows no `a`: write `a.speed`"):
            compile_condition(text, scope, zones=ZONES, lines=LINES, words=words)


def test_a_number_without_a_unit_has_one_hint() -> None:
    for text, hint in (("swings(left_wrist.x) > 2", r"2/s \(so many a second\)"), ("age > 5", "2s or 500ms")):
        with pytest.raises(ExpressionError, match=f"cannot be compared with a bare number: .* such as {hint}$"):
            compile_condition(text, "person", zones=(), lines=())
