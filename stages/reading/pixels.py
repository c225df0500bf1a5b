"""Decoded pictures into arrays: the cheapest form that loses nothing.

8 bit 4:2:0, limited range, even size   -> yuv420p, the decoder's planes copied once
everything else                         -> bgr24, by swscale
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from av.video.frame import VideoFrame
from av.video.plane import VideoPlane
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from stages.messages import PixelFormat

U8 = NDArray[np.uint8]

_FULL_RANGE = 2  # AVCOL_RANGE_JPEG


class Picture(NamedTuple):
    """How a frame will lie in memory once it is turned upright."""

    format: PixelFormat
    width: int
    height: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of `Frame.pixels`."""
        if self.format == "yuv420p":
            return (self.height * 3 // 2, self.width)
        return (self.height, self.width, 3)


def quarter_turns(frame: VideoFrame) -> int:
    """Quarter turns counter-clockwise that set the picture upright: what a phone held sideways notes."""
    return round(frame.rotation / 90) % 4


def picture_of(frame: VideoFrame) -> Picture:
    """The form in which this frame is given."""
    width, height = (frame.height, frame.width) if quarter_turns(frame) % 2 else (frame.width, frame.height)
    plain = frame.format.name == "yuv420p" and frame.color_range != _FULL_RANGE
    return Picture("yuv420p" if plain and width % 2 == 0 and height % 2 == 0 else "bgr24", width, height)


def fill(frame: VideoFrame, picture: Picture, out: U8, reformatter: VideoReformatter) -> None:
    """Write the frame, upright, into `out`, of `picture.shape`."""
    turns = quarter_turns(frame)
    if picture.format == "yuv420p":
        _fill_planes(frame, picture, out, turns)
        return
    # One thread: the result must not depend on the machine, and the cores belong to the model.
    converted = reformatter.reformat(frame, format="bgr24", threads=1, src_color_range=frame.color_range)
    plane = converted.planes[0]
    out[...] = np.rot90(_view(plane, (frame.height, frame.width, 3), (plane.line_size, 3, 1)), turns)


def _fill_planes(frame: VideoFrame, picture: Picture, out: U8, turns: int) -> None:
    flat, start = out.reshape(-1), 0
    for plane, part in zip(frame.planes, (1, 2, 2), strict=True):
        width, height = picture.width // part, picture.height // part
        upright = np.rot90(_view(plane, (plane.height, plane.width), (plane.line_size, 1)), turns)
        flat[start : start + width * height].reshape(height, width)[...] = upright
        start += width * height


def _view(plane: VideoPlane, shape: tuple[int, ...], strides: tuple[int, ...]) -> U8:
    """The plane's memory without the padding at the end of its lines."""
    return np.ndarray(shape, np.uint8, cast("memoryview[int]", plane), strides=strides)
