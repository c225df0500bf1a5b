"""Cameras that lead elsewhere, and cameras that send what costs the most: what is refused, and that it is told."""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from typing import Any

import cv2
import numpy as np
import pytest
from camgraph_test_stages.web_server import Serve, WebServer
from tests.stages.video.capture.test_web import jpeg, segment

from camgraph.stages.video.ffmpeg_memory import own_bytes
from camgraph.stages.video.live.gate.gate import Road
from camgraph.stages.video.live.gate.rtsp_gate import RtspGate
from camgraph.stages.video.live.gate.web_gate import WebGate
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

Watch = Callable[..., Any]

SEGMENT_S = 1.0


WebServers = Callable[[Serve], WebServer]


@pytest.fixture
def web_server() -> Iterator[WebServers]:
    with ExitStack() as stack:

        def begin(serve: Serve) -> WebServer:
            server = WebServer(serve)
            stack.callback(server.close)
            return server

        yield begin


def answer(
    request: BaseHTTPRequestHandler, body: bytes, kind: str = "video/mp2t", status: int = 200, **more: str
) -> None:
    request.send_response(status)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    for name, value in more.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)


def live_playlist(name: Callable[[int], str], begun: float) -> bytes:
    newest = int((time.monotonic() - begun) / SEGMENT_S) + 2
    lines = ["#EXTM3U", "#EXT-X-VERSION:3", "#EXT-X-TARGETDURATION:1", f"#EXT-X-MEDIA-SEQUENCE:{newest - 2}"]
    for index in range(newest - 2, newest + 1):
        lines += ["#EXTINF:1.0,", name(index)]
    return "\n".join([*lines, ""]).encode()


def segments_of(request: BaseHTTPRequestHandler) -> None:
    number = re.fullmatch(r"/(\d+)\.ts", request.path)
    assert number
    answer(request, segment(int(number[1])))


def mjpeg(request: BaseHTTPRequestHandler, server: Callable[[], WebServer]) -> None:
    request.send_response(200)
    request.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
    request.end_headers()
    index = 0
    while not server().closing.wait(0.04):
        picture = jpeg(index)
        request.wfile.write(f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(picture)}\r\n\r\n".encode())
        request.wfile.write(picture + b"\r\n")
        index += 1


def why(watching: Any) -> str:
    """What was told of its last state."""
    return str(watching.context.camera_states[-1][2])


# --- playlists


def test_self_naming_playlist_is_lost_within_memory_limit(web_server: WebServers, watch: Watch) -> None:
    text = "#EXTM3U\n" + "#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n" * 50
    server = web_server(lambda request: answer(request, text.encode(), "application/vnd.apple.mpegurl"))
    before = own_bytes()
    watching = watch(server.url("a.m3u8"), connect_s=1)
    watching.until_state("lost")
    assert "names playlists that name playlists again" in why(watching)
    assert len(server.asked) < 50
    assert watching.stop() < 2.5
    assert own_bytes() - before < 100 << 20
    assert "geheim" not in watching.reported


def test_a_playlist_in_place_of_a_segment_leads_nowhere(web_server: WebServers, watch: Watch) -> None:
    """Behind a tag, FFmpeg takes it for a playlist even where it expects media."""
    other = web_server(lambda request: answer(request, segment(0)))
    tag = b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(10)
    inner = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://{other.host}/0.ts\n#EXT-X-ENDLIST\n".encode()

    def serve(request: BaseHTTPRequestHandler) -> None:
        kind = "application/vnd.apple.mpegurl"
        if request.path == "/a.m3u8":
            answer(request, live_playlist(lambda index: f"{index}.m3u8", begun), kind)
        else:
            answer(request, tag + inner, kind)

    begun = time.monotonic()
    server = web_server(serve)
    watching = watch(server.url("a.m3u8"), connect_s=1)
    watching.until_state("lost")
    assert len(set(server.paths())) > 1
    assert other.asked == []


@pytest.mark.parametrize("name", ["file:///etc/hostname", "data:video/mp2t;base64,AAAA", "tcp://127.0.0.1:1"])
def test_a_playlist_names_nothing_but_http(web_server: WebServers, watch: Watch, name: str) -> None:
    text = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{name}\n"
    server = web_server(lambda request: answer(request, text.encode(), "application/vnd.apple.mpegurl"))
    watching = watch(server.url("a.m3u8"))
    watching.until_state("lost")
    assert "is no address of HTTP" in why(watching)


def test_segments_on_another_host_need_redirects_follow(web_server: WebServers, watch: Watch) -> None:
    begun = time.monotonic()
    other = web_server(segments_of)
    server = web_server(
        lambda request: answer(
            request, live_playlist(lambda index: f"http://{other.host}/{index}.ts", begun), "application/x-mpegurl"
        )
    )
    watching = watch(server.url("a.m3u8"))
    watching.until_state("lost")
    assert f"has a playlist that names http://{other.host}/" in why(watching)
    assert "`redirects: follow`" in why(watching)
    assert other.asked == []
    following = watch(server.url("a.m3u8"), redirects="follow")
    following.until_frames()
    assert other.asked
    assert all("authorization" not in headers for _, headers in other.asked)


def test_a_playlist_is_known_by_what_comes_whatever_its_name(web_server: WebServers, watch: Watch) -> None:
    begun = time.monotonic()

    def serve(request: BaseHTTPRequestHandler) -> None:
        if request.path == "/live?camera=1":
            answer(request, live_playlist(lambda index: f"/{index}.ts", begun), "text/plain")
        else:
            segments_of(request)

    watch(web_server(serve).url("live?camera=1")).until_frames()


# --- redirects and credentials


def test_followed_redirect_carries_no_credentials(web_server: WebServers, watch: Watch) -> None:
    other = web_server(lambda request: mjpeg(request, lambda: other))

    def serve(request: BaseHTTPRequestHandler) -> None:
        if "Authorization" not in request.headers:
            answer(request, b"", status=401, **{"WWW-Authenticate": 'Basic realm="camera"'})
        else:
            answer(request, b"", status=302, Location=f"http://{other.host}/b.mjpg")

    server = web_server(serve)
    watching = watch(server.url("a.mjpg"))
    watching.until_state("lost")
    assert f"it redirects to http://{other.host}/b.mjpg, which is another host or port" in why(watching)
    assert other.asked == []
    following = watch(server.url("a.mjpg"), redirects="follow")
    following.until_frames()
    assert other.paths()[0] == "/b.mjpg"
    assert all("authorization" not in headers for _, headers in other.asked)


def test_a_redirect_on_the_same_host_and_port_is_followed(web_server: WebServers, watch: Watch) -> None:
    def serve(request: BaseHTTPRequestHandler) -> None:
        if request.path == "/old":
            answer(request, b"", status=301, Location="/new.mjpg?x=1")
        else:
            mjpeg(request, lambda: server)

    server = web_server(serve)
    watch(server.url("old")).until_frames()
    assert server.paths() == ["/old", "/new.mjpg?x=1"]


def test_a_cookie_goes_back_to_who_set_it_and_to_nobody_else(web_server: WebServers, watch: Watch) -> None:
    other = web_server(lambda request: mjpeg(request, lambda: other))

    def serve(request: BaseHTTPRequestHandler) -> None:
        if "session=1" in request.headers.get("Cookie", ""):
            answer(request, b"", status=302, Location=f"http://{other.host}/b.mjpg")
        else:
            answer(request, b"", status=302, Location="/again", **{"Set-Cookie": "session=1; Path=/"})

    server = web_server(serve)
    watch(server.url("a.mjpg"), redirects="follow").until_frames()
    assert server.paths() == ["/a.mjpg", "/again"]
    assert all("cookie" not in headers for _, headers in other.asked)


def test_a_redirect_in_a_circle_ends(web_server: WebServers, watch: Watch) -> None:
    server = web_server(lambda request: answer(request, b"", status=302, Location=request.path))
    watching = watch(server.url("a"))
    watching.until_state("lost")
    assert "redirects more than" in why(watching)
    assert len(server.asked) < 10


CLIP = ClipSettings(codec="h264", width=320, fps=20, seconds=1, gop=10)


def test_an_rtsp_redirect_of_a_track_is_refused(scripted_camera: Callable[..., Any], watch: Watch) -> None:
    location = "rtsp://127.0.0.2:9/other"
    server = scripted_camera(answers={"SETUP": f"RTSP/1.0 302 Moved\r\nLocation: {location}\r\n\r\n".encode})
    watching = watch(server.url)
    watching.until_state("lost")
    assert f"it redirects to {location}" in why(watching)


@pytest.mark.parametrize("method", ["OPTIONS", "DESCRIBE"])
@pytest.mark.parametrize("auth", ["basic", "digest"])
def test_rtsp_redirects_take_no_password_along(
    scripted_camera: Callable[..., Any], watch: Watch, method: str, auth: str
) -> None:
    challenge = 'Digest realm="r", nonce="n"' if auth == "digest" else 'Basic realm="r"'
    refuses = f"RTSP/1.0 401 Unauthorized\r\nWWW-Authenticate: {challenge}\r\n\r\n".encode()
    other = scripted_camera(answers={"DESCRIBE": lambda: refuses})
    location = f"rtsp://127.0.0.1:{other.port}/other"
    server = scripted_camera(answers={method: f"RTSP/1.0 302 Moved\r\nLocation: {location}\r\n\r\n".encode})
    watching = watch(server.url)
    watching.until_state("lost")
    assert f"it redirects to {location}" in why(watching)
    assert other.clients == 0
    following = watch(server.url, redirects="follow")
    following.until_state("unauthorised")
    assert other.clients > 0
    assert not any("Authorization" in line or "geheim" in line for line in other.lines)


def test_an_rtsp_redirect_that_is_followed_brings_pictures(scripted_camera: Callable[..., Any], watch: Watch) -> None:
    with RtspSimulator([CameraSettings(name="a", clip=CLIP)]) as simulator:
        location = simulator.camera("a").url
        server = scripted_camera(answers={"DESCRIBE": f"RTSP/1.0 302 Moved\r\nLocation: {location}\r\n\r\n".encode})
        watching = watch(server.url, redirects="follow")
        watching.until_frames()
        watching.stop()


# --- who gets through


def test_nobody_but_ffmpeg_gets_through_a_gate(web_server: WebServers, scripted_camera: Callable[..., Any]) -> None:
    server, camera = web_server(lambda request: answer(request, b"secret")), scripted_camera()
    for gate_type, url, ask in (
        (WebGate, server.url("a"), "GET /guess/camera/http/{} HTTP/1.1\r\n\r\n".format(server.host + "/a")),
        (RtspGate, camera.url, f"DESCRIBE {camera.url} RTSP/1.0\r\nCSeq: 1\r\n\r\n"),
    ):
        with gate_type(Road(url, frozenset({"127.0.0.1"}), follow=False, connect_s=5)) as gate:
            host, _, port = gate.url.partition("//")[2].partition("/")[0].partition(":")
            with socket.create_connection((host, int(port)), 10) as somebody:
                somebody.sendall(ask.encode())
                output = b""
                while data := somebody.recv(1000):
                    output += data
        assert b"404" in output or not output
    assert server.asked == []
    assert camera.asked == []


# --- what comes


def test_environment_proxy_is_not_asked_for_loopback(
    web_server: WebServers, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = web_server(lambda request: answer(request, b""))
    monkeypatch.setenv("http_proxy", f"http://{proxy.host}")
    server = web_server(lambda request: mjpeg(request, lambda: server))
    watch(server.url("a.mjpg")).until_frames()
    assert proxy.asked == []


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("rtmps://127.0.0.1:9/live/a", b"CONNECT 127.0.0.1:9 HTTP/1.1"),
        ("rtmpt://127.0.0.1:9/live/a", b"POST http://127.0.0.1:9/open/1 HTTP/1.1"),
    ],
)
def test_environment_proxy_is_asked_without_a_gate(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, url: str, asked: bytes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.settimeout(60)
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        watch(url)
        client, _ = proxy.accept()
        with client, client.makefile("rb") as lines:
            assert lines.readline().strip() == asked


def test_a_text_is_no_video(web_server: WebServers, watch: Watch) -> None:
    server = web_server(lambda request: answer(request, b"this is a log file\r\n" * 20_000, "video/mp4"))
    watching = watch(server.url("log.txt"))
    watching.until_state("lost")
    assert "no video or picture of a format that camgraph reads" in why(watching)
    assert watching.stamps == []


def test_what_grows_without_an_end_is_lost_for_its_memory(web_server: WebServers, watch: Watch) -> None:
    claimed = struct.pack("<IHHI", 2_000_000_000, 0, 0, 54)
    bitmap = b"BM" + claimed + struct.pack("<IiiHHIIiiII", 40, 8000, 4000, 1, 24, 0, 0, 0, 0, 0, 0)

    def serve(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + bitmap)
        while not server.closing.is_set():
            request.wfile.write(bytes(1 << 20))

    server = web_server(serve)
    watching = watch(server.url("a.mjpg"), memory_mb=64, connect_s=20, stalled_s=60)
    watching.until_state("lost")
    assert "too much memory: FFmpeg took more than 64 MB (memory_mb)" in why(watching)


def test_pictures_over_memory_mb_lose_the_camera(web_server: WebServers, watch: Watch) -> None:
    """All slots of a camera become as large as its largest picture."""
    small, large = coded(96, 64), coded(1920, 1080)

    def serve(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        request.end_headers()
        for picture in [*[small] * 5, *[large if len(server.asked) == 1 else small] * 500]:
            head = b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(picture)
            request.wfile.write(head + picture + b"\r\n")
            if server.closing.wait(0.04):
                return

    server = web_server(serve)
    watching = watch(server.url("a.mjpg"), memory_mb=64, slots=14)
    watching.until_state("lost")
    assert "too much memory: a picture of 1920x1080 needs 14 slots of 6.2 MB in shared memory" in why(watching)
    watching.until_state("live")
    assert set(watching.sizes) == {(96, 64)}


def coded(width: int, height: int) -> bytes:
    """A picture as JPEG."""
    ok, found = cv2.imencode(".jpg", np.zeros((height, width, 3), np.uint8))
    assert ok
    return found.tobytes()


def test_a_description_of_a_gigabyte_is_not_read(scripted_camera: Callable[..., Any], watch: Watch) -> None:
    huge = b"RTSP/1.0 200 OK\r\nContent-Type: application/sdp\r\nContent-Length: 1000000000\r\n\r\n" + bytes(1 << 20)
    before = own_bytes()
    watching = watch(scripted_camera(answers={"DESCRIBE": lambda: huge}).url)
    watching.until_state("lost")
    assert "an answer of 1000000000 bytes" in why(watching)
    assert own_bytes() - before < 100 << 20


def test_a_password_may_hold_a_bracket(watch: Watch) -> None:
    settings = CameraSettings(name="a", clip=CLIP, auth="digest", user="me", password="p[ss")
    with RtspSimulator([settings]) as simulator:
        watching = watch(simulator.camera("a").url.replace("%5B", "["))
        watching.until_frames()
        watching.stop()
