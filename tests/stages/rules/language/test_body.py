"""The body in conditions: sides, the torso's axis, the borders of the picture, movement back and forth."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import pytest
from tests.stages.rules.language.film import SIZE, STANDING, Pose, answers, filmed, picture, still

from camgraph.stages.rules.language.condition import compile_condition
from camgraph.stages.rules.language.crowd import Crowd, Picture
from camgraph.stages.rules.language.expression import ExpressionError
from camgraph.stages.rules.language.geometry import Surroundings
from camgraph.stages.vision.frame_interval import FrameInterval


def truth_of(when: str, pose: Pose, **given: Any) -> bool | None:
    return answers(when, [pose], **given)[0]


def turned(degrees: float, **moved: tuple[float, float]) -> Pose:
    """Someone who stands, or lies, turned about the middle of the picture."""
    places = {**STANDING, **moved}
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    around = {
        name: (
            300 + (place[0] - 300) * cos - (place[1] - 150) * sin,
            150 + (place[0] - 300) * sin + (place[1] - 150) * cos,
        )
        for name, place in places.items()
        if place
    }
    return Pose(dict(around))


LEFT_UP = {"left_wrist": (312.0, 100.0)}
RIGHT_UP = {"right_wrist": (288.0, 100.0)}


@pytest.mark.parametrize(
    ("moved", "either", "both"),
    [
        ({}, False, False),
        (LEFT_UP, True, False),
        (RIGHT_UP, True, False),
        (LEFT_UP | RIGHT_UP, True, True),
        ({"left_wrist": None}, None, False),
        ({"left_wrist": None} | RIGHT_UP, True, None),
        ({"left_wrist": None, "right_wrist": None}, None, None),
    ],
)
def test_either_and_both_sides(moved: Any, either: bool | None, both: bool | None) -> None:
    words = {"raised": "wrist.y < nose.y"}
    for condition in ("wrist.y < nose.y", "raised"):
        assert truth_of(f"either({condition})", Pose(moved), words=words) is either
        assert truth_of(f"both({condition})", Pose(moved), words=words) is both


def test_the_other_side() -> None:
    crossed = still(left_wrist=(290, 138), right_wrist=(310, 138))
    for condition in ("both(distance(wrist, other_elbow) < 0.1bl)", "either(distance(wrist, other_elbow) < 0.1bl)"):
        assert truth_of(condition, crossed) is True
        assert truth_of(condition, still()) is False


def test_evidence_says_which_side() -> None:
    condition = compile_condition("either(wrist.y < nose.y)", "person", zones=[], lines=[])
    assert [text for text, _ in condition.parts] == ["wrist.y < nose.y (left)", "wrist.y < nose.y (right)"]


@pytest.mark.parametrize("degrees", [0, 45, 90, 180, -90])
def test_positions_along_the_body(degrees: float) -> None:
    """A hand over the head is above the shoulder also of someone who lies, or stands on their head."""
    assert truth_of("above(left_wrist, left_shoulder) > 0.9bl", turned(degrees, **LEFT_UP)) is True
    assert truth_of("above(left_wrist, left_shoulder) > 0.9bl", turned(degrees)) is False
    assert truth_of("-1.01bl < above(hips, shoulders) < -0.99bl", turned(degrees)) is True
    assert truth_of("beside(left_wrist, shoulders) > 0.45bl", turned(degrees)) is True
    assert truth_of("beside(nose, shoulders) < 0.01bl", turned(degrees)) is True
    assert truth_of("frontal > 0.4", turned(degrees)) is True


def test_the_back_is_towards_the_camera() -> None:
    back = still(left_shoulder=(294, 125), right_shoulder=(306, 125))
    assert truth_of("frontal < -0.4", back) is True
    assert truth_of("frontal < -0.4", still(left_shoulder=None)) is None


LEGS = {f"{side}_{joint}": None for side in ("left", "right") for joint in ("knee", "ankle")}
HIPS = {"left_hip": None, "right_hip": None}
HEAD_ALONE = {name: None for name in STANDING if not name.endswith(("_ear", "_shoulder"))}


def behind(moved: dict[str, tuple[float, float] | None]) -> Picture:
    """Of somebody 90 pixels tall, of whom only the upper 40 are seen."""
    one = picture(0, [Pose(moved)])
    one.boxes[0, 3] = 140
    return one


def tall(seen: Picture, floor: float = 0.3) -> float:
    """`body_height`, in pixels; NaN if it is unknown."""
    condition = compile_condition("body_height > 1px", "person", zones=[], lines=[])
    crowd = Crowd().seen(seen, Surroundings(*SIZE, {}, {}), FrameInterval(), with_lost=False)
    [[height, _]] = condition.values(*crowd.subjects("person", floor, with_lost=False)[(1,)].arguments)
    return float(height)


@pytest.mark.parametrize("moved", [LEGS, LEGS | HIPS, HEAD_ALONE])
def test_how_tall_somebody_is_whose_legs_are_hidden(moved: dict[str, tuple[float, float] | None]) -> None:
    assert tall(picture(0, [still()])) == pytest.approx(90)
    assert 50 < tall(behind(moved)) <= 90


def test_how_tall_somebody_is_who_lies_or_sits() -> None:
    """The box is that of the posture; the body is as long as ever."""
    lies = picture(0, [turned(90)])
    lies.boxes[0] = 262, 138, 338, 162
    assert tall(lies) == pytest.approx(85, abs=8)


def test_nobody_knows_how_tall_somebody_is_without_a_known_limb() -> None:
    unknown = behind(dict.fromkeys(STANDING))
    assert math.isnan(tall(unknown))
    assert answers("speed < 1bh/s", [Pose(dict.fromkeys(STANDING))] * 20) == [None] * 20
    assert math.isnan(tall(behind(LEGS), floor=0.95))


def test_without_joints_the_box_is_the_height() -> None:
    assert tall(dataclasses.replace(behind({}), joints_known=False)) == 40


CONDITIONS = [
    "above(left_wrist, left_shoulder) > 0.9bl",
    "either(wrist.y < nose.y - 0.1h)",
    "beside(left_wrist, hips) > 0.45bl",
    "frontal > 0.4",
    "angle(left_shoulder, left_elbow, left_wrist) < 40deg",
    "swings(left_wrist.x, 0.3bl) >= 1.5/s",
    "swings(left_wrist.x) >= 1.5/s",
    "velocity(left_wrist.y) < -0.1bl/s",
    "speed(left_wrist) > 1bl/s",
    "speed(left_wrist) > 0.3bh/s",
    "0.99h < body_height < 1.01h",
    "drop(left_wrist.y) > 0.2bl within 0.5s",
    "left_wrist.y < usual(left_wrist.y, 2s) for 0.3s",
    "first left_wrist.y < nose.y then not left_wrist.y < nose.y within 1s",
]


def waving(t: float) -> Pose:
    """Two swings a second, and the arm goes up and down twice in four seconds."""
    x, y = 312 + 8 * math.sin(4 * math.pi * t), 118 + 20 * math.sin(math.pi * t)
    return still(left_wrist=(x, y))


@pytest.mark.parametrize("when", CONDITIONS)
@pytest.mark.slow
def test_neither_scale_nor_a_mirror_matter(when: str) -> None:
    """A mirror makes the right hand of the left one; conditions about one side are mirrored with it."""
    frames = filmed(waving, 4, 25)
    sides = {"left": "right", "right": "left"}
    mirrored = re.sub("left|right", lambda side: sides[side[0]], when)
    plain = answers(when, frames, 25)
    assert True in plain
    for scale in (0.4, 3.0):
        scaled = [dataclasses.replace(pose, scale=scale) for pose in frames if pose]
        assert answers(when, scaled, 25) == plain
    assert answers(mirrored, [dataclasses.replace(pose, mirrored=True) for pose in frames if pose], 25) == plain


@pytest.mark.parametrize("fps", [25, 12.5, 8])
@pytest.mark.parametrize("rate", [0.5, 1.0, 1.5])
@pytest.mark.slow
def test_swings_counts_cycles_a_second(fps: float, rate: float) -> None:
    def wave(t: float) -> Pose:
        return still(left_wrist=(312 + 10 * math.sin(2 * math.pi * rate * t), 150))

    frames = filmed(wave, 8, fps)
    settled = round(5 * fps)
    near = answers(f"{rate - 0.15}/s < swings(left_wrist.x, 0.3bl, 4s) < {rate + 0.15}/s", frames, fps)[settled:]
    assert near == [True] * len(near)
    assert True not in answers("swings(left_wrist.x, 0.9bl, 4s) > 0/s", frames, fps)


def test_one_movement_is_no_swinging() -> None:
    def nod(t: float) -> Pose:
        return still(left_wrist=(312 + (20 if 1 < t < 1.2 else 0), 150))

    truths = answers("swings(left_wrist.x, 0.3bl) >= 1/s", filmed(nod, 4, 25), 25)
    assert True not in truths
    assert None not in truths


AT_THE_TOP = {"left_shoulder": (306.0, 30.0), "left_elbow": (306.0, 10.0)}


@pytest.mark.parametrize(
    ("when", "moved", "expected"),
    [
        ("beyond(left_wrist, top)", AT_THE_TOP | {"left_wrist": None}, True),
        ("beyond(left_wrist)", AT_THE_TOP | {"left_wrist": None}, True),
        ("beyond(left_wrist, bottom)", AT_THE_TOP | {"left_wrist": None}, None),
        ("beyond(left_wrist, top)", AT_THE_TOP | {"left_wrist": (306.0, 4.0)}, False),
        ("beyond(left_wrist, top)", {"left_wrist": None}, None),
        ("beyond(left_wrist, top)", AT_THE_TOP | {"left_wrist": None, "left_elbow": None}, None),
        ("either(beyond(wrist, top))", AT_THE_TOP | {"left_wrist": None}, True),
        ("both(beyond(wrist, top))", AT_THE_TOP | {"left_wrist": None}, False),
        ("beyond(left_ankle, bottom)", {"left_ankle": None}, None),
        ("beyond(nose, top)", {"nose": None}, None),
    ],
)
def test_a_joint_beyond_the_border(when: str, moved: Any, expected: bool | None) -> None:
    assert truth_of(when, Pose(moved)) is expected


def test_a_body_cut_off_by_the_border() -> None:
    assert truth_of("beyond(left_ankle, bottom)", Pose({"left_ankle": None}, feet=(300, 479))) is True
    assert truth_of("beyond(left_knee, bottom)", Pose({"left_knee": None}, feet=(300, 479))) is True
    assert truth_of("beyond(left_knee, top)", Pose({"left_knee": None}, feet=(300, 479))) is None
    assert truth_of("beyond(nose, top)", Pose({"nose": None}, feet=(300, 91))) is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("either(left_wrist.y < nose.y)", "about joints without a side"),
        ("either(both(wrist.y < nose.y))", "do not stand inside each other"),
        ("either()", "expected either"),
        ("wrist.y < nose.y", "did you mean `wrists`, or either..... or both..... around the condition"),
        ("beyond(wrists, top)", "`wrists` is no joint"),
        ("beyond(left_wrist, up)", "`up` is no side of the picture"),
        ("above(left_wrist) > 1bl", r"above\(...\) takes 2 points"),
        ("above(left_wrist, nose) > 1", "give the number a unit"),
        ("swings(left_wrist.x, 20deg) > 1/s", "how far each way\\? expected a length, got an angle"),
        ("swings(score) > 1/s", "how far each way"),
        ("swings(lean) > 1", "give the number a unit, such as 2/s"),
        ("velocity(speed) > 1/s", "means nothing here"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        compile_condition(text, "person", zones=[], lines=[])


def test_in_a_pair_along_the_body_of_the_first() -> None:
    condition = compile_condition("above(a.left_wrist, b.nose) > 0.1h", "pair", zones=[], lines=[])
    assert condition.parts[0][0] == "above(a.left_wrist, b.nose) > 0.1h"
    assert compile_condition("either(distance(a.wrist, b.wrist) < 0.1h)", "pair", zones=[], lines=[])
    assert compile_condition("beyond(b.left_wrist, top)", "pair", zones=[], lines=[])
