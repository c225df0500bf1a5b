import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camgraph.tools.scenes.animator.body import Body
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.kinematics import joints
from camgraph.tools.scenes.animator.pose import row_of
from camgraph.tools.scenes.animator.silhouette import Block, Shapes, behind


def slow_projection(camera, point):
    """One point by rotations in turn: to the camera's place, by its heading, then by its tilt."""
    x, y, z = point[0] - camera.x, point[1] - camera.y, point[2] - camera.height_m
    heading, tilt = math.radians(camera.heading_deg), math.radians(camera.tilt_deg)
    ahead, left = x * math.cos(heading) + y * math.sin(heading), -x * math.sin(heading) + y * math.cos(heading)
    depth = ahead * math.cos(tilt) - z * math.sin(tilt)
    up = ahead * math.sin(tilt) + z * math.cos(tilt)
    focal = camera.size[0] / 2 / math.tan(math.radians(camera.fov_deg / 2))
    right = left if camera.mirrored else -left
    return camera.size[0] / 2 + focal * right / depth, camera.size[1] / 2 - focal * up / depth, depth


@given(
    *(st.floats(-180, 180), st.floats(-30, 80), st.floats(0.3, 6), st.floats(30, 110), st.booleans()),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=200, deadline=None)
def test_projection_agrees_with_a_slow_reference(heading, tilt, height, fov, mirrored, seed):
    camera = Camera(height, tilt, heading, 1.0, -2.0, fov, (640, 480), mirrored)
    points = np.random.default_rng(seed).uniform(-5, 5, (20, 3))
    pixels, depths = camera.project(points)
    for point, pixel, depth in zip(points, pixels, depths, strict=True):
        x, y, far = slow_projection(camera, point)
        assert depth == pytest.approx(far, abs=1e-9)
        if far > 0.2:
            assert pixel == pytest.approx([x, y], rel=1e-6, abs=1e-6)
        elif far < 0.1:
            assert np.isnan(pixel).all()


def test_a_camera_that_is_aimed_has_the_person_in_the_middle():
    for height in (0.8, 1.6, 2.6, 4.0):
        camera = Camera(height).at(5.0, 30.0)
        pixels, _ = camera.project(np.array([0.0, 0.0, 0.9]))
        assert pixels == pytest.approx([640, 360], abs=1e-6)


def test_a_mirrored_picture_is_a_mirror_image():
    nodes = joints(Body(), row_of({"arm_outward_left": 90})[None])
    plain, _ = Camera().at(5.0, 20.0).project(nodes)
    turned, _ = Camera(mirrored=True).at(5.0, 20.0).project(nodes)
    assert turned[..., 0] == pytest.approx(1280 - plain[..., 0])
    assert turned[..., 1] == pytest.approx(plain[..., 1])


def test_left_is_on_the_right_of_somebody_who_faces_the_lens():
    pixels, _ = Camera(1.6).at(4.0).project(joints(Body(), row_of({})[None]))
    assert pixels[0, 5, 0] > pixels[0, 6, 0] + 20
    assert pixels[0, 0, 1] < pixels[0, 11, 1] < pixels[0, 15, 1]


def test_a_body_hides_its_own_far_side():
    shapes = Shapes.of(Body(), joints(Body(), row_of({})[None]), Camera(1.4).at(4.0, 90.0))
    facing = dict(zip(("nose", "left_eye", "right_eye", "left_ear", "right_ear"), shapes.facing[0], strict=False))
    assert facing["left_ear"]
    assert not facing["right_ear"]
    assert not shapes.facing[0, 6]
    assert not shapes.facing[0, 12]
    assert shapes.facing[0, [5, 11, 13, 15]].all()
    assert Shapes.of(Body(), joints(Body(), row_of({})[None]), Camera(1.4).at(4.0, 0.0)).facing[0].all()
    back = Shapes.of(Body(), joints(Body(), row_of({})[None]), Camera(1.4).at(4.0, 180.0)).facing[0]
    assert not back[:3].any()
    assert back[5:].all()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_blocks_hide_what_sampling_says_they_hide(seed):
    rng = np.random.default_rng(seed)
    block = Block(0.5, 0.3, *(float(v) for v in rng.uniform(0.2, 1.5, 3)), bottom=0.2)
    low, high = block.corners()
    eye = rng.uniform(-4, 4, 3)
    if ((eye > low - 0.05) & (eye < high + 0.05)).all():
        return
    points = rng.uniform(-4, 4, (30, 3))
    steps = np.linspace(0, 1, 4001)[:, None]
    for point, hidden in zip(points, behind(points, eye, block), strict=True):
        line = eye + (point - eye) * steps
        deep = ((line > low + 0.01) & (line < high - 0.01)).all(axis=1).any()
        near = ((line > low - 0.01) & (line < high + 0.01)).all(axis=1).any()
        assert deep <= hidden <= near


def test_boxes_hold_the_body():
    nodes = joints(Body(1.8), row_of({})[None])
    camera = Camera(1.0, fov_deg=50).at(6.0)
    box = Shapes.of(Body(1.8), nodes, camera).boxes()[0]
    pixels, _ = camera.project(nodes[0])
    assert (pixels.min(axis=0) >= box[:2]).all()
    assert (pixels.max(axis=0) <= box[2:] + 1e-9).all()
    assert box[3] - box[1] == pytest.approx(1.8 * camera.focal_px / 6.0, rel=0.05)
    assert 2.4 < (box[3] - box[1]) / (box[2] - box[0]) < 4.2
