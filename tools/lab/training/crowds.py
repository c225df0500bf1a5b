"""People who only walk and stand, many in one picture, with the tracks that a run makes of them.

Where people pass before each other, boxes shrink and jump, and a track may go on with somebody else. The network must
not take that for a fall.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from camgraph.stages.vision.posture import CLASSES, POINTS, STEPS, Posture, Postures, normalised, window_of
from camgraph.tools.lab.action_trials import followed
from camgraph.tools.lab.training.plays import Rng
from camgraph.tools.lab.training.windows import Examples
from camgraph.tools.scenes.animator.pose_model import MULTIPOSE, YOLO11N
from camgraph.tools.scenes.animator.scene import Scene
from camgraph.tools.scenes.animator.scenes import (
    FRONT,
    crossing_walks,
    crowd,
    hiding_behind_pillars,
    leaving_and_returning,
)

OF_A_SCENE = 150
LONG_S = 10.0
RATES = (5, 8, 10, 15)
SIZES = ((1280, 720), (640, 480), (1920, 1080))
_AWAY_M = 6.5
"""People walk about so far before the camera."""
_LEAST_S = 0.5
"""Nobody is looked at before."""
_UNKNOWN = ("standing", "walking", "running")
"""Everybody does one of these."""


def walkers(seed: int) -> Examples:
    """Windows of one scene."""
    rng = np.random.default_rng([seed, 78])
    height_m = float(rng.uniform(1.5, 4.5))
    camera = replace(
        FRONT,
        height_m=height_m,
        tilt_deg=float(np.degrees(np.arctan2(height_m - 0.9, _AWAY_M))),
        fov_deg=float(rng.uniform(55, 85)),
        size=SIZES[rng.integers(len(SIZES))],
    )
    model = (MULTIPOSE, YOLO11N)[rng.integers(2)]
    frames = _scene(seed, rng).frames(float(rng.choice(RATES)), seed, camera, model)
    postures, windows = Postures(), []
    for picture in followed(frames, model):
        seen = postures.seen(picture.time_ns, picture.size, picture)
        windows += [window_of(posture.record) for posture in seen.values() if _long_enough(posture)]
    chosen = rng.permutation(len(windows))[:OF_A_SCENE]
    shape = len(chosen), len(CLASSES)
    known = np.ones(shape, bool)
    known[:, [CLASSES.index(name) for name in _UNKNOWN]] = False
    kept = np.array([windows[row] for row in chosen], np.float32).reshape(-1, STEPS, POINTS, 3)
    return Examples(normalised(kept), np.zeros(shape, bool), known)


def _long_enough(posture: Posture) -> bool:
    times_ns = posture.record.times_ns
    return bool(times_ns[-1] - times_ns[0] > _LEAST_S * 1e9)


def _scene(seed: int, rng: Rng) -> Scene:
    people = int(rng.integers(4, 13))
    makers = (
        lambda: crowd(seed, people=people, duration_s=LONG_S),
        lambda: crossing_walks(seed, people=people, duration_s=LONG_S),
        lambda: hiding_behind_pillars(seed, people=people // 2, duration_s=LONG_S),
        lambda: leaving_and_returning(seed, people=people // 2, duration_s=LONG_S),
    )
    return makers[rng.integers(len(makers))]()
