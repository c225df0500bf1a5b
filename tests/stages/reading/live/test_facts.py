"""What is found out about a camera, told where it is new."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import av
import pytest

from pipeline.testing import HandContext
from stages.reading.camera import Camera
from stages.reading.live.camera_reporter import CameraReporter
from stages.reading.live.facts import Facts

MakeClip = Callable[..., Path]


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


def test_a_size_is_told_when_it_changes(tmp_path: Path) -> None:
    context = HandContext(tmp_path, tmp_path)
    facts = Facts(CameraReporter("cam", context))
    facts.seen(av.VideoFrame(64, 48))
    assert context.camera_facts["cam"] == {"size": "64x48"}
    context.camera_facts.clear()
    facts.seen(av.VideoFrame(64, 48))
    assert context.camera_facts == {}
