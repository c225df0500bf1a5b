"""How a frame lies in a model's picture, and the way back.

model = frame * scale + pad          x to the right, y down; pixel i covers [i, i + 1)

  frame 1280x720           letterbox 640x640: scale 0.5, pad (0, 140)
+----------------+         +--------+
|                |         | 114    |  140
|                |   ->    |--------|
|                |         | frame  |  360
+----------------+         |--------|
                           | 114    |  140
                           +--------+
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
Size = tuple[int, int]
Align = Literal["centre", "corner"]
"""The place of a frame in its padding; the corner is the upper left."""

FitName = Literal["letterbox", "stretch", "crop"]
"""How a frame is fitted into a picture of other proportions."""

NATIVE_MULTIPLE = 32


class Fit(NamedTuple):
    """Scale and padding, with model = frame * scale + pad; a row of `Tensor.fit` has the same order.

    Where parts of the frame are cut off, its padding is negative.
    """

    scale_x: float
    scale_y: float
    pad_x: float
    pad_y: float


def letterbox_fit(frame_size: Size, size: Size, align: Align = "centre") -> Fit:
    """The whole frame in ``size`` at one scale, in the middle or in the upper left corner. Sizes are (width, height) in
    pixels.

    Centred as Ultralytics does it: an odd pixel of padding goes to the right and to the bottom. The scales are those
    of the rounded inner size, so the way back is exact; they may differ from each other by half a model pixel.
    """
    scale = min(size[0] / frame_size[0], size[1] / frame_size[1])
    inner = (max(1, round(frame_size[0] * scale)), max(1, round(frame_size[1] * scale)))
    scale_x, scale_y = inner[0] / frame_size[0], inner[1] / frame_size[1]
    if align == "corner":
        return Fit(scale_x, scale_y, 0.0, 0.0)
    return Fit(scale_x, scale_y, float((size[0] - inner[0]) // 2), float((size[1] - inner[1]) // 2))


def stretch_fit(frame_size: Size, size: Size) -> Fit:
    """The frame over all of ``size``, the proportions given up."""
    return Fit(size[0] / frame_size[0], size[1] / frame_size[1], 0.0, 0.0)


def crop_fit(frame_size: Size, size: Size) -> Fit:
    """The middle of the frame over all of ``size``, at one scale but for the rounding to whole pixels of the frame.

    Its upper left corner lies at even pixels, where the planes of a frame have chroma.
    """
    scale = max(size[0] / frame_size[0], size[1] / frame_size[1])
    width, height = (min(frame_size[axis], max(1, round(size[axis] / scale))) for axis in (0, 1))
    left, top = ((frame_size[0] - width) // 4 * 2, (frame_size[1] - height) // 4 * 2)
    scale_x, scale_y = size[0] / width, size[1] / height
    return Fit(scale_x, scale_y, -left * scale_x, -top * scale_y)


def cropped(fit: Fit, size: Size) -> tuple[int, int, int, int]:
    """The part of the frame that `crop_fit` shows in ``size``: left, top, width, height in pixels of the frame."""
    left, top = round(-fit.pad_x / fit.scale_x), round(-fit.pad_y / fit.scale_y)
    return left, top, round(size[0] / fit.scale_x), round(size[1] / fit.scale_y)


def native_size(frame_size: Size, max_side: int | None = None) -> Size:
    """The frame's size, each side up to the next multiple of 32; made smaller first if it exceeds ``max_side``."""
    width, height = (-(-side // NATIVE_MULTIPLE) * NATIVE_MULTIPLE for side in _limited(frame_size, max_side))
    return width, height


def native(frame_size: Size, max_side: int | None = None) -> Fit:
    """The frame at the top left of ``native_size``: as it is, or with its longer side made ``max_side``."""
    width, height = _limited(frame_size, max_side)
    return Fit(width / frame_size[0], height / frame_size[1], 0.0, 0.0)


def _limited(frame_size: Size, max_side: int | None) -> Size:
    longer = max(frame_size)
    if max_side is None or longer <= max_side:
        return frame_size
    width, height = (max(1, round(side * max_side / longer)) for side in frame_size)
    return width, height


def inner_size(frame_size: Size, fit: Fit) -> Size:
    """(width, height) in model pixels of the part that the frame covers."""
    return round(frame_size[0] * fit.scale_x), round(frame_size[1] * fit.scale_y)


def boxes_to_frame(boxes_xyxy: F32, fit: Fit | F32, frame_size: Size) -> F32:
    """Boxes (N, 4) from model pixels to frame pixels, clipped to the frame.

    ``fit`` is one for all or a row for each box: (4,) or (N, 4).
    """
    scale, pad = _split(fit)
    corners = (boxes_xyxy.reshape(-1, 2, 2) - pad) / scale
    limit = np.asarray(frame_size, np.float32)
    return np.asarray(np.clip(corners, np.float32(0), limit).reshape(-1, 4), np.float32)


def keypoints_to_frame(keypoints: F32, fit: Fit | F32) -> F32:
    """Keypoints (N, K, 3) x, y, confidence from model pixels to frame pixels; not clipped.

    ``fit`` as for ``boxes_to_frame``.
    """
    scale, pad = _split(fit)
    mapped = keypoints.astype(np.float32)
    mapped[..., :2] = (mapped[..., :2] - pad) / scale
    return mapped


def _split(fit: Fit | F32) -> tuple[F32, F32]:
    """(scale, pad), each (1, 1, 2) or (N, 1, 2)."""
    rows = np.asarray(fit, np.float32).reshape(-1, 1, 4)
    return rows[..., :2], rows[..., 2:]
