"""Decoded pictures into arrays: the cheapest form that loses nothing.

8 bit 4:2:0, limited range, even size   -> yuv420p, the decoder's planes copied once
everything else                         -> bgr24, by swscale
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import prod
from typing import NamedTuple, cast

import numpy as np
from av.sidedata.sidedata import SideDataContainer
from av.sidedata.sidedata import Type as SideDataType
from av.video.frame import VideoFrame
from av.video.plane import VideoPlane
from av.video.reformatter import Colorspace, VideoReformatter
from numpy.typing import NDArray

from camgraph.stages.messages import PixelFormat
from camgraph.stages.vision.orientation import UPRIGHT, Orientation, orientation_of_matrix

U8 = NDArray[np.uint8]

FULL_RANGE = 2  # AVCOL_RANGE_JPEG
_BT601 = Colorspace.ITU601
"""Of all pictures, whatever they say: planes that go on as they are become BGR by it (`Frame.bgr`, as everywhere in
OpenCV), and colours must not depend on the size or format of a picture.
"""


class Picture(NamedTuple):
    """How a frame will lie in memory once it is upright, which `orientation` makes it."""

    format: PixelFormat
    width: int
    height: int
    orientation: Orientation = UPRIGHT

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of `Frame.pixels`."""
        if self.format == "yuv420p":
            return (self.height * 3 // 2, self.width)
        return (self.height, self.width, 3)

    @property
    def nbytes(self) -> int:
        """Of `Frame.pixels`."""
        return prod(self.shape)


class _SideData(SideDataContainer):
    """What a frame brings along, up to the first kind that PyAV does not know.

    PyAV 18.1 knows no EXIF, and `frame.side_data` raises ValueError for all photographs that have it. FFmpeg attaches
    the matrix that it makes of it before it.
    """

    def __init__(self, frame: VideoFrame) -> None:
        with suppress(ValueError):
            super().__init__(frame)  # type: ignore[call-arg] # its stub leaves it out


def orientation_of(frame: VideoFrame) -> Orientation:
    """How the picture is set upright: phones held sideways and cameras that mirror say so in their files."""
    matrix = _SideData(frame).get(SideDataType.DISPLAYMATRIX)
    return UPRIGHT if matrix is None else orientation_of_matrix(np.frombuffer(bytes(matrix), np.int32))


def picture_of(frame: VideoFrame) -> Picture:
    """The form in which this frame is given."""
    orientation = orientation_of(frame)
    width, height = orientation.upright_size(frame.width, frame.height)
    plain = frame.format.name == "yuv420p" and frame.color_range != FULL_RANGE
    form: PixelFormat = "yuv420p" if plain and width % 2 == 0 and height % 2 == 0 else "bgr24"
    return Picture(form, width, height, orientation)


def planes_of(frame: VideoFrame, picture: Picture, reformatter: VideoReformatter) -> tuple[U8, ...]:
    """The planes of the frame, upright, in this form: views of it, or of a copy if it must be converted.

    The decoder may look at a picture again to make the next ones: the views are read-only.

    Raises av.FFmpegError, MemoryError or ValueError if it cannot be.
    """
    if picture.format == "yuv420p":
        upright = picture.orientation.upright
        return tuple(upright(_view(p, (p.height, p.width), (p.line_size, 1))) for p in frame.planes)
    return (picture.orientation.upright(_bgr_of(frame, reformatter)),)


def upright_bgr(frame: VideoFrame) -> U8:
    """(H, W, 3) BGR, contiguous, maybe read-only: colours, orientation and errors are those of `planes_of`."""
    return np.ascontiguousarray(orientation_of(frame).upright(_bgr_of(frame, VideoReformatter())))


def _bgr_of(frame: VideoFrame, reformatter: VideoReformatter) -> U8:
    # One thread: the result must not depend on the machine, and the cores belong to the model.
    converted = reformatter.reformat(
        frame,
        format="bgr24",
        threads=1,
        src_colorspace=None if frame.format.is_rgb else _BT601,
        src_color_range=frame.color_range,
    )
    plane = converted.planes[0]
    return _view(plane, (frame.height, frame.width, 3), (plane.line_size, 3, 1))


def fill(out: U8, planes: Sequence[U8]) -> None:
    """Copy the planes into `out`, one behind the other; it has as many values as all of them."""
    flat, start = out.reshape(-1), 0
    for plane in planes:
        flat[start : start + plane.size].reshape(plane.shape)[...] = plane
        start += plane.size


def _view(plane: VideoPlane, shape: tuple[int, ...], strides: tuple[int, ...]) -> U8:
    """The plane's memory without the padding at the end of its lines.

    `strides` begin with the plane's line size, which is negative if its lines lie from the bottom up, as in
    uncompressed AVI of Windows. The first line is the last one in memory then.
    """
    first = max(0, -strides[0] * (shape[0] - 1))
    view = np.ndarray(shape, np.uint8, cast("memoryview[int]", plane), first, strides)
    view.flags.writeable = False
    return view
