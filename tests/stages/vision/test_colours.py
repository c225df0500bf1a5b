"""The colours of clothes: the same in every format and size, and different where clothes are."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from camgraph.stages.vision.colours import LENGTH, colours_of_bgr, colours_of_planes
from camgraph.stages.vision.planes import U8, split

RED, GREEN, WHITE, BLACK = (40, 40, 200), (40, 180, 40), (235, 235, 235), (20, 20, 20)
F32 = NDArray[np.float32]


def picture(*clothes: tuple[tuple[int, int, int], tuple[int, int, int]], scale: int = 1) -> tuple[U8, F32, F32]:
    """People beside each other on grey, each with the colours of trunk and thighs; their boxes and joints."""
    shown = np.full((120 * scale, 80 * scale * len(clothes), 3), 120, np.uint8)
    boxes = np.empty((len(clothes), 4), np.float32)
    joints = np.zeros((len(clothes), 17, 3), np.float32)
    for i, (trunk, thighs) in enumerate(clothes):
        left = 80 * scale * i
        shown[20 * scale : 60 * scale, left + 20 * scale : left + 60 * scale] = trunk
        shown[60 * scale : 100 * scale, left + 20 * scale : left + 60 * scale] = thighs
        boxes[i] = left + 20 * scale, 0, left + 60 * scale, 120 * scale
        for joint, y in ((5, 24), (6, 24), (11, 58), (12, 58), (13, 85), (14, 85)):
            joints[i, joint] = left + (26 if joint % 2 else 54) * scale, y * scale, 0.9
    return shown, boxes, joints


def dot(one: F32, other: F32) -> float:
    return float(one @ other)


def test_the_same_clothes_are_alike_and_others_are_not() -> None:
    found = colours_of_bgr(*picture((RED, BLACK), (RED, BLACK), (GREEN, BLACK), (GREEN, WHITE)))
    assert found.shape == (4, LENGTH)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert dot(found[0], found[1]) == pytest.approx(1, abs=1e-5)
    assert dot(found[0], found[2]) < 0.75
    assert dot(found[0], found[3]) < dot(found[0], found[2])


def test_planes_and_bgr_tell_the_same() -> None:
    shown, boxes, joints = picture((RED, BLACK), (GREEN, WHITE))
    planes = split(cv2.cvtColor(shown, cv2.COLOR_BGR2YUV_I420))
    one, other = colours_of_bgr(shown, boxes, joints), colours_of_planes(planes, boxes, joints)
    assert (one * other).sum(axis=1).min() > 0.99


def test_size_changes_nothing() -> None:
    small, large = (colours_of_bgr(*picture((RED, WHITE), scale=scale)) for scale in (1, 3))
    assert dot(small[0], large[0]) > 0.999


@pytest.mark.parametrize("joints", [np.zeros((1, 17, 3)), np.zeros((1, 5, 3)), np.zeros((1, 0, 3))])
def test_without_joints_the_box_tells_where_clothes_are(joints: NDArray[np.float64]) -> None:
    shown, boxes, known = picture((RED, BLACK))
    found = colours_of_bgr(shown, boxes, joints.astype(np.float32))
    assert dot(found[0], colours_of_bgr(shown, boxes, known)[0]) > 0.95


@pytest.mark.parametrize("box", [(-500, -500, -400, -300), (70, 0, 170, 120), (np.nan, 0, 10, 10), (0, 0, 1e30, 1e30)])
def test_who_is_outside_is_not_known(box: tuple[float, ...]) -> None:
    shown, _, _ = picture((RED, BLACK))
    boxes = np.array([box], np.float32)
    assert np.isnan(colours_of_bgr(shown, boxes, np.zeros((1, 0, 3), np.float32))).all()


def test_nobody() -> None:
    shown, _, _ = picture((RED, BLACK))
    assert colours_of_bgr(shown, np.empty((0, 4), np.float32), np.empty((0, 17, 3), np.float32)).shape == (0, LENGTH)
