"""Photographs that EXIF turns and mirrors, in each format that has EXIF."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import cv2
import numpy as np


def photograph(path: Path, bgr: np.ndarray, orientation: int, order: str = "<") -> Path:
    """The picture, in the format that the file's name says; `order` of bytes as `struct` has it."""
    _, coded = cv2.imencode(path.suffix, bgr)
    exif = _beginning(order, 8) + struct.pack(f"{order}HHHIHHI", 1, 0x0112, 3, 1, orientation, 0, 0)
    data = coded.tobytes()
    match path.suffix:
        case ".jpg":
            made = data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 8) + b"Exif\0\0" + exif + data[2:]
        case ".png":
            made = data[:33] + _png_chunk(b"eXIf", exif) + data[33:]
        case ".webp":
            size = b"".join((side - 1).to_bytes(3, "little") for side in bgr.shape[1::-1])
            chunks = _riff_chunk(b"VP8X", b"\x08\0\0\0" + size) + data[12:] + _riff_chunk(b"EXIF", exif)
            made = _riff_chunk(b"RIFF", b"WEBP" + chunks)
        case _:
            made = _tiff(bgr, orientation, order)
    path.write_bytes(made)
    return path


def _beginning(order: str, tags_at: int) -> bytes:
    return (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, tags_at)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _riff_chunk(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def _tiff(bgr: np.ndarray, orientation: int, order: str) -> bytes:
    """Uncompressed, its tags behind its pixels."""
    height, width = bgr.shape[:2]
    pixels = bgr[:, :, ::-1].tobytes()
    bits_at = 8 + len(pixels) + len(pixels) % 2
    short = {256: width, 257: height, 259: 1, 262: 2, 274: orientation, 277: 3, 278: height}
    long = {273: 8, 279: len(pixels)}
    tags = [(tag, struct.pack(f"{order}HHIHH", tag, 3, 1, value, 0)) for tag, value in short.items()]
    tags += [(tag, struct.pack(f"{order}HHII", tag, 4, 1, value)) for tag, value in long.items()]
    tags.append((258, struct.pack(f"{order}HHII", 258, 3, 3, bits_at)))
    listed = struct.pack(f"{order}H", len(tags)) + b"".join(packed for _, packed in sorted(tags)) + b"\0\0\0\0"
    bits = struct.pack(f"{order}HHH", 8, 8, 8)
    return _beginning(order, bits_at + 6) + pixels.ljust(bits_at - 8, b"\0") + bits + listed
