"""Folders of pictures, and single ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import av
from av.container import InputContainer
from av.video.frame import VideoFrame

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.system.paths import instead_of_file
from camgraph.stages.video.contents import further_pictures, is_photograph
from camgraph.stages.video.ffmpeg_errors import reason_of
from camgraph.stages.video.ffmpeg_log import FfmpegLog, harm_of, listening
from camgraph.stages.video.formats import MOST_FILE_PIXELS
from camgraph.stages.video.opening import Refused, bytes_of, open_file, what_it_is
from camgraph.stages.video.pixels import FULL_RANGE
from camgraph.stages.video.timeline import SECOND_NS
from camgraph.stages.video.video import Timed

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"})

_MOST = f"{MOST_FILE_PIXELS // 1_000_000} megapixels"
_REFUSED_SIZE = re.compile(r"Picture size (\d+)x(\d+) ")
"""libavutil/imgutils.c."""
_FILMS = frozenset({"mov", "matroska", "avi", "mpegts", "mpeg", "flv", "asf", "ogg", "h264", "hevc", "ivf", "mxf"})
"""Formats of FFmpeg that no picture has, but for HEIC and AVIF."""
VIDEO_SUFFIXES = frozenset(
    f".{name}"
    for name in (
        *("3gp", "asf", "avi", "dav", "flv", "h264", "h265", "hevc", "m2ts", "m4v", "mjpeg", "mjpg", "mkv", "mov"),
        *("mp4", "mpeg", "mpg", "mts", "mxf", "ogv", "ts", "vob", "webm", "wmv", "y4m"),
    )
)


def is_picture(path: Path) -> bool:
    """By its name."""
    return path.suffix.lower() in SUFFIXES


def is_album(path: Path) -> bool:
    """Whether this is a folder or a picture, and no video. Raises UserError if even that may not be seen."""
    try:
        return path.is_dir() or is_picture(path)
    except PermissionError:
        raise UserError(f"{path}: no permission to look at it", error_id="file-permission") from None


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sorts `2.jpg` before `10.jpg`."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part), part) if part.isdecimal() and part.isascii() else (1, 0, part) for part in parts]


def list_pictures(path: Path) -> Sequence[Path]:
    """The pictures of a folder in the natural order of their names, or the one picture. Raises UserError."""
    if not path.is_dir():
        return (path,)
    try:
        inside = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
        found = [entry for entry in inside if is_picture(entry) and not instead_of_file(entry)]
    except PermissionError:
        raise UserError(f"{path}: no permission to read the folder", error_id="file-permission") from None
    videos = sorted(entry.name for entry in inside if entry.suffix.lower() in VIDEO_SUFFIXES)
    if not found and videos:
        raise UserError(
            f"{path}: no pictures in this folder, but videos: each is a camera of its own: name it ({videos[0]}), or "
            "watch all of them with `camgraph watch FOLDER` (--print-graph shows its graph)",
            error_id="video-unreadable",
        )
    if not found:
        raise UserError(
            f"{path}: no pictures in this folder, expected files ending in {', '.join(sorted(SUFFIXES))}",
            error_id="video-unreadable",
        )
    return sorted(found, key=lambda entry: (natural_key(entry.name), entry.name))


def first_name(path: Path) -> str:
    """The name that may say when this began: of a folder that of its first picture. Raises UserError."""
    return list_pictures(path)[0].name


def count_up(names: Sequence[Path]) -> bool:
    """Whether these pictures, in order, are numbered from 0 or 1 on without a gap, and not otherwise named."""
    found = [re.fullmatch(r"(.*?)([0-9]+)", entry.stem) for entry in names]
    if len(names) < 2 or len({match and match[1] for match in found}) > 1 or found[0] is None:
        return False
    numbers = [int(match[2]) for match in found if match]
    return numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def timed_pictures(path: Path, fps: float | None) -> Iterator[Timed]:
    """The pictures in order, unread, with the times of a film of `fps` frames a second. Raises UserError.

    Photographs (None) are a second apart, so that their order shows in their times as well.
    """
    time_base = 1 / Fraction(fps or 1).limit_denominator(1001)
    for index, entry in enumerate(list_pictures(path)):
        yield Timed(entry, index, round(index * SECOND_NS * time_base), index, time_base)


def read_picture(path: Path) -> VideoFrame:
    """The picture, or the first of a moving one. Raises Refused, av.FFmpegError for damage, OSError without a file."""
    return picture_and_harm(path)[0]


def picture_and_harm(path: Path) -> tuple[VideoFrame, str]:
    """As `read_picture`, and why the picture is not whole; "" if FFmpeg noticed nothing.

    FFmpeg fills the missing part of a JPEG with grey and reports that in its log alone: the frame has no flag. PNG, BMP
    and WebP that are cut off are refused.
    """
    with listening() as log:
        try:
            frame = _first_frame(path)
        except av.FFmpegError as error:
            _require_size(path, log)
            if isinstance(error, av.ArgumentError):
                raise Refused(f"{path}: it claims to have more than {_MOST}, or is damaged") from None
            raise
        return frame, harm_of(log.take_lines())


def _require_size(path: Path, log: FfmpegLog) -> None:
    """FFmpeg leaves the size of a picture that it refuses at 0: only its log has it."""
    found = next(filter(None, (_REFUSED_SIZE.match(line.text) for line in log.take_lines())), None)
    if found:
        raise Refused(f"{path}: its picture is {found[1]}x{found[2]}, expected at most {_MOST}; make it smaller")


def why_unreadable(path: Path, error: Exception) -> str:
    """Why this is no picture, for people. ``error``: of `read_picture`."""
    if isinstance(error, Refused):
        return str(error)
    content = what_it_is(path)
    return f"{path}: cannot be read as a picture" + (f": it {content}" if content else f" ({reason_of(error)})")


def unjudged(path: Path) -> str:
    """What a picture file has beside its first picture, and what to do, for people; "" if nothing."""
    try:
        with bytes_of(path) as (read, _):
            further = further_pictures(read)
    except OSError:
        return ""
    return f"{path}: {further}" if further else ""


def _require_still(path: Path, container: InputContainer) -> None:
    """Raises Refused for a video with the name of a picture."""
    if _FILMS.isdisjoint(container.format.name.split(",")):
        return
    with bytes_of(path) as (read, _):
        if is_photograph(read):
            return
    raise Refused(f"{path}: is a video with the name of a picture; give it the end of a video, such as .mp4")


def _first_frame(path: Path) -> VideoFrame:
    with open_file(path) as container:
        _require_still(path, container)
        for frame in container.decode(video=0):
            if container.streams.video[0].codec_context.name == "tiff" and frame.format.name.startswith("yuv"):
                frame.color_range = FULL_RANGE  # by TIFF 6.0, section 21; FFmpeg says nothing of it
            return frame
    raise av.InvalidDataError(0, "no picture in it")
