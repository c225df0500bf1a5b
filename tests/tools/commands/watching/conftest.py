from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest


@pytest.fixture
def make_clip() -> Callable[..., Path]:
    """Writes a small video of one grey after the other."""

    def make(path: Path, frames: int = 10, size: tuple[int, int] = (96, 64)) -> Path:
        with av.open(str(path), "w") as container:
            stream = container.add_stream("libx264", rate=10, options={"g": "1"})
            stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
            for index in range(frames):
                frame = av.VideoFrame.from_ndarray(np.full((size[1], size[0], 3), index * 20, np.uint8), format="bgr24")
                frame.pts, frame.time_base = index, Fraction(1, 10)
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
        return path

    return make
