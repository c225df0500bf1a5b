"""Frames in both formats, and what makes and reads them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from camgraph.pipeline.testing import stamp
from camgraph.stages.messages import Frame
from camgraph.stages.vision.planes import split


def planar(width: int = 64, height: int = 48) -> Frame:
    pixels = np.random.default_rng(1).integers(0, 256, (height * 3 // 2, width), np.uint8)
    pixels.flags.writeable = False
    return Frame(stamp(), pixels, width, height, "yuv420p")


def test_a_planar_frame_is_converted_as_opencv_does_and_once() -> None:
    frame = planar()
    picture = frame.bgr()
    assert np.array_equal(picture, cv2.cvtColor(frame.pixels, cv2.COLOR_YUV2BGR_I420))
    assert frame.bgr() is picture
    assert picture.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        picture[0] = 0


def test_planes_that_lie_apart_give_the_same_picture() -> None:
    frame = planar()
    apart = Frame.of_planes(frame.stamp, [plane.copy() for plane in split(frame.pixels)], 64, 48)
    assert np.array_equal(apart.bgr(), frame.bgr())


def test_a_frame_of_bgr_is_not_copied() -> None:
    picture = np.random.default_rng(2).integers(0, 256, (31, 17, 3), np.uint8)
    frame = Frame.of_bgr(stamp(3), picture)
    assert (frame.width, frame.height, frame.format, frame.stamp.seq) == (17, 31, "bgr24", 3)
    assert frame.pixels is picture
    assert np.shares_memory(frame.bgr(), picture)
    assert not frame.bgr().flags.writeable


def test_rows_that_lie_apart_are_put_together() -> None:
    whole = np.random.default_rng(2).integers(0, 256, (48, 64, 3), np.uint8)
    part = Frame.of_bgr(stamp(), whole[::2, 8:24])
    assert part.bgr().flags.c_contiguous
    assert np.array_equal(part.bgr(), whole[::2, 8:24])


@pytest.mark.parametrize("frame", [planar(), Frame.of_bgr(stamp(), planar().bgr())], ids=["yuv420p", "bgr24"])
def test_a_copy_is_ones_own(frame: Frame) -> None:
    before = frame.bgr().copy()
    own = frame.bgr(copy=True)
    own[...] = 0
    assert np.array_equal(frame.bgr(), before)
    assert frame.bgr(copy=True).flags.c_contiguous


@pytest.mark.parametrize(
    "picture", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 4), np.uint8), np.zeros((4, 4, 3), np.float32)]
)
def test_a_picture_of_another_shape_or_type_is_refused(picture: np.ndarray) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match=r"expected a picture of shape \(H, W, 3\) and uint8, got \(4, 4"):
        Frame.of_bgr(stamp(), picture)
