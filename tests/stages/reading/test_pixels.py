"""The colours of decoded pictures, in whatever form a camera sends them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from av.video.reformatter import VideoReformatter

from stages.reading.pixels import fill, picture_of, planes_of

COLOURS = [(200, 30, 30), (30, 200, 30), (30, 30, 200), (250, 250, 250), (5, 5, 5), (128, 128, 128), (220, 200, 40)]
SIDE = 64
LIMITED, FULL = 1, 2
BT601 = 5


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
