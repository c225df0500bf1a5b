"""A pinhole camera over a level floor: world metres to pixels.

The world: x and y on the floor, z up. The camera stands at (x, y) at ``height_m``, looks along ``heading_deg`` (0 is
the world's x, to the left) and down by ``tilt_deg``. Pixels: x to the right, y down, (0, 0) the upper left corner.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

NEAREST_M = 0.15
"""Points nearer than this to the lens, or behind it, are in no picture."""


@dataclass(frozen=True)
class Camera:
    """``fov_deg``: the angle of view across the width. ``mirrored``: the picture shows left and right exchanged."""

    height_m: float = 2.6
    tilt_deg: float = 15.0
    heading_deg: float = 0.0
    x: float = 0.0
    y: float = 0.0
    fov_deg: float = 70.0
    size: tuple[int, int] = (1280, 720)
    mirrored: bool = False

    @property
    def focal_px(self) -> float:
        return self.size[0] / 2 / float(np.tan(np.radians(self.fov_deg) / 2))

    @property
    def place(self) -> F64:
        return np.array([self.x, self.y, self.height_m])

    def axes(self) -> F64:
        """(3, 3) rows: the picture's right, down, and into the scene, in the world."""
        heading, tilt = np.radians(self.heading_deg), np.radians(self.tilt_deg)
        ahead = np.array(
            [np.cos(heading) * np.cos(tilt), np.sin(heading) * np.cos(tilt), -np.sin(tilt)],
        )
        right = np.array([np.sin(heading), -np.cos(heading), 0.0])
        return np.stack([right, np.cross(ahead, right), ahead])

    def project(self, points: F64) -> tuple[F64, F64]:
        """Pixels (..., 2) and depths (...,) in metres of ``points`` (..., 3); NaN for those behind the lens."""
        seen = (points - self.place) @ self.axes().T
        depth = seen[..., 2]
        safe = np.where(depth > NEAREST_M, depth, np.nan)
        x = seen[..., 0] / safe * self.focal_px * (-1 if self.mirrored else 1) + self.size[0] / 2
        y = seen[..., 1] / safe * self.focal_px + self.size[1] / 2
        return np.stack([x, y], axis=-1), depth

    def at(self, distance_m: float, bearing_deg: float = 0.0, aim_m: float = 0.9) -> Camera:
        """The same camera so far from the world's origin, in this direction of it, and aimed at ``aim_m`` above it.

        Bearing 0 looks into the face of somebody who faces along x; 90 sees their left side.
        """
        bearing = np.radians(bearing_deg)
        tilt = float(np.degrees(np.arctan2(self.height_m - aim_m, distance_m)))
        x, y = distance_m * float(np.cos(bearing)), distance_m * float(np.sin(bearing))
        return replace(self, x=x, y=y, heading_deg=bearing_deg + 180.0, tilt_deg=tilt)
