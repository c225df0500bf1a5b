"""The scene of an action at a few moments beside each other, as a picture.

Figures of sticks with a head, and the zone or the line on the floor. Coordinates are pixels of a square cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import cv2
import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.drawing import SHAPE_COLOUR, SIDE_COLOURS, draw_label
from camgraph.tools.lab.action_scenes import ActionScene
from camgraph.tools.scenes.animator.body import NODE, Side
from camgraph.tools.scenes.animator.camera import Camera

U8 = NDArray[np.uint8]
F64 = NDArray[np.float64]
Stroke = tuple[F64, F64]
"""From one point (2,) to another."""

SIDES: tuple[Side, ...] = ("left", "right")
MIDDLE = (("head", "neck"), ("neck", "pelvis"))
LIMBS = (("shoulder", "elbow"), ("elbow", "wrist"), ("hip", "knee"), ("knee", "ankle"), ("ankle", "toe"))
ACROSS = (("neck", "{}_shoulder"), ("pelvis", "{}_hip"))

BACKGROUND, FLOOR, MIDDLE_COLOUR = 46, (70, 70, 70), SIDE_COLOURS["middle"]


def as_picture(name: str, scene: ActionScene, side_px: int = 200) -> U8:
    """(H, W, 3) BGR: a cell for each moment, and the action's name."""
    camera = scene.camera(side_px)
    strip = np.concatenate([_cell(scene, at, camera) for at in scene.moments_s], axis=1)
    draw_label(strip, name, (0.0, float(side_px)), (90, 80, 60))
    return strip


def as_sheet(scenes: Mapping[str, ActionScene], side_px: int = 110, columns: int = 2) -> U8:
    """The pictures of several actions, one below the other, in so many columns."""
    most = max(len(scene.moments_s) for scene in scenes.values())
    wide = [_padded(as_picture(name, scene, side_px), side_px * most) for name, scene in scenes.items()]
    wide += [np.full_like(wide[0], 20)] * (-len(wide) % columns)
    high = len(wide) // columns
    return np.concatenate([np.concatenate(wide[n * high : (n + 1) * high], axis=0) for n in range(columns)], axis=1)


def _padded(strip: U8, width: int) -> U8:
    return np.pad(strip, ((0, 0), (0, width - strip.shape[1]), (0, 0)), constant_values=20)


# ---- the lines of a scene


def _strokes() -> Iterator[tuple[Side | None, tuple[int, int]]]:
    """The limbs of a body, by the rows of their ends; those of the middle have no side."""
    for start, end in MIDDLE:
        yield None, (NODE[start], NODE[end])
    for side in SIDES:
        for start, end in ACROSS:
            yield None, (NODE[start], NODE[end.format(side)])
        for start, end in LIMBS:
            yield side, (NODE[f"{side}_{start}"], NODE[f"{side}_{end}"])


def _on_the_floor(scene: ActionScene, camera: Camera) -> list[Stroke]:
    """The zone's sides, or the line."""
    corners = scene.zone or scene.line
    if not corners:
        return []
    pixels, _ = camera.project(np.array([(x, y, 0.0) for x, y in corners]))
    ends = np.roll(pixels, -1, axis=0) if scene.zone else pixels[1:]
    return list(zip(pixels, ends, strict=bool(scene.zone)))


def _head(pixels: F64) -> tuple[F64, float]:
    """Middle and radius."""
    head, crown = pixels[NODE["head"]], pixels[NODE["crown"]]
    return head, max(1.0, float(np.hypot(*(crown - head))))


# ---- pictures


def _cell(scene: ActionScene, at_s: float, camera: Camera) -> U8:
    side = camera.size[0]
    cell = np.full((side, side, 3), BACKGROUND, np.uint8)
    _draw_grid(cell, camera)
    line = max(2, round(side / 70))
    for start, end in _on_the_floor(scene, camera):
        cv2.line(cell, _whole(start), _whole(end), SHAPE_COLOUR, max(1, line - 1), cv2.LINE_AA)
    for nodes in scene.people(at_s):
        pixels, depths = camera.project(nodes)
        for side_of, (first, last) in _strokes():
            colour = SIDE_COLOURS[side_of] if side_of else MIDDLE_COLOUR
            cv2.line(cell, _whole(pixels[first]), _whole(pixels[last]), colour, line, cv2.LINE_AA)
        middle, radius = _head(pixels)
        cv2.circle(cell, _whole(middle), round(radius), MIDDLE_COLOUR, cv2.FILLED, cv2.LINE_AA)
        if depths[NODE["nose"]] < depths[NODE["head"]]:
            cv2.circle(cell, _whole(pixels[NODE["nose"]]), line, (60, 60, 60), cv2.FILLED, cv2.LINE_AA)
    cell[:, -1] = 20
    return cell


def _draw_grid(cell: U8, camera: Camera) -> None:
    """Half metres on the floor."""
    for step in np.arange(-2.0, 2.01, 0.5):
        for ends in (((step, -2.0, 0.0), (step, 2.0, 0.0)), ((-2.0, step, 0.0), (2.0, step, 0.0))):
            pixels, _ = camera.project(np.array(ends))
            cv2.line(cell, _whole(pixels[0]), _whole(pixels[1]), FLOOR, 1, cv2.LINE_AA)


def _whole(point: F64) -> tuple[int, int]:
    return round(float(point[0])), round(float(point[1]))
