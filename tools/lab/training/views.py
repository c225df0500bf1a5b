"""A play as cameras see it, and what pose models make of that: places are off, joints are missing, others pass before.

The noise is wider than that of `tools.scenes.animator.pose_model`, which imitates two models: this is for any.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.lab.training.plays import Play, Rng
from camgraph.tools.scenes.animator.body import KEYPOINTS
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.kinematics import joints
from camgraph.tools.scenes.animator.pose import COLUMN
from camgraph.tools.scenes.animator.pose_model import SWAPPED
from camgraph.tools.scenes.animator.silhouette import Block, Shapes

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

SIZES = ((1280, 720), (640, 480), (320, 240), (1920, 1080))
_FACE, _ARMS, _LEGS = (np.isin(np.arange(KEYPOINTS), places) for places in (range(5), range(7, 11), range(11, 17)))
_LEAST_JOINTS = 3
"""Somebody of whom fewer are left is not found."""


@dataclass(frozen=True)
class View:
    """(T, ...) without noise, in pixels. `height`: (T,) of somebody who stands there."""

    keypoints: F64
    facing: Mask
    """(T, 17) not hidden by the body itself."""
    free: Mask
    """(T, 17) within the picture, and not hidden by furniture."""
    boxes: F64
    """(T, 4) around what is seen; NaN if that is nothing."""
    share: F64
    """(T,) how much of the body is seen."""
    height: F64


@dataclass(frozen=True)
class Detections:
    """(N, ...) of one person: joints with 1 or 0 for known, boxes, and whether they were found at all."""

    keypoints: F32
    boxes: F32
    found: Mask

    def joined(self, others: Detections, first: int) -> Detections:
        """These, but of the others before the row `first`."""
        return Detections(
            np.concatenate([others.keypoints[:first], self.keypoints[first:]]),
            np.concatenate([others.boxes[:first], self.boxes[first:]]),
            np.concatenate([others.found[:first], self.found[first:]]),
        )


def view(play: Play, rng: Rng) -> View:
    """From a random side, height and distance, behind up to two pieces of furniture."""
    nodes = joints(play.body, play.poses)
    nodes[:, :, :2] += rng.uniform(-0.8, 0.8, 2) - play.poses[:, [COLUMN["x"], COLUMN["y"]]].mean(axis=0)
    height_m = float(rng.uniform(*((0.6, 1.5), (1.5, 2.8), (2.5, 4.0))[rng.integers(3)]))
    camera = Camera(
        height_m=height_m,
        size=SIZES[rng.integers(len(SIZES))],
        fov_deg=float(rng.uniform(50, 95)),
        mirrored=bool(rng.random() < 0.5),
    ).at(max(float(rng.uniform(1.8, 8)), height_m / 2), float(rng.uniform(0, 360)), float(rng.uniform(0.3, 1.4)))
    shapes = Shapes.of(play.body, nodes, camera, tuple(_block(camera, rng) for _ in range(rng.integers(0, 3))))
    points, size = shapes.points, np.array(camera.size, float)
    free = shapes.free & ((points > 0) & (points < size)).all(axis=2)
    return View(
        np.nan_to_num(points[:, :KEYPOINTS], nan=-1e4),
        shapes.facing,
        free[:, :KEYPOINTS],
        np.clip(_around(points, shapes.radii, free), 0, np.tile(size, 2)),
        free.mean(axis=1),
        np.nan_to_num(shapes.size_px, nan=100.0),
    )


def _block(camera: Camera, rng: Rng) -> Block:
    x, y = np.array([camera.x, camera.y]) * rng.uniform(0.2, 0.85) + rng.normal(0, 0.5, 2)
    return Block(float(x), float(y), *(float(side) for side in rng.uniform((0.3, 0.3, 0.3), (2.0, 1.2, 1.2))))


def _around(points: F64, radii: F64, shown: Mask) -> F64:
    """(T, 4) around the discs that are shown; NaN if none is."""
    shown = shown & np.isfinite(radii)
    safe, reach = np.nan_to_num(points), np.nan_to_num(radii)[..., None]
    low = np.where(shown[..., None], safe - reach, np.inf).min(axis=1)
    high = np.where(shown[..., None], safe + reach, -np.inf).max(axis=1)
    boxes = np.concatenate([low, high], axis=1)
    boxes[~shown.any(axis=1)] = np.nan
    return boxes


def detections(seen: View, rows: NDArray[np.intp], rng: Rng) -> Detections:
    """What a model makes of some frames of a view. It is another model, on another day, in each call."""
    places, boxes = seen.keypoints[rows], seen.boxes[rows]
    found = np.asarray(np.isfinite(boxes).all(axis=1))
    boxes = np.nan_to_num(boxes, nan=0.0)
    height = float(np.median(seen.height[rows]))
    facing, free = seen.facing[rows], seen.free[rows]
    places = _moved(places, boxes, height, rng, facing=facing, free=free)
    draws = _draws(len(rows), rng)
    known: Mask = draws < _chances(facing, free, rng)
    if rng.random() < 0.35:
        known, boxes, found = _passed(places, known, boxes, found, rng, height=height, draws=draws)
    if rng.random() < 0.15:
        begin = rng.integers(len(rows))
        sides = slice(begin, begin + rng.integers(1, max(2, len(rows) // 3)))
        places[sides], known[sides] = places[sides][:, SWAPPED], known[sides][:, SWAPPED]
    boxes = boxes + rng.normal(0, 1, boxes.shape) * height * rng.uniform(0.003, 0.02)
    found = found & ~_missed(len(rows), rng)
    found &= (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    keypoints = np.concatenate([places, known[..., None]], axis=2)
    return Detections(keypoints.astype(np.float32), boxes.astype(np.float32), found)


def _moved(places: F64, boxes: F64, height: float, rng: Rng, *, facing: Mask, free: Mask) -> F64:
    """The joints tremble and drift; those that are hidden are guessed nearer to the middle of the box."""
    shape, size = places.shape, rng.uniform(0.003, 0.02)
    drift = rng.normal(0, 0.6, (1, *shape[1:])) + np.cumsum(rng.normal(0, 0.12, shape), axis=0)
    moved = places + (rng.normal(0, 1, shape) + drift) * size * height + rng.normal(0, rng.uniform(0.3, 2), shape)
    middle = (boxes[:, None, :2] + boxes[:, None, 2:]) / 2
    guessed = moved + (middle - moved) / 2 + rng.normal(0, 0.03, shape) * height
    moved = np.where(free[..., None], moved, guessed)
    behind = (free & ~facing)[..., None]
    return np.asarray(np.where(behind, moved + rng.normal(0, 0.02, shape) * height, moved))


def _chances(facing: Mask, free: Mask, rng: Rng) -> F64:
    """(N, 17) how likely a joint is known: some models seldom find legs, arms or faces."""
    chances = np.where(facing, rng.uniform(0.93, 1), rng.uniform(0.3, 0.95))
    chances = np.where(free, chances, rng.uniform(0, 0.6))
    for part, often, least, most in ((_LEGS, 0.4, 0.0, 0.9), (_ARMS, 0.25, 0.2, 0.95), (_FACE, 0.25, 0.1, 0.9)):
        if rng.random() < often:
            chances = chances * np.where(part, rng.uniform(least, most), 1)
    return chances * rng.beta(6, 1.2, KEYPOINTS)


def _draws(count: int, rng: Rng) -> F64:
    """(N, 17) numbers from 0 to 1 that stay for some frames: joints are lost, and found again, for a while."""
    changes = rng.random((count, KEYPOINTS)) < 1 - rng.uniform(0.5, 0.97)
    draws = rng.random((count, KEYPOINTS))
    for row in range(1, count):
        draws[row] = np.where(changes[row], draws[row], draws[row - 1])
    return draws


def _passed(
    places: F64, known: Mask, boxes: F64, found: Mask, rng: Rng, *, height: float, draws: F64
) -> tuple[Mask, F64, Mask]:
    """Somebody passes before the person, or stands there: joints behind them are lost, and the box shrinks."""
    near = np.abs(places[..., 0]) < 5e3
    if not near.any():
        return known, boxes, found
    way = np.linspace(-1, 1, len(places)) * rng.uniform(-1.5, 1.5) * height
    middle = np.median(places[..., 0][near]) + rng.normal(0, 0.4) * height + way
    top = places[..., 1][near].min() + rng.uniform(-0.2, 0.6) * height
    covered = (np.abs(places[..., 0] - middle[:, None]) < rng.uniform(0.1, 0.45) * height) & (places[..., 1] > top)
    known = known & ~(covered & (draws < rng.uniform(0.5, 1)))
    boxes, found, shrinks = boxes.copy(), found.copy(), rng.random() < 0.8
    for row in np.flatnonzero(covered.sum(axis=1) > _LEAST_JOINTS):
        left = places[row][~covered[row] & near[row]]
        if len(left) < _LEAST_JOINTS:
            found[row] = False
        elif shrinks:
            low, high = left.min(axis=0) - 0.05 * height, left.max(axis=0) + 0.05 * height
            boxes[row] = [*np.maximum(boxes[row, :2], low), *np.minimum(boxes[row, 2:], high)]
    return known, boxes, found


def _missed(count: int, rng: Rng) -> Mask:
    """(N,) the frames in which nobody is found; the last one is not among them. Some tracks begin late."""
    missed = rng.random(count) < (rng.uniform(0, 0.25) if rng.random() < 0.4 else 0.01)
    if rng.random() < 0.25:
        missed[: rng.integers(0, max(1, int(count * 0.7)))] = True
    missed[-1] = False
    return missed
