import numpy as np
import pytest

from camgraph.tools.scenes.animator.body import NODE, Body
from camgraph.tools.scenes.animator.kinematics import joints
from camgraph.tools.scenes.animator.library import MOTIONS, fall, sit_down, standing, starts_in, walk
from camgraph.tools.scenes.animator.motion import played
from camgraph.tools.scenes.animator.pose import COLUMN, row_of


def nodes_of(motions, *, seed=0, fps=50.0, body=None, posture=None):
    """Moments (T,) and nodes (T, 28, 3)."""
    body = body or Body()
    take = played(motions, body, row_of(posture or {}), np.random.default_rng(seed))
    times = np.arange(0, take.duration_s, 1 / fps)
    return times, joints(body, take.sample(times))


def speed(nodes, name, fps=50.0):
    return np.linalg.norm(np.diff(nodes[:, NODE[name], :2], axis=0), axis=1) * fps


@pytest.mark.parametrize("name", MOTIONS)
def test_no_joint_jumps(name):
    _, nodes = nodes_of(MOTIONS[name](), fps=100, posture=starts_in(name))
    fastest = (np.linalg.norm(np.diff(nodes, axis=0), axis=2) * 100).max()
    assert fastest < 16.0, f"{fastest:.1f} m/s"


@pytest.mark.parametrize("metres_a_second", [0.5, 0.9, 1.3, 1.8])
def test_feet_of_walkers_do_not_slide(metres_a_second):
    _, nodes = nodes_of([walk([(6.0, 0.0)], metres_a_second)])
    standing_foot = np.minimum(speed(nodes, "left_toe"), speed(nodes, "right_toe"))
    assert np.median(standing_foot) < 0.03 * metres_a_second
    assert np.quantile(standing_foot, 0.95) < 0.15 * metres_a_second
    lowest = np.minimum(nodes[:, NODE["left_toe"], 2], nodes[:, NODE["right_toe"], 2])
    assert lowest.max() < 0.03


@pytest.mark.parametrize("metres_a_second", [0.6, 1.3, 3.0])
def test_walkers_are_as_fast_as_they_should_be(metres_a_second):
    times, nodes = nodes_of([walk([(9.0, 0.0)], metres_a_second)])
    middle = slice(len(times) // 3, 2 * len(times) // 3)
    pelvis = nodes[middle, NODE["pelvis"], 0]
    assert np.ptp(pelvis) / np.ptp(times[middle]) == pytest.approx(metres_a_second, rel=0.15)


def test_steps_are_as_long_as_people_make_them():
    _, nodes = nodes_of([walk([(9.0, 0.0)], 1.35)], body=Body(1.75))
    apart = nodes[:, NODE["left_ankle"], 0] - nodes[:, NODE["right_ankle"], 0]
    assert 0.6 < np.abs(apart).max() < 0.85
    assert 10 <= (np.diff(apart > 0) != 0).sum() <= 15


def test_knees_bend_while_a_leg_swings():
    body = Body()
    take = played([walk([(6.0, 0.0)], 1.3)], body, row_of({}), np.random.default_rng(0))
    knees = np.degrees(take.sample(np.arange(1, take.duration_s - 1, 0.02))[:, COLUMN["knee_left"]])
    assert 45 < knees.max() < 80
    assert knees.min() < 15


def test_a_walker_goes_through_the_waypoints():
    _, nodes = nodes_of([walk([(3.0, 0.0), (3.0, 3.0)], 1.2)])
    place = nodes[:, NODE["pelvis"], :2]
    assert np.linalg.norm(place[-1] - [3, 3]) < 0.15
    assert np.linalg.norm(place - [3, 0], axis=1).min() < 0.6
    shoulders = nodes[-1, NODE["left_shoulder"], :2] - nodes[-1, NODE["right_shoulder"], :2]
    assert shoulders @ [-1, 0] > 0.8 * np.linalg.norm(shoulders)


@pytest.mark.parametrize("seconds", [0.5, 0.8, 1.2])
@pytest.mark.parametrize("way", ["forward", "backward", "left", "right"])
def test_falls_end_low(way, seconds):
    times, nodes = nodes_of([standing(1.0), fall(way, seconds)])
    neck, head = nodes[:, NODE["neck"], 2], nodes[:, NODE["head"], 2]
    assert neck[-1] < 0.4
    assert head[-1] < 0.4
    assert nodes[-1, NODE["pelvis"], 2] < 0.35
    first = times[np.flatnonzero(neck < 0.9 * neck[0])[0]]
    down = times[np.flatnonzero(neck < 0.45)[0]]
    assert down - first < seconds * 1.2


def test_falls_go_their_way():
    for way, direction in {"forward": (1, 0), "backward": (-1, 0), "left": (0, 1), "right": (0, -1)}.items():
        _, nodes = nodes_of([standing(0.5), fall(way)])
        gone = nodes[-1, NODE["neck"], :2] - nodes[0, NODE["neck"], :2]
        assert gone @ direction > 0.5, way


def test_a_walker_who_trips_goes_on_falling_forward():
    times, nodes = nodes_of(MOTIONS["tripping"]())
    pelvis = nodes[:, NODE["pelvis"]]
    forward = np.diff(pelvis[:, 0]) * 50
    assert forward[(times[1:] > 1.6) & (times[1:] < 2.4)].min() > 0.3
    assert nodes[-1, NODE["neck"], 2] < 0.4
    assert np.abs(np.diff(forward)).max() < 0.8


def test_sitting_down_ends_on_a_seat():
    _, nodes = nodes_of([standing(0.5), sit_down(0.6)])
    assert 0.4 < nodes[-1, NODE["pelvis"], 2] < 0.65
    assert nodes[-1, NODE["neck"], 2] - nodes[-1, NODE["pelvis"], 2] > 0.4
    assert np.ptp(nodes[:, NODE["left_ankle"], 0]) < 0.05


def wrist_above_shoulder(name, side="right"):
    times, nodes = nodes_of(MOTIONS[name]())
    return times, nodes[:, NODE[f"{side}_wrist"], 2] - nodes[:, NODE[f"{side}_shoulder"], 2]


def test_raised_hands_are_above_the_head():
    for side in ("left", "right"):
        times, above = wrist_above_shoulder("hands up", side)
        assert above[(times > 1.5) & (times < 3.5)].min() > 0.35
        assert above[0] < -0.3
        assert above[-1] < -0.2


def test_quick_raises_last_as_long_as_they_say():
    _, above = wrist_above_shoulder("quick raises")
    up = above > 0
    assert (np.diff(up.astype(int)) == 1).sum() == 3
    assert np.sum(up) / 50 / 3 == pytest.approx(0.3, abs=0.12)


def test_a_waving_hand_goes_to_and_fro():
    times, nodes = nodes_of(MOTIONS["waving"]())
    waving = (times > 2) & (times < 5)
    side = nodes[waving, NODE["right_wrist"], 1] - nodes[waving, NODE["right_shoulder"], 1]
    turns = (np.diff(np.sign(np.diff(side))) != 0).sum()
    assert 8 <= turns <= 11
    assert np.ptp(side) > 0.15


def test_a_phone_is_at_the_ear_and_a_cup_at_the_mouth():
    for name, node, at in (("phoning", "right_ear", 3.0), ("drinking", "nose", 1.6)):
        times, nodes = nodes_of(MOTIONS[name]())
        row = int(np.searchsorted(times, at))
        assert np.linalg.norm(nodes[row, NODE["right_wrist"]] - nodes[row, NODE[node]]) < 0.22, name


def test_crossed_arms_cross():
    times, nodes = nodes_of(MOTIONS["arms crossed"]())
    row = int(np.searchsorted(times, 2.5))
    assert nodes[row, NODE["left_wrist"], 1] < nodes[row, NODE["right_wrist"], 1]
    for one, other in (("left", "right"), ("right", "left")):
        assert np.linalg.norm(nodes[row, NODE[f"{one}_wrist"]] - nodes[row, NODE[f"{other}_elbow"]]) < 0.25


def test_the_frame_rate_does_not_change_a_motion():
    body = Body()
    take = played(MOTIONS["falling and getting up"](), body, row_of({}), np.random.default_rng(3))
    fine = take.sample(np.arange(0, take.duration_s, 0.01))
    coarse = take.sample(np.arange(0, take.duration_s, 0.2))
    assert np.abs(fine[::20][: len(coarse)] - coarse).max() < 1e-9
