"""Rules over cameras that look down: bodies are made upright, and zones, borders and boxes are those of the picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.language.lens import Lens, straightened
from camgraph.stages.rules.rule_set import parse_rules
from camgraph.tools.lab.action_trials import firings
from camgraph.tools.scenes.animator.camera import Camera

CAMERA = Camera(height_m=3.0, tilt_deg=45, fov_deg=100, heading_deg=90)
LENS = "lenses: {tilt: 45deg, fov: 100deg}\n"
HEIGHTS_M = np.array([1.6, *[1.65] * 4, *[1.42] * 2, *[1.15] * 2, *[0.9] * 2, *[0.95] * 2, *[0.5] * 2, *[0.08] * 2])
ASIDE_M = np.array([0, *[0.05, -0.05] * 2, *[0.2, -0.2] * 6])


@dataclass(frozen=True, slots=True)
class At:
    time_ns: int


def picture(x: float, y: float, number: int = 0) -> Picture:
    """Somebody who stands at a place of the floor."""
    joints, _ = CAMERA.project(np.stack([x + ASIDE_M, np.full(17, y), HEIGHTS_M], 1))
    box = np.concatenate([joints.min(0), joints.max(0)])
    keypoints = np.concatenate([joints, np.ones((17, 1))], 1)[None].astype(np.float32)
    one = np.ones(1)
    return Picture(
        At(number * 100_000_000), one.astype(np.int64), box[None].astype(np.float32), one.astype(np.float32), keypoints,
        CAMERA.size,
    )  # fmt: skip


def fires(condition: str, seen: Picture, *, head: str = "", lens: str = LENS) -> bool:
    rules = parse_rules(f"version: 1\n{lens}{head}rules:\n  - {{id: it, when: '{condition}'}}\n", "rules")
    return bool(firings(rules, [seen]))


def test_people_aside_stand_upright_only_with_a_lens() -> None:
    aside = picture(2.5, 3.5)
    assert fires("lean < 8deg", aside)
    assert fires("lean > 25deg", aside, lens="")


def test_arms_held_out_are_as_long_as_a_level_camera_sees_them() -> None:
    """Shoulders 0.4 m apart, and a torso of 0.5 m."""
    below = picture(0, 1.5)
    assert fires("distance(left_shoulder, right_shoulder) < 1bl", below)
    assert fires("distance(left_shoulder, right_shoulder) > 1.1bl", below, lens="")


def test_a_zone_is_where_it_is_drawn() -> None:
    aside = picture(2.5, 3.5)
    x, y = aside.keypoints[0, 0, :2].tolist()
    head = (
        f"zones: {{there: [[{x - 20}, {y - 20}], [{x + 20}, {y - 20}], [{x + 20}, {y + 20}], [{x - 20}, {y + 20}]]}}\n"
    )
    joints = aside.keypoints[:, :, :2].astype(np.float64)
    turns = Lens.of(45, 100, CAMERA.size[0]).turns(aside.boxes.astype(np.float64), joints, CAMERA.size)
    upright = straightened(joints, turns)[0, 0]
    assert np.hypot(*(upright - (x, y))) > 60
    assert fires("nose in there", aside, head=head)


@pytest.mark.parametrize(("x", "y"), [(2.0, 6.0), (2.5, 3.5), (1.0, 1.0)])
def test_a_joint_within_the_picture_is_not_beyond_its_border(x: float, y: float) -> None:
    seen = picture(x, y)
    moved = seen.keypoints.copy()
    moved[:, :, 1] -= moved[0, :, 1].min() - 2
    at_the_top = Picture(seen.moment, seen.ids, seen.boxes, seen.scores, moved, seen.size)
    assert not fires("beyond(nose) or beyond(left_wrist)", at_the_top)
    assert fires("not beyond(nose, top)", at_the_top)


def test_a_lens_is_learnt_from_people_who_walk() -> None:
    walk = [picture(x, y, number) for number, (x, y) in enumerate(WALK)]
    rules = parse_rules("version: 1\nlenses: learn\nrules:\n  - {id: leans, when: 'lean > 25deg'}\n", "rules")
    leaning = [firing.at_s for firing in firings(rules, walk)]
    assert len(leaning) >= 1
    assert max(leaning) < 30.0


WALK = [(2.5 * np.cos(number / 8), 3.5 + 0.8 * np.sin(number / 8)) for number in range(600)]
"""To and fro, for a minute."""
