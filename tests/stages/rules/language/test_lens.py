"""Up and lengths at a place of the picture, against people who stand upright before a pinhole camera."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from camgraph.stages.rules.language.lens import Lens, LensEstimate, Turn, straightened
from camgraph.stages.rules.language.people import LEAN, TORSO, with_more
from camgraph.tools.scenes.animator.camera import Camera

F64 = NDArray[np.float64]
HEIGHTS_M = np.array([1.6, *[1.65] * 4, *[1.42] * 2, *[1.15] * 2, *[0.9] * 2, *[0.95] * 2, *[0.5] * 2, *[0.08] * 2])
"""Of the joints of COCO."""


def standing(camera: Camera, x: float, y: float) -> F64 | None:
    """The joints (17, 2) of somebody who stands there like a pole; None if they are not whole in the picture."""
    joints, _ = camera.project(np.stack([np.full(17, x), np.full(17, y), HEIGHTS_M], 1))
    inside = np.isfinite(joints).all() and (joints >= 0).all() and (joints <= camera.size).all()
    return joints if inside else None


def box_of(joints: F64) -> F64:
    return np.concatenate([joints.min(0), joints.max(0)])


def leans(joints: F64) -> F64:
    return with_more(joints)[:, LEAN]


def crowd(camera: Camera) -> F64:
    """People (N, 17, 2) all over the floor."""
    found = [standing(camera, x, y) for x in np.arange(-5, 5.1, 0.5) for y in np.arange(1, 9.1, 0.5)]
    return np.stack([joints for joints in found if joints is not None])


@given(st.floats(0, 55), st.floats(50, 110), st.floats(2.2, 4.0), st.floats(-4, 4), st.floats(0.5, 9))
def test_who_stands_is_upright_wherever_that_is(tilt: float, fov: float, height: float, x: float, y: float) -> None:
    camera = Camera(height_m=height, tilt_deg=tilt, fov_deg=fov, heading_deg=90)
    joints = standing(camera, x, y)
    if joints is None:
        return
    lens = Lens.of(tilt, fov, camera.size[0])
    straight = straightened(joints[None], lens.turns(box_of(joints)[None], joints[None], camera.size))
    # Turned by the angle at the middle of the box, which is a little wider than the body.
    assert leans(straight)[0] <= leans(joints[None])[0] * 0.35 + 1.0


@given(st.floats(0, 50), st.floats(50, 100), st.floats(2.4, 4.0), st.floats(-3, 3), st.floats(1.5, 9))
def test_who_stands_is_as_long_as_what_is_level(tilt: float, fov: float, height: float, x: float, y: float) -> None:
    """A torso against a step aside of the same length, at the same place."""
    camera = Camera(height_m=height, tilt_deg=tilt, fov_deg=fov, heading_deg=90)
    joints = standing(camera, x, y)
    if joints is None:
        return
    way = np.array([y, -x]) / np.hypot(x, y) * (HEIGHTS_M[5] - HEIGHTS_M[11]) / 2
    middle = (HEIGHTS_M[5] + HEIGHTS_M[11]) / 2
    ends = camera.project(np.array([[x - way[0], y - way[1], middle], [x + way[0], y + way[1], middle]]))[0]
    aside = np.hypot(*(ends[1] - ends[0]))
    box = box_of(joints)
    turns = Lens.of(tilt, fov, camera.size[0]).turns(box[None], joints[None], camera.size)
    [before], [after] = (with_more(places) for places in (joints[None], straightened(joints[None], turns)))
    squeeze = turns[0, 4]
    # The middle of the box is not that of the torso, and nobody is squeezed without end.
    assert squeeze == 0.5 or abs(after[TORSO] / (aside * squeeze) - 1) < 0.4 * abs(before[TORSO] / aside - 1) + 0.12


def test_the_feet_stay_and_the_way_back_leads_to_the_picture() -> None:
    camera = Camera(height_m=3.0, tilt_deg=40, fov_deg=90, heading_deg=90)
    joints = crowd(camera)
    boxes = np.stack([box_of(one) for one in joints])
    turns = Lens.of(40, 90, camera.size[0]).turns(boxes, joints, camera.size)
    straight = straightened(joints, turns)
    for before, after, row, box in zip(joints, straight, turns, boxes, strict=True):
        turn = Turn(*row)
        assert np.allclose([turn.back(*place) for place in after], before)
        assert np.allclose(turn.back((box[0] + box[2]) / 2, box[3]), ((box[0] + box[2]) / 2, box[3]))


def test_unknown_joints_stay_unknown() -> None:
    joints = crowd(Camera(height_m=3.0, tilt_deg=40, fov_deg=90, heading_deg=90))[:2]
    joints[0, 9] = np.nan
    turns = Lens.of(40, 90, 1280).turns(np.stack([box_of(joints[1])] * 2), joints, (1280, 720))
    straight = straightened(joints, turns)
    assert np.isnan(straight[0, 9]).all()
    assert np.isfinite(np.delete(straight[0], 9, axis=0)).all()


@settings(max_examples=30)  # of half a second each
@given(st.sampled_from([0.0, 20.0, 35.0, 50.0]), st.integers(0, 1000))
@pytest.mark.slow
def test_it_is_learnt_from_people_who_walk(tilt: float, seed: int) -> None:
    """They sway by some degrees to all sides, and now and then one of them is lying."""
    camera, random = Camera(height_m=3.0, tilt_deg=tilt, fov_deg=90, heading_deg=90), np.random.default_rng(seed)
    everybody, estimate = crowd(camera), LensEstimate()
    assert estimate.lens(camera.size) is None
    for _ in range(300):
        joints = everybody[random.integers(len(everybody))].copy()
        sway = np.radians(random.normal(0, 6) if random.random() < 0.9 else 90)
        middle = joints.mean(0)
        x, y = (joints - middle).T
        turned = np.stack([x * np.cos(sway) - y * np.sin(sway), x * np.sin(sway) + y * np.cos(sway)], 1) + middle
        estimate.look(turned[None], camera.size)
    true, found = Lens.of(tilt, 90, camera.size[0]), estimate.lens(camera.size)
    learnt = found.convergence if found else 0.0
    assert abs(learnt - true.convergence) < 0.25 * true.convergence + 0.1 / camera.size[1]


@pytest.mark.parametrize(("tilt", "fov"), [(25.0, 60.0), (35.0, 110.0), (50.0, 90.0)])
@pytest.mark.slow
def test_how_wide_it_sees_is_learnt_from_how_tall_people_are(tilt: float, fov: float) -> None:
    """Of people of several heights: who is tall here would be short there."""
    camera, random = Camera(height_m=3.0, tilt_deg=tilt, fov_deg=fov, heading_deg=90), np.random.default_rng(0)
    everybody, estimate = crowd(camera), LensEstimate()
    usual = estimate_of_usual(camera)
    for _ in range(3000):
        joints = everybody[random.integers(len(everybody))]
        feet = joints[15:].mean(0)
        estimate.look((feet + (joints - feet) * random.normal(1, 0.08))[None], camera.size)
    found, true = estimate.lens(camera.size), Lens.of(tilt, fov, camera.size[0])
    assert found is not None
    assert abs(np.log(found.focal / true.focal)) < 0.6 * abs(np.log(usual / true.focal)) + 0.1


def estimate_of_usual(camera: Camera) -> float:
    """The focal length in pixels that is believed beforehand."""
    estimate = LensEstimate()
    estimate.look(crowd(camera), camera.size)
    lens = estimate.lens(camera.size)
    assert lens is not None
    return lens.focal


def test_people_without_known_joints_teach_nothing() -> None:
    estimate = LensEstimate()
    estimate.look(np.full((3, 17, 2), np.nan), (1280, 720))
    estimate.look(np.zeros((0, 17, 2)), (1280, 720))
    assert estimate.lens((1280, 720)) is None
