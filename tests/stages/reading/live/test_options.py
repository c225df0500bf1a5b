"""What FFmpeg is told, by what it does: it ignores options that it does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import av
import pytest

from stages.reading.camera import Camera
from stages.reading.live.options import MOST_TRACKS, format_of, options_of

SOUND_AND_PICTURES = (
    "v=0\r\ns=x\r\nt=0 0\r\nm=audio 0 RTP/AVP 0\r\na=control:sound\r\n"
    "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:pictures\r\n"
)


def test_sound_is_not_even_set_up(scripted_camera: Callable[..., Any]) -> None:
    camera = scripted_camera(SOUND_AND_PICTURES, answers={"PLAY": lambda: b"RTSP/1.0 404 Not Found\r\n\r\n"})
    with pytest.raises(av.HTTPNotFoundError):
        av.open(camera.url, options=options_of(Camera(url=camera.url)), timeout=(5, 0.5))
    assert [line.split()[1].rpartition("/")[2] for line in camera.asked if line.startswith("SETUP")] == ["pictures"]


def test_of_a_thousand_tracks_only_some_are_set_up(scripted_camera: Callable[..., Any]) -> None:
    track = "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:t{}\r\n"
    description = "v=0\r\ns=x\r\nt=0 0\r\n" + "".join(track.format(number) for number in range(1000))
    camera = scripted_camera(description, answers={"PLAY": lambda: b"RTSP/1.0 404 Not Found\r\n\r\n"})
    with pytest.raises(av.HTTPNotFoundError):
        av.open(camera.url, options=options_of(Camera(url=camera.url)), timeout=(5, 0.5))
    assert sum(line.startswith("SETUP") for line in camera.asked) == MOST_TRACKS


def test_only_a_video_device_needs_its_format_named() -> None:
    assert format_of(Camera(url="/dev/video0")) == "video4linux2"
    assert format_of(Camera(url="rtsp://h/x")) is None
    assert options_of(Camera(url="/dev/video0")) == {}
