"""A clip of five pictures."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import pytest

from tools.simulator.pattern import picture


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Five pictures."""
    path = tmp_path / "five.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 160, 120, "yuv420p"
        for number in range(5):
            frame = av.VideoFrame.from_ndarray(picture(number, 160, 120), "gray8").reformat(format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path
