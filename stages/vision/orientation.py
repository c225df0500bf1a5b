"""How a stored picture is to be turned and mirrored before it is shown."""

from __future__ import annotations

from math import atan2, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]


class Orientation(NamedTuple):
    """First the quarter turns counter-clockwise, then, if `mirrored`, left and right change places.

    These are the eight orientations of EXIF, in the terms of PyAV's `set_display_rotation(90 * turns, hflip=mirrored)`.
    """

    turns: int = 0
    mirrored: bool = False

    def upright(self, picture: NDArray[Any]) -> NDArray[Any]:
        """A view of the picture, (H, W) or (H, W, C) of any dtype, as it is to be shown."""
        turned = np.rot90(picture, self.turns)
        return turned[:, ::-1] if self.mirrored else turned

    def upright_size(self, width: int, height: int) -> tuple[int, int]:
        """(width, height) of such a picture once it is upright."""
        return (height, width) if self.turns % 2 else (width, height)


UPRIGHT = Orientation()


def orientation_of_matrix(matrix: I32) -> Orientation:
    """Of the display matrix (9,) of a film or picture, to the nearest quarter turn.

    With x to the right and y down, the pixel at (x, y) is shown at (a x + c y, b x + d y); the matrix is a, b, 0, c, d,
    0, and a shift. Source: libavutil/display.h of FFmpeg. Its av_display_rotation_get knows no mirror.
    """
    a, b, c, d = (float(matrix[index]) for index in (0, 1, 3, 4))
    mirrored = a * d - b * c < 0
    return Orientation(round(atan2(-c if mirrored else c, d) / (pi / 2)) % 4, mirrored)
