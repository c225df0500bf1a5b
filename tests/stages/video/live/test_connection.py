"""One connection: what it hands out, and how it says that it is over."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.testing import HandContext
from camgraph.stages.video.camera import Camera
from camgraph.stages.video.live import reading_watchdog
from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.camera_reporter import CameraReporter
from camgraph.stages.video.live.connection import Connection, connected, why_no_packet
from camgraph.stages.video.live.reading_watchdog import ReadingWatchdog
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

HEAD = "v=0\r\ns=x\r\nt=0 0\r\n"


@pytest.fixture(scope="module")
def simulator() -> Iterator[RtspSimulator]:
    clip = ClipSettings(width=320, height=180, fps=25, gop=25, seconds=2)
    with RtspSimulator([CameraSettings(name="a", clip=clip)]) as simulator:
        yield simulator


@contextmanager
def opened(url: str, context: HandContext, stop: threading.Event, connect_s: float = 3.0) -> Iterator[Connection]:
    with ReadingWatchdog(CameraReporter("cam", context), stop, frozenset(), 10.0) as line:
        with connected(Camera(url=url, connect_s=connect_s), line) as connection:
            yield connection


def test_all_packets_come_also_those_before_a_keyframe(keyless_camera: Any, tmp_path: Path) -> None:
    """A reader that waited for a keyframe alone would wait for ever if none comes."""
    stop = threading.Event()
    with opened(keyless_camera.url, HandContext(tmp_path, tmp_path), stop) as connection:
        assert not any(arrival.packet.is_keyframe for arrival in islice(connection.packets(stop), 5))


def test_each_packet_is_a_sign_of_life(
    simulator: RtspSimulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that is busy decoding is seldom in FFmpeg when the watchdog looks."""
    monkeypatch.setattr(reading_watchdog, "TICK_S", 60.0)
    context, stop = HandContext(tmp_path, tmp_path), threading.Event()
    with opened(simulator.camera("a").url, context, stop) as connection:
        for count, _ in enumerate(islice(connection.packets(stop), 10), start=1):
            assert len(context.signs) >= count


@pytest.mark.parametrize(
    ("description", "words"),
    [
        (f"{HEAD}m=video 0 RTP/AVP 96\r\na=rtpmap:96 X-NONE/90000\r\na=control:a\r\n", "is in a format that"),
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


ENDLESS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=x\r\n\r\n"
    b"--x\r\nContent-Type: image/jpeg\r\nContent-Length: 2000000000\r\n\r\n"
)


@pytest.fixture
def endless_picture() -> Iterator[str]:
    """The address of a camera that sends one picture, and does not come to its end."""
    over = threading.Event()

    def serve(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client, suppress(OSError):
            client.recv(4096)
            client.sendall(ENDLESS)
            while not over.wait(0.01):
                client.sendall(bytes(20_000))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/x.mjpg"
        over.set()
        thread.join(10)


def test_one_that_sends_all_the_time_is_not_said_to_be_silent(endless_picture: str, tmp_path: Path) -> None:
    """FFmpeg's time-out of connecting passes within its first packet, and ends what is read next."""
    stop = threading.Event()
    with opened(endless_picture, HandContext(tmp_path, tmp_path), stop, connect_s=0.5) as connection:
        with pytest.raises(Dropped, match="it sends, and not one picture of it was complete"):
            list(connection.packets(stop))


def test_silence_is_said_with_its_length() -> None:
    assert why_no_packet(11.0, 11.0) == "nothing came for 11 s"
