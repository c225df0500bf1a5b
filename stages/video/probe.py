"""How large the frames of a source are, found without reading all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import av

from camgraph.pipeline.errors import UserError
from camgraph.stages.video import tiff
from camgraph.stages.video.opening import open_file, open_video
from camgraph.stages.video.pictures import is_album, list_pictures
from camgraph.stages.video.pixels import picture_of

_MARKS = ((b"Exif\0\0", 0), (b"eXIf", 0), (b"EXIF", 4))
"""Each with the bytes between it and the header."""
_FIRST_SIDEWAYS, _LAST_SIDEWAYS = 5, 8


class LargestFrame(NamedTuple):
    """Its bytes in `Frame.pixels`; width and height, None if frames are of several sizes."""

    frame_bytes: int
    size: tuple[int, int] | None


def largest_frame(path: Path, *, playlist: bool = False) -> LargestFrame | None:
    """The largest frame, by the first one of a video, or all pictures of a folder.

    None if nothing can be read; opening it will say why. Raises MemoryError or EnvironmentProblem if memory is
    short: that says nothing of the source.
    """
    try:
        if is_album(path):
            sizes = {size for size in map(_picture_size, list_pictures(path)) if size and min(size)}
            largest = max((width * height * 3 for width, height in sizes), default=None)
            return (
                LargestFrame(largest, next(iter(sizes)) if len(sizes) == 1 else None) if largest is not None else None
            )
        with open_video(path, playlist=playlist) as (container, stream):
            first = next(container.decode(stream), None)
            if first is None:
                return None
            picture = picture_of(first)
            return LargestFrame(picture.nbytes, (picture.width, picture.height))
    except MemoryError:
        raise
    except (UserError, av.FFmpegError, OSError):
        return None


def _picture_size(path: Path) -> tuple[int, int] | None:
    """Of the upright picture, by its header; None if it cannot be read: it is dropped when its turn comes."""
    try:
        with open_file(path) as container:
            stored, data = container.streams.video[0].codec_context, bytes(next(container.demux(video=0)))
            return (stored.height, stored.width) if lies_sideways(data) else (stored.width, stored.height)
    except MemoryError:
        raise
    except (UserError, av.FFmpegError, OSError, IndexError, AttributeError):  # no video, or no decoder for it
        return None


def lies_sideways(picture: bytes) -> bool:
    """Whether the picture, a whole file, is shown with its sides exchanged, by its EXIF.

    A folder may have thousands of pictures, and decoding each takes too long. EXIF stands behind a mark, and is a small
    TIFF; a TIFF file has the same tag in its own list:

        JPEG   Exif 0 0
        PNG    eXIf
        WebP   EXIF, size (4)
    """
    return any(_FIRST_SIDEWAYS <= _orientation(picture, at) <= _LAST_SIDEWAYS for at in _headers(picture))


def _headers(picture: bytes) -> Iterator[int]:
    """Where headers of TIFF may begin."""
    yield 0
    for mark, between in _MARKS:
        at = picture.find(mark)
        if at >= 0:
            yield at + len(mark) + between


def _orientation(picture: bytes, begin: int) -> int:
    """By the header at `begin`; 1, upright, if there is none or it is damaged."""
    tags = tiff.first_list(lambda at, count: picture[begin + at : begin + at + count])
    return tags.get(tiff.ORIENTATION, 1)
