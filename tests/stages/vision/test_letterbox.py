"""Where a frame lies in the model's picture, and the way back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.letterbox import (
    Fit,
    boxes_to_frame,
    inner_size,
    keypoints_to_frame,
    letterbox_fit,
    native,
    native_size,
    stretch_fit,
)

sides = st.integers(1, 5000)
sizes = st.tuples(sides, sides)


def test_a_wide_frame_lies_in_the_middle() -> None:
    assert letterbox_fit((1280, 720), (640, 640)) == Fit(0.5, 0.5, 0.0, 140.0)


def test_an_odd_pixel_of_padding_goes_to_the_bottom() -> None:
    fit = letterbox_fit((640, 359), (640, 640))
    assert (fit.pad_x, fit.pad_y) == (0.0, 140.0)
    assert inner_size((640, 359), fit) == (640, 359)


def ultralytics_place(frame: tuple[int, int], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Left, top, width, height as Ultralytics' letterbox states them (rounding half a pixel less 0.1)."""
    ratio = min(size[1] / frame[1], size[0] / frame[0])
    width, height = round(frame[0] * ratio), round(frame[1] * ratio)
    return round((size[0] - width) / 2 - 0.1), round((size[1] - height) / 2 - 0.1), width, height


@given(sizes, sizes)
def test_the_place_is_that_of_ultralytics(frame: tuple[int, int], size: tuple[int, int]) -> None:
    fit = letterbox_fit(frame, size)
    left, top, width, height = ultralytics_place(frame, size)
    assert (fit.pad_x, fit.pad_y) == (left, top) or min(width, height) == 0
    assert inner_size(frame, fit) == (max(width, 1), max(height, 1))


@given(sizes, sizes)
def test_the_frame_fills_its_place_and_no_more(frame: tuple[int, int], size: tuple[int, int]) -> None:
    for fit in (letterbox_fit(frame, size), stretch_fit(frame, size)):
        width, height = inner_size(frame, fit)
        assert fit.pad_x + width <= size[0]
        assert fit.pad_y + height <= size[1]
    assert inner_size(frame, stretch_fit(frame, size)) == size


@given(sizes)
def test_native_keeps_the_frame_and_rounds_the_size_up(frame: tuple[int, int]) -> None:
    size = native_size(frame)
    assert native(frame) == Fit(1.0, 1.0, 0.0, 0.0)
    assert all(side % 32 == 0 and 0 <= side - have < 32 for side, have in zip(size, frame, strict=True))


@given(sizes, st.integers(16, 5000))
def test_native_with_max_side_never_enlarges(frame: tuple[int, int], max_side: int) -> None:
    fit, size = native(frame, max_side), native_size(frame, max_side)
    inner = inner_size(frame, fit)
    assert max(inner) == min(max(frame), max_side)
    scale = max(inner) / max(frame)
    assert all(abs(got - max(1, side * scale)) <= 0.5 for got, side in zip(inner, frame, strict=True))
    assert size == native_size(inner)


@given(sizes, sizes, st.tuples(st.floats(0, 1, width=32), st.floats(0, 1, width=32)))
def test_there_and_back(frame: tuple[int, int], size: tuple[int, int], place: tuple[float, float]) -> None:
    fit = letterbox_fit(frame, size)
    x, y = place[0] * frame[0], place[1] * frame[1]
    there = np.array([[[x * fit.scale_x + fit.pad_x, y * fit.scale_y + fit.pad_y, 0.5]]], np.float32)
    back = keypoints_to_frame(there, fit)[0, 0]
    # float32 in model pixels, blown up by 1 / scale.
    tolerance = 1e-6 * (max(size) / min(fit.scale_x, fit.scale_y) + max(frame)) + 1e-6
    assert abs(back[0] - x) <= tolerance
    assert abs(back[1] - y) <= tolerance
    assert back[2] == 0.5


def test_boxes_are_clipped_and_keypoints_are_not() -> None:
    fit = letterbox_fit((1280, 720), (640, 640))
    boxes = boxes_to_frame(np.array([[-10, 100, 700, 320]], np.float32), fit, (1280, 720))
    assert boxes.tolist() == [[0, 0, 1280, 360]]
    points = keypoints_to_frame(np.array([[[-10, 100, 0.9]]], np.float32), fit)
    np.testing.assert_array_equal(points, np.array([[[-20, -80, 0.9]]], np.float32))


def test_a_fit_for_each_row() -> None:
    fits = np.array([[1, 1, 0, 0], [2, 4, 10, 20]], np.float32)
    boxes = boxes_to_frame(np.array([[1, 2, 3, 4], [12, 24, 14, 28]], np.float32), fits, (100, 100))
    assert boxes.tolist() == [[1, 2, 3, 4], [1, 1, 2, 2]]


def test_the_input_is_left_alone() -> None:
    points = np.ones((1, 2, 3), np.float32)
    points.flags.writeable = False
    assert keypoints_to_frame(points, Fit(2.0, 2.0, 0.0, 0.0))[0, 0].tolist() == [0.5, 0.5, 1.0]
    assert points.min() == 1


@given(sizes, sizes)
def test_in_the_corner_it_is_as_large_as_in_the_middle(frame: tuple[int, int], size: tuple[int, int]) -> None:
    corner, centre = letterbox_fit(frame, size, "corner"), letterbox_fit(frame, size)
    assert corner[:2] == centre[:2]
    assert corner[2:] == (0.0, 0.0)
