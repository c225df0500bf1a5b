"""What each action of the library finds does not depend on size, mirror or frame rate. Each is shown in one scene."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.library import library
from camgraph.stages.rules.onlooker import picture_of
from camgraph.tools.lab.action_cases import CASES
from camgraph.tools.lab.action_places import PLACES, before, rules
from camgraph.tools.lab.action_scenes import ACTION_SCENES
from camgraph.tools.lab.action_trials import Trial, View, firings, pictures
from camgraph.tools.scenes.animator import PERFECT, Scene
from camgraph.tools.scenes.animator.messages import tracks
from camgraph.tools.scenes.animator.pose_model import SWAPPED

pytestmark = pytest.mark.slow

RATE = 25
EVERY = {25: 1, 12.5: 2, 8: 3, 5: 5, 3: 8}
"""Frames a second -> which frames of `RATE` are left."""
QUICK = {"waving", "calling_for_help", "kicking", "punching", "jumping"}
"""Movements that are over before a slow camera has seen them; 8 frames a second are enough."""
LATER_S = 1.2
"""A slow camera needs two or three frames more."""
ABOVE = before()


@functools.cache
def shown(action: str) -> tuple[Picture, ...]:
    """A scene of it at `RATE`, seen without noise."""
    if action in PLACES:
        return tuple(
            picture_of(item) for item in tracks(Scene(action, PLACES[action].shown()).frames(RATE, 0, ABOVE, PERFECT))
        )
    bearing = {"kicking": 90.0, "pointing": 270.0, "reaching": 60.0}.get(action, 30.0)
    motion = ACTION_SCENES[action].motion
    assert motion in CASES[action].fires
    return tuple(pictures(Trial(motion, View(1.6, 5.0, bearing), RATE, PERFECT)))


@functools.cache
def told_s(action: str, every: int = 1) -> tuple[float, ...]:
    """When its incidents are told."""
    return tuple(one.at_s for one in firings(rules(action), shown(action)[::every]))


def mirror(picture: Picture) -> Picture:
    width = picture.size[0]
    boxes, keypoints = picture.boxes.copy(), picture.keypoints[:, SWAPPED].copy()
    boxes[:, [0, 2]] = width - picture.boxes[:, [2, 0]]
    keypoints[:, :, 0] = width - keypoints[:, :, 0]
    return replace(picture, boxes=boxes, keypoints=keypoints)


def scaled(picture: Picture, factor: float) -> Picture:
    keypoints = picture.keypoints.copy()
    keypoints[:, :, :2] *= factor
    width, height = picture.size
    return replace(
        picture, boxes=picture.boxes * factor, keypoints=keypoints, size=(int(width * factor), int(height * factor))
    )


ACTIONS = tuple(library().templates)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_mirror_changes_nothing(action: str) -> None:
    found = firings(rules(action, mirrored=True), [mirror(one) for one in shown(action)])
    assert tuple(one.at_s for one in found) == told_s(action)
    assert found


@pytest.mark.parametrize("factor", [0.25, 3.0])
@pytest.mark.parametrize("action", ACTIONS)
def test_size_changes_nothing(action: str, factor: float) -> None:
    found = firings(rules(action), [scaled(one, factor) for one in shown(action)])
    assert tuple(one.at_s for one in found) == told_s(action)


@pytest.mark.parametrize("fps", EVERY)
@pytest.mark.parametrize("action", ACTIONS)
def test_it_is_found_at_any_frame_rate(action: str, fps: float) -> None:
    if action in QUICK and fps < 8:
        pytest.skip("the movement is too quick to be seen at this rate")
    at_s = told_s(action, EVERY[fps])
    assert at_s
    assert abs(at_s[0] - told_s(action)[0]) <= LATER_S
