"""Videos whose pixels are not square are judged as they are stored; `check`, the log and the facts say so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from camgraph.stages.video.capture import Camera, Capture

MakeClip = Callable[..., Path]
MakeCapture = Callable[..., Capture]
OLD_RECORDER = Fraction(24, 11)


@pytest.mark.processes
def test_check_remarks_on_pixels_that_are_not_square(make_clip: MakeClip) -> None:
    clip = make_clip("a.mp4", frames=2, pixel_shape=OLD_RECORDER)
    [remark] = [text for text in Capture.camera_remarks(Camera(url=str(clip)), clip.parent) if "square" in text]
    assert "24:11" in remark
    assert "setsar=1" in remark


@pytest.mark.processes
@pytest.mark.parametrize("shape", [None, Fraction(1), Fraction(4095, 4096)])
def test_pixels_that_look_square_need_no_remark(make_clip: MakeClip, shape: Fraction | None) -> None:
    clip = make_clip("a.mp4", frames=2, pixel_shape=shape)
    assert not [text for text in Capture.camera_remarks(Camera(url=str(clip)), clip.parent) if "square" in text]


def test_a_run_says_it_once(make_clip: MakeClip, capture: MakeCapture) -> None:
    reading = capture(make_clip("a.mp4", frames=3, pixel_shape=OLD_RECORDER))
    with capture_logs() as logged:
        sizes = {(frame.width, frame.height) for frame in reading.frames(threading.Event(), None)}
    assert sizes == {(96, 64)}, "as stored"
    assert [line["pixel_shape"] for line in logged if line["event"] == "pixels_not_square"] == ["24:11"]
