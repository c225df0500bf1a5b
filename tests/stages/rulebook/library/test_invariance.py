"""What each action of the library finds does not depend on size, mirror or frame rate. Each is shown in one scene."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from stages.rulebook.library import library
from stages.rulebook.onlooker import picture_of
from stages.rulebook.parameters import kind_of
from stages.rulebook.rule_set import RuleSet, parse_rules
from stages.vision.rules.crowd import Picture
from tools.animator import PERFECT, Actor, Camera, Scene
from tools.animator.action_scenes import ACTION_SCENES
from tools.animator.library import crouch, standing
from tools.animator.messages import tracks
from tools.animator.pose_model import SWAPPED
from tools.animator.walking import turn_to, walk
from tools.measuring.action_cases import CASES
from tools.measuring.action_trials import Trial, View, firings, pictures

RATE = 25
EVERY = {25: 1, 12.5: 2, 8: 3, 5: 5, 3: 8}
"""Frames a second -> which frames of `RATE` are left."""
QUICK = {"waving", "calling_for_help", "kicking", "punching", "jumping"}
"""Movements that are over before a slow camera has seen them; 8 frames a second are enough."""
LATER_S = 1.2
"""A slow camera needs two or three frames more."""
ABOVE = Camera(height_m=3.0, heading_deg=90).at(7.0, bearing_deg=-90.0)
"""Looks along y at the origin; x is to the right."""
VALUES = {
    "loitering": "stay: 4s",
    "queue": "more_than: 2, wait: 2s",
    "crowd": "more_than: 2",
    "nobody_there": "empty: 3s",
}


def walker(start: float, end: float, *, speed: float = 1.2, start_s: float = 0.0, y: float = 0.0) -> Actor:
    motions = [walk([(end, y)], speed), standing(4.0)]
    return Actor(motions, start, y, 0.0 if end > start else 180.0, start_s=start_s, appears_s=start_s)


def stander(x: float, seconds: float = 14.0) -> Actor:
    return Actor([standing(seconds)], x)


PLACES: Mapping[str, Callable[[], Sequence[Actor]]] = {
    "lost_while_low": lambda: [Actor([standing(1.0), crouch(3.0), standing(6.0)], gone_s=3.0)],
    "standing_still": lambda: [stander(0.0, 9.0)],
    "turned_away": lambda: [Actor([standing(1.0), turn_to(np.pi / 2), standing(4.0)], heading_deg=-90.0)],
    "running": lambda: [walker(-5.0, 5.0, speed=3.2)],
    "enters_zone": lambda: [walker(-3.0, 0.0)],
    "leaves_zone": lambda: [walker(0.0, 3.0)],
    "loitering": lambda: [stander(0.1, 9.0)],
    "crosses_line": lambda: [walker(-2.0, 2.0)],
    "wrong_way": lambda: [walker(2.0, -2.0)],
    "tailgating": lambda: [walker(-2.0, 2.5), walker(-2.0, 1.2, start_s=1.2, y=0.4)],
    "queue": lambda: [stander(-0.8, 16.0), stander(0.0, 16.0), stander(0.8, 16.0)],
    "crowd": lambda: [stander(-1.5, 9.0), stander(0.0, 9.0), stander(1.5, 9.0)],
    "too_close": lambda: [stander(0.0, 7.0), stander(0.5, 7.0)],
    "approaching": lambda: [stander(0.6, 9.0), walker(-2.6, 0.0)],
    "leaving_group": lambda: [
        stander(0.3),
        Actor([standing(6.5), walk([(-3.0, 0.0)], 1.2), standing(2.0)], -0.2, heading_deg=180.0),
    ],
    "nobody_there": lambda: [Actor([standing(9.0)], gone_s=2.0)],
}


def rules(action: str, *, mirrored: bool = False) -> RuleSet:
    """One action; in a mirrored picture the line is walked along the other way."""
    ends = "{from: [0.5, 0], to: [0.5, 1]}" if mirrored else "{from: [0.5, 1], to: [0.5, 0]}"
    places = f"zones: {{middle: [[0.35, 0], [0.65, 0], [0.65, 1], [0.35, 1]]}}\nlines: {{middle: {ends}}}\n"
    parameters = library().templates[action].parameters
    needed = [name for name, one in parameters.items() if one.default is None]
    assert all(kind_of(parameters[name]) in ("zone", "line") for name in needed)
    values = [f"{name}: middle" for name in needed] + ([VALUES[action]] if action in VALUES else [])
    rule = f"{{use: {action}, with: {{{', '.join(values)}}}}}"
    return parse_rules(f"version: 1\n{places}rules:\n  - {rule}\n", "library")


@functools.cache
def shown(action: str) -> tuple[Picture, ...]:
    """A scene of it at `RATE`, seen without noise."""
    if action in PLACES:
        return tuple(
            picture_of(item) for item in tracks(Scene(action, PLACES[action]()).frames(RATE, 0, ABOVE, PERFECT))
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
