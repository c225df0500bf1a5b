import numpy as np
import pytest

from camgraph.tools.scenes.animator import MULTIPOSE, PERFECT, YOLO11N
from camgraph.tools.scenes.animator.body import NODE
from camgraph.tools.scenes.animator.kinematics import joints
from camgraph.tools.scenes.animator.scenes import (
    FRONT,
    HEIGHTS_M,
    ROOM,
    SCENES,
    care_room,
    falls,
    hiding_behind_pillars,
    in_and_out,
    leaving_and_returning,
    loitering,
    lost_fall,
    motion_alone,
    night,
    not_falls,
    office,
    views,
    walk_and_fall,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", SCENES)
def test_each_scene_shows_its_people(name):
    frames = list(SCENES[name](2).frames(3.0, 2, FRONT, YOLO11N))
    assert sum(len(frame.truth.ids) for frame in frames) > 0.3 * len(frames)
    assert sum((frame.ids > 0).sum() for frame in frames) > 0.3 * len(frames)


@pytest.mark.parametrize("model", [YOLO11N, MULTIPOSE], ids=lambda model: model.name)
def test_most_people_in_full_view_are_found(model):
    found = []
    for frame in SCENES["crossing walks"](5).frames(5.0, 5, FRONT, model):
        clear = frame.truth.ids[frame.truth.seen > 0.95]
        found += [number in frame.ids for number in clear]
    assert len(found) > 60
    assert np.mean(found) > 0.97


def nodes_of(scene, actor=0, seed=0, fps=1.0):
    body, take = scene.takes(seed)[actor]
    return joints(body, take.sample(np.arange(0, take.duration_s, 1 / fps)))


def test_nobody_falls_in_an_office():
    scene = office(1, hours=0.2, people=3)
    for actor in range(3):
        nodes = nodes_of(scene, actor, fps=5.0)
        hips, neck = nodes[:, NODE["pelvis"], 2], nodes[:, NODE["neck"], 2]
        assert neck.min() > 0.45
        assert (hips < 0.7).any(), "somebody sits"
        raised = nodes[:, NODE["left_wrist"], 2] > nodes[:, NODE["nose"], 2] + 0.1
        assert not (raised & (nodes[:, NODE["right_wrist"], 2] > nodes[:, NODE["nose"], 2] + 0.1)).any()


def test_the_resident_lies_on_the_bed_and_not_on_the_floor():
    scene = care_room(3, hours=1.0)
    nodes = nodes_of(scene, 0, seed=3)
    lying = np.ptp(nodes[:, [NODE[name] for name in ("neck", "pelvis", "left_ankle")], 2], axis=1) < 0.3
    assert lying.sum() > 60
    assert nodes[lying, NODE["pelvis"], 2].min() > 0.4
    bed = scene.furniture[0]
    low, high = bed.corners()
    inside = (nodes[lying, NODE["pelvis"], :2] > low[:2] - 0.15) & (nodes[lying, NODE["pelvis"], :2] < high[:2] + 0.15)
    assert inside.all()


def test_who_sleeps_is_on_the_bed_below_a_blanket():
    scene = night(2, hours=1.0)
    nodes = nodes_of(scene, 0, seed=2)
    level = np.ptp(nodes[:, [NODE[name] for name in ("neck", "pelvis", "left_ankle")], 2], axis=1) < 0.35
    assert level.mean() > 0.5
    assert nodes[level, NODE["pelvis"], 2].min() > 0.4
    frames = night(2, hours=0.1).frames(0.2, 2, ROOM, PERFECT)
    assert min(frame.truth.seen[0] for frame in frames if len(frame.truth.ids)) < 0.6


def test_hours_are_as_long_as_they_say():
    frames = list(office(0, hours=0.05).frames(2.0, 0, ROOM, PERFECT))
    assert len(frames) == 360
    assert frames[-1].time_ns == pytest.approx(179.5e9)


def test_people_who_hide_come_out_again():
    seen = {}
    for frame in hiding_behind_pillars(1).frames(5.0, 1, FRONT, PERFECT):
        shares = dict(zip(frame.truth.ids.tolist(), frame.truth.seen.tolist(), strict=True))
        for number in (1, 2, 3):
            seen.setdefault(number, []).append(shares.get(number, 0.0))
    for shares in seen.values():
        assert min(shares) < 0.1
        assert max(shares) > 0.9


def test_people_who_leave_come_back():
    there = np.array([1 in f.truth.ids for f in leaving_and_returning(0).frames(5.0, 0, FRONT, PERFECT)])
    assert (np.diff(there.astype(int)) == 1).sum() >= 2


def test_falls_lie_and_others_do_not():
    scenes = list(falls())
    assert len(scenes) == 15
    for scene in scenes:
        assert nodes_of(scene)[-1, NODE["head"], 2] < 0.45, scene.name
    for scene in not_falls():
        end = nodes_of(scene)[-1, NODE["neck"], 2]
        assert end < 0.4 if "lying" in scene.name else end > 0.8, scene.name


def test_a_lost_fall_ends_after_what_is_seen():
    frames = list(lost_fall(seen_s=0.7).frames(20.0, 0, FRONT.at(5.0, 90.0), PERFECT))
    times = [frame.time_ns / 1e9 for frame in frames if len(frame.truth.ids)]
    assert max(times) == pytest.approx(2.65, abs=0.06)


def test_a_walker_falls_in_the_middle_of_the_picture():
    last = list(walk_and_fall().frames(5.0, 0, FRONT, PERFECT))[-1]
    box = last.truth.boxes[0]
    assert (box[2] - box[0]) > (box[3] - box[1])
    assert 300 < (box[0] + box[2]) / 2 < 1100


def test_zones_and_loitering_stay_where_they_should():
    inside = nodes_of(in_and_out(2, stay_s=3.0), fps=5.0)[:, NODE["pelvis"], :2]
    near = np.linalg.norm(inside - [0.0, 6.0], axis=1) < 0.5
    assert (np.diff(near.astype(int)) == 1).sum() == 2
    paced = nodes_of(loitering(60.0))[:, NODE["pelvis"], :2]
    assert len(paced) > 55
    assert np.linalg.norm(paced - [0.0, 6.2], axis=1).max() < 2.2


def test_views_look_at_the_person_from_all_heights():
    cameras = list(views())
    assert {camera.height_m for camera in cameras} == set(HEIGHTS_M)
    scene = motion_alone("waving")
    for camera in cameras[::7]:
        [first, *_] = scene.frames(1.0, 0, camera, PERFECT)
        assert first.truth.ids.tolist() == [1]
        assert first.truth.seen[0] > 0.8
