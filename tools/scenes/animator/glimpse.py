"""Everybody at one moment, as the camera sees them without any noise: who hides whom, and how much of each is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.scenes.animator.body import KEYPOINTS, NODE, NODES
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.silhouette import WEIGHTS, Shapes, hidden_by

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Presence:
    """One actor over a stretch of T moments. ``present`` (T,): when they are in the scene."""

    number: int
    shapes: Shapes
    nodes: F64
    build: float
    present: Mask
    boxes: F64
    """(T, 4) around the whole body, as far as it is before the lens."""
    nearest: F64
    farthest: F64
    """(T,) depths of the body, metres."""


@dataclass(frozen=True)
class Glimpse:
    """One person at one moment. Pixels; boxes are xyxy."""

    number: int
    keypoints: F64
    """(17, 2); NaN behind the lens."""
    size_px: float
    full_box: F64
    seen_box: F64
    """Of the parts that nothing hides, within the picture."""
    seen: float
    """The share of the body that nothing hides, within the picture."""
    facing: Mask
    """(17,) not hidden by the body itself."""
    free: Mask
    """(17,) not hidden by others or furniture."""
    inside: Mask
    """(17,) within the picture."""
    level: float
    """0: the trunk is upright, 1: it lies."""


def glimpses(people: Sequence[Presence], row: int, camera: Camera) -> list[Glimpse]:
    """Everybody of whom something is in the picture at the moment ``row``."""
    picture = np.array([0.0, 0.0, *camera.size])
    there = [one for one in people if one.present[row] and _overlaps(one.boxes[row], picture)]
    found = []
    for one in there:
        free = one.shapes.free[row].copy()
        nearer = [other for other in there if other is not one and other.nearest[row] < one.farthest[row]]
        before = [other for other in nearer if _overlaps(one.boxes[row], other.boxes[row])]
        if before:
            free &= ~_hidden(one.shapes, before, row)
        made = _glimpse(one, row, free, camera)
        if made is not None:
            found.append(made)
    return found


def _overlaps(first: F64, second: F64) -> bool:
    """False for boxes that are NaN."""
    return bool((first[:2] < second[2:]).all() and (second[:2] < first[2:]).all())


def _hidden(shapes: Shapes, others: Sequence[Presence], row: int) -> Mask:
    """(P,) which discs of somebody lie behind at least one of the others."""
    nodes = np.stack([other.shapes.points[row, : len(NODES)] for other in others])
    depths = np.stack([other.shapes.depths[row] for other in others])
    scale = np.stack([other.shapes.scale[row] for other in others])
    points = np.broadcast_to(shapes.points[row], (len(others), *shapes.points[row].shape))
    point_depths = np.broadcast_to(shapes.depths[row], (len(others), *shapes.depths[row].shape))
    build = np.array([other.build for other in others])
    return np.asarray(hidden_by(nodes, depths, scale, points, point_depths, build=build).any(axis=0))


def _glimpse(one: Presence, row: int, free: Mask, camera: Camera) -> Glimpse | None:
    shapes = one.shapes
    points = shapes.points[row]
    size = np.array(camera.size, float)
    inside = ((points > 0) & (points < size)).all(axis=1)
    seen = free & inside
    share = float((WEIGHTS * seen).sum() / WEIGHTS.sum())
    box = shapes.boxes_of(row, free)
    if share == 0 or not np.isfinite(box).all():
        return None
    box = np.clip(box, 0, np.tile(size, 2))
    trunk = one.nodes[row, NODE["neck"]] - one.nodes[row, NODE["pelvis"]]
    level = 1 - min(1.0, max(0.0, float(trunk[2] / np.linalg.norm(trunk))))
    first = slice(0, KEYPOINTS)
    return Glimpse(
        one.number,
        points[first],
        float(np.nanmax(shapes.size_px[row : row + 1], initial=1.0)),
        one.boxes[row],
        box,
        share,
        shapes.facing[row],
        free[first],
        inside[first],
        level,
    )
