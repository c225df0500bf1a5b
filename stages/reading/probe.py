"""How large the frames of a source are, found without reading all of it."""

from __future__ import annotations

from math import prod
from pathlib import Path

import av

from pipeline.errors import CamgraphError
from stages.reading.opening import open_video
from stages.reading.pictures import is_album, list_pictures
from stages.reading.pixels import picture_of


def frame_bytes(path: Path) -> int | None:
    """Bytes of the largest `Frame.pixels`: by the first frame of a video, or all pictures of a folder.

    None where nothing can be read; opening it will say why.
    """
    try:
        if is_album(path):
            return max((n for n in map(_picture_bytes, list_pictures(path)) if n), default=None)
        with open_video(path) as (container, stream):
            first = next(container.decode(stream), None)
            return prod(picture_of(first).shape) if first else None
    except (CamgraphError, av.FFmpegError, OSError):
        return None


def _picture_bytes(path: Path) -> int | None:
    """By the picture's header, as if it were bgr24; None where it cannot be read: it is dropped when its turn comes."""
    try:
        with av.open(str(path)) as container:
            size = container.streams.video[0].codec_context
            return size.width * size.height * 3
    except (av.FFmpegError, OSError, IndexError):
        return None
