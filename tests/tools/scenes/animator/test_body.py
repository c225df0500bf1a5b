import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from camgraph.tools.scenes.animator.body import BONES, NODE, Body, any_body
from camgraph.tools.scenes.animator.kinematics import joints, put_hand, solve_limb, swing
from camgraph.tools.scenes.animator.library import MOTIONS, starts_in
from camgraph.tools.scenes.animator.motion import played
from camgraph.tools.scenes.animator.pose import COLUMN, FIELDS, columns, mirrored_posture, row_of


def nodes_of(name, *, seed=0, fps=20.0, body=None):
    """(T, 28, 3) of a motion of the library."""
    body = body or Body()
    take = played(MOTIONS[name](), body, row_of(starts_in(name)), np.random.default_rng(seed))
    return joints(body, take.sample(np.arange(0, take.duration_s, 1 / fps)))


def lengths(nodes):
    pairs = [(NODE[a], NODE[b]) for a, b in BONES]
    return np.stack([np.linalg.norm(nodes[:, a] - nodes[:, b], axis=1) for a, b in pairs], axis=1)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_bones_keep_their_length_in_any_pose(seed):
    rng = np.random.default_rng(seed)
    body = any_body(rng)
    poses = rng.uniform(-2, 2, (30, len(FIELDS)))
    found = lengths(joints(body, poses))
    assert np.ptp(found, axis=0).max() < 1e-9


def test_lengths_are_those_of_the_tables():
    body = Body(1.8)
    nodes = joints(body, row_of({"arm_forward": 0, "elbow": 0}, {})[None])[0]
    gone = {"left_knee": 0.285, "left_hip": 0.530, "left_shoulder": 0.818, "left_ankle": 0.039, "left_eye": 0.936}
    for name, share in gone.items():
        assert abs(nodes[NODE[name], 2] / 1.8 - share) < 0.015, name
    assert abs(nodes[NODE["crown"], 2] - 1.8) < 0.03


def test_people_differ_as_people_do():
    heights = [any_body(np.random.default_rng(seed)).height for seed in range(400)]
    assert 1.64 < np.mean(heights) < 1.72
    assert 0.08 < np.std(heights) < 0.12
    assert min(heights) > 1.35
    assert max(heights) < 2.0


def test_the_lowest_part_touches_the_floor():
    for name in MOTIONS:
        if name in {"running", "jumping"}:
            continue
        nodes = nodes_of(name, fps=5)
        assert nodes[:, :, 2].min() > -1e-6, name
        assert nodes[:, :, 2].min(axis=1).max() < 0.15, name


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_limb_reaches_its_target(seed, knee):
    rng = np.random.default_rng(seed)
    target = rng.normal(0, 1, (20, 3))
    target *= rng.uniform(0.15, 0.5, 20)[:, None] / np.linalg.norm(target, axis=1)[:, None]
    twist = rng.uniform(-1, 1, 20)
    forward, outward, bent = solve_limb(target, 0.32, 0.26, twist, knee=knee)
    ahead = 0.26 * np.sin(bent) * (-1 if knee else 1)
    hanging = np.stack([ahead * np.cos(twist), ahead * np.sin(twist), -(0.32 + 0.26 * np.cos(bent))], axis=1)
    assert np.abs(np.einsum("tij,tj->ti", swing(forward, outward), hanging) - target).max() < 1e-6


def test_a_hand_is_put_where_it_should_be():
    body, poses = Body(), row_of({})[None].copy()
    target = joints(body, poses)[:, NODE["nose"]] + [0.2, -0.1, -0.2]
    put_hand(body, poses, "right", target)
    assert np.linalg.norm(joints(body, poses)[:, NODE["right_wrist"]] - target) < 0.03


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_mirrored_postures_are_mirror_images(seed):
    rng = np.random.default_rng(seed)
    posture = {name: float(rng.uniform(-60, 60)) for name in FIELDS if name not in {"x", "y", "lift", "planted", "yaw"}}
    for name in ("turn", "twist", "look", "roll", "lean", "tilt"):
        posture[name] /= 4
    own = joints(Body(), row_of(posture)[None])[0]
    other = joints(Body(), row_of(mirrored_posture(posture))[None])[0]
    swapped = [NODE[_other(name)] for name in NODE]
    assert np.abs(own[swapped] * [1, -1, 1] - other).max() < 1e-9


def _other(name):
    side, _, rest = name.partition("_")
    return f"{ {'left': 'right', 'right': 'left'}[side] }_{rest}" if side in {"left", "right"} else name


def test_a_name_without_a_side_means_both():
    assert columns("knee") == [COLUMN["knee_left"], COLUMN["knee_right"]]
    assert columns("yaw", "elbow_left") == [COLUMN["yaw"], COLUMN["elbow_left"]]
