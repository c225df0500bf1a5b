"""What FFmpeg gets of a camera over RTSP, and the camera of FFmpeg."""

from __future__ import annotations

import socket
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import av
import pytest
from camgraph_test_stages.waiting import until
from tests.stages.video.live.gate.conftest import WITHIN_S, Callers, Line, Listener, Listeners

from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.gate.gate import Road
from camgraph.stages.video.live.gate.rtsp_gate import RtspGate, codec_in

ScriptedCameras = Callable[..., Any]


def gate_of(port: int, *, follow: bool = False) -> RtspGate:
    url = f"rtsp://viewer:geheim@127.0.0.1:{port}/x"
    return RtspGate(Road(url, frozenset({"127.0.0.1"}), follow, connect_s=WITHIN_S))


def open_by_ffmpeg(gate: RtspGate, transport: str = "tcp") -> None:
    """For real; raises av.FFmpegError."""
    av.open(gate.url, options={"rtsp_transport": transport}, timeout=(WITHIN_S, WITHIN_S)).close()


# --- redirects, by FFmpeg itself


@pytest.mark.parametrize("method", ["OPTIONS", "DESCRIBE", "SETUP"])
@pytest.mark.parametrize(
    "answer",
    [
        "RTSP/1.0 302 Moved\r\nCSeq: 99\r\nLocation: {}\r\n\r\n",
        "RTSP/1.0 302x Moved\r\nCSeq: 1\r\nLocation: {}\r\n\r\n",
        "RTSP/2.0 302 Moved\r\nCSeq: 1\r\nLocation: {}\r\n\r\n",
        "RTSP/ 302\nlocation:{}\n\n",
        "\r\nRTSP/1.0 302 Moved\r\nLocation: {}\r\n\r\n",
        "RTSP/1.0 302 Moved\r\nLocation: rtsp://127.0.0.1:1/\r\nLocation: {}\r\n\r\n",
        "RTSP/1.0 +302 Moved\r\nLocation: {}\r\n\r\n",
        "RTSP/1.0 0000302 Moved\r\nLocation: {}\r\n\r\n",
        "$\x00\x00\x01xRTSP/1.0 302 Moved\r\nLocation: {}\r\n\r\n",
        "PLAY x RTSP/1.0\r\nContent-Length: 0\r\n\r\nRTSP/1.0 302 Moved\r\nLocation: {}\r\n\r\n",
        "RTSP/1.0 302 Moved\r\nContent-Length: 1\r\nContent-Length: 0\r\nLocation: {}\r\n\r\n",
        "x\r\n\r\nRTSP/1.0 302 Moved\r\nLocation: {}\r\n\r\n",
    ],
)
def test_however_a_redirect_is_written_ffmpeg_goes_nowhere(
    listener: Listeners, scripted_camera: ScriptedCameras, method: str, answer: str
) -> None:
    elsewhere = listener()
    location = f"rtsp://127.0.0.1:{elsewhere.port}/y"
    camera = scripted_camera(answers={method: answer.format(location).encode})
    with gate_of(camera.port) as gate:
        with pytest.raises(av.FFmpegError):
            open_by_ffmpeg(gate)
        assert isinstance(gate.problem, Dropped)
    assert not elsewhere.was_called()


@pytest.mark.parametrize("location", ["http://127.0.0.1:9/x", "/x", "", "rtsp://[x/y", "file:///etc/hostname"])
def test_a_redirect_leads_to_rtsp_alone(scripted_camera: ScriptedCameras, location: str) -> None:
    camera = scripted_camera(answers={"OPTIONS": f"RTSP/1.0 302 Moved\r\nLocation: {location}\r\n\r\n".encode})
    with gate_of(camera.port, follow=True) as gate:
        with pytest.raises(av.FFmpegError):
            open_by_ffmpeg(gate)
        assert "which is no address of rtsp or rtsps" in str(gate.problem)


def test_redirect_message_is_printable_and_redacted(scripted_camera: ScriptedCameras) -> None:
    location = "rtsp://me:geheim@other/\x1b[31mred\x9b"
    camera = scripted_camera(answers={"OPTIONS": f"RTSP/1.0 302 Moved\r\nLocation: {location}\r\n\r\n".encode})
    with gate_of(camera.port) as gate:
        with pytest.raises(av.FFmpegError):
            open_by_ffmpeg(gate)
        assert "redirects to rtsp://other" in str(gate.problem)
        assert str(gate.problem).isprintable()


# --- media over UDP, by FFmpeg itself


@pytest.mark.parametrize("protocol", ["RTP/AVP", "RTP/AVP/UDP", "RTP/TCP"])
def test_media_over_udp_is_between_ffmpeg_and_the_camera(scripted_camera: ScriptedCameras, protocol: str) -> None:
    """FFmpeg sends packets to where it expects media from, before any comes."""
    with socket.socket(type=socket.SOCK_DGRAM) as here, socket.socket(type=socket.SOCK_DGRAM) as elsewhere:
        here.bind(("127.0.0.1", 0))
        port = here.getsockname()[1]
        elsewhere.bind(("127.0.0.2", port))
        here.settimeout(WITHIN_S)
        transport = f"{protocol};unicast;client_port=5000-5001;server_port={port}-{port};source=127.0.0.2"
        answer = f"RTSP/1.0 200 OK\r\nSession: 1\r\nTransport: {transport}\r\n\r\n"

        def play(client: socket.socket) -> None:
            here.recv(1000)
            client.shutdown(socket.SHUT_RDWR)

        camera = scripted_camera(answers={"SETUP": answer.encode}, play=play)
        with gate_of(camera.port) as gate, suppress(av.FFmpegError):
            open_by_ffmpeg(gate, "udp")
        assert "PLAY" in str(camera.asked)
        elsewhere.setblocking(False)
        with pytest.raises(BlockingIOError):
            elsewhere.recv(1000)


# --- message by message


class Talk:
    """A client that knows the address, and the camera."""

    def __init__(self, gate: RtspGate, client: Line, server: Listener) -> None:
        self.gate, self.client, self.server, self.camera = gate, client, server, server.next()

    def ask(self, method: str, more: str = "") -> str:
        """What the camera gets of a request."""
        self.client.say(f"{method} {self.gate.url} RTSP/1.0\r\nCSeq: 7\r\n{more}\r\n")
        return self.camera.head()

    def answer(self, text: str, body: bytes = b"") -> str:
        """What the client gets of an answer."""
        self.camera.say(text.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
        return self.client.head()

    def until_problem(self) -> str:
        until(lambda: self.gate.problem is not None)
        return str(self.gate.problem)


@pytest.fixture
def talk(listener: Listeners, call: Callers) -> Iterator[Talk]:
    server = listener()
    with gate_of(server.port) as gate:
        client = call(gate.url).say(f"OPTIONS {gate.url} RTSP/1.0\r\nCSeq: 6\r\n\r\n")
        talk = Talk(gate, client, server)
        assert talk.camera.head().startswith(f"OPTIONS rtsp://127.0.0.1:{server.port}/x RTSP/1.0\r\nCSeq: 1\r\n")
        assert talk.answer("RTSP/1.0 200 OK\nCSeq: 1\nPublic: PLAY") == (
            "RTSP/1.0 200 -\r\nCSeq: 6\r\nPublic: PLAY\r\n\r\n"
        )
        yield talk


def test_an_answer_is_written_anew_of_what_ffmpeg_needs(talk: Talk) -> None:
    talk.ask("DESCRIBE")
    got = talk.answer(
        "RTSP/1.0 200 Very\x0bwell\nserver: WMServer/9\nCSEQ: 2\nSession:1;timeout=60\nSession: 2\nLocation: rtsp://h/\n"
        "WWW-Authenticate: Basic realm=x\nAuthentication-Info: x\nX-Notice: 2101 x\nRealChallenge1: x\n"
        "x-Accept-Dynamic-Rate: 1\nTransport: RTP/AVP;source=h\nContent-Type: application/sdp\ncontent-length: 4\n"
        "Content-Base: rtsp://127.0.0.1/x/\n$: x\n: y\nno header",
        b"v=0\n",
    )
    assert got == (
        "RTSP/1.0 200 -\r\nCSeq: 7\r\nSession: 1;timeout=60\r\nContent-Base: rtsp://127.0.0.1/x/\r\n"
        "Content-Type: application/sdp\r\nContent-Length: 4\r\n\r\n"
    )
    talk.camera.hang_up()
    assert talk.client.all() == b"v=0\n"


@pytest.mark.parametrize("number", ["", "CSeq: 99\n", "CSeq: x\n"])
def test_answer_without_cseq_matches_pending_request(talk: Talk, number: str) -> None:
    """So FFmpeg takes it; some cameras give none, or a wrong one."""
    talk.ask("PLAY")
    assert talk.answer(f"RTSP/1.0 200 OK\n{number}Session: 1") == "RTSP/1.0 200 -\r\nCSeq: 7\r\nSession: 1\r\n\r\n"


def test_an_answer_that_nobody_waits_for_ends_the_connection(talk: Talk) -> None:
    assert talk.answer("RTSP/1.0 302 Moved\nCSeq: 1\nLocation: rtsp://127.0.0.1:9/") == ""
    assert "sends an answer without a request" in talk.until_problem()


@pytest.mark.parametrize("first", ["RTSP/1.0", "RTSP/1.0 OK", "RTSP/1.0 +200 OK", "RTSP/1.0 2000 OK", "RTSP/ 20"])
def test_a_status_that_cannot_be_read_ends_the_connection(talk: Talk, first: str) -> None:
    talk.ask("PLAY")
    assert talk.answer(f"{first}\nCSeq: 2") == ""
    assert "answers PLAY with a status that cannot be read" in talk.until_problem()


@pytest.mark.parametrize("length", ["+1073741824", "000001073741824", "4\nContent-Length: 1073741824"])
def test_a_length_is_the_same_to_ffmpeg_or_ends_the_connection(talk: Talk, length: str) -> None:
    talk.ask("DESCRIBE")
    assert talk.answer(f"RTSP/1.0 200 OK\nCSeq: 2\nContent-Length: {length}", b"v=0\n") == ""
    assert "sends something that no camera sends" in talk.until_problem()


@pytest.mark.parametrize("text", ["HTTP/1.1 200 OK", "v=0", "\x00", "setup rtsp://h/ RTSP/1.0"])
def test_other_text_ends_the_connection(talk: Talk, text: str) -> None:
    assert talk.answer(text) == ""
    assert "sends something that no camera sends" in talk.until_problem()


TCP, UDP = "RTP/AVP/TCP;unicast;interleaved=0-1", "RTP/AVP/UDP;unicast;client_port=5000-5001"


@pytest.mark.parametrize(
    ("wanted", "declared", "got"),
    [
        (TCP, "RTP/AVP/TCP;unicast;interleaved=0-1;ssrc=1;mode=play", "RTP/AVP/TCP;unicast;interleaved=0-1"),
        (TCP, "rtp/avp/tcp;Interleaved=2", "RTP/AVP/TCP;unicast;interleaved=2"),
        (TCP, "RTP/AVP/TCP; unicast; interleaved = 0-1 ,RTP/AVP;x", "RTP/AVP/TCP;unicast;interleaved=0-1"),
        (TCP, "RTP/AVP;unicast;source=10.0.0.1", "RTP/AVP/UDP;unicast;source=127.0.0.1"),
        (TCP, "RTP/TCP;source=10.0.0.1", "RTP/AVP/UDP;unicast;source=127.0.0.1"),
        (TCP, "tcp/tcp;source=10.0.0.1", "RTP/AVP/UDP;unicast;source=127.0.0.1"),
        (TCP, "RTP/AVP/TCP;interleaved=0-1/../;destination=10.0.0.1", "RTP/AVP/TCP;unicast"),
        (
            UDP,
            "RTP/AVP;unicast;destination=10.0.0.1;source=10.0.0.1;client_port=5000-5001;server_port=9-10",
            "RTP/AVP/UDP;unicast;client_port=5000-5001;server_port=9-10;source=127.0.0.1",
        ),
        (
            UDP,
            "RTP/AVP/UDP;server_port=7;SOURCE=10.0.0.1;source =10.0.0.1",
            "RTP/AVP/UDP;unicast;server_port=7;source=127.0.0.1",
        ),
        (UDP, "RTP/AVP;multicast;destination=224.1.1.1;port=1-2", "RTP/AVP/UDP;multicast;source=127.0.0.1"),
        ("RAW/RAW/UDP;unicast;client_port=1-2", "RAW/RAW/UDP;unicast", "RAW/RAW/UDP;unicast;source=127.0.0.1"),
    ],
)
def test_transports(talk: Talk, wanted: str, declared: str, got: str) -> None:
    talk.ask("SETUP", f"Transport: {wanted}\r\n")
    assert talk.answer(f"RTSP/1.0 200 OK\nCSeq: 2\nTransport: {declared}") == (
        f"RTSP/1.0 200 -\r\nCSeq: 7\r\nTransport: {got}\r\n\r\n"
    )


def test_what_the_camera_asks_and_ffmpeg_answers(talk: Talk) -> None:
    """An answer is none of FFmpeg's requests: it gets neither a number nor a password."""
    talk.ask("PLAY")
    signed = talk.camera.say('RTSP/1.0 401 No\r\nCSeq: 2\r\nWWW-Authenticate: Basic realm="x"\r\n\r\n').head()
    assert "Authorization: Basic " in signed
    assert "CSeq: 3\r\n" in signed
    assert talk.answer("RTSP/1.0 200 OK\nCSeq: 3").startswith("RTSP/1.0 200 -\r\nCSeq: 7\r\n")
    asked = talk.answer("OPTIONS * RTSP/1.0\nCSeq: 77\nSession: 1\nLocation: rtsp://h/\nContent-Length: 2", b"ab")
    assert asked == "OPTIONS * RTSP/1.0\r\nCSeq: 77\r\nSession: 1\r\n\r\n"
    assert talk.client.say("RTSP/1.0 200 OK\r\nCSeq: 77\r\n\r\n")
    assert talk.camera.head() == "RTSP/1.0 200 OK\r\nCSeq: 77\r\n\r\n"
    assert "CSeq: 4\r\n" in talk.ask("GET_PARAMETER")
    assert talk.answer("RTSP/1.0 200 OK").startswith("RTSP/1.0 200 -\r\nCSeq: 7\r\n")
    assert talk.gate.problem is None


def test_a_packet_takes_no_more_memory_than_its_size(talk: Talk) -> None:
    """Much more would be cut down at once, but riddle the heap with gaps: it grew by megabytes."""
    media = b"$\x00" + (1000).to_bytes(2, "big") + bytes(1000)
    tracemalloc.start()
    try:
        for _ in range(50):
            talk.camera.say(media)
            assert talk.client.exactly(len(media)) == media
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(50):
            talk.camera.say(media)
            assert talk.client.exactly(len(media)) == media
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 32 * len(media)


@pytest.mark.parametrize("rubbish", ["rubbish\r\n\r\n", "RTSP/1.0 x\r\nContent-Length: 99999999\r\n\r\n", "\x00"])
def test_what_a_client_does_wrong_is_for_that_client_alone(talk: Talk, call: Callers, rubbish: str) -> None:
    assert talk.client.say(rubbish).all() == b""
    assert talk.camera.all() == b""
    assert talk.gate.problem is None
    call(talk.gate.url).say(f"OPTIONS {talk.gate.url} RTSP/1.0\r\nCSeq: 1\r\n\r\n")
    assert talk.server.next().head().startswith("OPTIONS ")


@pytest.mark.parametrize(
    ("description", "codec"),
    [
        ("v=0\r\nm=video 0 RTP/AVP 96\r\nb=AS:5\r\na=rtpmap:96 H265/90000\r\na=control:a\r\n", "H265"),
        (
            "m=audio 0 RTP/AVP 97\na=rtpmap:97 PCMU/8000\nm=video 0 RTP/AVP 96\na=rtpmap:96 X-VENDOR.1/90000",
            "X-VENDOR.1",
        ),
        ("m=video 0 RTP/AVP 26\r\nm=audio 0 RTP/AVP 97\r\na=rtpmap:97 PCMU/8000\r\n", ""),
        ("m=video 0 RTP/AVP 96\r\na=rtpmap:96 <script>/1\r\n", "<script>"),
        ("", ""),
    ],
)
def test_codec_is_that_of_the_first_video(description: str, codec: str) -> None:
    assert codec_in(description) == codec
