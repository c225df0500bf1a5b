from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from camgraph.pipeline.testing import feed, opened
from camgraph.stages.people.track import Track
from camgraph.tools.scenes.animator import PERFECT, YOLO11N, Actor, Block, Body, Camera, Rhythm, Scene, messages
from camgraph.tools.scenes.animator.library import fall, standing, walk
from camgraph.tools.scenes.animator.pose_model import Drift, Episodes
from camgraph.tools.scenes.animator.scenes import FRONT, alone, crossing_walks

pytestmark = pytest.mark.slow

BESIDE = Camera(1.6).at(5.0, 90.0)


def same(first, second):
    return all(
        np.array_equal(getattr(first, name), getattr(second, name)) for name in ("ids", "boxes", "scores", "keypoints")
    )


def test_a_seed_decides_everything():
    def made(seed):
        return list(crossing_walks(3, duration_s=8.0).frames(10.0, seed, FRONT))

    first, again, other = made(1), made(1), made(2)
    assert [frame.time_ns for frame in first] == [frame.time_ns for frame in again]
    assert all(same(a, b) for a, b in zip(first, again, strict=True))
    assert not all(same(a, b) for a, b in zip(first, other, strict=True))


def test_every_frame_rate_shows_the_same_people():
    scene = crossing_walks(1, duration_s=6.0)
    fine = {frame.time_ns: frame for frame in scene.frames(20.0, 4, FRONT, PERFECT)}
    for frame in scene.frames(5.0, 4, FRONT, PERFECT):
        assert np.allclose(fine[frame.time_ns].truth.boxes, frame.truth.boxes, atol=1e-3)
        assert np.array_equal(fine[frame.time_ns].truth.ids, frame.truth.ids)


def test_a_perfect_model_reports_the_truth():
    for frame in crossing_walks(1, duration_s=5.0).frames(5.0, 0, FRONT, PERFECT):
        rows = [list(frame.truth.ids).index(number) for number in frame.ids]
        assert np.allclose(frame.boxes, frame.truth.seen_boxes[rows], atol=1e-2)
        shown = frame.truth.keypoints[rows][..., 2] > 0
        assert np.allclose(frame.keypoints[shown][:, :2], frame.truth.keypoints[rows][shown][:, :2], atol=1e-2)


def test_identities_stay_with_their_people():
    places = {}
    for frame in crossing_walks(2, people=6, duration_s=10.0).frames(25.0, 0, FRONT, PERFECT):
        for number, box in zip(frame.truth.ids, frame.truth.boxes, strict=True):
            places.setdefault(int(number), []).append((frame.time_ns, (box[:2] + box[2:]) / 2))
    assert len(places) >= 4
    for path in places.values():
        for (before, first), (after, second) in pairwise(path):
            if after - before < 50_000_000:
                assert np.linalg.norm(second - first) < 80


def test_messages_are_those_of_the_pipeline(tmp_path):
    frames = list(crossing_walks(0, duration_s=6.0).frames(12.5, 0, FRONT))
    with opened(Track, {}, folder=tmp_path) as stage:
        followed = feed(stage, list(messages.people(frames)))
    assert len(followed) == len(frames)
    assert sum(len(one) for one in followed) > 50
    for frame, track in zip(frames, messages.tracks(frames), strict=True):
        assert track.stamp.time_ns == frame.time_ns
        assert set(track.ids.tolist()) <= set(frame.truth.ids.tolist())
        assert len(set(track.ids.tolist())) == len(track.ids)


def test_somebody_behind_a_pillar_is_not_seen():
    pillar = Block(0.0, 1.0, 0.9, 0.3, 3.0)
    scene = Scene("pillar", [Actor([walk([(2.5, 0.0)], 1.0)], x=-2.5)], (pillar,))
    frames = list(scene.frames(10.0, 0, Camera(1.6).at(5.0, 90.0), YOLO11N))
    seen = np.array([frame.truth.seen[0] if len(frame.truth.seen) else 0.0 for frame in frames])
    assert seen[3] > 0.95
    assert seen[-3] > 0.95
    assert seen.min() < 0.1
    hidden = [frame for frame, share in zip(frames, seen, strict=True) if share < 0.04]
    assert hidden
    assert all(1 not in frame.ids for frame in hidden)
    half = [frame for frame, share in zip(frames, seen, strict=True) if 0.3 < share < 0.7 and 1 in frame.ids]
    for frame in half:
        row = list(frame.ids).index(1)
        covered = frame.truth.keypoints[0, 5:, 2] == 0
        assert frame.keypoints[row, 5:, 2][covered].mean() < frame.keypoints[row, 5:, 2][~covered].mean() - 0.2


def test_the_nearer_of_two_people_hides_the_other():
    scene = Scene("two", [Actor([standing(2.0)], y=0.0), Actor([standing(2.0)], y=1.0)])
    [frame, *_] = scene.frames(5.0, 0, BESIDE, PERFECT)
    shares = dict(zip(frame.truth.ids.tolist(), frame.truth.seen.tolist(), strict=True))
    assert shares[2] > 0.99
    assert shares[1] < 0.6


def test_joints_beyond_the_border_are_reported_low():
    camera = Camera(1.6, fov_deg=40).at(2.0, 0.0, aim_m=1.5)
    for model, clipped in ((YOLO11N, False), (replace(YOLO11N, clips_joints=True), True)):
        frames = list(alone([standing(4.0)]).frames(10.0, 0, camera, model))
        reported = [frame for frame in frames if 1 in frame.ids]
        assert reported
        for frame in reported:
            row = list(frame.ids).index(1)
            beyond = frame.truth.keypoints[0, :, 1] > 720
            assert beyond[13:].all()
            assert frame.keypoints[row, beyond, 2].mean() < 0.35
            assert frame.boxes[row, 3] <= 720
            if clipped:
                assert frame.keypoints[row, :, 1].max() <= 720


def test_a_fall_can_be_lost_in_the_middle():
    actor = Actor([standing(1.0), fall("forward")], gone_s=1.7)
    frames = list(Scene("lost", [actor]).frames(10.0, 0, BESIDE, PERFECT))
    assert [bool(len(frame.truth.ids)) for frame in frames[:17]] == [True] * 17
    assert not any(len(frame.truth.ids) for frame in frames[17:])


def test_frames_come_irregularly_and_some_never():
    steady = Rhythm(10.0).times_ns(100.0, 0)
    assert len(steady) == 1000
    shaky = Rhythm(10.0, jitter=0.1, dropped=0.2).times_ns(100.0, 0)
    gaps = np.diff(shaky) / 1e9
    assert gaps.min() > 0.019
    assert len(shaky) == pytest.approx(800, abs=60)
    assert np.std(gaps) > 0.04


TREMBLING = replace(YOLO11N, swaps=0.0, bias=0.0, bias_floor_px=0.0)


def residuals(model, *, seconds=60.0, fps=25.0, camera=BESIDE):
    """(T, 17, 2) what a model adds to the joints of somebody who stands, as parts of the height in the picture."""
    still = alone([standing(seconds, sway=0.0)], heading_deg=90.0)
    rows = []
    for frame in still.frames(fps, 0, camera, model):
        if 1 in frame.ids:
            row = list(frame.ids).index(1)
            rows.append(frame.keypoints[row, :, :2] - frame.truth.keypoints[0, :, :2])
            size = frame.truth.boxes[0, 3] - frame.truth.boxes[0, 1]
    return np.array(rows) / size


def test_noise_is_as_large_as_the_model_says():
    model = replace(TREMBLING, joint_floor_px=0.0)
    noise = residuals(model)
    for part, joints_of in {"wrist": (9, 10), "shoulder": (5, 6), "ankle": (15, 16)}.items():
        declared = model.joint_noise[("face", "shoulder", "elbow", "wrist", "hip", "knee", "ankle").index(part)]
        assert noise[:, joints_of].std() == pytest.approx(declared, rel=0.2), part


def test_noise_is_alike_from_frame_to_frame():
    model = replace(TREMBLING, joint_floor_px=0.0)
    noise = residuals(model)[:, 5:].reshape(-1, 24)
    noise = noise - noise.mean(axis=0)
    alike = (noise[1:] * noise[:-1]).mean() / (noise**2).mean()
    declared = (1 - model.white_share) * np.exp(-0.04 / model.noise_tau_s)
    assert alike == pytest.approx(declared, abs=0.08)


def test_people_are_off_for_longer_as_the_model_says():
    model = replace(TREMBLING, joint_noise=(0.0,) * 7, joint_floor_px=0.0, bias=0.01, bias_floor_px=0.0)
    noise = residuals(model)[:, 5:]
    assert noise.std() == pytest.approx(0.01, rel=0.2)
    assert (noise[5:] - noise[:-5]).std() < 0.009


def test_small_noise_ends_at_the_floor():
    far = Camera(1.6).at(40.0, 90.0)
    noise = residuals(replace(TREMBLING, min_score=0.0, small_px=1.0), camera=far, seconds=20.0)
    size_px = 1.7 * far.focal_px / 40.0
    assert noise[:, 5].std() * size_px == pytest.approx(YOLO11N.joint_floor_px * 2, rel=0.25)


def test_false_boxes_come_at_the_declared_rate():
    model = replace(YOLO11N, false_boxes=0.3, min_score=0.0)
    frames = list(Scene("nobody", [], duration_s=400.0).frames(4.0, 0, BESIDE, model))
    assert sum(len(frame.ids) for frame in frames) / len(frames) == pytest.approx(0.3, rel=0.25)
    assert all((frame.ids == -1).all() for frame in frames)


def test_people_are_missed_and_doubled_at_the_declared_rates():
    model = replace(YOLO11N, missed=0.1, duplicates=0.1, false_boxes=0.0, min_score=0.0, nms_iou=1.0)
    frames = list(alone([standing(300.0)]).frames(10.0, 0, BESIDE, model))
    found = np.mean([1 in frame.ids for frame in frames])
    twice = np.mean([len(frame.ids) == 2 for frame in frames])
    assert found == pytest.approx(0.9, abs=0.03)
    assert twice == pytest.approx(0.09, abs=0.03)


def test_far_people_score_lower():
    medians = []
    for distance in (4.0, 10.0, 25.0):
        camera = Camera(2.0).at(distance, 30.0)
        model = replace(YOLO11N, min_score=0.0)
        scores = [frame.scores[0] for frame in alone([standing(20.0)]).frames(5.0, 0, camera, model) if len(frame.ids)]
        medians.append(np.median(scores))
    assert medians[0] > medians[1] > medians[2]


def test_a_drift_forgets_by_time_and_not_by_frames():
    def alike(fps):
        drift = Drift(np.random.default_rng(0), (4000,), tau_s=0.5)
        first = drift.at(0.0)
        for frame in range(1, round(fps * 0.5) + 1):
            last = drift.at(frame / fps)
        return float((first * last).mean())

    assert alike(2) == pytest.approx(np.exp(-1), abs=0.06)
    assert alike(30) == pytest.approx(np.exp(-1), abs=0.06)


def test_episodes_take_their_share_at_any_rate():
    for fps in (2.0, 25.0):
        episodes = Episodes(np.random.default_rng(1), 0.2, 0.5)
        on = np.mean([episodes.at(frame / fps) for frame in range(round(4000 * fps / 2))])
        assert on == pytest.approx(0.2, abs=0.04)


def test_the_seed_decides_the_noise_too():
    still = alone([standing(2.0, sway=0.0)], body=Body())
    first, other = (list(still.frames(5.0, seed, BESIDE, YOLO11N)) for seed in (1, 2))
    truths = zip(first, other, strict=True)
    assert any(np.array_equal(a.truth.keypoints, b.truth.keypoints) for a, b in truths)
    shifts = [np.abs(a.keypoints[0] - b.keypoints[0]).max() for a, b in zip(first, other, strict=True)]
    assert min(shifts) > 0.1


def test_the_far_side_of_a_body_is_less_certain():
    near, far = [], []
    for frame in alone([standing(20.0)]).frames(5.0, 0, BESIDE, replace(YOLO11N, swaps=0.0)):
        if 1 in frame.ids:
            row = list(frame.ids).index(1)
            near.append(frame.keypoints[row, [5, 7, 11, 13], 2])
            far.append(frame.keypoints[row, [6, 12], 2])
            assert frame.keypoints[row, 4, 2] < 0.5 < frame.keypoints[row, 3, 2]
    assert np.median(near) > np.median(far) + 0.04
