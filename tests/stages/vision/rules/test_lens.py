"""Up at a place of the picture, against people who stand upright before a pinhole camera."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stages.vision.rules.lens import LensEstimate, convergence, straightened
from stages.vision.rules.people import LEAN, with_more
from tools.animator.camera import Camera

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
    return np.array([row[LEAN] for row in with_more(joints)])


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
    c = convergence(tilt, fov, camera.size[0])
    straight = straightened(joints[None], box_of(joints)[None], camera.size, c)
    # Turned by the angle at the middle of the box, which is a little wider than the body.
    assert leans(straight)[0] <= leans(joints[None])[0] * 0.35 + 1.0


def test_the_feet_stay_and_a_level_camera_changes_nothing() -> None:
    camera = Camera(height_m=3.0, tilt_deg=40, fov_deg=90, heading_deg=90)
    joints = crowd(camera)
    boxes = np.stack([box_of(one) for one in joints])
    assert np.allclose(straightened(joints, boxes, camera.size, 0.0), joints)
    straight = straightened(joints, boxes, camera.size, convergence(40, 90, camera.size[0]))
    feet = np.stack([(boxes[:, 0] + boxes[:, 2]) / 2, boxes[:, 3]], 1)
    for before, after in ((joints, straight),):
        assert np.allclose(
            np.linalg.norm(before - feet[:, None], axis=2), np.linalg.norm(after - feet[:, None], axis=2)
        )


def test_unknown_joints_stay_unknown() -> None:
    joints = crowd(Camera(height_m=3.0, tilt_deg=40, fov_deg=90, heading_deg=90))[:2]
    joints[0, 9] = np.nan
    straight = straightened(joints, np.stack([box_of(joints[1])] * 2), (1280, 720), 0.001)
    assert np.isnan(straight[0, 9]).all()
    assert np.isfinite(np.delete(straight[0], 9, axis=0)).all()


@given(st.sampled_from([0.0, 20.0, 35.0, 50.0]), st.integers(0, 1000))
def test_it_is_learnt_from_people_who_walk(tilt: float, seed: int) -> None:
    """They sway by some degrees to all sides, and now and then one of them is lying."""
    camera, random = Camera(height_m=3.0, tilt_deg=tilt, fov_deg=90, heading_deg=90), np.random.default_rng(seed)
    everybody, estimate = crowd(camera), LensEstimate()
    assert estimate.convergence(camera.size) == 0.0
    for _ in range(300):
        joints = everybody[random.integers(len(everybody))].copy()
        sway = np.radians(random.normal(0, 6) if random.random() < 0.9 else 90)
        middle = joints.mean(0)
        x, y = (joints - middle).T
        turned = np.stack([x * np.cos(sway) - y * np.sin(sway), x * np.sin(sway) + y * np.cos(sway)], 1) + middle
        estimate.look(turned[None], camera.size)
    true = convergence(tilt, 90, camera.size[0])
    assert abs(estimate.convergence(camera.size) - true) < 0.25 * true + 0.1 / camera.size[1]


def test_people_without_known_joints_teach_nothing() -> None:
    estimate = LensEstimate()
    estimate.look(np.full((3, 17, 2), np.nan), (1280, 720))
    estimate.look(np.zeros((0, 17, 2)), (1280, 720))
    assert estimate.convergence((1280, 720)) == 0.0
