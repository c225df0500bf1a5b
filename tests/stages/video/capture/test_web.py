"""Cameras that speak HTTP: one picture after the other (MJPEG), or a playlist of segments (HLS)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from itertools import pairwise
from typing import Any

import av
import cv2
import numpy as np
import pytest
from camgraph_test_stages.web_server import WebServer

from camgraph.stages.video.live import timeouts

Watch = Callable[..., Any]

pytestmark = pytest.mark.slow
FPS = 25
SEGMENT_FRAMES = FPS


def jpeg(index: int) -> bytes:
    ok, coded = cv2.imencode(".jpg", np.full((64, 96, 3), index * 7 % 256, np.uint8))
    assert ok
    return coded.tobytes()


def segment(index: int) -> bytes:
    """One second of H.264 in a transport stream, that goes on where the one before ended."""
    out = BytesIO()
    with av.open(out, "w", format="mpegts") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"tune": "zerolatency", "preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for number in range(index * SEGMENT_FRAMES, (index + 1) * SEGMENT_FRAMES):
            frame = av.VideoFrame.from_ndarray(np.full((64, 96, 3), number % 256, np.uint8), format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return out.getvalue()


class WebCamera(WebServer):
    """While `frozen` is set it sends nothing more, and keeps its connections."""

    def __init__(self) -> None:
        self.frozen, self.answer = threading.Event(), 200
        self.ended = False
        """Whether the playlist says that nothing more will come."""
        self.begun = time.monotonic()
        self._segments: dict[int, bytes] = {}
        super().__init__(self._answer)

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        if self.answer != 200:
            request.send_error(self.answer)
        else:
            self.serve(request)

    def serve(self, request: BaseHTTPRequestHandler) -> None:
        while self.frozen.is_set() and not self.closing.wait(0.02):
            continue
        if request.path.endswith(".mjpg"):
            self._pictures(request)
        elif request.path.endswith(".m3u8"):
            self._body(request, self._playlist().encode(), "application/vnd.apple.mpegurl")
        else:
            self._body(request, self._segment(int(request.path.strip("/").removesuffix(".ts"))), "video/mp2t")

    def _body(self, request: BaseHTTPRequestHandler, body: bytes, kind: str) -> None:
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _pictures(self, request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        request.end_headers()
        index = 0
        while not self.closing.wait(1 / FPS):
            if self.frozen.is_set():
                continue
            picture = jpeg(index)
            head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(picture)}\r\n\r\n"
            request.wfile.write(head.encode() + picture + b"\r\n")
            index += 1

    def _playlist(self) -> str:
        """The last three segments of a recorder that makes one a second, begun three seconds ago."""
        newest = int(time.monotonic() - self.begun) + 2
        lines = ["#EXTM3U", "#EXT-X-VERSION:3", "#EXT-X-TARGETDURATION:1", f"#EXT-X-MEDIA-SEQUENCE:{newest - 2}"]
        for index in range(newest - 2, newest + 1):
            lines += ["#EXTINF:1.0,", f"{index}.ts"]
        return "\n".join([*lines, *(["#EXT-X-ENDLIST"] if self.ended else []), ""])

    def _segment(self, index: int) -> bytes:
        if index not in self._segments:
            self._segments[index] = segment(index)
        return self._segments[index]


@pytest.fixture
def web_camera() -> Iterator[WebCamera]:
    camera = WebCamera()
    try:
        yield camera
    finally:
        camera.close()


PATHS = ["a.mjpg", "a.m3u8"]


@pytest.mark.parametrize("path", PATHS)
def test_pictures_come_evenly(web_camera: WebCamera, watch: Watch, path: str) -> None:
    watching = watch(web_camera.url(path))
    watching.until_frames(3 * FPS)
    assert watching.states == ["connecting", "live"]
    assert watching.facts["codec"] == ("mjpeg" if path == "a.mjpg" else "h264")
    assert watching.facts["transport"] == "http"
    assert watching.facts["size"] == "96x64"
    assert {stamp.epoch for stamp in watching.stamps} == {0}
    took_s = (watching.stamps[-1].time_ns - watching.stamps[0].time_ns) / 1e9
    # A playlist brings a second at once: a reader that does not spread it has 75 frames in two steps.
    assert took_s > 2.0
    gaps_s = [(later.time_ns - earlier.time_ns) / 1e9 for earlier, later in pairwise(watching.stamps)]
    assert sum(gap_s < 0.01 for gap_s in gaps_s) < len(gaps_s) / 2
    assert watching.stop() < 2.5


@pytest.mark.parametrize("path", PATHS)
def test_a_freeze_is_survived_on_the_same_connection(web_camera: WebCamera, watch: Watch, path: str) -> None:
    watching = watch(web_camera.url(path), stalled_s=1.5)
    watching.until_frames()
    web_camera.frozen.set()
    watching.until_state("stalled")
    web_camera.frozen.clear()
    watching.until_state("live")
    watching.until_frames()
    assert watching.states == ["connecting", "live", "stalled", "live"]
    assert {stamp.epoch for stamp in watching.stamps} == {0}
    assert watching.longest_silence_s() < 2


@pytest.mark.parametrize("path", PATHS)
def test_one_that_stays_frozen_is_given_up_and_comes_back(
    web_camera: WebCamera, watch: Watch, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "AFTER_STALLED_S", 1.0)
    watching = watch(web_camera.url(path), stalled_s=2, connect_s=1)
    watching.until_frames()
    web_camera.frozen.set()
    watching.until_state("lost")
    web_camera.frozen.clear()
    watching.until_state("live", within_s=60)
    watching.until(lambda: watching.stamps[-1].epoch == 1)
    assert watching.states[:3] == ["connecting", "live", "stalled"]
    assert watching.states[-2:] == ["lost", "live"]
    assert "geheim" not in watching.reported


@pytest.mark.parametrize("path", PATHS)
def test_a_stop_is_heard_in_a_read_that_waits(web_camera: WebCamera, watch: Watch, path: str) -> None:
    watching = watch(web_camera.url(path), stalled_s=1)
    watching.until_frames()
    web_camera.frozen.set()
    watching.until_state("stalled")
    assert watching.stop() < 2.5
    assert watching.states[-1] == "stalled"


def test_a_playlist_that_is_gone_ends_the_connection(web_camera: WebCamera, watch: Watch) -> None:
    watching = watch(web_camera.url("a.m3u8"))
    watching.until_frames()
    web_camera.answer = 404
    watching.until_state("gone")
    web_camera.answer = 200
    watching.until_state("live")
    assert watching.states[:2] == ["connecting", "live"]
    watching.until(lambda: watching.stamps[-1].epoch == 1)


def test_a_playlist_that_ends_is_opened_again(web_camera: WebCamera, watch: Watch) -> None:
    web_camera.ended = True
    watching = watch(web_camera.url("a.m3u8"))
    watching.until_state("lost")
    assert "the stream ended" in watching.context.camera_states[-1][2]
    web_camera.ended = False
    watching.until_state("live")
    assert "geheim" not in watching.reported


# --- why a read waits as long as a camera is given


@pytest.mark.parametrize("path", PATHS)
def test_a_read_that_timed_out_cannot_be_taken_up_again(web_camera: WebCamera, path: str) -> None:
    with av.open(web_camera.url(path), timeout=(5, 0.5)) as container:
        packets = container.demux(container.streams.video[0])
        next(packets)
        web_camera.frozen.set()
        ended = None
        while ended is None:
            try:
                ended = next(packets).size == 0 or None
            except av.ExitError as error:
                ended = error
        web_camera.frozen.clear()
        again = 0
        with suppress(av.ExitError):
            again = sum(packet.size > 0 for packet in container.demux(container.streams.video[0]))
        assert again == 0
