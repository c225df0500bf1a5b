"""What FFmpeg gets of a camera over HTTP, and the camera of FFmpeg."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import av
import pytest
from camgraph_test_stages.waiting import until
from tests.stages.video.live.gate.conftest import WITHIN_S, Callers, Line, Listener, Listeners

from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.gate.gate import Road
from camgraph.stages.video.live.gate.web_gate import MOST_WITH_COOKIES, WebGate

Asking = Callable[[WebGate], "Asked"]


def gate_of(port: int, *, follow: bool = False) -> WebGate:
    url = f"http://viewer:geheim@127.0.0.1:{port}/x"
    return WebGate(Road(url, frozenset({"127.0.0.1"}), follow, connect_s=WITHIN_S))


class Asked:
    """`ask`, in a thread of its own."""

    def __init__(self, gate: WebGate) -> None:
        self._gate = gate
        self._outcome: list[str | Exception] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome.append(self._gate.ask())
        except Exception as error:  # noqa: BLE001 - whatever it is
            self._outcome.append(error)

    def outcome(self) -> str | Exception:
        self._thread.join(WITHIN_S)
        return self._outcome[0]


@pytest.fixture
def ask() -> Iterator[Asking]:
    """Asks as the thread that reads does; over at the end of the test."""
    with ExitStack() as stack:

        def begin(gate: WebGate) -> Asked:
            asked = Asked(gate)
            stack.callback(asked.outcome)
            stack.callback(gate.close)
            return asked

        yield begin


def begins(gate: WebGate) -> str:
    """What all addresses of a gate begin with."""
    return gate.url.partition("/camera/")[0]


def request(address: str, more: str = "") -> str:
    return f"GET /{address.split('/', 3)[3]} HTTP/1.1\r\nHost: x\r\n{more}\r\n"


def redirect(location: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()


def playlist(name: str) -> bytes:
    text = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{name}\n".encode()
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text


NOWHERE = [
    "http://[x/y",
    "//[x/y",
    "http://me:geheim@[other/",
    "http://other:99999/",
    "rtsp://127.0.0.1:9/y",
    "file:///etc/hostname",
]


# --- redirects


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("location", NOWHERE)
def test_a_redirect_that_leads_nowhere_is_the_cameras_fault(
    listener: Listeners, ask: Asking, location: str, *, follow: bool
) -> None:
    camera = listener()
    asked = ask(gate_of(camera.port, follow=follow))
    camera.next().say(redirect(location))
    why = asked.outcome()
    assert isinstance(why, Dropped)
    assert "which is no address of http or https" in str(why)
    assert "geheim" not in str(why)
    assert str(why).isprintable()


def test_what_is_shown_of_a_redirect_moves_no_cursor(listener: Listeners, ask: Asking) -> None:
    camera = listener()
    asked = ask(gate_of(camera.port))
    camera.next().say(redirect("http://other/\x1b[31mred\x1b]0;title\x07"))
    why = asked.outcome()
    assert "redirects to http://other:80/" in str(why)
    assert str(why).isprintable()


@pytest.mark.parametrize("location", NOWHERE)
def test_so_it_is_when_ffmpeg_has_asked(listener: Listeners, call: Callers, location: str) -> None:
    camera = listener()
    with gate_of(camera.port, follow=True) as gate:
        client = call(gate.url).say(request(gate.url))
        camera.next().say(redirect(location))
        assert client.all() == b""
        until(lambda: isinstance(gate.problem, Dropped))


@pytest.mark.parametrize("name", [*NOWHERE, "http://me:geheim@ho\N{ACCOUNT OF}st/"])
def test_a_playlist_names_addresses_of_http_alone(listener: Listeners, call: Callers, name: str) -> None:
    camera = listener()
    with gate_of(camera.port, follow=True) as gate:
        client = call(gate.url).say(request(gate.url))
        camera.next().say(playlist(name))
        assert client.all() == b""
        until(lambda: gate.problem is not None)
        assert "which is no address of HTTP" in str(gate.problem)
        assert "geheim" not in str(gate.problem)


def test_ffmpeg_goes_nowhere_either(listener: Listeners, call: Callers, ask: Asking) -> None:
    """It is FFmpeg that asks here: for the camera, then for the segment that its playlist names."""
    camera, elsewhere = listener(), listener()

    def serve() -> None:
        camera.next().say(playlist("a.ts")).hang_up()
        camera.next().say(redirect(f"http://127.0.0.1:{elsewhere.port}/b.ts")).hang_up()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with gate_of(camera.port) as gate:
        with pytest.raises(av.FFmpegError):
            av.open(gate.url, format="hls", timeout=(WITHIN_S, WITHIN_S)).close()
        assert f"redirects to http://127.0.0.1:{elsewhere.port}/b.ts" in str(gate.problem)
    thread.join(WITHIN_S)
    assert not elsewhere.was_called()


# --- answers


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (
            b"HTTP/1.0 200 Very\x0bwell\r\nContent-Type: video/mp2t\r\nServer: x\r\nLocation: http://other/\r\n"
            b"Set-Cookie: a=b\r\nContent-Length: 0003\r\n\r\nabcd",
            b"HTTP/1.1 200 -\r\nConnection: close\r\nContent-Type: video/mp2t\r\nContent-Length: 3\r\n\r\nabc",
        ),
        (
            b"HTTP/1.1 206 \r\nContent-Range: bytes 0-2/9\r\nAccept-Ranges: bytes\r\nContent-Length: 3x\r\n\r\nabc",
            b"HTTP/1.1 206 -\r\nConnection: close\r\nContent-Range: bytes 0-2/9\r\nAccept-Ranges: bytes\r\n\r\nabc",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 999\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            b"HTTP/1.1 200 -\r\nConnection: close\r\n\r\nabc",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: a\r\n b\x00c\r\nContent-Length: 1\r\n\r\n.",
            b"HTTP/1.1 200 -\r\nConnection: close\r\nContent-Type: a  b c\r\nContent-Length: 1\r\n\r\n.",
        ),
        (
            b"HTTP/1.1 404 \r\nContent-Length: 2\r\n\r\nno",
            b"HTTP/1.1 404 -\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno",
        ),
    ],
)
def test_an_answer_is_written_anew(listener: Listeners, call: Callers, answer: bytes, got: bytes) -> None:
    camera = listener()
    with gate_of(camera.port) as gate:
        client = call(gate.url).say(request(gate.url))
        camera.next().say(answer).hang_up()
        assert client.all() == got
        assert gate.problem is None


def test_ffmpeg_gets_the_answer_to_the_first_question(listener: Listeners, call: Callers, ask: Asking) -> None:
    camera = listener()
    with gate_of(camera.port) as gate:
        asked = ask(gate)
        server = camera.next()
        assert server.head().startswith(f"GET /x HTTP/1.1\r\nHost: 127.0.0.1:{camera.port}\r\n")
        server.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789")
        assert asked.outcome() == "stream"
        assert call(gate.url).say(request(gate.url)).all().endswith(b"Content-Length: 9\r\n\r\n123456789")
    assert not camera.was_called()


@pytest.mark.parametrize(
    "address",
    ["/camera/rtsp/127.0.0.1:9/x", "/camera/http/[x/y", "/other/http/127.0.0.1:9/x", "/camera/file//etc/hostname", ""],
)
def test_an_address_that_was_not_given_out_is_unknown(listener: Listeners, call: Callers, address: str) -> None:
    camera = listener()
    with gate_of(camera.port, follow=True) as gate:
        assert call(gate.url).say(request(begins(gate) + address)).head().startswith("HTTP/1.1 404 ")
        assert gate.problem is None


# --- cookies


def cookies_at(gate: WebGate, call: Callers, camera: Listener, number: int) -> str:
    """What is sent to the host of this number, which sets one again."""
    client = call(gate.url).say(request(f"{begins(gate)}/segment/http/127.0.0.{number}:{camera.port}/x"))
    server: Line = camera.next()
    [sent, *_] = [line for line in server.head().split("\r\n") if line.startswith("Cookie: ")] or [""]
    server.say(f"HTTP/1.1 200 OK\r\nSet-Cookie: at={number}; Path=/\r\nContent-Length: 0\r\n\r\n")
    assert " 200 " in client.head()
    return sent


def test_cookies_of_recent_hosts_are_kept(listener: Listeners, call: Callers) -> None:
    camera = listener("0.0.0.0")
    with gate_of(camera.port, follow=True) as gate:
        for number in range(1, MOST_WITH_COOKIES + 1):
            assert cookies_at(gate, call, camera, number) == ""
        assert cookies_at(gate, call, camera, 1) == "Cookie: at=1"
        assert cookies_at(gate, call, camera, 100) == ""
        assert cookies_at(gate, call, camera, 1) == "Cookie: at=1"
        assert cookies_at(gate, call, camera, 2) == ""
