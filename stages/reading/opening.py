"""Opens video files and decodes them packet by packet, with clear words for what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import av
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from pipeline.errors import BadItem, UserError
from pipeline.paths import instead_of_file
from stages.reading.ffmpeg_errors import reason_of
from stages.reading.timeline import SECOND_NS, MediaClock
from stages.reading.truncation import end_ns, what_is_missing


def _nobody() -> None:
    """Hears nothing."""


class Signs(NamedTuple):
    """Who hears, while a file or camera is read, of each packet that is refused (`damaged`), and of each (`alive`)."""

    damaged: Callable[[], None] = _nobody
    alive: Callable[[], None] = _nobody


_TEXT = "tty"
"""The format as which FFmpeg opens files such as notes.txt: it makes pictures of their letters."""


@contextmanager
def open_video(path: Path) -> Iterator[tuple[InputContainer, VideoStream]]:
    """The file and its first video stream, decoded by this thread alone. Raises UserError."""
    other = instead_of_file(path)
    if other:
        raise UserError(f"{path}: is {other}, expected a video file")
    try:
        container = av.open(str(path))
    except (av.FFmpegError, OSError) as error:
        raise UserError(f"{path}: {_why_not_open(path, error)}") from None
    with container:
        if container.format.name == _TEXT:
            raise UserError(f"{path}: is a text, expected a video")
        if not container.streams.video:
            raise UserError(f"{path}: there is no video in it, expected a video file")
        stream = container.streams.video[0]
        # One thread for each camera: more cost memory and bring nothing where cameras outnumber cores.
        stream.thread_type = "NONE"
        yield container, stream


def is_text(path: Path) -> bool:
    """Whether a file is a text to FFmpeg; False also for what it cannot open at all."""
    try:
        with av.open(str(path)) as container:
            return container.format.name == _TEXT
    except (av.FFmpegError, OSError):
        return False


def _why_not_open(path: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, PermissionError):
        return "no permission to read it"
    if path.is_file() and path.stat().st_size == 0:
        return "the file is empty, expected a video"
    return f"cannot be read as a video ({reason_of(error)}); it may be none, or be cut off before its index"


def new_clock(stream: VideoStream) -> MediaClock:
    """A clock in this stream's units; frames without a pts are one interval of its frame rate apart."""
    rate = stream.guessed_rate or stream.average_rate or Fraction(25)
    return MediaClock(stream.time_base or Fraction(1, 1000), round(SECOND_NS / rate))


def decoded(path: Path, container: InputContainer, stream: VideoStream, signs: Signs) -> Iterator[VideoFrame]:
    """The frames as the decoder gives them; a packet that it refuses is reported and left out.

    Raises BadItem where the file breaks, or after its last frame when packets are missing: it is cut off or damaged.
    """
    packets, last_ns = 0, 0
    try:
        for packet in container.demux(stream):
            signs.alive()
            if packet.size:
                packets += 1
                last_ns = max(last_ns, end_ns(packet, stream))
            try:
                yield from packet.decode()
            except av.FFmpegError:
                signs.damaged()
    except av.FFmpegError as error:
        raise BadItem("unreadable", f"{path} after {packets} packets: {error.strerror}") from None
    missing = what_is_missing(path, container, stream, last_ns)
    if missing:
        raise BadItem("truncated", f"{path} is cut off or damaged after {packets} packets: {missing}")
