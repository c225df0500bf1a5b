"""How people who walk lean under cameras that look down: `python -m tools.benchmarks.lens`.

The animator's people cross a floor, seen with the noise of a pose model. Each row is a camera. The columns are the lean
of their torsos, the median and the 95th percentile: uncorrected, corrected by the lens of the data sheet, and corrected
by the lens learnt from people in the minutes before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from stages.vision.rules.lens import LensEstimate, convergence, straightened
from stages.vision.rules.people import LEAN, with_more
from tools.animator import MULTIPOSE
from tools.animator.camera import Camera
from tools.animator.messages import tracks
from tools.animator.scenes import crossing_walks
from tools.measuring.report_page import publish, report_option, written_by

TOOL = "benchmarks.lens"
FPS = 5.0
SURE = 0.3
CAMERAS = tuple(
    Camera(height_m=height, tilt_deg=tilt, fov_deg=fov, heading_deg=90, y=ahead)
    for tilt, fov, height, ahead in ((15, 70, 2.6, 0), (30, 90, 2.6, 1), (40, 100, 2.8, 2), (50, 110, 3.0, 3))
)
"""The nearer people come, and the wider the picture is, the more they lean at its sides."""
F64 = NDArray[np.float64]


def appearances(camera: Camera, scenes: range) -> Iterator[tuple[F64, F64]]:
    """Joints (N, 17, 2), of which uncertain ones are NaN, and boxes (N, 4), frame by frame."""
    for seed in scenes:
        for item in tracks(crossing_walks(seed).frames(FPS, seed, camera, MULTIPOSE)):
            joints = item.keypoints.astype(np.float64)
            joints[joints[:, :, 2] < SURE] = np.nan
            yield joints[:, :, :2], item.boxes.astype(np.float64)


def leans(camera: Camera, scenes: range, convergence: float) -> F64:
    """The leans of all appearances with a known torso, in degrees."""
    found = [
        row[LEAN]
        for joints, boxes in appearances(camera, scenes)
        for row in with_more(straightened(joints, boxes, camera.size, convergence) if convergence else joints)
    ]
    values: F64 = np.array(found, np.float64)
    known: F64 = values[np.isfinite(values)]
    return known


def learnt(camera: Camera, scenes: range) -> float:
    estimate = LensEstimate()
    for joints, _ in appearances(camera, scenes):
        estimate.look(joints, camera.size)
    return estimate.convergence(camera.size)


def table(scenes: int) -> str:
    """Markdown."""
    lines = ["| camera | as seen | lens known | lens learnt |", "|---|---|---|---|"]
    for camera in CAMERAS:
        known = convergence(camera.tilt_deg, camera.fov_deg, camera.size[0])
        before, watched = range(1000, 1000 + scenes), range(scenes)
        found = [leans(camera, watched, c) for c in (0.0, known, learnt(camera, before))]
        cells = [f"{np.median(one):.0f}°, {np.percentile(one, 95):.0f}°" for one in found]
        where = f"{camera.height_m:g} m high, looks down {camera.tilt_deg:g}°, {camera.fov_deg:g}° wide"
        lines.append(f"| {where} | {' | '.join(cells)} |")
    return "\n".join(lines)


@click.command()
@click.option("--scenes", default=12, show_default=True, help="Of 20 s each, and as many to learn from.")
@report_option(TOOL)
def main(scenes: int, target: Path | None) -> None:
    """Measure what a known lens is good for."""
    publish(f"{written_by(TOOL, click.get_current_context().params)}\n\n{table(scenes)}\n", target, TOOL)


if __name__ == "__main__":
    main()
