"""The words that come with camgraph, on bodies made of numbers whose postures are known, from all around."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.stages.rules.language.film import SECOND, At, Pose, answers, filmed, still

from camgraph.stages.rules.language.condition import compile_condition
from camgraph.stages.rules.language.crowd import Bodies, Picture
from camgraph.stages.rules.language.geometry import Surroundings
from camgraph.stages.rules.language.incidents import Timing
from camgraph.stages.rules.language.judge import Judge, Rule
from camgraph.stages.rules.language.people import Person, with_more
from camgraph.stages.rules.library import library
from camgraph.stages.rules.rule_set import parse_rules
from camgraph.tools.scenes.animator import PERFECT, YOLO11N, Actor, Camera, PoseModel, Scene, gestures
from camgraph.tools.scenes.animator import library as motions
from camgraph.tools.scenes.animator.motion import Motion, kept
from camgraph.tools.scenes.animator.pose import Posture

WORDS = {name: word.means for name, word in library().words.items()}
VALUES = {"size", "leg_size", "usual_height"}
"""Words that are lengths."""
TIMED = {
    *("lying", "seems_to_lie", "low", "up_again", "off_the_ground"),
    *(
        "tall",
        "legs_seen",
        "torso_seen",
        "on_legs",
        "held_up",
        "on_the_ground",
        "plunging",
        "came_down",
        "has_fallen",
        "seems_to_have_fallen",
        "falling",
    ),
}
"""Words that look back in time."""
STAND = {"upright", "straight_legs", "standing", "up", "seems_up", "on_a_foot"}
HANDS = {"raised_hand", "raised_hands", "hand_to_face", "hands_together", "arms_crossed", "reaching"}
SIDES = {"facing", "turned_away", "foreshortened"}


def test_who_stands_below_a_steep_camera_does_not_sit() -> None:
    """As models see a woman in a long coat, from behind and above: thigh and shin look equally short."""
    moved = {"shoulder": (37, 0), "hip": (15, 90), "knee": (12, 140), "ankle": (10, 194)}
    places = {
        f"{side}_{joint}": (300.0 - sign * x, 200.0 + y)
        for joint, (x, y) in moved.items()
        for side, sign in (("left", 1), ("right", -1))
    }
    assert answers("sitting", [Pose(places)], words=WORDS) == [False]


def gesture(made: Motion, begin_s: float = 1.5, end_s: float = 3.0) -> tuple[list[Motion], Posture, float, float]:
    return [made], {}, begin_s, end_s


def posture(name: str, columns: Posture) -> tuple[list[Motion], Posture, float, float]:
    return [kept(name, columns, 2.0)], columns, 0.5, 2.0


POSES = {
    "standing": gesture(motions.standing(3.0)),
    "walking": gesture(motions.walk([(2.0, 0.0)], 1.2), 0.2, 1.6),
    "sitting": posture("sitting", motions.SITTING),
    "crouched": posture("crouched", motions.CROUCHED),
    "bent": posture("bent", motions.BENT),
    "on back": posture("on back", motions.ON_BACK),
    "on front": posture("on front", motions.ON_FRONT),
    "on left": posture("on left", motions.ON_LEFT),
    "hands up": gesture(motions.gesturing("hands up", gestures.hands_up(0.5, 4.5), 5.0)),
    "one hand up": gesture(motions.gesturing("one hand up", gestures.one_hand_up("right", 0.5, 4.5), 5.0)),
    "waving": gesture(motions.gesturing("waving", gestures.waving("right", 0.5, 5.5), 6.0)),
    "arms crossed": gesture(motions.gesturing("arms crossed", gestures.arms_crossed(0.5, 4.5), 5.0)),
    "phoning": gesture(motions.gesturing("phoning", gestures.phoning("right", 0.5, 5.5), 6.0)),
    "texting": gesture(motions.gesturing("texting", gestures.texting("left", 0.5, 4.5), 5.0)),
    "reaching": gesture(motions.gesturing("reaching", gestures.reaching("right", 0.5, 3.5), 4.0)),
    "pointing": gesture(motions.gesturing("pointing", gestures.pointing("right", 0.5, 3.5), 4.0)),
}
"""Motions, the posture before them, and from when to when it is kept."""
TRUE = {
    **dict.fromkeys(("standing", "walking", "texting"), STAND),
    "sitting": {"upright", "sitting", "on_a_foot"},
    "crouched": {"crouching", "on_a_foot"},
    "bent": {"bent", "straight_legs", "on_a_foot"},
    **{key: {"level"} for key in ("on back", "on front", "on left")},
    "hands up": STAND | {"raised_hand", "raised_hands"},
    **dict.fromkeys(("one hand up", "waving"), STAND | {"raised_hand"}),
    "arms crossed": STAND | {"arms_crossed"},
    "phoning": STAND | {"hand_to_face"},
    **dict.fromkeys(("reaching", "pointing"), STAND | {"reaching"}),
}
EITHER = {
    "walking": {"hands_together"},
    "sitting": {"crouching", "hands_together", "up", "seems_up"},
    "crouched": {"upright", "sitting", "hands_together", "reaching", "on_a_foot"},
    "bent": {"hands_together", "on_a_foot"},
    **dict.fromkeys(("on back", "on front", "on left"), HANDS | {"straight_legs", "crouching", "sitting", "on_a_foot"}),
    **{key: {"reaching", "hands_together"} for key in ("hands up", "one hand up", "waving")},
    "arms crossed": {"hands_together"},
    "texting": {"hands_together"},
    **{key: {"raised_hand"} for key in ("phoning", "reaching", "pointing")},
}
"""Nobody can say, or it depends on the side from which it is seen."""
JUDGED = sorted(WORDS.keys() - TIMED - VALUES - SIDES)


@functools.cache
def shares(pose: str, model: PoseModel, height_m: float, bearing: int) -> dict[str, tuple[float, float]]:
    """Word -> in which shares of the frames it is surely true, and surely false."""
    script, start, begin_s, end_s = POSES[pose]
    scene = Scene(pose, [Actor(script, posture=start)], duration_s=end_s)
    reported: dict[str, list[bool | None]] = {name: [] for name in WORDS.keys() - TIMED - VALUES}
    for seen in scene.frames(3.0, 0, Camera(height_m).at(5.0, bearing), model):
        rows = np.flatnonzero(seen.ids == 1)[:1]
        if seen.time_ns < begin_s * 1e9 or not len(rows):
            continue
        keypoints = seen.keypoints[rows].astype(np.float64)
        k = Bodies(with_more(np.where(keypoints[:, :, 2:] >= 0.3, keypoints[:, :, :2], np.nan))).joints(0)
        left, top, right, bottom = seen.boxes[rows[0]].tolist()
        person = Person(1, 0, left, top, right, bottom, 0.9, [0.9] * 17)
        for name, found in reported.items():
            condition = compile_condition(name, "person", zones=[], lines=[], words=WORDS)
            found.append(condition.judge(k, person, Surroundings(*seen.frame_size)))
    return {
        name: (sum(one is True for one in found) / len(found), sum(one is False for one in found) / len(found))
        for name, found in reported.items()
    }


def wrong_share(word: str, model: PoseModel, heights: Sequence[float], bearings: Sequence[int]) -> float:
    wrong = []
    for pose in POSES:
        if word not in EITHER.get(pose, set()):
            for height in heights:
                for bearing in bearings:
                    true, false = shares(pose, model, height, bearing)[word]
                    wrong.append(false if word in TRUE[pose] else true)
    return sum(wrong) / len(wrong)


@pytest.mark.parametrize("word", JUDGED)
@pytest.mark.slow
def test_a_word_is_right_from_all_around(word: str) -> None:
    """Over all postures, from 1.4 and 2.6 m of height: at most 2 % of all answers are wrong, even of a noisy model."""
    assert wrong_share(word, PERFECT, (1.4, 2.6), (0, 60, 120, 180)) < 0.02
    assert wrong_share(word, YOLO11N, (1.4, 2.6), (0, 60, 120, 180)) < 0.03


@pytest.mark.parametrize(
    ("pose", "word"),
    [
        *((pose, "standing") for pose in ("standing", "walking", "hands up", "phoning")),
        ("sitting", "sitting"),
        ("bent", "bent"),
        *((pose, "level") for pose in ("on back", "on front")),
        *((pose, "raised_hand") for pose in ("hands up", "one hand up", "waving")),
        ("hands up", "raised_hands"),
        ("arms crossed", "arms_crossed"),
        ("phoning", "hand_to_face"),
        ("pointing", "reaching"),
    ],
)
def test_a_posture_is_recognised(pose: str, word: str) -> None:
    found = [shares(pose, PERFECT, 1.4, bearing)[word][0] for bearing in (0, 60, 120, 180)]
    assert min(found) > 0.6


def test_which_way_somebody_faces() -> None:
    for bearing, facing, away in ((0, True, False), (45, True, False), (90, False, False), (180, False, True)):
        found = shares("standing", PERFECT, 1.6, bearing)
        assert (found["facing"][0] > 0.9, found["turned_away"][0] > 0.9) == (facing, away)


@pytest.mark.parametrize("word", sorted(WORDS.keys() - TIMED - VALUES - {"frontal"}))
def test_a_word_without_its_joints_is_unknown(word: str) -> None:
    nothing = Pose(dict.fromkeys(still().places))
    assert answers(word, [nothing], words=WORDS) == [None]


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        (("left_knee", "left_ankle"), True),
        (("left_ankle", "right_ankle"), True),
        (("left_knee", "right_knee"), None),
        (("left_hip", "right_knee"), None),
    ],
)
def test_one_thigh_shows_who_seems_up(hidden: Sequence[str], expected: bool | None) -> None:
    """Models often miss the leg that is farther away."""
    assert answers("seems_up", [still(**dict.fromkeys(hidden))], words=WORDS) == [expected]


def test_low_is_to_have_come_down() -> None:
    def sinking(t: float) -> Pose:
        down = 40 * min(max(t - 2, 0), 1)
        return Pose({joint: (place[0], place[1] + down) for joint, place in still().places.items() if place})

    truths = answers("low", filmed(sinking, 5, 10), words=WORDS)
    assert [truths[10], truths[45]] == [False, True]


FALLS = re.findall(r"- id: falls\n    when: (first .*)", (Path(__file__).parents[3] / "docs" / "rules.md").read_text())
"""The rule of the documentation."""
MOVES = {
    "falls forward": [motions.standing(2.0), motions.fall("forward", lie_s=3)],
    "falls backward": [motions.standing(2.0), motions.fall("backward", lie_s=3)],
    "falls sideways": [motions.standing(2.0), motions.fall("left", lie_s=3)],
    "slumps": [motions.standing(2.0), motions.slump(), motions.waiting(3)],
    "walks": [motions.walk([(3.0, 0.0)], 1.3)],
    "sits down fast": [motions.standing(1), motions.sit_down(0.6), motions.sitting(3)],
    "bends": [motions.standing(1), motions.bend(), motions.standing(3)],
    "ties shoes": [motions.standing(0.5), motions.tie_shoes(3.0), motions.standing(2)],
    "lies down": [motions.standing(0.5), motions.lie_down("back"), motions.lying("back", 3)],
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.slow
def test_the_documentation_tells_falls_from_others(name: str) -> None:
    """Seen from the front, from the side and from behind, by a noisy model."""
    (when,) = FALLS
    condition = compile_condition(when, "person", zones=[], lines=[], words=WORDS)
    found = []
    for bearing in (0, 90, 180):
        judge = Judge(
            [Rule("falls", "person", condition, None, Timing(), SECOND // 2, 0.3)], lambda size: Surroundings(*size)
        )
        phases = set()
        for seen in Scene(name, [Actor(MOVES[name])]).frames(12.5, 1, Camera(1.6).at(5.0, bearing), YOLO11N):
            rows = np.flatnonzero(seen.ids == 1)[:1]
            frame = (seen.ids[rows], seen.boxes[rows], seen.scores[rows], seen.keypoints[rows], seen.frame_size)
            phases |= {verdict.phase for verdict in judge.judge(Picture(At(seen.time_ns), *frame))}
        found.append("start" in phases)
    assert found == [name.startswith(("falls", "slumps"))] * 3


def test_the_words_are_used_like_names() -> None:
    text = "version: 1\nrules: [{id: calls, when: standing and raised_hand and not turned_away, for: 1s}]"
    assert parse_rules(text, "rules.yaml").rules["calls"].rule.when.parts
    pair = "version: 1\nrules: [{id: a, scope: pair, when: a.reaching and b.facing}]"
    assert parse_rules(pair, "rules.yaml").rules["a"].rule.when.parts
