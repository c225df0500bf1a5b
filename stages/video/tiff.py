"""What a TIFF says of itself: its orientation, how its pixels are stored, and how many pages it has. Pure.

    header (8): byte order, 42, place of the first list
    list: a count (2), then tags (12): number, type, count, value or its place; then the place of the next list

FFmpeg reads tiles and JPEG within a TIFF as a black picture, without a word (av 18.1). Source: TIFF 6.0, sections 2, 8.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from contextlib import suppress

Read = Callable[[int, int], bytes]
"""``(at, count)``: so many bytes of a file or a part of one; fewer at its end."""

_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
_BIG = (b"II+\0", b"MM\0+")
_SIZES = {1: "B", 3: "H", 4: "I"}
"""Bytes, short and long numbers. Of other types the place or value is not read."""
_MOST_TAGS = 4096
_MOST_PAGES = 10_000

ORIENTATION = 0x0112
_SUBFILE, _COMPRESSION, _TILE_WIDTH, _TILE_OFFSETS, _SAMPLE_FORMAT, _DNG = 254, 259, 322, 324, 339, 50706
_REDUCED = 1
"""Of `_SUBFILE`: a small copy of another page."""
_SIGNED = 2
_READ = frozenset({1, 2, 3, 4, 5, 8, 32773, 32946})
"""Compressions that FFmpeg reads: none, CCITT, LZW, Deflate, PackBits."""
_NAMES = {6: "JPEG (of the old kind)", 7: "JPEG", 34712: "JPEG 2000", 34925: "LZMA", 50000: "Zstandard", 50001: "WebP"}


def first_list(read: Read) -> Mapping[int, int]:
    """The first value of each tag of the first list; empty if this is no TIFF, or damaged."""
    return _list(read, *_begin(read))[0]


def pages(read: Read) -> int:
    """How many pictures the file has, but for small copies; 0 if this is no TIFF."""
    order, at = _begin(read)
    seen: set[int] = set()
    count = 0
    while at and at not in seen and len(seen) < _MOST_PAGES:
        seen.add(at)
        tags, at = _list(read, order, at)
        count += bool(tags) and not tags.get(_SUBFILE, 0) & _REDUCED
    return count


def why_unread(read: Read) -> str:
    """Why FFmpeg would read this TIFF wrongly, or not at all; "" for a TIFF that FFmpeg reads, and for other files."""
    if read(0, 4) in _BIG:
        return "is a BigTIFF"
    tags = first_list(read)
    if not tags or _DNG in tags:
        return ""
    compression = tags.get(_COMPRESSION, 1)
    if compression not in _READ:
        return f"is a TIFF that is compressed as {_NAMES.get(compression, f'number {compression}')}"
    if _TILE_WIDTH in tags or _TILE_OFFSETS in tags:
        return "is a TIFF whose pixels lie in tiles"
    if tags.get(_SAMPLE_FORMAT) == _SIGNED:
        return "is a TIFF whose pixels have negative values"
    return ""


def _begin(read: Read) -> tuple[str, int]:
    """The order of bytes, and the place of the first list; 0 if this is no TIFF."""
    header = read(0, 8)
    order = _ORDERS.get(header[:4])
    if order is None or len(header) < 8:
        return "<", 0
    return order, int(struct.unpack_from(f"{order}I", header, 4)[0])


def _list(read: Read, order: str, at: int) -> tuple[dict[int, int], int]:
    """The tags of one list, and the place of the next one; 0 behind the last."""
    tags: dict[int, int] = {}
    following = 0
    with suppress(struct.error):  # it points behind the end
        if not at:
            return tags, 0
        count = min(struct.unpack(f"{order}H", read(at, 2))[0], _MOST_TAGS)
        data = read(at + 2, 12 * count + 4)
        for index in range(count):
            tag, kind, values = struct.unpack_from(f"{order}HHI", data, 12 * index)
            tags[tag] = _value(read, order, kind, values, data[12 * index + 8 : 12 * index + 12])
        following = struct.unpack_from(f"{order}I", data, 12 * count)[0]
    return tags, following


def _value(read: Read, order: str, kind: int, values: int, field: bytes) -> int:
    """The first value of a tag, which stands at another place if all of them take more than four bytes."""
    form = _SIZES.get(kind)
    if form is None:
        return 0
    size = struct.calcsize(form)
    if size * values > len(field):
        field = read(struct.unpack(f"{order}I", field)[0], size)
    return int(struct.unpack_from(f"{order}{form}", field)[0])
