"""Clips of given pictures, for tests that need a file to read."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray


def write_clip(path: Path, pictures: Iterable[NDArray[np.uint8]], fps: int = 10) -> Path:
    """Write grey pictures (H, W) of one size, at least one, as H.264 at `fps`; returns `path`."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=fps)
        for number, grey in enumerate(pictures):
            if not number:
                stream.height, stream.width, stream.pix_fmt = *grey.shape, "yuv420p"
            frame = av.VideoFrame.from_ndarray(grey, "gray8").reformat(format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, fps)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def write_grey_clip(path: Path, brightnesses: Iterable[int], fps: int = 10) -> Path:
    """Write even pictures of 96 x 64, one for each brightness (0 to 255); returns `path`."""
    return write_clip(path, (np.full((64, 96), one, np.uint8) for one in brightnesses), fps)
