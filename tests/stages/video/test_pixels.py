"""The colours of decoded pictures, in whatever form a camera sends them."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from av.video.reformatter import VideoReformatter
from tests.stages.video.photographs import photograph

from camgraph.stages.video.examination import some_frames
from camgraph.stages.video.pixels import fill, picture_of, planes_of

COLOURS = [(200, 30, 30), (30, 200, 30), (30, 30, 200), (250, 250, 250), (5, 5, 5), (128, 128, 128), (220, 200, 40)]
SIDE = 64
LIMITED, FULL = 1, 2
BT709, BT601 = 1, 5
CORNERS = np.zeros((48, 80, 3), np.uint8)
"""BGR; blue, green, red and black: each turn and mirror of it is another one."""
CORNERS[:24, :40], CORNERS[:24, 40:], CORNERS[24:, :40] = (250, 0, 0), (0, 250, 0), (0, 0, 250)


def chart() -> np.ndarray:
    """RGB squares side by side."""
    return np.concatenate([np.full((SIDE, SIDE, 3), colour, np.uint8) for colour in COLOURS], 1)


@pytest.mark.parametrize(
    ("name", "codec", "form", "span", "plain"),
    [
        ("a.avi", "mjpeg", "yuvj420p", FULL, False),
        ("a.avi", "mjpeg", "yuvj422p", FULL, False),
        ("a.mkv", "libx264", "yuv420p", LIMITED, True),
        ("a.mkv", "libx264", "yuv420p", FULL, False),
        ("a.mkv", "libx264", "yuv444p", LIMITED, False),
        ("a.mkv", "libx265", "yuv420p", FULL, False),
        ("a.mkv", "libx265", "yuv420p10le", LIMITED, False),
    ],
)
def test_colours_are_right(tmp_path: Path, name: str, codec: str, form: str, span: int, plain: bool) -> None:
    picture, options = chart(), {"x265-params": "log-level=none"} if codec == "libx265" else {}
    with av.open(str(tmp_path / name), "w") as container:
        stream = container.add_stream(codec, rate=10, options=options)
        assert isinstance(stream, av.VideoStream)
        stream.height, stream.width, stream.pix_fmt = *picture.shape[:2], form
        stream.codec_context.time_base, stream.codec_context.color_range = Fraction(1, 10), span
        sent = av.VideoFrame.from_ndarray(picture, format="rgb24")
        sent = sent.reformat(format=form, dst_color_range=span, dst_colorspace=BT601)
        sent.pts, sent.time_base = 0, Fraction(1, 10)
        container.mux(stream.encode(sent))
        container.mux(stream.encode())
    with av.open(str(tmp_path / name)) as container:
        frame = next(container.decode(video=0))
        made = picture_of(frame)
        out = np.empty(made.shape, np.uint8)
        fill(out, planes_of(frame, made, VideoReformatter()))
    assert (made.format == "yuv420p") == plain
    bgr = cv2.cvtColor(out, cv2.COLOR_YUV2BGR_I420) if plain else out
    middle = bgr[SIDE // 2, SIDE // 2 :: SIDE, ::-1].astype(int)
    assert np.abs(middle - np.array(COLOURS)).max() <= 8


def shown(path: Path) -> np.ndarray:
    """(H, W, 3) BGR: the first picture, as stages get it."""
    with av.open(str(path)) as container:
        frame = next(container.decode(video=0))
        made = picture_of(frame)
        out = np.empty(made.shape, np.uint8)
        fill(out, planes_of(frame, made, VideoReformatter()))
    return np.asarray(cv2.cvtColor(out, cv2.COLOR_YUV2BGR_I420) if made.format == "yuv420p" else out)


def differ(one: np.ndarray, other: np.ndarray) -> float:
    """The mean difference of two pictures; one that stands another way differs by more than 50."""
    assert one.shape == other.shape
    return float(np.abs(one.astype(int) - other).mean())


@pytest.mark.parametrize("orientation", range(1, 9))
def test_photographs_stand_as_in_opencv(tmp_path: Path, orientation: int) -> None:
    path = photograph(tmp_path / "a.jpg", CORNERS, orientation)
    reference = cv2.imread(str(path))
    assert reference is not None
    assert differ(shown(path), reference) < 5


@pytest.mark.parametrize("pix_fmt", ["yuv420p", "yuv444p"])
@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
@pytest.mark.parametrize("flip", [None, 0, 1])
def test_films_stand_as_players_show_them(tmp_path: Path, pix_fmt: str, rotation: int, flip: int | None) -> None:
    """By a matrix; `flip` is the axis: 0 from top to bottom, 1 from left to right."""
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"crf": "5"})
        stream.width, stream.height, stream.pix_fmt = 80, 48, pix_fmt
        stream.set_display_rotation(rotation, hflip=flip == 1, vflip=flip == 0)
        container.mux(stream.encode(av.VideoFrame.from_ndarray(CORNERS, format="bgr24")))
        container.mux(stream.encode())
    turned = np.rot90(CORNERS, rotation // 90)
    assert differ(shown(tmp_path / "a.mp4"), turned if flip is None else np.flip(turned, flip)) < 8


def test_lines_from_the_bottom_up_are_read(tmp_path: Path) -> None:
    """As uncompressed AVI of Windows has them: there, a positive height says so."""
    path = tmp_path / "a.avi"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("rawvideo", rate=10)
        stream.width, stream.height, stream.pix_fmt = 80, 48, "bgr24"
        container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(CORNERS[::-1]), format="bgr24")))
        container.mux(stream.encode())
    size = struct.pack("<ii", 80, -48)
    path.write_bytes(path.read_bytes().replace(size, struct.pack("<ii", 80, 48), 1))
    with av.open(str(path)) as container:
        assert next(container.decode(video=0)).planes[0].line_size < 0
    np.testing.assert_array_equal(shown(path), CORNERS)


@pytest.mark.parametrize("colorspace", [BT709, BT601])
def test_colours_do_not_depend_on_size_or_form(tmp_path: Path, colorspace: int) -> None:
    """All are read by BT.601, as planes are."""
    seen = []
    for name, width, form, span in (
        ("even.mkv", 80, "yuv420p", LIMITED),
        ("odd.mkv", 79, "yuv420p", LIMITED),
        ("full.mkv", 80, "yuv420p", FULL),
        ("fine.mkv", 80, "yuv444p", LIMITED),
        ("deep.mkv", 80, "yuv420p10le", LIMITED),
    ):
        with av.open(str(tmp_path / name), "w") as container:
            stream = container.add_stream("ffv1", rate=10)
            assert isinstance(stream, av.VideoStream)
            stream.width, stream.height, stream.pix_fmt = width, 48, form
            stream.codec_context.colorspace, stream.codec_context.color_range = colorspace, span
            made = av.VideoFrame.from_ndarray(np.full((48, width, 3), (200, 60, 30), np.uint8), format="rgb24")
            made = made.reformat(format=form, dst_color_range=span, dst_colorspace=colorspace)
            container.mux(stream.encode(made))
            container.mux(stream.encode())
        with av.open(str(tmp_path / name)) as container:
            frame = next(container.decode(video=0))
            assert (frame.colorspace == BT709, frame.color_range) == (colorspace == BT709, span)
        seen += [picture[20, 20].astype(int) for picture in (shown(tmp_path / name), *some_frames(tmp_path / name, 1))]
    assert len(seen) == 10
    assert np.ptp(seen, axis=0).max() <= 4
