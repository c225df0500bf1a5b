"""Contact sheets: a motion at several moments from several sides, drawn for people to look at.

python -m camgraph.tools.lab.motion_sheet FOLDER [NAME ...]
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import cv2
import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.drawing import draw_caption, draw_label, draw_people
from camgraph.tools.lab.action_drawings import as_sheet
from camgraph.tools.lab.action_scenes import ACTION_SCENES
from camgraph.tools.scenes.animator.body import KEYPOINTS, NODE, Body
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.kinematics import joints
from camgraph.tools.scenes.animator.library import MOTIONS, starts_in
from camgraph.tools.scenes.animator.motion import played
from camgraph.tools.scenes.animator.pose import row_of

U8 = NDArray[np.uint8]

Size = tuple[int, int]
CELL: Size = (220, 240)
OVERVIEW = {
    **{"walking": 3.6, "running": 3.0, "sitting down": 2.8, "falling forward": 2.4, "falling backward": 2.4},
    **{"slumping": 2.6, "tying shoes": 7.0, "push-ups": 7.0, "waving": 4.0, "calling for help": 4.0},
}
"""The picture of docs/animator.md."""
BEARINGS = (0.0, 45.0, 90.0)


def draw_sheet(name: str, *, moments: int = 9, height_m: float = 1.6, seed: int = 0, size: Size = CELL) -> U8:
    """A motion of the library: a row for each side from which it is seen, a column for each moment."""
    body = Body()
    take = played(MOTIONS[name](), body, row_of(starts_in(name)), np.random.default_rng(seed))
    times = np.linspace(0, take.duration_s, moments)
    nodes = joints(body, take.sample(times))
    rows = [
        _row(nodes, times, Camera(height_m=height_m, fov_deg=26, size=size).at(5.2, bearing, aim_m=0.95))
        for bearing in BEARINGS
    ]
    sheet = np.concatenate(rows, axis=0)
    draw_caption(sheet, name, f"{take.duration_s:.1f} s")
    return sheet


def draw_overview(
    seconds: Mapping[str, float], *, moments: int = 9, bearing_deg: float = 50.0, size: Size = (132, 146)
) -> U8:
    """The first seconds of several motions of the library, a row each, seen obliquely."""
    rows = []
    for name, most_s in seconds.items():
        body = Body()
        take = played(MOTIONS[name](), body, row_of(starts_in(name)), np.random.default_rng(0))
        times = np.linspace(0.04, 0.96, moments) * min(most_s, take.duration_s)
        camera = Camera(height_m=1.9, fov_deg=25, size=size).at(5.2, bearing_deg, aim_m=0.95)
        row = _row(joints(body, take.sample(times)), times, camera, boxes=False)
        draw_label(row, name, (0.0, 18.0), (90, 80, 60))
        rows.append(row)
    return np.concatenate(rows, axis=0)


def _row(nodes: NDArray[np.float64], times: NDArray[np.float64], camera: Camera, *, boxes: bool = True) -> U8:
    cells = []
    for moment, at in zip(nodes, times, strict=True):
        cell = np.full((camera.size[1], camera.size[0], 3), 46, np.uint8)
        middle = moment[NODE["pelvis"], :2]
        shown = moment - np.array([*middle, 0.0])
        _draw_floor(cell, camera, middle)
        pixels, _ = camera.project(shown)
        keypoints = np.ones((1, KEYPOINTS, 3), np.float32)
        keypoints[0, :, :2] = pixels[:KEYPOINTS]
        for side in ("left", "right"):
            first, last = (_whole(pixels[NODE[f"{side}_{part}"]]) for part in ("heel", "toe"))
            cv2.line(cell, first, last, (140, 140, 140), 2)
        box = np.concatenate([pixels.min(axis=0), pixels.max(axis=0)])[None].astype(np.float32)
        label = f"{at:.1f}" if boxes else ""
        draw_people(cell, box if boxes else np.full((1, 4), np.nan, np.float32), keypoints, [7], [label])
        cells.append(cell)
    return np.concatenate(cells, axis=1)


def _draw_floor(cell: U8, camera: Camera, middle: NDArray[np.float64]) -> None:
    """A grid of half metres."""
    for axis in range(2):
        for step in range(-4, 5):
            ends = np.zeros((2, 3))
            ends[:, axis] = step * 0.5 - np.mod(middle[axis], 0.5)
            ends[:, 1 - axis] = (-2, 2)
            pixels, _ = camera.project(ends)
            if np.isfinite(pixels).all():
                cv2.line(cell, _whole(pixels[0]), _whole(pixels[1]), (70, 70, 70), 1, cv2.LINE_AA)


def _whole(point: NDArray[np.float64]) -> tuple[int, int]:
    return int(point[0]), int(point[1])


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
def main(folder: Path, names: tuple[str, ...]) -> None:
    """Draw a contact sheet of each motion (or of those with these NAMES) into FOLDER, and the pictures of docs/."""
    folder.mkdir(parents=True, exist_ok=True)
    if not names:
        for picture, drawn in (("animator", draw_overview(OVERVIEW)), ("actions", as_sheet(ACTION_SCENES, 96))):
            cv2.imwrite(str(folder / f"{picture}.jpg"), drawn, [cv2.IMWRITE_JPEG_QUALITY, 70])
    for name in names or MOTIONS:
        sheet = draw_sheet(name)
        cv2.imwrite(str(folder / f"{name.replace(' ', '_')}.png"), sheet)


if __name__ == "__main__":
    main()
