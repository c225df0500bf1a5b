import numpy as np
import pytest

from camgraph.tools.lab.noise_figures import (
    FramePoses,
    against_truth,
    box_noise,
    confidences,
    heights,
    joint_noise,
    memory,
    nested_share,
    score_figures,
    swap_share,
    tracks_of,
)
from camgraph.tools.scenes.animator import YOLO11N, Camera
from camgraph.tools.scenes.animator.scenes import alone, crossing_walks, standing

pytestmark = pytest.mark.slow


def founds_of(scene, fps=25.0, seed=0, camera=None):
    camera = camera or Camera(1.6, fov_deg=60, size=(640, 480)).at(6.0, 20.0)
    return [FramePoses(seen.boxes, seen.scores, seen.keypoints) for seen in scene.frames(fps, seed, camera, YOLO11N)]


def test_the_figures_of_the_animator_are_those_of_its_model():
    founds = founds_of(alone([standing(60.0)]))
    tracks = tracks_of(founds, 25.0)
    score, spread, _ = score_figures(tracks, 25.0, 100)
    assert score == pytest.approx(YOLO11N.score, abs=0.03)
    assert spread == pytest.approx(YOLO11N.score_spread, rel=0.3)
    medians, _ = confidences(tracks, 100)
    assert medians["hip"] == pytest.approx(YOLO11N.confidence[4], abs=0.02)
    noise = joint_noise(tracks)
    assert YOLO11N.joint_noise[3] * 0.4 < noise["wrist"] < YOLO11N.joint_noise[3]
    assert noise["wrist"] > noise["shoulder"]
    assert box_noise(tracks, 100) == pytest.approx(YOLO11N.box_noise, rel=0.5)


def test_memory_finds_the_constants_again():
    lags = np.arange(1, 11) / 25
    changes = 0.01**2 * (0.3 + 0.7 * (1 - np.exp(-lags / 0.1)))
    deviation, white, tau = memory(lags, changes)
    assert deviation == pytest.approx(0.01, rel=0.05)
    assert white == pytest.approx(0.3, abs=0.05)
    assert tau == pytest.approx(0.1, rel=0.15)


def test_tracks_are_stretches_without_a_gap():
    founds = founds_of(crossing_walks(1, duration_s=8.0), camera=Camera(1.8, 4, 90, size=(640, 480)))
    for track in tracks_of(founds, 25.0):
        assert (np.diff(track.frames) == 1).all()
        assert len(track.frames) >= 10


def test_heights_are_those_of_the_body():
    founds = founds_of(alone([standing(2.0)]))
    tall = np.median([heights(found.boxes.astype(float), found.keypoints.astype(float))[0] for found in founds])
    box = np.median([found.boxes[0, 3] - found.boxes[0, 1] for found in founds])
    assert tall == pytest.approx(box, rel=0.12)


def test_swaps_and_nested_boxes_are_counted():
    founds = founds_of(alone([standing(10.0)]))
    tracks = tracks_of(founds, 25.0)
    before = swap_share(tracks)
    tracks[0].keypoints[50:52] = tracks[0].keypoints[50:52][
        :, [0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15]
    ]
    assert swap_share(tracks) > before
    whole, half = np.array([0, 0, 10, 30.0]), np.array([1, 0, 9, 15.0])
    two = FramePoses(
        np.array([whole, half], np.float32), np.array([0.9, 0.5], np.float32), np.zeros((2, 17, 3), np.float32)
    )
    one = FramePoses(two.boxes[:1], two.scores[:1], two.keypoints[:1])
    assert nested_share([two, one, one]) == pytest.approx(1 / 3)


def test_false_missed_and_doubled_boxes_are_told_apart():
    people = np.array([[0, 0, 10, 30], [50, 0, 60, 30.0]])
    boxes = np.array([[0, 0, 10, 30], [0, 0, 10, 9], [200, 0, 210, 30]], np.float32)
    found = FramePoses(boxes, np.array([0.9, 0.5, 0.3], np.float32), np.zeros((3, 17, 3), np.float32))
    checked = against_truth([found, found], [people, people])
    assert checked.missed == 0.5
    assert checked.doubled == 1.0
    assert checked.false_boxes == 1.0
    assert checked.false_scores == pytest.approx([0.3, 0.3])
