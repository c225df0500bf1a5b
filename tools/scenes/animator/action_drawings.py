"""The scene of an action at a few moments beside each other: as text of dots for a terminal, and as a picture.

Both show the same: figures of sticks with a head, and the zone or the line on the floor. Coordinates are pixels of a
square cell, or the dots of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.drawing import SHAPE_COLOUR, SIDE_COLOURS, draw_label
from camgraph.tools.scenes.animator.action_scenes import ActionScene
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

TEXT_SIDE = 24
"""Dots: 12 characters of braille wide and 6 high."""
BACKGROUND, FLOOR, MIDDLE_COLOUR = 46, (70, 70, 70), SIDE_COLOURS["middle"]


def as_text(scene: ActionScene, *, columns: int = 80, braille: bool = True) -> str:
    """As many moments as fit into `columns`, the last one always; without `braille` in ASCII, twice as large."""
    dots = [_dots(scene, at) for at in scene.moments_s]
    rows = [_braille(one) if braille else _ascii(one) for one in dots]
    most = max(1, (columns + 1) // (len(rows[0][0]) + 1))
    shown = rows[max(0, len(rows) - most) :]
    lines = (" ".join(parts).rstrip() for parts in zip(*shown, strict=True))
    return "\n".join(_trimmed(list(lines)))


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


# ---- text


def _dots(scene: ActionScene, at_s: float) -> NDArray[np.bool_]:
    """(24, 24) which dots are set."""
    canvas = np.zeros((TEXT_SIDE, TEXT_SIDE), np.uint8)
    camera = scene.camera(TEXT_SIDE)
    for start, end in _on_the_floor(scene, camera):
        _dotted(canvas, start, end)
    for nodes in scene.people(at_s):
        pixels, _ = camera.project(nodes)
        for _, (first, last) in _strokes():
            cv2.line(canvas, _whole(pixels[first]), _whole(pixels[last]), 1, 1)
        middle, radius = _head(pixels)
        cv2.circle(canvas, _whole(middle), round(radius), 1, cv2.FILLED)
    return canvas > 0


def _dotted(canvas: U8, start: F64, end: F64) -> None:
    """Every second dot of a line."""
    steps = int(np.abs(end - start).max()) // 2 + 1
    for x, y in np.linspace(start, end, steps):
        if 0 <= x < canvas.shape[1] and 0 <= y < canvas.shape[0]:
            canvas[int(y), int(x)] = 1


_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""The dots of a braille pattern, 4 rows of 2 (Unicode, block U+2800)."""


def _braille(dots: NDArray[np.bool_]) -> list[str]:
    cells = dots.reshape(TEXT_SIDE // 4, 4, TEXT_SIDE // 2, 2).transpose(0, 2, 1, 3)
    codes = 0x2800 + (cells * _BITS).sum(axis=(2, 3))
    return ["".join(" " if code == 0x2800 else chr(code) for code in row) for row in codes.tolist()]


def _ascii(dots: NDArray[np.bool_]) -> list[str]:
    upper, lower = dots[0::2], dots[1::2]
    letters = np.array([" ", "'", ".", ":"])[upper + 2 * lower.astype(int)]
    return ["".join(row) for row in letters]


def _trimmed(lines: list[str]) -> Sequence[str]:
    """Without the empty lines above and below."""
    full = [number for number, line in enumerate(lines) if line]
    return lines[full[0] : full[-1] + 1] if full else lines[:1]


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
