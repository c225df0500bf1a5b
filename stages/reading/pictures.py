"""Folders of pictures, and single ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import av
from av.video.frame import VideoFrame

from pipeline.errors import UserError
from pipeline.paths import instead_of_file
from stages.reading.timeline import SECOND_NS
from stages.reading.video import Timed

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"})


def is_picture(path: Path) -> bool:
    """By its name."""
    return path.suffix.lower() in SUFFIXES


def is_album(path: Path) -> bool:
    """Whether this is a folder or a picture, and no video. Raises UserError where even that may not be seen."""
    try:
        return path.is_dir() or is_picture(path)
    except PermissionError:
        raise UserError(f"{path}: no permission to look at it") from None


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sorts `2.jpg` before `10.jpg`."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part), part) if part.isdecimal() and part.isascii() else (1, 0, part) for part in parts]


def list_pictures(path: Path) -> Sequence[Path]:
    """The pictures of a folder in the natural order of their names, or the one picture. Raises UserError."""
    if not path.is_dir():
        return (path,)
    try:
        found = [
            entry
            for entry in path.iterdir()
            if is_picture(entry) and not entry.name.startswith(".") and not instead_of_file(entry)
        ]
    except PermissionError:
        raise UserError(f"{path}: no permission to read the folder") from None
    if not found:
        raise UserError(f"{path}: no pictures in this folder, expected files ending in {', '.join(sorted(SUFFIXES))}")
    return sorted(found, key=lambda entry: (natural_key(entry.name), entry.name))


def timed_pictures(path: Path, fps: float) -> Iterator[Timed]:
    """The pictures in order, unread, with the times of a film of `fps` frames a second. Raises UserError."""
    time_base = 1 / Fraction(fps).limit_denominator(1001)
    for index, entry in enumerate(list_pictures(path)):
        yield Timed(entry, index, round(index * SECOND_NS * time_base), index, time_base)


def read_picture(path: Path) -> VideoFrame:
    """The picture, or the first of a moving one. Raises av.FFmpegError where it is damaged, OSError where absent."""
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            return frame
    raise av.InvalidDataError(0, "no picture in it")
