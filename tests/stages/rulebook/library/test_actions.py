"""The library's actions over the motions of the animator: where they must fire, and where they must be silent."""

from __future__ import annotations

import functools

import pytest

from stages.rulebook.library import library
from tools.animator.library import MOTIONS
from tools.animator.pose_model import MULTIPOSE, YOLO11N, PoseModel
from tools.measuring.action_cases import CASES, FALLS
from tools.measuring.action_trials import LEAD_S, Firing, Trial, View, firings, pictures, rules_of

VIEWS = (View(2.6, 5.0, 30.0), View(1.6, 4.0, 90.0), View(3.5, 7.0, 200.0), View(2.6, 5.0, 315.0, mirrored=True))


@functools.cache
def fired(trial: Trial) -> tuple[Firing, ...]:
    return tuple(firings(rules_of(tuple(CASES)), pictures(trial)))


def first_s(action: str, trial: Trial) -> float | None:
    """When it fires first, after the motion's beginning."""
    return next((one.at_s - LEAD_S for one in fired(trial) if one.rule == action), None)


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


@pytest.mark.parametrize("model", [YOLO11N, MULTIPOSE], ids=lambda model: model.name)
@pytest.mark.parametrize("fps", [25.0, 8.0, 5.0, 3.0])
def test_a_fall_is_found_at_any_rate(fps: float, model: PoseModel) -> None:
    times = [first_s("fall", Trial(motion, VIEWS[1], fps, model)) for motion in FALLS]
    assert sum(at is not None for at in times) >= 3, times


@pytest.mark.parametrize("fps", [25.0, 8.0, 5.0, 3.0])
def test_what_is_no_fall_at_any_rate(fps: float) -> None:
    motions = ("tying shoes", "sitting down fast", "crouching", "push-ups", "lying down on the back", "walking")
    found = [motion for motion in motions if first_s("fall", Trial(motion, VIEWS[1], fps)) is not None]
    assert not found


def test_a_fall_that_is_seen_for_a_moment() -> None:
    """Its track is lost within the fall, 0.9 s after it began, or 0.7 s after in most of them."""
    lost = {after_s: [Trial(m, v, gone_s=1.0 + after_s) for m in FALLS for v in VIEWS] for after_s in (0.8, 0.9)}
    shares = {
        after_s: sum(first_s("fall", trial) is not None for trial in some) / len(some) for after_s, some in lost.items()
    }
    assert shares[0.9] >= 0.7, shares
    assert shares[0.8] >= 0.5, shares


@pytest.mark.parametrize("motion", ["walking", "standing", "sitting down", "hands up", "turning round"])
def test_who_is_lost_has_not_fallen(motion: str) -> None:
    lost = [Trial(motion, view, gone_s=gone_s) for view in VIEWS for gone_s in (1.0, 2.6)]
    assert [str(trial) for trial in lost if first_s("fall", trial) is not None] == []


def test_every_action_says_for_what_it_is() -> None:
    assert [name for name, action in library().templates.items() if not action.about.endswith(".")] == []
    assert [name for name, word in library().words.items() if not word.about] == []
