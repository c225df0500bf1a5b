"""Makes one picture of several videos: a row per video, a column per moment.

contact-sheet videos/front.mp4 videos/yard.mp4 --target sheet.png
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import av
import click
import cv2
import numpy as np
from av.container import InputContainer
from av.video.stream import VideoStream
from numpy.typing import NDArray

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.system.disk import write_whole
from camgraph.stages.video.opening import open_file, span_of
from camgraph.stages.video.pixels import orientation_of
from camgraph.stages.vision.drawing import draw_label
from camgraph.tools.commands.local_path import LocalPath

Picture = NDArray[np.uint8]

SHEET_WIDTH = 1600
GAP = 4
BACKGROUND = 24
LABEL = (40, 40, 40)


def contact_sheet(videos: Sequence[Path], target: Path, columns: int = 4) -> None:
    """Write a PNG with `columns` pictures of each video, from moments that lie evenly over its length.

    Raises UserError for what is no video, EnvironmentProblem if `target` cannot be written.
    """
    if not videos:
        raise UserError("contact sheet: no videos given; name at least one", error_id="video-unreadable")
    cell_width = (SHEET_WIDTH - GAP) // columns - GAP
    rows = [_row(video, columns, cell_width) for video in videos]
    _write_png(_stacked(rows), target)


def moments(duration_s: float, columns: int) -> list[float]:
    """The middles of `columns` equal parts of the length, in seconds."""
    return [duration_s * (column + 0.5) / columns for column in range(columns)]


def _row(video: Path, columns: int, cell_width: int) -> Picture:
    """The pictures of one video side by side: (h, width, 3) BGR with gaps around each."""
    try:
        with open_file(video) as container:
            if not container.streams.video:
                raise UserError(f"{video}: has no pictures; give a video", error_id="video-unreadable")
            stream = container.streams.video[0]
            times = moments(_length(container, stream), columns)
            cells = [_cell(container, stream, at_s, cell_width) for at_s in times]
    except (OSError, av.FFmpegError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(
            f"{video}: cannot be read as a video: {reason}; give a file that plays", error_id="video-unreadable"
        ) from error
    texts = [f"{at_s:.1f} s of the video" for at_s in times]
    texts[0] = f"{video.stem}, {texts[0]}"
    return _framed(np.hstack([_framed(_titled(cell, text)) for cell, text in zip(cells, texts, strict=True)]))


def _length(container: InputContainer, stream: VideoStream) -> float:
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    return span_of(container)[1] / av.time_base


def _cell(container: InputContainer, stream: VideoStream, at_s: float, width: int) -> Picture:
    """The picture that shows at `at_s`, made `width` wide."""
    assert stream.time_base is not None
    start = stream.start_time or 0
    container.seek(start + int(at_s / stream.time_base), stream=stream)
    shown = None
    for frame in container.decode(stream):
        if shown is not None and frame.pts is not None and (frame.pts - start) * stream.time_base > at_s:
            break
        shown = frame
    if shown is None:
        raise UserError(
            f"{container.name}: has no pictures that can be decoded; give a file that plays",
            error_id="video-unreadable",
        )
    picture: NDArray[Any] = orientation_of(shown).upright(shown.to_ndarray(format="bgr24"))
    height = max(1, round(picture.shape[0] * width / picture.shape[1]))
    resized: NDArray[Any] = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
    return resized


def bar_height(cell_height: int, cell_width: int) -> int:
    """Of the bar above a picture: a line of the letters that suit a picture of this size."""
    return max(18, min(cell_height, cell_width) // 16)


def _titled(cell: Picture, text: str) -> Picture:
    """The text in a bar above: in the picture are a caption with the camera's own clock, zones, people and rules."""
    bar = bar_height(*cell.shape[:2])
    titled = np.pad(cell, ((bar, 0), (0, 0), (0, 0)), constant_values=LABEL[0])
    draw_label(titled, text, (0.0, float(bar)), LABEL)
    titled[bar:] = cell
    return titled


def _framed(picture: Picture) -> Picture:
    """A half gap around, so that two neighbours have a whole one between them."""
    half = GAP // 2
    return np.pad(picture, ((half, half), (half, half), (0, 0)), constant_values=BACKGROUND)


def _stacked(rows: Sequence[Picture]) -> Picture:
    width = max(row.shape[1] for row in rows)
    padded = [np.pad(row, ((0, 0), (0, width - row.shape[1]), (0, 0)), constant_values=BACKGROUND) for row in rows]
    return np.vstack(padded)


def _write_png(picture: Picture, target: Path) -> None:
    """All of it or nothing under this name."""
    _, data = cv2.imencode(".png", picture)
    try:
        write_whole(target, data.tobytes())
    except OSError as error:
        raise EnvironmentProblem(
            f"{target}: cannot write: {error.strerror}; name another path", error_id="cannot-write"
        ) from error


@click.command("contact-sheet")
@click.argument("videos", nargs=-1, required=True, type=LocalPath(dir_okay=False))
@click.option("--target", "-o", default="contact-sheet.png", type=LocalPath(dir_okay=False))
@click.option("--columns", default=4, type=click.IntRange(1, 16), help="Pictures of each video.")
def main(videos: tuple[Path, ...], target: Path, columns: int) -> None:
    """Make one PNG with pictures of each of VIDEOS."""
    try:
        contact_sheet(videos, target, columns)
    except (UserError, EnvironmentProblem) as error:
        click.echo(error, err=True)
        raise click.exceptions.Exit(error.exit_status) from error
    click.echo(target)
