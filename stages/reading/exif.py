"""Whether a picture lies on its side, from its EXIF: a folder may have thousands, and decoding each takes too long.

It stands behind a mark, and is a small TIFF; a TIFF file has the same tag in its own list:

    JPEG   Exif 0 0
    PNG    eXIf
    WebP   EXIF, size (4)
"""

from __future__ import annotations

from collections.abc import Iterator

from stages.reading import tiff

_MARKS = ((b"Exif\0\0", 0), (b"eXIf", 0), (b"EXIF", 4))
"""Each with the bytes between it and the header."""
_FIRST_SIDEWAYS, _LAST_SIDEWAYS = 5, 8


def lies_sideways(picture: bytes) -> bool:
    """Whether the picture, a whole file, is shown with its sides exchanged."""
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
