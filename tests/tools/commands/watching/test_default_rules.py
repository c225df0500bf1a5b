"""What `camgraph watch` looks for without --rules: the library's actions, by the names that they have there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import feed, opened
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.rule_set import read_rules
from camgraph.stages.rules.rules import Rules
from camgraph.tools.commands.configs import config_path
from camgraph.tools.commands.watching.starting import PHOTO_RULES, RULES
from camgraph.tools.lab.action_cases import FALLS
from camgraph.tools.lab.action_trials import LEAST_SCORE, Trial, View
from camgraph.tools.scenes.animator import Actor, Scene
from camgraph.tools.scenes.animator.gestures import hands_up
from camgraph.tools.scenes.animator.library import ON_BACK, gesturing, lying, waiting
from camgraph.tools.scenes.animator.messages import tracks
from camgraph.tools.scenes.animator.walking import walk

pytestmark = pytest.mark.slow

WATCHED = ["person_appears", "fall", "lying", "hands_up", "lingers", "together"]
SLEEPER = Scene(
    "asleep",
    [Actor([gesturing("asleep", hands_up(0.1), 8.0, while_doing=lying("back", 8.0))], posture=ON_BACK)],
)
VIEWS = [View(2.6, 4.0, bearing) for bearing in (0.0, 45.0, 90.0, 180.0)]


def seen(scene: Scene, view: View, fps: float = 12.5) -> list[Tracks]:
    return list(tracks(scene.frames(fps, 1, view.camera), min_score=LEAST_SCORE))


def actions(rules: str, frames: Sequence[Tracks]) -> set[str]:
    """Those of the events that the stage makes of these frames."""
    found: set[str] = set()
    with (
        TemporaryDirectory() as scratch,
        opened(Rules, {"file": str(config_path(rules))}, folder=Path(scratch)) as stage,
    ):
        for item in feed(stage, frames):
            assert isinstance(item, Event)
            found.add(json.loads(item.body)["data"]["action"])
    return found


def test_falls_are_told() -> None:
    trials = [Trial(motion, View(2.6, 5.0, 60.0)) for motion in FALLS]
    found = ["fall" in actions(RULES, seen(trial.scene, trial.view)) for trial in trials]
    assert sum(found) >= 3, found


def test_somebody_who_lies_raises_no_hands() -> None:
    found = [actions(RULES, seen(SLEEPER, view)) for view in VIEWS]
    assert ["hands_up" in some for some in found] == [False] * len(VIEWS)
    assert sum("lying" in some for some in found) >= len(VIEWS) - 1, found


def test_the_names_of_actions() -> None:
    assert list(read_rules(config_path(RULES)).rules) == WATCHED
    assert list(read_rules(config_path(PHOTO_RULES)).rules) == ["person", "lying", "hands_up", "together"]


def test_two_who_stand_together_linger() -> None:
    there = Scene("two", [Actor([waiting(15.0)]), Actor([waiting(15.0)], x=0.6)])
    assert actions(RULES, seen(there, View())) == {"person_appears", "lingers", "together"}


def test_who_walks_only_appears() -> None:
    walks = Scene("walk", [Actor([walk([(4, 0)])])])
    assert actions(RULES, seen(walks, View())) == {"person_appears"}


@pytest.mark.parametrize(
    ("scene", "told"),
    [
        (SLEEPER, {"person", "lying"}),
        (Scene("up", [Actor([gesturing("hands up", hands_up(0.1), 8.0)])]), {"person", "hands_up"}),
        (Scene("two", [Actor([waiting(2.0)]), Actor([waiting(2.0)], x=0.5)]), {"person", "together"}),
    ],
    ids=lambda value: value.name if isinstance(value, Scene) else "",
)
def test_photographs(scene: Scene, told: set[str]) -> None:
    """The picture of one moment, a second after the beginning."""
    moment = seen(scene, View(2.6, 4.0, 45.0), 25.0)[25]
    alone = replace(moment, stamp=moment.stamp._replace(alone=True))
    assert actions(PHOTO_RULES, [alone]) == told
