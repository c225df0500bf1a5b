"""The part of a frame around a box, as a picture for a model that looks at one person.

frame                      picture of size w x h
+------------------+       +-------+
|   +----+ region  |       | pad   |     model = frame * scale + pad, as in `letterbox`; pad may be negative
|   |box |         |  ->   |-------|     region: the box made larger by `margin`, then to the picture's proportions
|   +----+         |       | box   |     what lies outside the frame is grey
+------------------+       +-------+
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.letterbox import Size
from camgraph.stages.vision.planes import U8, Planes, split

F32 = NDArray[np.float32]

_MIN_SIDE = 1.0
"""Pixels: a box without area is looked at as if it were so large."""
_GREY_CHROMA = 128


def crop_fits(boxes_xyxy: F32, size: Size, margin: float) -> F32:
    """How each box (N, 4) in frame pixels lies in the middle of its picture: (N, 4) scale_x, scale_y, pad_x, pad_y.

    ``margin`` is the region's side by the box's. Proportions are kept: both scales are one.
    """
    boxes = boxes_xyxy.astype(np.float64).reshape(-1, 4)
    sides = np.maximum((boxes[:, 2:] - boxes[:, :2]) * margin, _MIN_SIDE)
    scale = (np.array(size) / sides).min(axis=1)
    pad = np.array(size) / 2 - (boxes[:, :2] + boxes[:, 2:]) / 2 * scale[:, None]
    return np.concatenate([scale[:, None], scale[:, None], pad], axis=1).astype(np.float32)


def crop_bgr(bgr: U8, fit: F32, out: U8, grey: int) -> None:
    """Write the part of (H, W, 3) BGR that ``fit`` shows as RGB into ``out`` (h, w, 3), bilinear."""
    shown = _shown(bgr, fit, (out.shape[1], out.shape[0]), (grey, grey, grey))
    cv2.cvtColor(shown, cv2.COLOR_BGR2RGB, dst=out)


def crop_planes(planes: Planes, fit: F32, out: U8, grey: int) -> None:
    """As ``crop_bgr``, from planes (see `yuv`)."""
    height, width = (side + side % 2 for side in out.shape[:2])
    small = np.empty((height * 3 // 2, width), np.uint8)
    half = np.array([fit[0], fit[1], fit[2] / 2, fit[3] / 2], np.float32)
    # Limited range: 16 to 235 stand for 0 to 255.
    luma_grey = round(16 + grey * 219 / 255)
    luma, u, v = planes
    shown_luma, shown_u, shown_v = split(small)
    shown_luma[...] = _shown(luma, fit, (width, height), (luma_grey,))
    shown_u[...] = _shown(u, half, (width // 2, height // 2), (_GREY_CHROMA,))
    shown_v[...] = _shown(v, half, (width // 2, height // 2), (_GREY_CHROMA,))
    if out.shape[:2] == (height, width):
        cv2.cvtColor(small, cv2.COLOR_YUV2RGB_I420, dst=out)
    else:
        # I420 has even sides: one more row or column is drawn, and left out.
        out[...] = cv2.cvtColor(small, cv2.COLOR_YUV2RGB_I420)[: out.shape[0], : out.shape[1]]


def _shown(plane: U8, fit: F32, size: Size, border: tuple[int, ...]) -> U8:
    """The plane as ``fit`` shows it in a picture of ``size``."""
    scale_x, scale_y, pad_x, pad_y = (float(value) for value in fit)
    # Pixel i covers [i, i + 1), and OpenCV counts from the middle of pixel 0.
    matrix = np.array(
        [[scale_x, 0, pad_x + 0.5 * scale_x - 0.5], [0, scale_y, pad_y + 0.5 * scale_y - 0.5]], np.float64
    )
    return np.asarray(
        cv2.warpAffine(plane, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=border),
        np.uint8,
    )
