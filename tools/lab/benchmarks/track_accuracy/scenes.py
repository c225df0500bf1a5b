"""Scenes of the animator, in which trackers lose people: they cross, hide, leave and return, crowd together, and fall.

Each is a function of its seed. Even seeds were looked at while the tracker was tuned, odd ones were not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from camgraph.stages.vision.decoding.score_ranges import score_range
from camgraph.tools.lab.action_cases import FALLS
from camgraph.tools.lab.benchmarks.track_accuracy.measures import Labelled
from camgraph.tools.lab.benchmarks.track_accuracy.sequences import Found, Sequence
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.library import MOTIONS, waiting
from camgraph.tools.scenes.animator.motion import Motion
from camgraph.tools.scenes.animator.pose_model import MULTIPOSE
from camgraph.tools.scenes.animator.scene import Actor, Scene, Seen
from camgraph.tools.scenes.animator.scenes import FRONT, crossing_walks
from camgraph.tools.scenes.animator.silhouette import Block
from camgraph.tools.scenes.animator.walking import walk

_FPS = 25.0
_LEAST_SEEN = 0.1
"""The share of a body that is in sight, from which on somebody is to be found."""
LOW = Camera(height_m=1.7, tilt_deg=4, heading_deg=90)
"""At the height of eyes, where people hide each other most."""
_LOW_POSTURES = ("bending", "crouching", "ducking", "kneeling", "tying shoes")
Place = tuple[float, float]


def scene(name: str, seed: int, duration_s: float = 20.0) -> Sequence:
    """A scene by its name (`SCENES`) as MoveNet MultiPose would report it."""
    made, camera = SCENES[name](seed, duration_s)
    return sequence_of(f"{name} {seed}", made, camera, seed)


def sequence_of(name: str, made: Scene, camera: Camera, seed: int) -> Sequence:
    """The scene as MoveNet MultiPose would report it, 25 times a second. The true people are those in sight."""
    model = replace(MULTIPOSE, min_score=score_range("movenet_multipose").weak)
    times_ns, truths, found = [], [], []
    for one in made.frames(_FPS, seed, camera, model):
        times_ns.append(one.time_ns)
        truths.append(_truth(one))
        found.append(_found(one))
    return Sequence(name, times_ns, truths, found)


def _truth(frame: Seen) -> Labelled:
    rows = np.flatnonzero(frame.truth.seen >= _LEAST_SEEN)
    return frame.truth.ids[rows], frame.truth.seen_boxes[rows].astype(np.float64)


def _found(frame: Seen) -> Found:
    return Found(*(part.astype(np.float64) for part in (frame.boxes, frame.scores, frame.keypoints)))


def _crossing(seed: int, duration_s: float) -> tuple[Scene, Camera]:
    return crossing_walks(seed, people=6, duration_s=duration_s), FRONT


def _hiding(seed: int, duration_s: float) -> tuple[Scene, Camera]:
    """They walk to and fro behind two pillars, and some wait there."""
    random = np.random.default_rng([seed, 7])
    pillars = (Block(-1.6, 3.6, 0.7, 0.5, 2.6), Block(1.4, 4.0, 0.9, 0.5, 2.6))
    actors = [_wanderer(random, duration_s, (-4.5, 4.5), (5.0, 9.0), waits=0.3) for _ in range(5)]
    return Scene("hiding", actors, pillars, duration_s), FRONT


def _returning(seed: int, duration_s: float) -> tuple[Scene, Camera]:
    """They leave the picture at one side and come back a few seconds later, or somebody else does."""
    random = np.random.default_rng([seed, 8])
    actors = []
    for number in range(5):
        y, side = float(random.uniform(4.5, 8.0)), 1.0 if number % 2 else -1.0
        out = y * 0.75 + 2.5
        inside = float(random.uniform(-1.5, 1.5))
        speed = float(random.uniform(0.9, 1.5))
        away: list[Motion] = [waiting(float(random.uniform(0.5, 4.0)))]
        motions = [
            walk([(inside, y), (side * out, y)], speed),
            *away,
            walk([(inside, y + 0.5), (-side * out, y)], speed),
        ]
        actors.append(Actor(motions, side * out, y, 90.0 + 90.0 * side, start_s=float(random.uniform(-3.0, 5.0))))
    return Scene("returning", actors, duration_s=duration_s), FRONT


def _crowd(seed: int, duration_s: float) -> tuple[Scene, Camera]:
    random = np.random.default_rng([seed, 9])
    actors = [_wanderer(random, duration_s, (-4.0, 4.0), (4.0, 11.0), waits=0.4) for _ in range(12)]
    return Scene("crowd", actors, duration_s=duration_s), LOW


def _postures(seed: int, duration_s: float) -> tuple[Scene, Camera]:
    """Four people, at arm's length from each other, bend, crouch and kneel, and in the end each falls."""
    random = np.random.default_rng([seed, 10])
    actors = []
    for number in range(4):
        motions = [waiting(float(random.uniform(0.3, 1.5)))]
        for name in (*random.choice(_LOW_POSTURES, max(1, int(duration_s // 8))), random.choice(FALLS)):
            motions += [*MOTIONS[str(name)](), waiting(float(random.uniform(0.2, 1.0)))]
        place = 1.3 * (number - 1.5), float(random.uniform(5.0, 6.5))
        actors.append(Actor(motions, *place, float(random.uniform(0, 360))))
    return Scene("postures", actors, duration_s=duration_s), FRONT


def _wanderer(
    random: np.random.Generator, duration_s: float, x: tuple[float, float], y: tuple[float, float], waits: float
) -> Actor:
    """Somebody who goes from one place to another, and sometimes waits."""

    def place() -> Place:
        return float(random.uniform(*x)), float(random.uniform(*y))

    here = start = place()
    motions: list[Motion] = []
    lasts = 0.0
    while lasts < duration_s + 8:
        there = place()
        speed = float(random.uniform(0.7, 1.5))
        motions.append(walk([there], speed))
        lasts += float(np.hypot(there[0] - here[0], there[1] - here[1])) / speed
        here = there
        if random.random() < waits:
            rest_s = float(random.uniform(0.5, 3.0))
            motions.append(waiting(rest_s))
            lasts += rest_s
    return Actor(motions, *start, float(random.uniform(0, 360)), start_s=float(random.uniform(-8.0, 0.0)))


SCENES: Mapping[str, Callable[[int, float], tuple[Scene, Camera]]] = {
    "crossing": _crossing,
    "hiding": _hiding,
    "returning": _returning,
    "crowd": _crowd,
    "postures": _postures,
}
