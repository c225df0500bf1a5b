"""Where a box lies in its crop, and that what is drawn lies there too."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.cropping import crop_bgr, crop_fits, crop_planes
from camgraph.stages.vision.letterbox import boxes_to_frame
from camgraph.stages.vision.planes import split

numbers = st.floats(0, 500, width=32)
lengths = st.floats(2, 400, width=32)
sides = st.integers(8, 200).map(lambda half: 2 * half)


@given(numbers, numbers, lengths, lengths, sides, sides, st.floats(0.5, 4))
def test_a_box_lies_in_the_middle_with_its_margin(
    x: float, y: float, w: float, h: float, width: int, height: int, margin: float
) -> None:
    box = np.array([[x, y, x + w, y + h]], np.float32)
    [fit] = crop_fits(box, (width, height), margin)
    assert fit[0] == fit[1]
    corners = box[0] * fit[0] + np.array([fit[2], fit[3]] * 2)
    np.testing.assert_allclose(corners[:2] + corners[2:], [width, height], atol=0.2)
    shares = (corners[2:] - corners[:2]) * margin / (width, height)
    assert max(shares) == pytest.approx(1, abs=1e-3)


@given(numbers, numbers, lengths, lengths)
def test_there_and_back(x: float, y: float, w: float, h: float) -> None:
    box = np.array([[x, y, x + w, y + h]], np.float32)
    fits = crop_fits(box, (192, 256), 1.25)
    inside = box * fits[:, [0, 1, 0, 1]] + fits[:, [2, 3, 2, 3]]
    np.testing.assert_allclose(boxes_to_frame(inside, fits, (2000, 2000)), box, rtol=1e-3, atol=0.05)


def test_a_box_without_area_is_a_pixel() -> None:
    assert np.isfinite(crop_fits(np.array([[5, 5, 5, 5]], np.float32), (64, 64), 1.0)).all()
    assert crop_fits(np.empty((0, 4), np.float32), (64, 64), 1.0).shape == (0, 4)


def scene(width: int = 320, height: int = 240) -> np.ndarray:
    """BGR without fine detail, so that two ways of scaling it agree."""
    y, x = np.mgrid[:height, :width]
    blue = 40 + 170 * x // width
    green = 40 + 170 * y // height
    return np.stack([blue, green, np.full_like(blue, 90)], axis=2).astype(np.uint8)


@pytest.mark.parametrize(
    "box", [(40, 30, 120, 150), (100.4, 60.6, 101.9, 62.1), (-30, -20, 60, 90), (250, 180, 400, 300)]
)
def test_the_colours_of_the_frame_are_where_the_fit_says(box: tuple[float, ...]) -> None:
    frame = scene()
    [fit] = crop_fits(np.array([box], np.float32), (96, 64), 1.25)
    out = np.empty((64, 96, 3), np.uint8)
    crop_bgr(frame, fit, out, 114)
    y, x = np.mgrid[:64, :96]
    at_x, at_y = (x + 0.5 - fit[2]) / fit[0], (y + 0.5 - fit[3]) / fit[1]
    inside = (at_x > 1) & (at_y > 1) & (at_x < 319) & (at_y < 239)
    outside = (at_x < -1) | (at_y < -1) | (at_x > 321) | (at_y > 241)
    expected = frame[..., ::-1][np.clip(at_y, 0, 239).astype(int), np.clip(at_x, 0, 319).astype(int)]
    assert np.abs(out.astype(int) - expected)[inside].max(initial=0) <= 2
    assert (out[outside] == 114).all()
    assert inside.any()


@pytest.mark.parametrize("size", [(96, 64), (97, 64), (96, 65), (97, 65)])
@pytest.mark.parametrize("box", [(40, 30, 120, 150), (-30, -20, 60, 90)])
def test_planes_give_the_same_picture(box: tuple[float, ...], size: tuple[int, int]) -> None:
    frame = scene()
    [fit] = crop_fits(np.array([box], np.float32), size, 1.25)
    straight, by_planes = np.empty((*size[::-1], 3), np.uint8), np.empty((*size[::-1], 3), np.uint8)
    i420 = cv2.cvtColor(frame, cv2.COLOR_BGR2YUV_I420)
    crop_bgr(cv2.cvtColor(i420, cv2.COLOR_YUV2BGR_I420), fit, straight, 114)
    crop_planes(split(i420), fit, by_planes, 114)
    apart = np.abs(straight.astype(int) - by_planes)
    assert apart.mean() < 1.5
    assert np.median(apart) <= 1
