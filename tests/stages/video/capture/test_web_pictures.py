"""HTTP cameras that send JPEGs, each with an oddity of its own, and addresses of one picture."""

from __future__ import annotations

import gzip
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import av
import pytest
from camgraph_test_stages.web_server import Serve, WebServer
from tests.stages.video.capture.test_web import jpeg, segment
from tests.stages.video.live.gate.test_mjpeg_stream import jpeg as noisy

from camgraph.pipeline.system.side_link import follow
from camgraph.stages.sinks.footage.clip import Clip
from camgraph.stages.video.ffmpeg_memory import own_bytes
from camgraph.stages.video.live import timeouts
from camgraph.stages.video.live.gate import mjpeg_stream
from camgraph.stages.video.live.gate.authorization import Authorization
from camgraph.stages.video.live.gate.origins import Login
from camgraph.stages.video.packets import Packet, PacketReader, socket_path

Watch = Callable[..., Any]
WebServers = Callable[[Serve], WebServer]
Framing = Callable[[int, bytes], bytes]

pytestmark = pytest.mark.slow
EVERY_S = 0.05


@pytest.fixture
def web_server() -> Iterator[WebServers]:
    with ExitStack() as stack:

        def begin(serve: Serve) -> WebServer:
            server = WebServer(serve)
            stack.callback(server.close)
            return server

        yield begin


def why(watching: Any) -> str:
    """What was told of its last state."""
    return str(watching.context.camera_states[-1][2])


def part(picture: bytes, kind: str = "image/jpeg", boundary: str = "--frame", length: int | None = None) -> bytes:
    size = len(picture) if length is None else length
    return f"{boundary}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n\r\n".encode() + picture + b"\r\n"


def bare_part(picture: bytes) -> bytes:
    """Without a length."""
    return b"--frame\r\nContent-Type: image/jpeg\r\n\r\n" + picture + b"\r\n"


def late_boundary(number: int, picture: bytes) -> bytes:
    """As an ESP32 and Tasmota have it: no boundary before the first picture."""
    head = f"Content-Type: image/jpeg\r\nContent-Length: {len(picture)}\r\n\r\n".encode()
    return head + picture + b"\r\n--frame\r\n"


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n"
FRAMINGS: dict[str, tuple[bytes, Framing]] = {
    "right": (HEAD, lambda _, one: part(one)),
    "no boundary before the first": (HEAD, late_boundary),
    "image/jpg": (HEAD, lambda _, one: part(one, "image/jpg")),
    "texts between": (HEAD, lambda _, one: part(b"21.5 C", "text/plain") + part(one)),
    "other parts first": (HEAD, lambda n, one: part(b"hello", "text/plain") if n < 5 else part(one)),
    "empty parts": (HEAD, lambda _, one: part(b"") + part(one)),
    "length too short": (HEAD, lambda _, one: part(one, length=20)),
    "length too long": (HEAD, lambda _, one: part(one, length=len(one) + 50)),
    "no length": (HEAD, lambda _, one: bare_part(one)),
    "boundary without dashes": (HEAD, lambda _, one: part(one, boundary="frame")),
    "boundary with dashes": (HEAD.replace(b"=frame", b"=--frame"), lambda _, one: part(one)),
    "boundary in quotes": (HEAD.replace(b"=frame", b'="frame"'), lambda _, one: part(one)),
    "no boundary named": (HEAD.replace(b"; boundary=frame", b""), lambda _, one: part(one)),
    "another boundary": (HEAD.replace(b"=frame", b"=other"), lambda _, one: part(one)),
    "line feeds": (
        HEAD.replace(b"\r\n", b"\n"),
        lambda _, one: f"--frame\nContent-Type: image/jpeg\nContent-Length: {len(one)}\n\n".encode() + one + b"\n",
    ),
    "odd case": (
        HEAD.replace(b"Content-Type", b"cONTENT-tYPE"),
        lambda _, one: (
            part(one).replace(b"Content-Length", b"CONTENT-LENGTH").replace(b"Content-Type", b"content-type")
        ),
    ),
    "preamble": (HEAD + b"This is a camera of many parts.\r\n", lambda _, one: part(one)),
    "no type": (b"HTTP/1.0 200 OK\r\n\r\n", lambda _, one: part(one)),
    "type of a text": (b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n", lambda _, one: b"\r\n" + part(one)),
    "no parts": (b"HTTP/1.0 200 OK\r\nContent-Type: image/jpeg\r\n\r\n", lambda _, one: one),
    "no end of the picture": (HEAD, lambda _, one: bare_part(one.removesuffix(b"\xff\xd9"))),
    "chunked": (
        HEAD.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"),
        lambda _, one: b"".join(
            f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in (part(one)[:300], part(one)[300:])
        ),
    ),
}


def sender(head: bytes, framing: Framing, server: Callable[[], WebServer]) -> Serve:
    def serve(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(head)
        for number in count():
            request.wfile.write(framing(number, jpeg(number)))
            if server().closing.wait(EVERY_S):
                return

    return serve


@pytest.mark.parametrize("oddity", FRAMINGS)
def test_pictures_come_however_they_are_framed(web_server: WebServers, watch: Watch, oddity: str) -> None:
    server: WebServer = web_server(sender(*FRAMINGS[oddity], lambda: server))
    watching = watch(server.url("stream"))
    watching.until_frames(30)
    assert watching.states == ["connecting", "live"]
    assert watching.facts["codec"] == "mjpeg"
    assert watching.facts["size"] == "96x64"
    assert len(server.asked) == 1
    assert ("dropped.damaged", "cam") not in watching.context.counts
    assert watching.stop() < 10


def gzipped(request: BaseHTTPRequestHandler, server: Callable[[], WebServer], *, each: bool) -> None:
    """Compresses, although nobody asked: the whole stream, or each part by itself."""
    request.wfile.write(HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"))
    whole = zlib.compressobj(wbits=31)
    for number in count():
        plain = part(jpeg(number))
        packed = gzip.compress(plain) if each else whole.compress(plain) + whole.flush(zlib.Z_SYNC_FLUSH)
        request.wfile.write(packed)
        if server().closing.wait(EVERY_S):
            return


@pytest.mark.parametrize("each", [False, True], ids=["stream", "parts"])
def test_compressed_pictures_are_read(web_server: WebServers, watch: Watch, *, each: bool) -> None:
    server: WebServer = web_server(lambda request: gzipped(request, lambda: server, each=each))
    watching = watch(server.url("stream"))
    watching.until_frames(10)
    assert watching.states == ["connecting", "live"]
    assert server.asked[0][1]["accept-encoding"] == "identity"


def test_compressed_playlist_and_segments_are_read(web_server: WebServers, watch: Watch) -> None:
    begun = time.monotonic()

    def serve(request: BaseHTTPRequestHandler) -> None:
        if request.path.endswith(".m3u8"):
            newest = int(time.monotonic() - begun) + 2
            lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:1", f"#EXT-X-MEDIA-SEQUENCE:{newest - 2}"]
            lines += [line for index in range(newest - 2, newest + 1) for line in ("#EXTINF:1.0,", f"{index}.ts")]
            answer(request, gzip.compress("\n".join([*lines, ""]).encode()), "application/x-mpegurl", encoding="gzip")
        else:
            body = segment(int(request.path.strip("/").removesuffix(".ts")))
            answer(request, zlib.compress(body), "video/mp2t", encoding="deflate")

    watching = watch(web_server(serve).url("a.m3u8"))
    watching.until_frames(30)
    assert watching.states == ["connecting", "live"]


def test_an_unknown_compression_is_told(web_server: WebServers, watch: Watch) -> None:
    server = web_server(lambda request: answer(request, b"?" * 100, "video/mp2t", encoding="br"))
    watching = watch(server.url("x"))
    watching.until_state("lost")
    assert "it compresses its answer by `br` although that was not asked for" in why(watching)


def answer(
    request: BaseHTTPRequestHandler, body: bytes, kind: str = "image/jpeg", status: int = 200, encoding: str = ""
) -> None:
    request.send_response(status)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    if encoding:
        request.send_header("Content-Encoding", encoding)
    request.end_headers()
    request.wfile.write(body)


# --- what is no video


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("text/html; charset=utf-8", b"<html>login</html>", "it answers with a web page (text/html)"),
        ("", b"\xef\xbb\xbf\n <!DOCTYPE html>", "it answers with a web page (no type)"),
        ("application/json", b'{"error": 7}', "it answers with a text (application/json)"),
        ("text/plain", b"OK", "it answers with a text (text/plain)"),
        ("image/png", b"\x89PNG\r\n\x1a\n" + bytes(100), "it answers with a picture (image/png)"),
        ("video/mp4", b"", "its answer is empty"),
        ("video/mp4", bytes(range(256)) * 1000, "what it sends cannot be read as video"),
    ],
)
def test_what_is_no_video_is_told_by_its_kind(
    web_server: WebServers, watch: Watch, kind: str, body: bytes, words: str
) -> None:
    watching = watch(web_server(lambda request: answer(request, body, kind)).url("index.html"))
    watching.until_state("lost", "gone")
    assert words in why(watching)
    assert "geheim" not in watching.reported


def test_parts_without_a_picture_are_told(web_server: WebServers, watch: Watch) -> None:
    h264 = part(b"\0\0\0\1" + bytes(200), "video/h264")
    server: WebServer = web_server(sender(HEAD, lambda *_: h264, lambda: server))
    watching = watch(server.url("stream"), connect_s=1)
    watching.until_state("lost")
    assert "there is no picture (JPEG) in the" in why(watching)


@pytest.mark.parametrize(
    ("status", "state", "words"),
    [
        (401, "unauthorised", "refuses the user or password"),
        (403, "unauthorised", "rights of this user"),
        (404, "gone", "no stream at the path"),
        (410, "gone", "no stream at the path"),
        (503, "lost", "it answers with 503 Service Unavailable"),
        (429, "lost", "it answers with 429 Too Many Requests"),
        (599, "lost", "it answers with 599 Odd"),
    ],
)
def test_a_status_is_told_by_its_name(
    web_server: WebServers, watch: Watch, status: int, state: str, words: str
) -> None:
    server = web_server(lambda request: request.wfile.write(f"HTTP/1.1 {status} Odd\r\n\r\n".encode()) and None)
    watching = watch(server.url("stream"))
    watching.until_state(state)
    assert words in why(watching)


# --- what costs memory, or stops in the middle


def test_picture_of_100_mb_is_refused_in_bounded_memory(
    web_server: WebServers, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mjpeg_stream, "MOST_PICTURE", 8 << 20)
    monkeypatch.setattr("camgraph.stages.video.live.gate.web_gate.MOST_PICTURE", 8 << 20)
    head = HEAD + f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {100 << 20}\r\n\r\n".encode()

    def serve(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(head + jpeg(0).removesuffix(b"\xff\xd9"))
        for _ in range(100):
            request.wfile.write(bytes(1 << 20))

    before = own_bytes()
    watching = watch(web_server(serve).url("stream"), connect_s=20)
    watching.until_state("lost")
    assert "it sends a picture of more than 8 MB" in why(watching)
    assert own_bytes() - before < 60 << 20


def test_a_part_that_stalls_is_stalled_and_goes_on(web_server: WebServers, watch: Watch) -> None:
    stalled, goes_on = threading.Event(), threading.Event()

    def framing(number: int, picture: bytes) -> bytes:
        return part(picture)

    def serve(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(HEAD)
        for number in count():
            whole = framing(number, jpeg(number))
            if number == 10:
                request.wfile.write(whole[:200])
                stalled.set()
                goes_on.wait(60)
                whole = whole[200:]
            request.wfile.write(whole)
            if server.closing.wait(EVERY_S):
                return

    server = web_server(serve)
    watching = watch(server.url("stream"), stalled_s=1)
    assert stalled.wait(60)
    watching.until_state("stalled")
    goes_on.set()
    watching.until_state("live")
    watching.until_frames(10)
    assert watching.states == ["connecting", "live", "stalled", "live"]
    assert {stamp.epoch for stamp in watching.stamps} == {0}


def test_a_picture_that_breaks_off_is_counted_and_not_shown(web_server: WebServers, watch: Watch) -> None:
    def framing(number: int, _: bytes) -> bytes:
        picture = noisy(number)
        return bare_part(picture[: len(picture) * 3 // 4] if number % 5 == 4 else picture)

    server: WebServer = web_server(sender(HEAD, framing, lambda: server))
    watching = watch(server.url("stream"))
    watching.until_frames(20)
    assert watching.context.counts["dropped.damaged", "cam"] >= 3
    assert watching.states == ["connecting", "live"]


@pytest.mark.parametrize("fps", [4, 40])
def test_times_follow_the_arrival(web_server: WebServers, watch: Watch, fps: int) -> None:
    """FFmpeg counts 25 pictures a second, whatever comes: `max_fps` and clips would be wrong by as much."""

    def serve(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(HEAD)
        for number in count():
            request.wfile.write(part(jpeg(number)))
            if server.closing.wait(1 / fps):
                return

    server = web_server(serve)
    watching = watch(server.url("stream"), max_fps=2)
    watching.until_frames(6)
    first, last = watching.stamps[0], watching.stamps[-1]
    by_stamps_s = (last.pts - first.pts) * last.time_base[0] / last.time_base[1]
    assert by_stamps_s == pytest.approx((last.time_ns - first.time_ns) / 1e9, abs=0.1)
    gaps_s = [(later.time_ns - earlier.time_ns) / 1e9 for earlier, later in pairwise(watching.stamps)]
    assert sum(gaps_s) / len(gaps_s) == pytest.approx(0.5, abs=0.2)


def test_clip_lasts_as_long_as_it_was_filmed(web_server: WebServers, watch: Watch, tmp_path: Path) -> None:
    server: WebServer = web_server(lambda request: answer(request, noisy(len(server.asked))))
    watching = watch(server.url("snap.jpg"), every_s=0.5)
    watching.until_frames(1)
    packets: list[Packet] = []
    reader = PacketReader()
    with closing(follow(socket_path(watching.context.state_folder, "cam"))) as link:
        link.connection.settimeout(60)
        while len(packets) < 6:
            packets += reader.packets(link.receive())
    clip = Clip(tmp_path / "a.mp4", packets[0].stream)
    for packet in packets:
        clip.add(packet)
    clip.close()
    with av.open(str(tmp_path / "a.mp4")) as made:
        times_s = [float(frame.pts * frame.time_base) for frame in made.decode(video=0)]
    assert len(times_s) == len(packets)
    assert times_s[-1] - times_s[0] > 0.4 * (len(packets) - 1)


# --- an address of one picture


class Still:
    """Answers each request with the next picture; `spoil` answers instead while it is set."""

    def __init__(self, web_server: WebServers) -> None:
        self.spoil: Serve | None = None
        self.number = 0
        self.server = web_server(self._serve)

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        if self.spoil:
            self.spoil(request)
            return
        self.number += 1
        answer(request, jpeg(self.number))


@pytest.fixture
def still(web_server: WebServers) -> Still:
    return Still(web_server)


def test_one_picture_is_fetched_again_in_one_epoch(still: Still, watch: Watch) -> None:
    watching = watch(still.server.url("snap.jpg"), every_s=0.3)
    watching.until_frames(8)
    assert watching.states == ["connecting", "live"]
    assert {stamp.epoch for stamp in watching.stamps} == {0}
    assert [stamp.seq for stamp in watching.stamps[:8]] == list(range(8))
    assert watching.facts["connections"] == 1
    gaps_s = [(later.time_ns - earlier.time_ns) / 1e9 for earlier, later in pairwise(watching.stamps)]
    assert sum(gaps_s) / len(gaps_s) == pytest.approx(0.3, abs=0.15)
    assert watching.stop() < 5


def test_by_default_it_is_asked_each_second(still: Still, watch: Watch) -> None:
    watching = watch(still.server.url("snap.jpg"))
    watching.until_frames(4)
    took_s = (watching.stamps[3].time_ns - watching.stamps[0].time_ns) / 1e9
    assert 2.5 < took_s < 20
    assert watching.states == ["connecting", "live"]


def test_the_same_picture_again_is_a_frame(web_server: WebServers, watch: Watch) -> None:
    """A still scene cannot be told from a stuck camera."""
    watching = watch(web_server(lambda request: answer(request, jpeg(1))).url("snap.jpg"), every_s=0.2)
    watching.until_frames(8)
    assert watching.states == ["connecting", "live"]


def hangs_up_after_each(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + part(jpeg(1)))


def sends_no_end(request: BaseHTTPRequestHandler) -> None:
    answer(request, jpeg(1).removesuffix(b"\xff\xd9"))


def sends_chunks(request: BaseHTTPRequestHandler) -> None:
    picture = jpeg(1)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nTransfer-Encoding: chunked\r\n\r\n"
    request.wfile.write(head + f"{len(picture):x}\r\n".encode() + picture + b"\r\n0\r\n\r\n")


def sends_elsewhere(request: BaseHTTPRequestHandler) -> None:
    if request.path == "/snap.jpg":
        request.wfile.write(b"HTTP/1.1 302 Found\r\nLocation: /real.jpg\r\nContent-Length: 0\r\n\r\n")
    else:
        answer(request, jpeg(1))


def has_a_preview_behind(request: BaseHTTPRequestHandler) -> None:
    answer(request, jpeg(1) + noisy(2))


@pytest.mark.parametrize(
    "serve", [hangs_up_after_each, sends_no_end, sends_chunks, sends_elsewhere, has_a_preview_behind]
)
def test_odd_answers_of_one_picture_are_read(web_server: WebServers, watch: Watch, serve: Serve) -> None:
    watching = watch(web_server(serve).url("snap.jpg"), every_s=0.2)
    watching.until_frames(5)
    assert watching.states == ["connecting", "live"]
    assert {stamp.epoch for stamp in watching.stamps} == {0}
    assert set(watching.sizes) == {(96, 64)}


def test_digest_is_asked_for_once_for_all_pictures(web_server: WebServers, watch: Watch) -> None:
    refused = 0
    challenge = 'Digest realm="cam", nonce="n", qop="auth"'

    def serve(request: BaseHTTPRequestHandler) -> None:
        nonlocal refused
        if "nonce=" not in request.headers.get("Authorization", ""):
            refused += 1
            request.wfile.write(f"HTTP/1.1 401 No\r\nWWW-Authenticate: {challenge}\r\n\r\n".encode())
        else:
            answer(request, jpeg(refused))

    watching = watch(web_server(serve).url("snap.jpg"), every_s=0.2)
    watching.until_frames(6)
    assert refused == 1


@pytest.mark.parametrize(
    ("spoil", "state", "words"),
    [
        (lambda request: request.send_error(503), "lost", "it answers with 503 Service Unavailable"),
        (lambda request: request.connection.close(), "lost", "it ends the connection instead of answering"),
        (lambda request: answer(request, b"<html>", "text/html"), "gone", "it answers with a web page"),
        (lambda request: answer(request, jpeg(1)[:300]), "lost", "it sends a picture without its end"),
        (lambda request: request.send_error(401), "unauthorised", "refuses the user or password"),
        (lambda request: request.send_error(404), "gone", "no stream at the path"),
    ],
    ids=["503", "hangs-up", "web-page", "broken-off", "401", "404"],
)
def test_an_address_that_stops_answering_is_told(
    still: Still, watch: Watch, monkeypatch: pytest.MonkeyPatch, spoil: Serve, state: str, words: str
) -> None:
    monkeypatch.setattr(timeouts, "AFTER_STALLED_S", 2.0)
    watching = watch(still.server.url("snap.jpg"), every_s=0.2, stalled_s=1)
    watching.until_frames()
    still.spoil = spoil
    watching.until_state(state)
    assert words in why(watching)
    # A camera that refuses is asked less often, at once: cameras lock accounts.
    assert ("stalled" in watching.states) == (words[:3] == "it ")
    still.spoil = None
    watching.until_state("live", within_s=90)
    watching.until(lambda: watching.stamps[-1].epoch == 1)


def breaks_off_by_a_reset(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: 700\r\n\r\n" + jpeg(1)[:400])
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.connection.close()


def test_a_connection_that_is_reset_is_told_as_that(web_server: WebServers, watch: Watch) -> None:
    watching = watch(web_server(breaks_off_by_a_reset).url("snap.jpg"))
    watching.until_state("lost")
    assert "Connection reset by peer" in why(watching)


def test_refused_connection_is_the_reason_of_a_loss(
    still: Still, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "AFTER_STALLED_S", 1.0)
    watching = watch(still.server.url("snap.jpg"), every_s=0.2, stalled_s=1)
    watching.until_frames()
    still.server.close()
    watching.until_state("lost")
    assert "Connection refused" in why(watching)


def test_one_request_that_fails_ends_no_epoch(still: Still, watch: Watch) -> None:
    watching = watch(still.server.url("snap.jpg"), every_s=0.2)
    watching.until_frames()
    for spoil in (
        lambda request: request.send_error(500),
        lambda request: request.connection.close(),
        lambda request: answer(request, b"<html>", "text/html"),
        breaks_off_by_a_reset,
    ):
        still.spoil = spoil
        asked = len(still.server.asked)
        watching.until(lambda asked=asked: len(still.server.asked) > asked)
        still.spoil = None
        watching.until_frames()
    assert {stamp.epoch for stamp in watching.stamps} == {0}
    assert "lost" not in watching.states


def test_a_stop_ends_the_wait_for_the_next_picture(still: Still, watch: Watch) -> None:
    watching = watch(still.server.url("snap.jpg"), every_s=3600)
    watching.until_frames(1)
    assert watching.stop() < 5


# --- digests


@pytest.mark.parametrize("algorithm", ["SHA-512-256", "SHA-256-sess"])
def test_a_camera_with_a_newer_digest_lets_us_in(web_server: WebServers, watch: Watch, algorithm: str) -> None:
    challenge = f'Digest realm="cam", nonce="n", qop="auth", algorithm={algorithm}'

    def is_right(header: str, path: str) -> bool:
        given = dict(item.partition("=")[::2] for item in header.removeprefix("Digest ").split(", "))
        expected = Authorization(Login("viewer", "geheim"), lambda: given["cnonce"].strip('"'))
        assert expected.take([challenge])
        for _ in range(int(given["nc"], 16)):
            made = expected.header("GET", path)
        return given["response"] in made

    def serve(request: BaseHTTPRequestHandler) -> None:
        header = request.headers.get("Authorization", "")
        if header and is_right(header, request.path):
            answer(request, jpeg(1))
        else:
            request.wfile.write(f"HTTP/1.1 401 No\r\nWWW-Authenticate: {challenge}\r\n\r\n".encode())

    watching = watch(web_server(serve).url("snap.jpg"), every_s=0.2)
    watching.until_frames(3)


def test_a_login_that_is_not_known_is_no_wrong_password(web_server: WebServers, watch: Watch) -> None:
    head = b'HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm="r", nonce="n", algorithm=SHA-1\r\n\r\n'
    watching = watch(web_server(lambda request: request.wfile.write(head) and None).url("snap.jpg"))
    watching.until_state("unauthorised")
    assert "it asks for a kind of login that camgraph does not know: Digest by SHA-1" in why(watching)
    assert "password of `url` were not sent" in why(watching)


# --- addresses as people write them


@pytest.mark.parametrize("around", [" ", "\n", "\t \r\n"])
def test_blanks_around_an_address_are_left_out(still: Still, watch: Watch, around: str) -> None:
    watching = watch(f"{around}{still.server.url('snap.jpg')}{around}", every_s=0.2)
    watching.until_frames(1)
    assert still.server.paths()[0] == "/snap.jpg"


def test_zone_of_an_address_is_not_sent(watch: Watch) -> None:
    heard: list[bytes] = []

    def serve() -> None:
        listener.settimeout(60)
        client, _ = listener.accept()
        with client:
            heard.append(client.recv(4096))
            client.sendall(HEAD + part(jpeg(1)) + part(jpeg(2)))

    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        watching = watch(f"http://[::1%1]:{port}/stream")
        watching.until_frames(2)
        thread.join(60)
    assert f"Host: [::1]:{port}\r\n".encode() in heard[0]
