"""What FFmpeg is told, by what it does: it ignores options that it does not know."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import av
import pytest

from camgraph.stages.video.camera import Camera
from camgraph.stages.video.live.options import MOST_TRACKS, format_of, options_of

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


class Pages(BaseHTTPRequestHandler):
    """A playlist, and a text as its only segment."""

    def do_GET(self) -> None:
        playlist = b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nlog.txt\n#EXT-X-ENDLIST\n"
        body = playlist if self.path.endswith(".m3u8") else b"a log file\r\n" * 10_000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture
def web_page() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_formats_that_are_allowed_hold_for_segments_too(web_page: str) -> None:
    camera = Camera(url=f"{web_page}/a.m3u8")
    options = options_of(camera, "playlist")
    with av.open(
        camera.url, format="hls", options={**options, "format_whitelist": "hls,tty", "seg_format_options": ""}
    ):
        pass  # what FFmpeg makes of a text that it may read
    with pytest.raises(av.ArgumentError):
        av.open(camera.url, format="hls", options=options)


@pytest.mark.parametrize("name", ["log.txt", "a.m3u8"])
def test_text_and_playlists_are_refused_as_streams(web_page: str, name: str) -> None:
    camera = Camera(url=f"{web_page}/{name}")
    with pytest.raises(av.ArgumentError):
        av.open(camera.url, options=options_of(camera))
