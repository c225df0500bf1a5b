"""One connection: what it hands out, and how it says that it is over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pipeline.testing import HandContext
from stages.reading.camera import Camera
from stages.reading.live import lifeline
from stages.reading.live.camera_reporter import CameraReporter
from stages.reading.live.connection import Connection, connected
from stages.reading.live.lifeline import Lifeline
from stages.reading.live.verdicts import Dropped
from tools.farm import CameraSettings, ClipSettings, Farm

HEAD = "v=0\r\ns=x\r\nt=0 0\r\n"


@pytest.fixture(scope="module")
def farm() -> Iterator[Farm]:
    clip = ClipSettings(width=320, height=180, fps=25, gop=25, seconds=2)
    with Farm([CameraSettings(name="a", clip=clip)]) as farm:
        yield farm


@contextmanager
def opened(url: str, context: HandContext, stop: threading.Event) -> Iterator[Connection]:
    with Lifeline(CameraReporter("cam", context), stop, frozenset(), 10.0) as line:
        with connected(Camera(url=url), line) as connection:
            yield connection


def test_all_packets_come_also_those_before_a_keyframe(keyless_camera: Any, tmp_path: Path) -> None:
    """Who waits for the first keyframe alone would wait for ever where none comes."""
    stop = threading.Event()
    with opened(keyless_camera.url, HandContext(tmp_path, tmp_path), stop) as connection:
        assert not any(arrival.packet.is_keyframe for arrival in islice(connection.packets(stop), 5))


def test_each_packet_is_a_sign_of_life(farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that is busy decoding is seldom in FFmpeg when the lifeline looks."""
    monkeypatch.setattr(lifeline, "TICK_S", 60.0)
    context, stop = HandContext(tmp_path, tmp_path), threading.Event()
    with opened(farm.camera("a").url, context, stop) as connection:
        for count, _ in enumerate(islice(connection.packets(stop), 10), start=1):
            assert len(context.signs) >= count


@pytest.mark.parametrize(
    ("description", "words"),
    [
        (f"{HEAD}m=video 0 RTP/AVP 96\r\na=rtpmap:96 X-NONE/90000\r\na=control:a\r\n", "cannot decode"),
        (f"{HEAD}m=application 0 RTP/AVP 96\r\na=rtpmap:96 vnd.onvif.metadata/90000\r\na=control:a\r\n", "no video"),
    ],
)
def test_what_cannot_be_shown_is_dropped_with_its_reason(
    scripted_camera: Callable[..., Any], tmp_path: Path, description: str, words: str
) -> None:
    camera = scripted_camera(description)
    with opened(camera.url, HandContext(tmp_path, tmp_path), threading.Event()) as connection:
        with pytest.raises(Dropped, match=words):
            assert connection.stream
