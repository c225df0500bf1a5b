"""The library's actions over the motions of the animator: where they must fire, and where they must be silent."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.library import library
from camgraph.stages.rules.onlooker import picture_of
from camgraph.stages.rules.rule_set import parse_rules
from camgraph.tools.lab.action_cases import CASES, FALLS, LYING_DOWN
from camgraph.tools.lab.action_trials import (
    LEAD_S,
    LEAST_SCORE,
    Edge,
    Firing,
    Trial,
    View,
    firings,
    followed,
    pictures,
    rules_of,
)
from camgraph.tools.scenes.animator import Actor, Camera, Scene
from camgraph.tools.scenes.animator.gestures import hands_up
from camgraph.tools.scenes.animator.library import MOTIONS, ON_BACK, gesturing, lying, waiting
from camgraph.tools.scenes.animator.messages import tracks
from camgraph.tools.scenes.animator.pose_model import MULTIPOSE, YOLO11N, PoseModel
from camgraph.tools.scenes.animator.walking import walk

pytestmark = pytest.mark.slow

VIEWS = (View(2.6, 5.0, 30.0), View(1.6, 4.0, 90.0), View(3.5, 7.0, 200.0), View(2.6, 5.0, 315.0, mirrored=True))


@functools.cache
def fired(trial: Trial) -> tuple[Firing, ...]:
    return tuple(firings(rules_of(tuple(CASES)), pictures(trial)))


def first_s(action: str, trial: Trial) -> float | None:
    """When it fires first, after the motion's beginning."""
    return next((one.at_s - LEAD_S for one in fired(trial) if one.rule == action), None)


@functools.cache
def falls(trial: Trial) -> bool:
    """Whether `fall` fires. It is judged alone: the other actions cost three times as much, and change no fall."""
    return bool(firings(rules_of(["fall"]), pictures(trial)))


def trials(motion: str, fps: float = 12.5, model: PoseModel = YOLO11N) -> list[Trial]:
    return [Trial(motion, view, fps, model) for view in VIEWS]


@pytest.mark.parametrize(("action", "motion"), [(action, motion) for action in CASES for motion in CASES[action].fires])
def test_it_fires_in_time(action: str, motion: str) -> None:
    times = [first_s(action, trial) for trial in trials(motion)]
    in_time = [at for at in times if at is not None and at <= CASES[action].fires[motion]]
    assert len(in_time) >= CASES[action].share * len(VIEWS), times


@pytest.mark.parametrize("motion", MOTIONS)
def test_others_are_silent(motion: str) -> None:
    silent = [action for action in CASES if motion not in CASES[action].fires and motion not in CASES[action].may]
    wrong = [
        (action, str(trial.view)) for trial in trials(motion) for action in silent if first_s(action, trial) is not None
    ]
    assert not wrong


STEEP = tuple(View(*place, bearing) for place in ((3.2, 4.0), (4.0, 6.0)) for bearing in (60.0, 150.0, 240.0, 330.0))


@pytest.mark.parametrize("motion", ["walking", "walking round a corner", "carrying", "loitering"])
def test_a_step_is_no_kick_under_a_steep_camera(motion: str) -> None:
    found = [firings(rules_of(["kicking"]), pictures(Trial(motion, view, seed=3))) for view in STEEP]
    assert found == [[]] * len(STEEP)


def test_kicks_under_a_steep_camera() -> None:
    found = [bool(firings(rules_of(["kicking"]), pictures(Trial("kicking", view)))) for view in STEEP]
    assert sum(found) >= 0.5 * len(found)


def asleep(view: View) -> list[Picture]:
    """Somebody who lies on the back with both arms beyond the head."""
    lies = lying("back", 8.0)
    actor = Actor([gesturing("asleep", hands_up(0.1), 8.0, while_doing=lies)], posture=ON_BACK)
    frames = Scene("asleep", [actor]).frames(12.5, 1, view.camera, YOLO11N)
    return [picture_of(one) for one in tracks(frames, min_score=LEAST_SCORE)]


def test_sleepers_with_arms_overhead_raise_no_hands() -> None:
    frames = [asleep(View(2.6, 4.0, bearing)) for bearing in (0.0, 45.0, 90.0, 180.0)]
    assert [firings(rules_of(["hands_up", "calling_for_help"]), some) for some in frames] == [[]] * len(frames)
    of_all = parse_rules("version: 1\nrules:\n  - {use: hands_up, with: {of_who_lies: true}}\n", "r")
    assert any(firings(of_all, some) for some in frames)


@pytest.mark.parametrize("model", [YOLO11N, MULTIPOSE], ids=lambda model: model.name)
@pytest.mark.parametrize("fps", [25.0, 8.0, 5.0, 3.0])
def test_a_fall_is_found_at_any_rate(fps: float, model: PoseModel) -> None:
    found = [falls(Trial(motion, VIEWS[1], fps, model)) for motion in FALLS]
    assert sum(found) >= 3, found


@pytest.mark.parametrize("fps", [25.0, 8.0, 5.0, 3.0])
def test_what_is_no_fall_at_any_rate(fps: float) -> None:
    motions = ("tying shoes", "sitting down fast", "crouching", "lying down on the back", "walking")
    found = [motion for motion in motions if falls(Trial(motion, VIEWS[1], fps))]
    assert not found


NO_FALLS = ("bending", "crouching", "push-ups", "lying down on the back", "tying shoes", "ducking")


@functools.cache
def told_in_a_run(motion: str, fps: float) -> list[tuple[bool, int]]:
    """For each view, whether `fall` fires behind the real tracker, and how many ids the person has."""
    result = []
    for number, view in enumerate(VIEWS):
        trial = Trial(motion, view, fps, (YOLO11N, MULTIPOSE)[number % 2], seed=10 * len(motion) + number)
        frames = list(trial.scene.frames(fps, trial.seed, view.camera, trial.model))
        seen = list(followed(frames, trial.model))
        ids = {
            track
            for picture, frame in zip(seen, frames, strict=True)
            for track, box in zip(picture.ids.tolist(), picture.boxes, strict=True)
            if any(np.array_equal(box, real) for real in frame.boxes[frame.ids > 0])
        }
        result.append((bool(firings(rules_of(["fall"]), seen)), len(ids)))
    return result


@pytest.mark.parametrize(("fps", "least"), [(12.5, 12), (5.0, 12), (3.0, 10)])
def test_falls_are_found_behind_the_tracker(fps: float, least: int) -> None:
    """Of 16: one who falls is another shape within three frames, and must stay the same person."""
    assert sum(fired for motion in FALLS for fired, _ in told_in_a_run(motion, fps)) >= least


@pytest.mark.parametrize("fps", [12.5, 5.0, 3.0])
def test_no_change_of_posture_is_a_fall_behind_the_tracker(fps: float) -> None:
    silent = [motion for motion in NO_FALLS if motion not in CASES["fall"].may]
    assert not [motion for motion in silent for fired, _ in told_in_a_run(motion, fps) if fired]


@pytest.mark.parametrize("fps", [12.5, 5.0, 3.0])
def test_who_changes_posture_keeps_their_id(fps: float) -> None:
    several = [motion for motion in (*FALLS, *NO_FALLS) for _, ids in told_in_a_run(motion, fps) if ids > 1]
    assert len(several) <= 1, several


@pytest.mark.parametrize(("fps", "most"), [(12.5, 0.2), (5.0, 0.15), (3.0, 0.3)])
def test_who_is_lost_while_they_lower_themselves(fps: float, most: float) -> None:
    """Until then it may look as in a fall; but they do it more slowly, and keep their shoulders over their feet."""
    slow = (*LYING_DOWN, "bending", "kneeling", "tying shoes")
    lost = [Trial(m, v, fps, gone_s=gone_s) for m in slow for v in VIEWS for gone_s in (0.9, 1.3, 1.7, 2.1)]
    found = [str(trial) for trial in lost if falls(trial)]
    assert len(found) <= most * len(lost), found


def test_a_fall_whose_end_is_not_seen() -> None:
    """Its track is lost 0.9 s after the fall began."""
    lost = [Trial(m, v, gone_s=1.9) for m in FALLS for v in VIEWS]
    assert sum(map(falls, lost)) >= 0.8 * len(lost)


@pytest.mark.parametrize("motion", ["walking", "standing", "sitting down", "hands up", "turning round"])
def test_who_is_lost_has_not_fallen(motion: str) -> None:
    lost = [Trial(motion, view, gone_s=gone_s) for view in VIEWS for gone_s in (1.0, 2.6)]
    assert [str(trial) for trial in lost if falls(trial)] == []


SIDES: tuple[Edge, ...] = ("left", "right")


def test_a_fall_out_of_the_picture() -> None:
    """Somebody falls at a side of the picture, and nobody sees them any more 0.9 s after."""
    views = [View(2.6, 5.0, bearing, edge=edge) for edge in SIDES for bearing in (30.0, 90.0, 200.0, 315.0)]
    found = [falls(Trial(motion, view, gone_s=1.9)) for view in views for motion in FALLS]
    assert sum(found) >= 0.4 * len(found)


@pytest.mark.parametrize("fps", [25.0, 12.5, 8.0, 5.0, 3.0])
@pytest.mark.parametrize("speed", [0.6, 1.3, 3.0])
def test_who_walks_out_of_the_picture_has_not_fallen(speed: float, fps: float) -> None:
    """Across it to both sides, towards the camera and below it, and past it."""
    ways = {"left": (0.0, -9.0), "right": (0.0, 9.0), "below": (6.5, 0.4), "past": (4.5, 3.0)}
    camera = View(2.6, 5.0, 0.0).camera
    found = {way: firings(rules_of(["fall"]), seen_leaving(to, speed, fps, camera)) for way, to in ways.items()}
    assert [way for way, fired in found.items() if fired] == []


def seen_leaving(to: tuple[float, float], speed: float, fps: float, camera: Camera) -> list[Picture]:
    far = (-2.0, -0.4 * to[1])
    heading = math.degrees(math.atan2(to[1] - far[1], to[0] - far[0]))
    scene = Scene("leaving", [Actor([walk([to], speed), waiting(3.0)], *far, heading)])
    return [picture_of(one) for one in tracks(scene.frames(fps, 1, camera, YOLO11N), min_score=LEAST_SCORE)]


AT_BORDER = ("tying shoes", "sitting down fast", "ducking", "bending")


@pytest.mark.parametrize("edge", SIDES)
@pytest.mark.parametrize("motion", AT_BORDER)
def test_what_is_no_fall_at_a_side(motion: str, edge: Edge) -> None:
    trials = [Trial(motion, View(2.6, 5.0, 30.0, edge=edge), fps) for fps in (8.0, 3.0)]
    assert [str(trial) for trial in trials if falls(trial)] == []


def test_what_is_no_fall_at_the_lower_border() -> None:
    """Of a body that the border cuts through, only the shoulders are seen to come down."""
    trials = [Trial(motion, View(2.6, 5.0, 30.0, edge="bottom"), fps) for motion in AT_BORDER for fps in (8.0, 3.0)]
    assert len([trial for trial in trials if falls(trial)]) <= 0.5 * len(trials)


def test_every_action_says_for_what_it_is() -> None:
    assert [name for name, action in library().templates.items() if not action.about.endswith(".")] == []
    assert [name for name, word in library().words.items() if not word.about] == []
