"""The result of reading any camera: decoded pictures with their stamps."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from av.video.frame import VideoFrame

from camgraph.pipeline.messages import Stamp


class Shot(NamedTuple):
    """One picture, as it was decoded."""

    stamp: Stamp
    content: VideoFrame


Shots = Generator[Shot, None, None]
