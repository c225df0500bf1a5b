"""Whether a picture lies on its side, from its EXIF: a folder may have thousands, and decoding each takes too long.

It stands behind a mark, and is a small TIFF; a TIFF file has the same tag in its own list:

    JPEG   Exif 0 0        header (8): byte order, 42, place of the list
    PNG    eXIf            list: a count (2), then tags (12): number, type, count, value
    WebP   EXIF, size (4)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress

_MARKS = ((b"Exif\0\0", 0), (b"eXIf", 0), (b"EXIF", 4))
"""Each with the bytes between it and the header."""
_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
_ORIENTATION, _SHORT = 0x0112, 3
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


def _orientation(picture: bytes, at: int) -> int:
    """By the header at `at`; 1, upright, if there is none or it is damaged."""
    order = _ORDERS.get(picture[at : at + 4])
    if order is None:
        return 1
    with suppress(struct.error):  # it points behind the end
        tags = at + struct.unpack_from(f"{order}I", picture, at + 4)[0]
        for index in range(struct.unpack_from(f"{order}H", picture, tags)[0]):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", picture, tags + 2 + 12 * index)
            if (tag, kind) == (_ORIENTATION, _SHORT):
                return int(value)
    return 1
