"""Small videos, made on the spot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

MakeClip = Callable[..., Path]


def picture(index: int, width: int, height: int) -> np.ndarray:
    """RGB noise over a moving gradient: no two frames alike, and packets large enough to be damaged."""
    rng = np.random.default_rng(index)
    slope = np.linspace(0, 200, width, dtype=np.uint8)[None, :, None]
    noise = rng.integers(0, 50, (height, width, 3), dtype=np.uint8)
    return np.roll(slope, index * 3, 1) + noise


@pytest.fixture
def make_clip(tmp_path: Path) -> MakeClip:
    """Writes a video: `make_clip("a.mp4", frames=30, ...)` gives its path."""

    def make(
        name: str,
        *,
        frames: int = 30,
        size: tuple[int, int] = (96, 64),
        codec: str = "libx264",
        pix_fmt: str = "yuv420p",
        fps: int = 10,
        pts: Sequence[int] | None = None,
        rotation: int = 0,
        full_range: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> Path:
        path = tmp_path / name
        flags = {"movflags": "+faststart"} if path.suffix == ".mp4" else {}
        with av.open(str(path), "w", options=flags) as container:
            stream = container.add_stream(codec, rate=fps, options=dict(options or {}))
            stream.width, stream.height, stream.pix_fmt = *size, pix_fmt
            stream.codec_context.time_base = Fraction(1, fps)
            if full_range:
                stream.codec_context.color_range = 2
            if rotation:
                stream.set_display_rotation(rotation)
            for index in range(frames):
                frame = av.VideoFrame.from_ndarray(picture(index, *size), format="rgb24")
                frame.pts, frame.time_base = (pts[index] if pts else index), Fraction(1, fps)
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
        return path

    return make
