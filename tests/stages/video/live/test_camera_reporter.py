"""What is said of one live camera, and how often."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import pytest
from structlog.testing import capture_logs

from camgraph.pipeline.testing import HandContext
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.live.camera_reporter import CameraReporter, Facts

MakeClip = Callable[..., Path]


@pytest.fixture
def context(tmp_path: Path) -> HandContext:
    return HandContext(tmp_path, tmp_path)


def test_the_same_state_is_told_once(context: HandContext) -> None:
    reporter = CameraReporter("cam", context)
    for why in ("no answer", "refused"):
        reporter.is_now("lost", why)
    reporter.is_now("live")
    assert context.camera_states == [("cam", "lost", "no answer"), ("cam", "live", "")]


def test_a_bug_is_logged_with_its_traceback_and_once(context: HandContext) -> None:
    reporter = CameraReporter("cam", context)
    with capture_logs() as logged:
        for divisor in (0, 0, ""):
            try:
                1 // divisor  # type: ignore[operator]
            except (ZeroDivisionError, TypeError) as error:
                reporter.failed(error)
    assert [(line["event"], line["camera"], type(line["exc_info"])) for line in logged] == [
        ("source_failed", "cam", ZeroDivisionError),
        ("source_failed", "cam", TypeError),
    ]


@pytest.mark.parametrize(
    ("url", "transport"), [("rtsp://h/x", "tcp"), ("https://h/x.m3u8", "https"), ("/dev/video0", "usb")]
)
def test_a_connection_is_described_and_counted(make_clip: MakeClip, tmp_path: Path, url: str, transport: str) -> None:
    context = HandContext(tmp_path, tmp_path)
    facts = Facts(CameraReporter("cam", context))
    with av.open(str(make_clip("a.mkv", codec="libx265", frames=3, options={"x265-params": "log-level=none"}))) as clip:
        for _ in range(2):
            facts.connected(Camera(url=url), clip.streams.video[0])
    expected = {"codec": "h265", "fps_declared": 10.0, "transport": transport, "connections": 2}
    assert context.camera_facts["cam"] == expected


def test_pixels_that_are_not_square_are_told(make_clip: MakeClip, tmp_path: Path) -> None:
    context = HandContext(tmp_path, tmp_path)
    facts = Facts(CameraReporter("cam", context))
    with av.open(str(make_clip("a.mp4", frames=3, pixel_shape=Fraction(24, 11)))) as clip, capture_logs() as logged:
        for _ in range(2):
            facts.connected(Camera(url="rtsp://h/x"), clip.streams.video[0])
    assert context.camera_facts["cam"]["pixel_shape"] == "24:11"
    [line] = logged
    assert (line["event"], line["camera"]) == ("pixels_not_square", "cam")
    assert "choose a resolution with square pixels" in line["why"]


def test_a_size_is_told_when_it_changes(tmp_path: Path) -> None:
    context = HandContext(tmp_path, tmp_path)
    facts = Facts(CameraReporter("cam", context))
    facts.seen(64, 48)
    assert context.camera_facts["cam"] == {"size": "64x48"}
    context.camera_facts.clear()
    facts.seen(64, 48)
    assert context.camera_facts == {}
