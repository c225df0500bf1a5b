"""A camera in whose pictures somebody comes and goes, so that incidents begin and end.

Bright pictures have a person, for the model of `write_model(path, bright=...)`.
"""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
from av.video.stream import VideoStream

FPS = 10
PERIOD_S = 4
"""Two seconds of nobody, two seconds of somebody."""
_DARK, _BRIGHT = 30, 190
_SIZE = (192, 128)
_OPTIONS = {"libx265": {"x265-params": "bframes=0:log-level=none", "preset": "ultrafast"}}


def write_clip(
    path: Path,
    *,
    size: tuple[int, int] = _SIZE,
    fps: int = FPS,
    gop: int = FPS // 2,
    codec: str = "libx264",
    periods: int = 1,
) -> None:
    """H.264 with a keyframe each `gop` frames, or `libx265`; the camera sends it again and again."""
    noise = np.random.default_rng(7)
    with av.open(str(path), "w") as container:
        options = {"g": f"{gop}", "bf": "0", "preset": "veryfast", **_OPTIONS.get(codec, {})}
        stream = container.add_stream(codec, rate=fps, options=options)
        assert isinstance(stream, VideoStream)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        for number in [*range(fps * PERIOD_S)] * periods:
            level = _BRIGHT if fps <= number < 3 * fps else _DARK
            pixels = noise.integers(level - 20, level + 20, (*size[::-1], 3)).astype(np.uint8)
            pixels[:, 4 * number : 4 * number + 8] = 255 - level  # a bar that moves
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
