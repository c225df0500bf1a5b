"""Says by its bytes what a file is if FFmpeg reads no video or picture in it, and what to do. Pure.

FFmpeg says "Invalid data found" of all of these. What is not known here may still be a video of a rare format.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from camgraph.stages.video import tiff
from camgraph.stages.video.tiff import Read

_HEAD_BYTES = 4096
_ARCHIVES = {
    b"PK\x03\x04": "ZIP",
    b"Rar!": "RAR",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
}
_MARKS = {
    b"version https://git-lfs.github.com/": "a pointer of Git LFS in place of the file: get it with `git lfs pull`",
    b"%PDF": "a document (PDF)",
    b"MZ": "a program of Windows",
    b"\x7fELF": "a program",
    b"SQLite format 3": "a database (SQLite)",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "a document of an office program, or Thumbs.db",
    b"8BPS": "a picture of Photoshop: save it as PNG",
    **dict.fromkeys((b"Salted__", b"-----BEGIN PGP", b"age-encryption.org"), "encrypted: decrypt it first"),
}
_PATTERNS = {
    re.compile(rb"\s*(<!--.*?-->\s*)*<(!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL): (
        "is a web page (HTML), often the answer of a server that wants a login: get the file itself"
    ),
    re.compile(rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*|<!doctype svg[^>]*>\s*)*<svg\b", re.IGNORECASE | re.DOTALL): (
        "is a drawing (SVG): save it as PNG"
    ),
}
_ANIMATED = 2
"""A flag of WebP."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_BOXES = frozenset({b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"sidx", b"free", b"skip", b"wide", b"pnot"})
"""With which MP4 and MOV begin."""
_MOST_BOXES = 10_000
_MATROSKA_CODEC = re.compile(rb"\x86[\x83-\xc0](V_[A-Z0-9_/]+)")
"""CodecID, its length, its text."""
_TRACKS_BYTES = 1 << 16
_HEIF = frozenset({b"heic", b"heix", b"heim", b"heis", b"mif1", b"mif2", b"avif"})
_GRID_BYTES = 1 << 16
_PNG = b"\x89PNG\r\n\x1a\n"


def content_of(read: Read, size: int) -> str:
    """As `is a web page (HTML); ...`, behind the name of the file; "" if nothing is known."""
    head = read(0, _HEAD_BYTES)
    if not size:
        return "is empty"
    if not any(head):
        return "begins with zeros alone: it was copied or downloaded in part, or its disk is damaged; get it again"
    return _by_beginning(head) or tiff.why_unread(read) or _of_boxes(read, size) or _of_text(head)


def _by_beginning(head: bytes) -> str:
    if head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X" and len(head) > 20 and head[20] & _ANIMATED:
        return "is an animated WebP, which FFmpeg does not read: save it as GIF, APNG or MP4"
    archive = next((name for mark, name in _ARCHIVES.items() if head.startswith(mark)), "")
    if archive or head[257:262] == b"ustar":
        return f"is an archive ({archive or 'tar'}): unpack it first"
    by_pattern = next((what for pattern, what in _PATTERNS.items() if pattern.match(head)), "")
    return by_pattern or next((f"is {what}" for mark, what in _MARKS.items() if head.startswith(mark)), "")


def _of_text(head: bytes) -> str:
    """Also if its last letter is cut."""
    try:
        text = head.decode("utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    except UnicodeDecodeError as error:
        if len(head) - error.start > 3 or error.start == 0:
            return ""
        text = head[: error.start].decode(errors="replace")
    return "" if _CONTROL.search(text) else "is a text"


def _of_boxes(read: Read, size: int) -> str:
    """MP4 or MOV that lacks a part."""
    boxes = list(_boxes(read, size))
    kinds = {kind for kind, _ in boxes}
    if not boxes or boxes[0][0] not in _BOXES:
        return ""
    kind, end = boxes[-1]
    if b"moov" not in kinds and kinds & {b"moof", b"styp", b"sidx"}:
        return (
            "is a piece of a stream (MP4) without its beginning: put the file with the beginning before it, as with "
            "cat init.mp4 PIECE > whole.mp4"
        )
    if b"moov" not in kinds:
        return (
            "is cut off (MP4): its index (moov), which stands at the end, is missing, as after an interrupted download "
            "or recording; get the whole file, or repair it with a tool such as untrunc"
        )
    if kind == b"moov" and end > size:
        return f"is cut off (MP4): its index (moov) ends at byte {end}, expected at most {size}; get the whole file"
    return ""


def _boxes(read: Read, size: int) -> Iterator[tuple[bytes, int]]:
    """(kind, end) of each box of the outermost level."""
    at = 0
    for _ in range(_MOST_BOXES):
        header = read(at, 16)
        if len(header) < 8:
            return
        length, kind = struct.unpack(">I4s", header[:8])
        if length == 1 and len(header) == 16:
            length = struct.unpack(">Q", header[8:])[0]
        if length == 0:
            length = size - at
        yield kind, at + length
        if length < 8 or not kind.isalnum():
            return
        at += length


def codec_of_matroska(read: Read) -> str:
    """The name of the first format of a video in Matroska, as `V_MPEGH/ISO/HEVC`; "" if there is none."""
    found = _MATROSKA_CODEC.search(read(0, _TRACKS_BYTES))
    return found[1].decode() if found else ""


def is_tiled_photograph(read: Read) -> bool:
    """Whether this is HEIC or AVIF in tiles, as from phones: FFmpeg gives the tiles, and camgraph would judge one."""
    head = read(0, _GRID_BYTES)
    return head[4:8] == b"ftyp" and head[8:12] in _HEIF and b"infe" in head and b"grid" in head


def is_photograph(read: Read) -> bool:
    """Whether this is HEIC or AVIF: MP4 for FFmpeg."""
    head = read(0, 12)
    return head[4:8] == b"ftyp" and head[8:12] in _HEIF


def further_pictures(read: Read) -> str:
    """Of a file of which the first picture alone is judged: what else it has, and what to do; "" if nothing."""
    count = tiff.pages(read)
    if count > 1:
        return f"has {count} pages, and the first one is judged; save each page as a file of its own"
    head = read(0, _HEAD_BYTES)
    at = head.find(b"acTL") if head.startswith(_PNG) else -1
    if at >= 0 and len(head) >= at + 8:
        count = struct.unpack_from(">I", head, at + 4)[0]
        if count > 1:
            return f"moves ({count} pictures), and the first one is judged; to judge all, let its name end in .apng"
    if head[:4] == b"GIF8":
        return "is a GIF, of which the first picture is judged; to judge all, let its name end in .gif"
    return ""
