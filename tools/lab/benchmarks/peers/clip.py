"""Clips for the cameras: so many frames of a video, in H.264, as a camera would send them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path

import av
from av.video.frame import VideoFrame

_FPS = 25


def write_clip(source: Path, target: Path, frames: int, size: tuple[int, int]) -> None:
    """The first ``frames`` pictures of a video (again from its start if it is shorter), scaled to ``size``.

    A keyframe each second, no B-frames.
    """
    with av.open(str(target), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=_FPS)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.options = {"preset": "superfast", "crf": "23", "bf": "0", "g": str(_FPS)}
        for number, picture in enumerate(islice(_endless(source), frames)):
            scaled = picture.reformat(*size, "yuv420p")
            scaled.pts, scaled.time_base, scaled.pict_type = number, Fraction(1, _FPS), 0
            container.mux(stream.encode(scaled))
        container.mux(stream.encode(None))


def _endless(source: Path) -> Iterator[VideoFrame]:
    while True:
        with av.open(str(source)) as container:
            yield from container.decode(video=0)
