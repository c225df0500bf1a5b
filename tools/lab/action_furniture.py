"""People behind counters and desks, and cut off by the picture's lower border: scenes in which legs are hidden.

    firings(rules_of(["running"]), behind_counter([walk([(3.0, 0.0)], 1.3)], height_m=1.1, seed=2))

People act at the world's origin. A counter stands along x before them, and the camera behind the counter, 6 m away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.onlooker import picture_of
from camgraph.tools.lab.action_trials import LEAST_SCORE
from camgraph.tools.scenes.animator import YOLO11N, Actor, Block, Camera, PoseModel, Scene
from camgraph.tools.scenes.animator.messages import tracks

COUNTERS_M = (0.9, 1.1, 1.3)
AWAY_M, ASIDE_DEG = 6.0, (-20.0, 0.0, 20.0)
"""How far the camera is, and how far it stands aside, by the seed."""


def before(seed: int, height_m: float = 2.6, *, cut_m: float | None = None) -> Camera:
    """A camera that looks along y, and so low that what is below `cut_m` at the origin is out of its picture."""
    camera = Camera(height_m=height_m, heading_deg=90).at(AWAY_M, -90.0 + ASIDE_DEG[seed % len(ASIDE_DEG)])
    if cut_m is None:
        return camera
    tilts = (camera.tilt_deg - 0.5 * number for number in range(120))
    return next(one for tilt in tilts if _hides(one := replace(camera, tilt_deg=tilt), cut_m))


def _hides(camera: Camera, below_m: float) -> bool:
    pixels, _ = camera.project(np.array([[0.0, 0.0, below_m]]))
    return bool(pixels[0, 1] > camera.size[1])


def counter(height_m: float) -> Block:
    """A counter of 12 m between the camera and the people, half a metre before them."""
    return Block(0.0, -0.75, 12.0, 0.5, height_m)


def desk() -> Block:
    """A desk of 1.5 m before the people."""
    return Block(0.0, -0.75, 1.5, 0.7, 0.74)


def seen(
    actors: Sequence[Actor],
    furniture: Sequence[Block],
    camera: Camera,
    *,
    seed: int = 0,
    fps: float = 12.5,
    model: PoseModel = YOLO11N,
    duration_s: float | None = None,
) -> list[Picture]:
    """The frames as rules see them."""
    frames = Scene("furniture", actors, tuple(furniture), duration_s).frames(fps, seed, camera, model)
    return [picture_of(item) for item in tracks(frames, min_score=LEAST_SCORE)]


def behind_counter(actor: Actor, height_m: float, *, seed: int = 0, model: PoseModel = YOLO11N) -> list[Picture]:
    """Somebody behind a counter, at 12.5 frames a second."""
    return seen([actor], [counter(height_m)], before(seed), seed=seed, model=model)
