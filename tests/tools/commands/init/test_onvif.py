"""Cameras that are found in the network: a simulated device, over real sockets on loopback."""

from __future__ import annotations

import base64
import hashlib
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.brokers import free_port
from camgraph_test_stages.dead_addresses import dead_address, name_host
from camgraph_test_stages.web_receiver import Reply, web_receiver

from camgraph.tools.commands.init import discovery, trial
from camgraph.tools.commands.init.cameras import CameraQuestions
from camgraph.tools.commands.init.dialog import Dialog
from camgraph.tools.commands.init.discovery import Device, device_of, discover
from camgraph.tools.commands.init.onvif import WrongPassword, stream_address
from camgraph.tools.commands.init.placing import Folder
from camgraph.tools.commands.init.soap import Login, SoapProblem, call, parsed, security
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

USER, PASSWORD = "viewer", "quiet<&>58"
AHEAD = timedelta(hours=3)
"""The clock of the device is wrong, and it refuses tokens that do not fit it."""
MULTICAST = "239.255.255.250"
LAUGHS = b"""<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><l>&b;</l>"""


def soap(body: str) -> bytes:
    return (
        f'<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body>{body}</s:Body></s:Envelope>'.encode()
    )


def match(services: str, name: str = "Ward%203") -> bytes:
    scopes = f"onvif://www.onvif.org/type/video_encoder onvif://www.onvif.org/name/{name}"
    return soap(
        '<d:ProbeMatches xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"><d:ProbeMatch>'
        f"<d:Scopes>{scopes}</d:Scopes><d:XAddrs>{services}</d:XAddrs></d:ProbeMatch></d:ProbeMatches>"
    )


class OnvifDevice:
    """Answers probes on a port of UDP, and calls on one of HTTP. `stream` is where it leads to."""

    def __init__(self, stream: str, group: str | None) -> None:
        self.stream = stream
        self.refused = 0
        self.answer: Callable[[str], tuple[int, bytes]] = self._answer
        device = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
                status, content = device.answer(asked)
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *values: Any) -> None:  # noqa: A002
                pass

        self._web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.service = f"http://127.0.0.1:{self._web.server_port}/onvif/device_service"
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if group:
            loopback = socket.if_nametoindex("lo")
            member = struct.pack("4s4si", socket.inet_aton(group), socket.inet_aton("127.0.0.1"), loopback)
            self._udp.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        self._udp.bind((group or "127.0.0.1", 0))
        self.group = (group or "127.0.0.1", int(self._udp.getsockname()[1]))
        self._threads = [threading.Thread(target=one) for one in (self._serve, self._answer_probes)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._web.shutdown()
        self._web.server_close()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
            ours.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            ours.sendto(b"end", self.group)
        for thread in self._threads:
            thread.join()
        self._udp.close()

    def _serve(self) -> None:
        self._web.serve_forever(poll_interval=0.02)

    def _answer_probes(self) -> None:
        while (asked := self._udp.recvfrom(1 << 16))[0] != b"end":
            assert b"NetworkVideoTransmitter" in asked[0]
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:  # not from the address of the group
                ours.bind(("127.0.0.1", 0))
                for one in (b"\x00rubbish", LAUGHS, match("http://10.0.0.99/onvif"), match(self.service)):
                    ours.sendto(one, asked[1])

    def _answer(self, asked: str) -> tuple[int, bytes]:
        if "GetSystemDateAndTime" in asked:
            now = datetime.now(UTC) + AHEAD
            date = f"<Date><Year>{now.year}</Year><Month>{now.month}</Month><Day>{now.day}</Day></Date>"
            clock = f"<Time><Hour>{now.hour}</Hour><Minute>{now.minute}</Minute><Second>{now.second}</Second></Time>"
            return 200, soap(f"<SystemDateAndTime><UTCDateTime>{clock}{date}</UTCDateTime></SystemDateAndTime>")
        if "GetCapabilities" in asked:
            return 200, soap(f"<Capabilities><Media><XAddr>{self.service}</XAddr></Media></Capabilities>")
        if not self._is_right(asked):
            self.refused += 1
            return 400, soap("<Fault><Code><Subcode><Value>ter:NotAuthorized</Value></Subcode></Code></Fault>")
        if "GetProfiles" in asked:
            return 200, soap('<m:P xmlns:m="urn:m"><m:Profiles token="main&amp;1"/><m:Profiles token="sub"/></m:P>')
        assert "<ProfileToken>main&amp;1</ProfileToken>" in asked
        return 200, soap(f"<GetStreamUriResponse><MediaUri><Uri>{self.stream}</Uri></MediaUri></GetStreamUriResponse>")

    def _is_right(self, asked: str) -> bool:
        parts = [re.search(rf"<(?:w|u):{name}[^>]*>([^<]*)<", asked) for name in ("Password", "Nonce", "Created")]
        if None in parts or f">{USER}<" not in asked:
            return False
        digest, nonce, created = (part[1] for part in parts if part)
        late = datetime.now(UTC) + AHEAD - datetime.fromisoformat(created)
        expected = hashlib.sha1(base64.b64decode(nonce) + created.encode() + PASSWORD.encode()).digest()
        return base64.b64decode(digest) == expected and abs(late) < timedelta(minutes=2)


@pytest.mark.parametrize(
    ("there", "created"), [(datetime.max, "9999-12-31T23:59:59.000Z"), (datetime.min, "0001-01-01T00:00:00.000Z")]
)
def test_clock_of_camera_at_either_end_of_time_is_no_error(there: datetime, created: str) -> None:
    """While its answer is on the way, our clock goes on."""
    ahead = there.replace(tzinfo=UTC) - datetime.now(UTC)
    hours = timedelta(hours=1 if ahead > timedelta() else -1)
    assert f">{created}<" in security(Login("admin", "secret", ahead + hours))


@contextmanager
def device(stream: str = "rtsp://127.0.0.1:9/main", group: str | None = None) -> Iterator[OnvifDevice]:
    one = OnvifDevice(stream, group)
    try:
        yield one
    finally:
        one.close()


def multicast_on_loopback() -> bool:
    """Whether this machine passes it on at all, asked without our client."""
    loopback = socket.if_nametoindex("lo")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as theirs, socket.socket(type=socket.SOCK_DGRAM) as ours:
        try:
            member = struct.pack("4s4si", socket.inet_aton(MULTICAST), bytes(4), loopback)
            theirs.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
            theirs.bind((MULTICAST, 0))
            theirs.settimeout(5)
            ours.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("4s4si", b"", b"", loopback))
            ours.sendto(b"x", theirs.getsockname())
            return theirs.recv(10) == b"x"
        except OSError:
            return False


@pytest.mark.parametrize("group", [None, MULTICAST])
def test_a_device_answers_a_probe(group: str | None) -> None:
    if group and not multicast_on_loopback():
        pytest.skip("no multicast on the loopback interface of this machine")
    with device(group=group) as one:
        assert discover(one.group, 1.0) == [Device("127.0.0.1", "Ward 3", one.service)]


def test_it_gives_its_stream_to_who_knows_the_password() -> None:
    with device() as one:
        assert stream_address(one.service, USER, PASSWORD) == one.stream
        assert one.refused == 0
        with pytest.raises(WrongPassword):
            stream_address(one.service, USER, "wrong")
        assert one.refused == 1, "a wrong password is tried once"


@pytest.mark.parametrize(
    "stream", ["rtsp://10.0.0.99/main", "file:///etc/passwd", "rtsp://u:p@127.0.0.1/", "", "rtsp://["]
)
def test_it_leads_nowhere_else(stream: str) -> None:
    with device(stream) as one, pytest.raises(SoapProblem, match="another machine"):
        stream_address(one.service, USER, PASSWORD)


def test_a_password_goes_to_no_other_machine() -> None:
    """Its media service is said to be elsewhere: the usual path of the device itself is asked."""
    with device() as one:
        own = one.service
        one.service = "http://10.0.0.99/onvif"
        assert stream_address(own, USER, PASSWORD) == one.stream


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (LAUGHS, "document type"),
        (b"<a>" + b" " * 300_000 + b"</a>", "too long"),
        (b"\xff\xfe nothing", "no XML"),
        (b'<?xml version="1.0" encoding="none"?><a/>', "no XML"),
    ],
)
def test_hostile_answers(content: bytes, why: str) -> None:
    with pytest.raises(SoapProblem, match=why):
        parsed(content)
    with device() as one:
        one.answer = lambda _asked: (200, content)
        with pytest.raises(SoapProblem, match=why):
            call(one.service, "<a/>")


def test_an_answer_that_drips_has_its_bound() -> None:
    """A byte now and then keeps each read alive; all of them together have one limit."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            client, _ = server.accept()
            with client:
                try:
                    client.sendall(b"HTTP/1.1 200 OK\r\n")
                    while not over.wait(0.05):
                        client.sendall(b"X-A: b\r\n")
                except OSError:
                    pass

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(SoapProblem, match="no answer"):
                call(f"http://127.0.0.1:{server.getsockname()[1]}/", "<a/>", within_s=0.4)
        finally:
            over.set()
            thread.join()


def test_nobody_answers_there() -> None:
    with pytest.raises(SoapProblem, match="no answer"):
        call(f"http://127.0.0.1:{free_port()}/", "<a/>")
    began = time.monotonic()
    assert discover(("127.0.0.1", free_port()), 0.2) == []
    assert time.monotonic() >= began + 0.2


def test_its_name_moves_no_cursor() -> None:
    found = device_of(match("http://127.0.0.1/a", "%1B[31mred%0A" + "x" * 100), "127.0.0.1")
    assert found is not None
    assert found.name.startswith("\\x1b[31mred\\n")
    assert len(found.name) < 60


class Typist(Dialog):
    """Answers in this order, and keeps what was asked and said."""

    def __init__(self, *answers: str) -> None:
        super().__init__(asks=True)
        self._answers = list(answers)
        self.seen: list[str] = []

    def show(self, text: str = "", indent: str = "", hanging: str | None = None) -> None:
        self.seen.append(text)

    def ask(self, question: str, default: str = "", *, hidden: bool = False) -> str:
        self.seen.append(question)
        return self._answers.pop(0) or default

    def confirm(self, question: str, *, default: bool) -> bool:
        return self.ask(question, "y" if default else "n") == "y"


def test_a_camera_that_was_found_is_tried_at_its_own_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "LOOK_S", 0.3)
    monkeypatch.setattr(discovery, "LISTEN_S", 1.0)
    clip = ClipSettings(width=160, height=96, fps=10, seconds=2)
    camera = CameraSettings(name="odd.path", clip=clip, auth="digest", user=USER, password=PASSWORD)
    with RtspSimulator([camera]) as simulator, Folder(tmp_path / "night", replaces=False) as folder:
        [streaming] = simulator.cameras
        with device(f"rtsp://127.0.0.1:{streaming.port}/odd.path") as one:
            somebody = Typist("1", USER, "wrong", USER, PASSWORD, "", "", "")
            questions = CameraQuestions(somebody, folder, {}, tries=True, group=one.group)
            questions.ask(search=True)
            assert one.refused == 1
        [found] = questions.cameras
        assert (found.name, found.address.place) == ("Ward-3", f"rtsp://127.0.0.1:{streaming.port}/odd.path")
        assert "1  127.0.0.1  Ward 3" in " ".join(somebody.seen)
        assert (tmp_path / "night" / "Ward-3.jpg").is_file()
        assert not any(PASSWORD in text for text in somebody.seen)


def test_dead_ipv6_address_of_a_device_holds_up_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    name_host(monkeypatch, "two.test", "::1", "127.0.0.1")
    with web_receiver() as device, dead_address(device.port):
        device.reply = lambda _: Reply(200, body=soap("<there/>"))
        status, _ = call(f"http://two.test:{device.port}/onvif", "<ask/>", within_s=40.0)
    assert status == 200
