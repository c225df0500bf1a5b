"""The cheap way from I420 to a small RGB picture, against the long one."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.planes import split
from camgraph.stages.vision.yuv import bgr_to_rgb, i420_to_rgb, planes_to_rgb


def scene(width: int, height: int, seed: int = 0) -> np.ndarray:
    """BGR with soft shapes in colours that no conversion clips: (height, width, 3)."""
    small = np.random.default_rng(seed).integers(90, 166, (height // 40 + 2, width // 40 + 2, 3), dtype=np.uint8)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)


def i420(width: int, height: int, seed: int = 0) -> np.ndarray:
    return cv2.cvtColor(scene(width, height, seed), cv2.COLOR_BGR2YUV_I420)


def the_long_way(pixels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    return cv2.resize(cv2.cvtColor(pixels, cv2.COLOR_YUV2RGB_I420), size, interpolation=cv2.INTER_LINEAR)


@pytest.mark.parametrize(
    ("size", "mean"), [((640, 360), 0.8), ((320, 180), 1.3), ((321, 181), 2), ((133, 75), 4), ((1600, 901), 0.8)]
)
def test_close_to_converting_first_and_resizing_then(size: tuple[int, int], mean: float) -> None:
    pixels = i420(800, 450)
    out = np.empty((size[1], size[0], 3), np.uint8)
    planes_to_rgb(split(pixels), size, out)
    difference = np.abs(out.astype(int) - the_long_way(pixels, size))
    assert difference.mean() < mean
    assert np.quantile(difference, 0.999) < 30


@given(st.integers(2, 60), st.integers(2, 60), st.integers(0, 99))
def test_half_the_size_has_the_bits_of_bilinear(width: int, height: int, seed: int) -> None:
    size = (2 * width, 2 * height)
    pixels = np.random.default_rng(seed).integers(0, 256, (6 * height, 4 * width), np.uint8)
    out = np.empty((*size[::-1], 3), np.uint8)
    planes_to_rgb(split(pixels), size, out)
    small = np.empty((3 * height, 2 * width), np.uint8)
    for plane, large in zip(split(small), split(pixels), strict=True):
        plane[...] = cv2.resize(large, plane.shape[::-1], interpolation=cv2.INTER_LINEAR)
    np.testing.assert_array_equal(out, cv2.cvtColor(small, cv2.COLOR_YUV2RGB_I420))


def test_the_same_size_is_the_plain_conversion() -> None:
    pixels = i420(64, 48)
    expected = cv2.cvtColor(pixels, cv2.COLOR_YUV2RGB_I420)
    out = np.empty((2, 48, 64, 3), np.uint8)
    i420_to_rgb(pixels, out[0])
    planes_to_rgb(split(pixels), (64, 48), out[1])
    assert (out == expected).all()


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 255))
def test_one_colour_stays_one_colour_and_nothing_else_is_touched(width: int, height: int, grey: int) -> None:
    canvas = np.full((height + 2, width + 3, 3), 7, np.uint8)
    pixels = np.full((30, 24), 128, np.uint8)
    pixels[:20] = grey
    planes_to_rgb(split(pixels), (width, height), canvas[1:-1, 2:-1])
    expected = cv2.cvtColor(pixels, cv2.COLOR_YUV2RGB_I420)[0, 0]
    assert (canvas[1:-1, 2:-1] == expected).all()
    canvas[1:-1, 2:-1] = 7
    assert (canvas == 7).all()


def test_bgr_is_turned_round_and_resized() -> None:
    picture = scene(80, 60)
    out = np.empty((30, 40, 3), np.uint8)
    bgr_to_rgb(picture, (40, 30), out)
    assert np.array_equal(out, cv2.resize(picture, (40, 30))[..., ::-1])
    same = np.empty_like(picture)
    bgr_to_rgb(picture, (80, 60), same)
    assert np.array_equal(same, picture[..., ::-1])
