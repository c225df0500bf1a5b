"""Which parts of people a camera sees: the outline in the picture, and what hides each joint.

A body is drawn as its nodes and the middles of its limbs, each a disc of the body's thickness there, and as capsules
(limbs as thick lines) that hide what lies behind them: the body's own joints, and other people. Furniture is boxes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.scenes.animator.body import KEYPOINTS, NODE, NODES, Body
from camgraph.tools.scenes.animator.camera import Camera

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MIDDLES = (
    *(("pelvis", "belly"), ("belly", "neck"), ("left_shoulder", "belly"), ("right_shoulder", "belly")),
    *((f"{side}_{a}", f"{side}_{b}") for side in ("left", "right") for a, b in (("hip", "knee"), ("knee", "ankle"))),
    *(
        (f"{side}_{a}", f"{side}_{b}")
        for side in ("left", "right")
        for a, b in (("shoulder", "elbow"), ("elbow", "wrist"))
    ),
)
_FIRST = [NODE[a] for a, _ in _MIDDLES]
_SECOND = [NODE[b] for _, b in _MIDDLES]
POINTS = len(NODES) + len(_MIDDLES)
"""Discs of a body: its 28 nodes, then the middles of limbs."""

_CAPSULES = (
    *(("pelvis", "neck", 0.125), ("head", "crown", 0.085), ("neck", "head", 0.06)),
    *((f"{side}_hip", f"{side}_knee", 0.07) for side in ("left", "right")),
    *((f"{side}_knee", f"{side}_ankle", 0.05) for side in ("left", "right")),
    *((f"{side}_shoulder", f"{side}_elbow", 0.045) for side in ("left", "right")),
    *((f"{side}_elbow", f"{side}_wrist", 0.037) for side in ("left", "right")),
)
_STARTS = [NODE[a] for a, _, _ in _CAPSULES]
_ENDS = [NODE[b] for _, b, _ in _CAPSULES]
_RADII = np.array([radius for _, _, radius in _CAPSULES])

WEIGHTS = np.ones(POINTS)
"""How much of a person each disc stands for: trunk and head more than the points of the face."""
WEIGHTS[[NODE[name] for name in ("nose", "left_eye", "right_eye", "left_ear", "right_ear", "crown")]] = 0.2
WEIGHTS[[NODE[name] for name in ("pelvis", "belly", "neck", "head")]] = 2.0


@dataclass(frozen=True)
class Block:
    """Furniture, a wall or a pillar: a box with edges along the world's axes, its underside at ``bottom`` metres."""

    x: float
    y: float
    width: float
    depth: float
    height: float
    bottom: float = 0.0

    def corners(self) -> tuple[F64, F64]:
        half = np.array([self.width, self.depth, 0.0]) / 2
        middle = np.array([self.x, self.y, self.bottom])
        return middle - half, middle + half + np.array([0.0, 0.0, self.height])


@dataclass(frozen=True)
class Shapes:
    """One body over T moments, in one camera."""

    points: F64
    """(T, P, 2) pixels of the discs' middles; NaN behind the lens."""
    radii: F64
    """(T, P) pixels."""
    depths: F64
    """(T, P) metres from the lens, along its axis."""
    scale: F64
    """(T, P) pixels a metre there."""
    free: Mask
    """(T, P) not hidden by furniture."""
    facing: Mask
    """(T, 17) keypoints that the body itself does not hide."""
    size_px: F64
    """(T,) how tall the body would be in the picture if it stood upright before the lens: a measure of scale."""

    @classmethod
    def of(cls, body: Body, nodes: F64, camera: Camera, furniture: tuple[Block, ...] = ()) -> Shapes:
        solid = np.concatenate([nodes, (nodes[:, _FIRST] + nodes[:, _SECOND]) / 2], axis=1)
        thickness = np.concatenate([body.thickness, (body.thickness[_FIRST] + body.thickness[_SECOND]) / 2])
        pixels, depths = camera.project(solid)
        with np.errstate(invalid="ignore", divide="ignore"):
            scale = np.where(np.isfinite(pixels[..., 0]), camera.focal_px / depths, np.nan)
        free = np.isfinite(pixels[..., 0])
        for block in furniture:
            free &= ~behind(solid, camera.place, block)
        shown = pixels[:, : len(NODES)]
        hidden = hidden_by(shown, depths, scale, pixels[:, :KEYPOINTS], depths[:, :KEYPOINTS], build=body.build)
        return cls(pixels, thickness * scale, depths, scale, free, ~hidden, scale[:, NODE["pelvis"]] * body.height)

    def boxes(self) -> F64:
        """(T, 4) xyxy around the whole body, as far as it is before the lens; NaN where nothing is."""
        return _around(self.points, self.radii, np.isfinite(self.radii))

    def boxes_of(self, row: int, shown: Mask) -> F64:
        """(4,) xyxy at one moment around the discs that are ``shown`` (P,)."""
        rows = slice(row, row + 1)
        boxes = _around(self.points[rows], self.radii[rows], shown[None] & np.isfinite(self.radii[rows]))
        return np.asarray(boxes[0])


def _around(points: F64, radii: F64, shown: Mask) -> F64:
    low = np.where(shown[..., None], points - radii[..., None], np.inf).min(axis=1)
    high = np.where(shown[..., None], points + radii[..., None], -np.inf).max(axis=1)
    boxes: F64 = np.concatenate([low, high], axis=1)
    boxes[~shown.any(axis=1)] = np.nan
    return boxes


def hidden_by(nodes: F64, depths: F64, scale: F64, points: F64, point_depths: F64, *, build: float | F64) -> Mask:
    """(T, K) whether ``points`` (T, K, 2) lie behind a body with ``nodes`` (T, 28, 2), each with its depth in metres.

    ``scale`` (T, >= 28): pixels a metre at the nodes. ``build``: of all bodies, or (T,) of each.
    """
    start, end = nodes[:, None, _STARTS], nodes[:, None, _ENDS]
    along = end - start
    length = np.maximum((along**2).sum(axis=-1), 1e-9)
    share = np.clip(((points[:, :, None] - start) * along).sum(axis=-1) / length, 0, 1)
    away = np.linalg.norm(points[:, :, None] - start - along * share[..., None], axis=-1)
    depth = depths[:, None, _STARTS] * (1 - share) + depths[:, None, _ENDS] * share
    radius = _RADII * np.asarray(build)[..., None, None]
    wide = radius * (scale[:, None, _STARTS] * (1 - share) + scale[:, None, _ENDS] * share)
    with np.errstate(invalid="ignore"):
        return np.asarray(((away < 0.8 * wide) & (depth + 0.6 * radius < point_depths[:, :, None])).any(axis=-1))


def behind(points: F64, eye: F64, block: Block) -> Mask:
    """Whether the line from ``eye`` to each of ``points`` (..., 3) passes through a block (the slab test)."""
    low, high = block.corners()
    way = points - eye
    safe = np.where(np.abs(way) < 1e-12, 1e-12, way)
    first, second = (low - eye) / safe, (high - eye) / safe
    enters = np.minimum(first, second).max(axis=-1)
    leaves = np.maximum(first, second).min(axis=-1)
    return np.asarray((enters < leaves) & (leaves > 0) & (enters < 1) & (enters > 0))
