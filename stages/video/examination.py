"""The process that looks at files for `camgraph check`, `watch` and `cameras add`.

    python -P -m camgraph.stages.video.examination

The files may be anybody's, and FFmpeg may need any time and memory for them, or crash: that must not end the command.
A question comes in as a line of JSON (`Question`), an answer goes out as one (`Answer`), with the frames that were
asked for behind it as bytes. The process ends with its input, or when nothing was asked for `IDLE_S`.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, ClassVar

import av

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.stages.video.dates import DATES, MOST_OF_A_DATE
from camgraph.stages.video.opening import (
    ENCRYPTED,
    Refused,
    is_encrypted,
    is_picture_inside,
    length_of,
    metadata_of,
    open_video,
    span_of,
)
from camgraph.stages.video.pictures import is_album, list_pictures, read_picture, unjudged, why_unreadable
from camgraph.stages.video.pixel_shape import odd_pixel_shape
from camgraph.stages.video.pixels import U8, upright_bgr
from camgraph.stages.video.probe import largest_frame

IDLE_S = 10.0
MOST_DESCRIPTORS = 64
CPU_S = 60
"""CPU time for one question: if no process is left to end this one, the kernel does."""
MOST_DECODED = 150
"""Frames that are decoded to reach a moment behind a keyframe: a tenth of a second at 720p."""


@dataclass(frozen=True, slots=True)
class Question:
    """`frames`: how many frames of the file are wanted, and nothing else."""

    path: str
    playlist: bool
    memory_mb: int
    frames: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """`refused`: why the file must not be read; `unreadable`: why it is no video; "" if it is not so.

    `frame_bytes`, `frame_size`: as `stages.video.probe.LargestFrame`.
    `shapes`: of the frames that follow.
    `length_s`, `fps`: of a video, by its container; None if that gives none.
    `pixel_shape`: of a video, as `odd_pixel_shape`.
    `unjudged`: of a picture file, as `stages.video.pictures.unjudged`; that a video is a picture.
    `metadata`: of a video, the keys that may give its beginning.
    `too_much_memory`: it could not be read, and came near its limit.
    `last`: this process ends now.
    `passing`: the answer may differ when asked again.
    """

    refused: str = ""
    unreadable: str = ""
    frame_bytes: int | None = None
    frame_size: tuple[int, int] | None = None
    shapes: tuple[tuple[int, ...], ...] = ()
    length_s: float | None = None
    fps: float | None = None
    pixel_shape: str = ""
    unjudged: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    too_much_memory: bool = False
    last: bool = False
    passing: bool = False

    __pydantic_config__: ClassVar = {"strict": True, "allow_inf_nan": False}


def answer(question: Question) -> tuple[Answer, Sequence[U8]]:
    """Look at one file, in this process."""
    path = Path(question.path)
    try:
        if question.frames:
            frames = list(some_frames(path, question.frames))
            return Answer(shapes=tuple(frame.shape for frame in frames)), frames
        return _examined(path, playlist=question.playlist), ()
    except (MemoryError, EnvironmentProblem):
        return Answer(too_much_memory=True), ()


def _examined(path: Path, *, playlist: bool) -> Answer:
    largest = largest_frame(path, playlist=playlist)
    found = Answer(frame_bytes=largest.frame_bytes, frame_size=largest.size) if largest else Answer()
    try:
        if path.is_dir():
            return found
        return _with_picture(path, found) if is_album(path) else _with_video(path, found, playlist=playlist)
    except Refused as error:
        return Answer(refused=str(error))
    except UserError as error:
        return replace(found, unreadable=str(error))


def _with_video(path: Path, found: Answer, *, playlist: bool) -> Answer:
    """Raises Refused and UserError."""
    with open_video(path, playlist=playlist) as (container, stream):
        metadata = metadata_of(container, stream)
        length_s, fps = length_of(container, stream) or (None, None)
        shape = odd_pixel_shape(stream)
        if is_picture_inside(container):
            film_of_one = f"{path}: is a picture with the name of a video, and is judged as a film of one"
            found = replace(found, unjudged=film_of_one)
        if is_encrypted(container, stream):
            return Answer(unreadable=f"{path} is {ENCRYPTED}")
    dates = {key: metadata[key][:MOST_OF_A_DATE] for key in DATES if key in metadata}
    return replace(found, metadata=dates, length_s=length_s, fps=fps, pixel_shape=shape)


def _with_picture(path: Path, found: Answer) -> Answer:
    """Raises Refused."""
    try:
        read_picture(path)
    except (av.FFmpegError, OSError) as error:
        return replace(found, unreadable=why_unreadable(path, error))
    return replace(found, unjudged=unjudged(path))


def some_frames(file: Path, count: int) -> Iterator[U8]:
    """Samples of the content: frames (H, W, 3) BGR from `count` moments that are spread over the file, all different.

    Fewer if the file has fewer, or is damaged.
    """
    try:
        if is_album(file):
            pictures = list_pictures(file)
            for index in middles(len(pictures), min(count, len(pictures))):
                yield upright_bgr(read_picture(pictures[index]))
        else:
            yield from _video_frames(file, count)
    except (UserError, av.FFmpegError, OSError):
        return


def middles(length: int, count: int) -> list[int]:
    """The middles of `count` equal parts of `length`."""
    return [length * (2 * number + 1) // (2 * count) for number in range(count)]


def _video_frames(file: Path, count: int) -> Iterator[U8]:
    last: int | None = None
    with open_video(file) as (container, stream):
        begin, length = span_of(container)
        for moment in (begin + middle for middle in middles(length, count)):
            container.seek(moment)  # to the keyframe before it
            frame = _frame_at(container.decode(stream), moment)
            if frame is None:
                return
            if frame.pts is None or frame.pts != last:
                yield upright_bgr(frame)
            last = frame.pts


def _frame_at(frames: Iterator[av.VideoFrame], moment: int) -> av.VideoFrame | None:
    """The frame at `moment` (microseconds), or the last of those that are looked at; None if there is none."""
    frame = None
    for frame in itertools.islice(frames, MOST_DECODED):
        if frame.time is None or frame.time * 1_000_000 >= moment:
            break
    return frame


def main() -> None:
    """Answer questions until there are no more."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    _limit_descriptors()
    while _is_asked(source):
        line = source.readline()
        if not line:
            return
        question = Question(**json.loads(line))
        much = _limit(question.memory_mb)
        given, frames = answer(question)
        if _peak() > much:
            # FFmpeg often takes a refusal for damage. And the next file shall have a peak of its own.
            short = given.frame_bytes is None and not given.shapes
            given = replace(given, too_much_memory=short or given.too_much_memory, last=True)
        target.write(json.dumps(asdict(given)).encode() + b"\n")
        for frame in frames:
            target.write(frame.data)
        target.flush()
        if given.last or given.too_much_memory:
            return  # code that did not get its memory may have left things half done


def _is_asked(source: BinaryIO) -> bool:
    return is_readable(source.fileno(), IDLE_S)


def is_readable(descriptor: int, within_s: float) -> bool:
    """Whether there is something to read, or nothing more will come. Raises OSError."""
    poll = select.poll()  # `select` takes no descriptors beyond 1023
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, within_s) * 1000))


def _limit_descriptors() -> None:
    with suppress(ImportError, ValueError):
        import resource  # noqa: PLC0415 - there is none elsewhere

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(MOST_DESCRIPTORS, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit(memory_mb: int) -> int:
    """Limit the next question to this much more memory than the process has now, and to `CPU_S` of time.

    Returns half way to the limit, in bytes of address space: growing buffers are doubled.
    """
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - there is none elsewhere

        has = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        _lower(resource.RLIMIT_AS, has + (memory_mb << 20))
        used = resource.getrusage(resource.RUSAGE_SELF)
        _lower(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + CPU_S)
        return has + (memory_mb << 19)
    return sys.maxsize


def _peak() -> int:
    """The most address space that this process ever had, in bytes; 0 if that is not to be known."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmPeak:")), 0)


def _lower(which: int, soft: int) -> None:
    """Set the limit that may be set again, as far as the one that is fixed allows."""
    import resource  # noqa: PLC0415 - there is none elsewhere

    _, hard = resource.getrlimit(which)
    resource.setrlimit(which, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


if __name__ == "__main__":
    main()
